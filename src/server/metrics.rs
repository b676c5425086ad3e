//! The metrics: names, bounded labels, handles that are resolved once.

use std::sync::{Mutex, OnceLock, PoisonError};

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::engine::finding::Action;
use crate::engine::kind::{KINDS, Kind};
use crate::engine::request::{Endpoint, Operation};
use crate::rules::REGISTRY;

/// Seconds; from 50 microseconds, for that is what a review costs, to the API server's own patience.
const BUCKETS: &[f64] =
    &[0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// What became of a review; a label value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Allowed, with a patch or without one: `plimsoll_fixes_total` counts the fixes.
    Allow,
    /// Denied.
    Deny,
    /// Deciding panicked: allowed by `/mutate`, left to failurePolicy by `/validate`.
    Panic,
}

impl Decision {
    /// The label value.
    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Deny => "deny",
            Decision::Panic => "panic",
        }
    }
}

/// What is counted for one review.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Which webhook.
    pub endpoint: Endpoint,
    /// The verb.
    pub operation: Operation,
    /// The kind, if it is one of ours; others share the label `other`.
    pub kind: Option<&'static Kind>,
    /// What became of it.
    pub decision: Decision,
    /// Whether nothing was to be stored.
    pub dry_run: bool,
}

const OPERATIONS: usize = 5;
const DECISIONS: usize = 3;
const ACTIONS: usize = 4;

/// All metrics of the process, in one registry.
pub struct Metrics {
    registry: Registry,
    reviews: IntCounterVec,
    review_handles: Vec<OnceLock<IntCounter>>,
    durations: [Histogram; 2],
    findings: IntCounterVec,
    finding_handles: Vec<OnceLock<IntCounter>>,
    unenforced: IntCounterVec,
    fixes: IntCounterVec,
    policy_info: IntGaugeVec,
    policy_reload_failures: IntCounter,
    rendering: Mutex<()>,
    bodies_rejected: IntCounterVec,
    requests_refused: IntCounterVec,
    anomalies: IntCounterVec,
    /// How long the look-ups of references to ConfigMaps and Secrets took, all those of a review together.
    pub config_lookup_duration: Histogram,
    /// End of the serving certificate's life, seconds since 1970.
    pub certificate_not_after: IntGauge,
    /// Certificate pairs that were refused while an older one stayed in use.
    pub certificate_reload_failures: IntCounter,
    /// TLS handshakes that failed: a client that does not trust us, or no TLS at all.
    pub handshake_failures: IntCounter,
    /// Reviews whose body is being read or that are being decided.
    pub requests_in_flight: IntGauge,
    /// Panics caught while deciding.
    pub panics: IntCounter,
    /// Log lines dropped because the output was slower than the reviews.
    pub records_dropped: IntCounter,
    /// Denied records not written because the same one was within the last minute.
    pub records_suppressed: IntCounter,
}

impl Metrics {
    /// All metrics, at zero.
    ///
    /// # Errors
    /// A name that is registered twice: a mistake in this file.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str| -> Result<IntCounter, prometheus::Error> {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let counters = |name: &str, help: &str, labels: &[&str]| -> Result<IntCounterVec, prometheus::Error> {
            let counters = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counters.clone()))?;
            Ok(counters)
        };
        let gauge = |name: &str, help: &str| -> Result<IntGauge, prometheus::Error> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };

        let durations = HistogramVec::new(
            HistogramOpts::new("plimsoll_review_duration_seconds", "From the request's headers to the answer.")
                .buckets(BUCKETS.to_vec()),
            &["endpoint"],
        )?;
        registry.register(Box::new(durations.clone()))?;
        let duration = |endpoint: Endpoint| durations.get_metric_with_label_values(&[endpoint.as_str()]);
        let config_lookup_duration = Histogram::with_opts(
            HistogramOpts::new(
                "plimsoll_config_lookup_duration_seconds",
                "Look-ups of ConfigMaps and Secrets, all those of a review together.",
            )
            .buckets(BUCKETS.to_vec()),
        )?;
        registry.register(Box::new(config_lookup_duration.clone()))?;
        let policy_info =
            IntGaugeVec::new(Opts::new("plimsoll_policy_info", "1 for the policy in force, by its hash."), &["hash"])?;
        registry.register(Box::new(policy_info.clone()))?;

        let cells = |count: usize| (0..count).map(|_| OnceLock::new()).collect();
        Ok(Metrics {
            reviews: counters(
                "plimsoll_reviews_total",
                "Reviews decided.",
                &["endpoint", "operation", "kind", "decision", "dry_run"],
            )?,
            review_handles: cells(2 * OPERATIONS * (KINDS.len() + 1) * DECISIONS * 2),
            durations: [duration(Endpoint::Mutate)?, duration(Endpoint::Validate)?],
            findings: counters(
                "plimsoll_findings_total",
                "Findings of /validate, by what they did.",
                &["rule", "action"],
            )?,
            finding_handles: cells(REGISTRY.len() * ACTIONS),
            unenforced: counters(
                "plimsoll_unenforced_findings_total",
                "Findings that would deny, did the policy not say `enforcement: warn`.",
                &["rule"],
            )?,
            fixes: counters("plimsoll_fixes_total", "Fixes put into a patch.", &["rule"])?,
            policy_info,
            bodies_rejected: counters(
                "plimsoll_bodies_rejected_total",
                "Requests whose body is no review that can be decided on.",
                &["reason"],
            )?,
            requests_refused: counters(
                "plimsoll_requests_refused_total",
                "Requests answered 503, so that failurePolicy decides.",
                &["reason"],
            )?,
            anomalies: counters("plimsoll_anomalies_total", "Oddities in reviews that were decided.", &["reason"])?,
            policy_reload_failures: counter(
                "plimsoll_policy_reload_failures_total",
                "Policies refused; the last good one stays in force.",
            )?,
            rendering: Mutex::new(()),
            config_lookup_duration,
            certificate_not_after: gauge(
                "plimsoll_certificate_not_after_seconds",
                "End of the serving certificate's life, seconds since 1970.",
            )?,
            certificate_reload_failures: counter(
                "plimsoll_certificate_reload_failures_total",
                "Certificate pairs refused; the last good one stays in use.",
            )?,
            handshake_failures: counter("plimsoll_tls_handshake_failures_total", "TLS handshakes that failed.")?,
            requests_in_flight: gauge("plimsoll_requests_in_flight", "Reviews being read or decided.")?,
            panics: counter("plimsoll_panics_total", "Panics caught while deciding.")?,
            records_dropped: counter(
                "plimsoll_records_dropped_total",
                "Log lines dropped because the output was too slow or closed.",
            )?,
            records_suppressed: counter(
                "plimsoll_records_suppressed_total",
                "Denied records not written because the same one was within the last minute.",
            )?,
            registry,
        })
    }

    /// Counts one review.
    pub fn review(&self, counted: Counted, seconds: f64) {
        let Counted { endpoint, operation, kind, decision, dry_run } = counted;
        let kind_index = kind.and_then(|row| KINDS.iter().position(|known| std::ptr::eq(known, row)));
        let mut index = endpoint as usize;
        index = index * OPERATIONS + operation as usize;
        index = index * (KINDS.len() + 1) + kind_index.unwrap_or(KINDS.len());
        index = index * DECISIONS + decision as usize;
        index = index * 2 + usize::from(dry_run);
        let labels = [
            endpoint.as_str(),
            operation.as_str(),
            kind.map_or("other", |row| row.kind),
            decision.as_str(),
            if dry_run { "true" } else { "false" },
        ];
        count(&self.reviews, self.review_handles.get(index), &labels);
        self.durations[endpoint as usize].observe(seconds);
    }

    /// Counts one finding, and whether it would deny were denials enforced.
    pub fn finding(&self, rule: &str, action: Action, unenforced: bool) {
        if unenforced {
            count(&self.unenforced, None, &[rule]);
        }
        let index = REGISTRY.binary_search_by_key(&rule, |known| known.meta().id);
        let handle = index.ok().and_then(|index| self.finding_handles.get(index * ACTIONS + action as usize));
        count(&self.findings, handle, &[rule, action.as_str()]);
    }

    /// Counts one fix.
    pub fn fix(&self, rule: &'static str) {
        count(&self.fixes, None, &[rule]);
    }

    /// Counts a body that is no review.
    pub fn body_rejected(&self, reason: &'static str) {
        count(&self.bodies_rejected, None, &[reason]);
    }

    /// Counts a request that was not decided on for reasons of our own.
    pub fn refused(&self, reason: &'static str) {
        count(&self.requests_refused, None, &[reason]);
    }

    /// Counts an oddity.
    pub fn anomaly(&self, reason: &'static str) {
        count(&self.anomalies, None, &[reason]);
    }

    /// All metrics in the Prometheus text format.
    ///
    /// # Errors
    /// What the encoder says; it should say nothing.
    pub fn render(&self, policy: PolicyState<'_>) -> Result<String, prometheus::Error> {
        // Scrapes that overlap would see one another's half-set values.
        let _one_at_a_time = self.rendering.lock().unwrap_or_else(PoisonError::into_inner);
        self.policy_info.reset();
        if let Some(hash) = policy.hash {
            self.policy_info.get_metric_with_label_values(&[hash])?.set(1);
        }
        let uncounted = policy.reload_failures.saturating_sub(self.policy_reload_failures.get());
        self.policy_reload_failures.inc_by(uncounted);
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

/// What the policy's store knows at the time of a scrape.
#[derive(Debug, Clone, Copy, Default)]
pub struct PolicyState<'a> {
    /// Hash of the policy in force.
    pub hash: Option<&'a str>,
    /// Policies that were refused while an older one stayed in force.
    pub reload_failures: u64,
}

/// Adds one, through the handle if there is one. A wrong number of labels cannot be, and must not panic.
fn count(family: &IntCounterVec, handle: Option<&OnceLock<IntCounter>>, labels: &[&str]) {
    if let Some(counter) = handle.and_then(OnceLock::get) {
        counter.inc();
    } else if let Ok(counter) = family.get_metric_with_label_values(labels) {
        counter.inc();
        if let Some(handle) = handle {
            handle.get_or_init(|| counter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kind;

    #[test]
    fn one_series_a_combination_and_foreign_kinds_share_one() {
        let metrics = Metrics::new().unwrap();
        let counted = Counted {
            endpoint: Endpoint::Mutate,
            operation: Operation::Create,
            kind: kind::lookup("apps", "Deployment"),
            decision: Decision::Allow,
            dry_run: false,
        };
        metrics.review(counted, 0.000_07);
        metrics.review(counted, 0.000_07);
        metrics.review(Counted { kind: None, decision: Decision::Allow, dry_run: true, ..counted }, 0.1);
        let text = metrics.render(PolicyState { hash: Some("abc"), reload_failures: 2 }).unwrap();
        for line in [
            r#"plimsoll_reviews_total{decision="allow",dry_run="false",endpoint="mutate",kind="Deployment",operation="CREATE"} 2"#,
            r#"plimsoll_reviews_total{decision="allow",dry_run="true",endpoint="mutate",kind="other",operation="CREATE"} 1"#,
            r#"plimsoll_review_duration_seconds_bucket{endpoint="mutate",le="0.00005"} 0"#,
            r#"plimsoll_review_duration_seconds_bucket{endpoint="mutate",le="0.0001"} 2"#,
            r#"plimsoll_policy_info{hash="abc"} 1"#,
            "plimsoll_policy_reload_failures_total 2",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        assert!(!metrics.render(PolicyState::default()).unwrap().contains("plimsoll_policy_info{"));
    }

    #[test]
    fn no_two_combinations_share_a_handle() {
        let metrics = Metrics::new().unwrap();
        let operations =
            [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect, Operation::Other];
        let decisions = [Decision::Allow, Decision::Deny, Decision::Panic];
        for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
            for operation in operations {
                for kind in KINDS.iter().map(Some).chain([None]) {
                    for decision in decisions {
                        for dry_run in [false, true] {
                            metrics.review(Counted { endpoint, operation, kind, decision, dry_run }, 0.0);
                        }
                    }
                }
            }
        }
        let text = metrics.render(PolicyState::default()).unwrap();
        let series: Vec<_> = text.lines().filter(|line| line.starts_with("plimsoll_reviews_total{")).collect();
        assert_eq!(series.len(), 2 * 5 * (KINDS.len() + 1) * decisions.len() * 2);
        assert!(series.iter().all(|line| line.ends_with(" 1")));
    }
}

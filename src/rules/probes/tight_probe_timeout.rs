//! A probe's timeout makes slow answers failures, or is longer than the time between two tries.
//!
//! ## What it does
//!
//! Looks at the probes of regular containers and native sidecars. Finds a `timeoutSeconds` below `minSeconds`, which the
//! API's default of 1 s is, one finding a container; probes that ask more often than every `minSeconds` have no room for
//! more and are passed over. Finds a `timeoutSeconds` above `periodSeconds`.
//!
//! ## Why it matters
//!
//! A garbage collection, a CPU limit or a busy node delays an answer by more than a second now and then. A liveness
//! probe takes that for death and restarts a process that would have answered. A timeout above the period is no help:
//! the next try waits for the last one, so that a hung process is noticed later than the numbers say.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! livenessProbe: {httpGet: {path: /livez, port: 8080}, timeoutSeconds: 1}
//! readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 5, timeoutSeconds: 10}
//! ```
//!
//! Good:
//!
//! ```yaml
//! livenessProbe: {httpGet: {path: /livez, port: 8080}, timeoutSeconds: 5}
//! readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 5, timeoutSeconds: 2}
//! ```
//!
//! ## Parameters
//!
//! `minSeconds` (1 to 60, default 2): the shortest timeout that is long enough.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::probe::{Probe, Role};
use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::LONG_RUNNING;
use crate::engine::pod::Container;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `tight-probe-timeout`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// The shortest timeout that is long enough, seconds, 1 to 60.
    #[schemars(range(min = 1, max = 60))]
    pub min_seconds: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { min_seconds: 2 }
    }
}

/// The rule.
pub struct TightProbeTimeout;

impl Rule for TightProbeTimeout {
    const META: Meta = Meta {
        id: "tight-probe-timeout",
        category: Category::Probes,
        since: "0.1",
        kinds: LONG_RUNNING,
        baseline: Action::Audit,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("tight_probe_timeout.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("minSeconds", params.min_seconds, 1..=60, "seconds")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for container in template.running() {
            let probes: Vec<Probe<'_>> = Role::ALL.into_iter().filter_map(|role| Probe::of(&container, role)).collect();
            findings.extend(too_short(&container, &probes, params));
            findings.extend(probes.iter().filter_map(|probe| above_the_period(&container, probe)));
        }
    }
}

fn place(container: &Container<'_>, probe: &Probe<'_>, message: String) -> Finding {
    let pointer = container.pointer(&[probe.role.member(), "timeoutSeconds"]);
    Finding::new(TightProbeTimeout::META.id, pointer, message).container(container.name())
}

/// One finding for all probes of the container, at the first of them.
fn too_short(container: &Container<'_>, probes: &[Probe<'_>], params: &Params) -> Option<Finding> {
    let short = |probe: &&Probe<'_>| {
        let numbers = probe.tolerance;
        numbers.timeout < params.min_seconds && numbers.period >= params.min_seconds
    };
    let short: Vec<&Probe<'_>> = probes.iter().filter(short).collect();
    let first = *short.first()?;
    let each = short.iter().map(|probe| {
        let consequence = match probe.role {
            Role::Liveness | Role::Startup => "restarts it",
            Role::Readiness => "takes its pod out of service",
        };
        let numbers = probe.tolerance;
        let answers = match numbers.failures {
            1 => "one answer".to_owned(),
            failures => format!("{failures} answers in a row"),
        };
        format!("its {} {consequence} after {answers} slower than {} s", probe.role.member(), numbers.timeout)
    });
    let message = format!("container {}: {}", quoted(container.name()), each.collect::<Vec<_>>().join(", "));
    let mend = short.iter().map(|probe| format!("{}:\n  timeoutSeconds: {}", probe.role.member(), params.min_seconds));
    Some(place(container, first, message).mend(mend.collect::<Vec<_>>().join("\n")))
}

fn above_the_period(container: &Container<'_>, probe: &Probe<'_>) -> Option<Finding> {
    let (numbers, member) = (probe.tolerance, probe.role.member());
    if numbers.timeout <= numbers.period {
        return None;
    }
    let message = format!(
        "container {}: the {member} waits {} s for an answer and asks every {} s: a process that hangs is noticed after {} \
         s, not after {} s",
        quoted(container.name()),
        numbers.timeout,
        numbers.period,
        numbers.failures * numbers.timeout,
        numbers.running()
    );
    Some(place(container, probe, message).mend(format!("{member}:\n  timeoutSeconds: {}", numbers.period)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, container, messages, passes_over_nonsense, refused};

    #[test]
    fn d10_the_apis_default_of_1_s_is_short_set_or_not() {
        let tcp = || json!({"tcpSocket": {"port": 80}});
        let set = json!({"tcpSocket": {"port": 80}, "timeoutSeconds": 1, "failureThreshold": 5});
        let found = container::<TightProbeTimeout>(json!({"readinessProbe": set, "livenessProbe": tcp()}));
        assert_eq!(
            messages(&found),
            ["container \"app\": its livenessProbe restarts it after 3 answers in a row slower than 1 s, its \
                 readinessProbe takes its pod out of service after 5 answers in a row slower than 1 s"]
        );
        assert_eq!(found[0].pointer, "/spec/template/spec/containers/0/livenessProbe/timeoutSeconds");
        assert_eq!(
            found[0].mend.as_deref(),
            Some("livenessProbe:\n  timeoutSeconds: 2\nreadinessProbe:\n  timeoutSeconds: 2")
        );
        let once = json!({"tcpSocket": {"port": 80}, "failureThreshold": 1});
        let found = container::<TightProbeTimeout>(json!({"startupProbe": once}));
        assert!(found[0].message.ends_with("its startupProbe restarts it after one answer slower than 1 s"));
        let fine = json!({"tcpSocket": {"port": 80}, "timeoutSeconds": 2});
        assert_eq!(container::<TightProbeTimeout>(json!({"startupProbe": fine})), []);
        // Every second there is no room for more.
        let quick = json!({"tcpSocket": {"port": 80}, "periodSeconds": 1});
        assert_eq!(container::<TightProbeTimeout>(json!({"startupProbe": quick})), []);
    }

    #[test]
    fn a_timeout_above_the_period() {
        let slow = json!({"tcpSocket": {"port": 80}, "periodSeconds": 5, "timeoutSeconds": 10});
        let found = container::<TightProbeTimeout>(json!({"livenessProbe": slow}));
        assert_eq!(
            messages(&found),
            [
                "container \"app\": the livenessProbe waits 10 s for an answer and asks every 5 s: a process that hangs is \
              noticed after 30 s, not after 15 s"
            ]
        );
        assert_eq!(found[0].mend.as_deref(), Some("livenessProbe:\n  timeoutSeconds: 5"));
        let equal = json!({"tcpSocket": {"port": 80}, "periodSeconds": 5, "timeoutSeconds": 5});
        assert_eq!(container::<TightProbeTimeout>(json!({"livenessProbe": equal})), []);
    }

    #[test]
    fn d05_sidecars_are_judged_plain_init_containers_are_not() {
        let init = json!([{"name": "i", "startupProbe": {"tcpSocket": {"port": 1}}},
            {"name": "s", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}}]);
        let spec = json!({"containers": [{"name": "a"}], "initContainers": init});
        let found = Judge::default().pod::<TightProbeTimeout>(spec);
        assert_eq!(found.iter().filter_map(|finding| finding.container.as_deref()).collect::<Vec<_>>(), ["s"]);
    }

    #[test]
    fn a_policy_may_want_more_or_nothing() {
        let probe = json!({"startupProbe": {"tcpSocket": {"port": 80}, "timeoutSeconds": 4}});
        let judge = |seconds: i64| Judge { params: json!({"minSeconds": seconds}), ..Judge::default() };
        assert_eq!(judge(5).container::<TightProbeTimeout>(probe).len(), 1);
        assert_eq!(judge(1).container::<TightProbeTimeout>(json!({"startupProbe": {"tcpSocket": {"port": 80}}})), []);
        assert_eq!(refused::<TightProbeTimeout>(json!({"minSeconds": 0})), "minSeconds");
        assert_eq!(refused::<TightProbeTimeout>(json!({"minSeconds": 61})), "minSeconds");
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<TightProbeTimeout>(&["startupProbe", "readinessProbe", "livenessProbe"]);
    }
}

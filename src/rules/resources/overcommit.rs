//! A limit promises far more than the request reserves.
//!
//! ## What it does
//! Reports limits above `cpuPercent` or `memoryPercent` of the request of the same resource, of the pod
//! (`spec.resources`) and of each container and native sidecar. A limit without a request is its own request, so there
//! is nothing to compare. What is no quantity at all is left to the API server.
//!
//! ## Why it matters
//! The scheduler fills nodes by requests, and containers live up to their limits. The further the two are apart, the
//! more pods are promised the same cpu and memory: in a rollout, when all new pods warm up at once, they get a
//! fraction of what they were measured with. Too little cpu makes probes time out; too little memory kills, first the
//! container that is furthest above its request.
//!
//! ## Example
//! Bad:
//! ```yaml
//! resources:
//!   requests: {cpu: 100m, memory: 64Mi}
//!   limits: {cpu: 2, memory: 1Gi}
//! ```
//! Good:
//! ```yaml
//! resources:
//!   requests: {cpu: 500m, memory: 512Mi}
//!   limits: {cpu: 2, memory: 1Gi}
//! ```
//!
//! ## Parameters
//! * `cpuPercent`: the largest limit, percent of the request, 100 to 100000; `400`.
//! * `memoryPercent`: the same for memory; `200`.
//!
//! ## Unknown facts
//! It needs none.

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::Class;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::resources::stanza::{Stanza, amount, stanzas, written};

/// One mebibyte in thousandths of a byte: memory that we tell or propose is a whole number of them.
const MEBIBYTE: i128 = 1024 * 1024 * 1000;

/// The rule `overcommit`.
pub struct Overcommit;

/// Parameters of `overcommit`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// The largest cpu limit, percent of the request, 100 to 100000.
    #[schemars(range(min = 100, max = 100_000))]
    pub cpu_percent: u32,
    /// The largest memory limit, percent of the request, 100 to 100000.
    #[schemars(range(min = 100, max = 100_000))]
    pub memory_percent: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { cpu_percent: 400, memory_percent: 200 }
    }
}

impl Rule for Overcommit {
    const META: Meta = Meta {
        id: "overcommit",
        category: Category::Resources,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("overcommit.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        let allowed = 100..=100_000;
        InvalidParam::unless_in("cpuPercent", params.cpu_percent, allowed.clone(), "percent of the request")?;
        InvalidParam::unless_in("memoryPercent", params.memory_percent, allowed, "percent of the request")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for stanza in stanzas(template) {
            // Plain init containers run alone: what they take beyond their request, the pod's later ones do not need.
            if matches!(stanza.class(), None | Some(Class::Regular | Class::Sidecar)) {
                findings.extend(judge(&stanza, "cpu", params.cpu_percent));
                findings.extend(judge(&stanza, "memory", params.memory_percent));
            }
        }
    }
}

fn judge(stanza: &Stanza<'_>, name: &str, allowed: u32) -> Option<Finding> {
    let (request, limit) = (stanza.milli("requests", name)?, stanza.milli("limits", name)?);
    let allowed = i128::from(allowed);
    if request < 0 || limit <= 0 || limit * 100 <= request * allowed {
        return None;
    }
    let (limit_text, request_text) =
        (written(&stanza.resources["limits"][name]), written(&stanza.resources["requests"][name]));
    let times = match request {
        0 => "more than any multiple of".to_owned(),
        _ => format!("{} times", tenths(limit * 10, request)),
    };
    let share = amount(name, request);
    let so = match name {
        "cpu" => format!("on a full node it gets {share} of the {} cpu that it may use", amount(name, limit)),
        _ => format!(
            "on a full node {} of it is not there, and who uses more than was requested is killed first",
            amount(name, whole_mebibytes(limit - request))
        ),
    };
    let message = format!(
        "{}: limits.{name} {} is {times} requests.{name} {}, above the allowed {} times: {so}",
        stanza.subject(),
        quoted(&limit_text),
        quoted(&request_text),
        tenths(allowed, 10),
    );
    // The smallest request that this limit may stand beside.
    let least = (limit * 100 + allowed - 1) / allowed;
    let least = if name == "cpu" { least } else { whole_mebibytes(least).min(limit) };
    let mend = format!("resources:\n  requests:\n    {name}: {}  # or lower the limit", amount(name, least));
    // How far above the bound, percent, so that cpu and memory of one container compare.
    let excess = if request == 0 { i128::MAX } else { (limit * 10_000 + request * allowed - 1) / (request * allowed) };
    let finding = stanza.finding(Overcommit::META.id, &["limits", name], message);
    Some(finding.measure(i64::try_from(excess).unwrap_or(i64::MAX)).mend(mend))
}

/// Memory rounded up to whole mebibytes.
fn whole_mebibytes(milli: i128) -> i128 {
    (milli + MEBIBYTE - 1) / MEBIBYTE * MEBIBYTE
}

/// `number / by`, in tenths and rounded up, as a decimal number: `45` by 1 is `4.5`.
fn tenths(number: i128, by: i128) -> String {
    let tenths = (number + by - 1) / by;
    if tenths % 10 == 0 { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{in_pod_spec, refused};

    fn container(resources: serde_json::Value) -> Vec<Finding> {
        in_pod_spec::<Overcommit>(json!({"containers": [{"name": "app", "resources": resources}]}), json!({}))
    }

    #[test]
    fn the_bound_itself_is_allowed_and_what_is_above_is_told_with_numbers() {
        let at = json!({"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": 1, "memory": "128Mi"}});
        assert_eq!(container(at), []);
        let above = container(json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "450m"}}));
        assert_eq!(above[0].pointer, "/spec/template/spec/containers/0/resources/limits/cpu");
        assert_eq!(
            above[0].message,
            "container \"app\": limits.cpu \"450m\" is 4.5 times requests.cpu \"100m\", above the allowed 4 times: on a full node it \
             gets 100m of the 450m cpu that it may use"
        );
        assert_eq!(above[0].mend.as_deref(), Some("resources:\n  requests:\n    cpu: 113m  # or lower the limit"));
        assert_eq!(above[0].measure, Some(113));
        let above = container(json!({"requests": {"memory": "100M"}, "limits": {"memory": "1Gi"}}));
        assert!(
            above[0]
                .message
                .contains("is 10.8 times requests.memory \"100M\", above the allowed 2 times: on a full node ")
        );
        assert_eq!(above[0].mend.as_deref(), Some("resources:\n  requests:\n    memory: 512Mi  # or lower the limit"));
    }

    #[test]
    fn h02_a_limit_alone_is_its_own_request() {
        assert_eq!(container(json!({"limits": {"cpu": 64, "memory": "64Gi"}})), []);
        assert_eq!(container(json!({"requests": {"cpu": "1m", "memory": "1Mi"}})), []);
    }

    #[test]
    fn a_request_of_zero_is_exceeded_by_any_limit() {
        let findings = container(json!({"requests": {"cpu": 0}, "limits": {"cpu": 1}}));
        assert_eq!(findings[0].measure, Some(i64::MAX));
        assert!(findings[0].message.contains("is more than any multiple of requests.cpu \"0\""));
        assert_eq!(container(json!({"requests": {"cpu": 0}, "limits": {"cpu": 0}})), []);
    }

    #[test]
    fn h03_h08_the_pod_and_what_runs_beside_each_other_is_judged() {
        let wide = json!({"requests": {"cpu": "10m"}, "limits": {"cpu": 1}});
        let spec = json!({
            "resources": wide,
            "containers": [{"name": "app", "resources": wide}],
            "initContainers": [{"name": "init", "resources": wide}, {"name": "proxy", "restartPolicy": "Always", "resources": wide}],
        });
        let findings = in_pod_spec::<Overcommit>(spec, json!({}));
        let containers: Vec<_> = findings.iter().map(|finding| finding.container.as_deref()).collect();
        assert_eq!(containers, [None, Some("app"), Some("proxy")]);
        assert_eq!(findings[0].pointer, "/spec/template/spec/resources/limits/cpu");
    }

    #[test]
    fn a23_h04_nonsense_is_skipped_and_the_largest_quantities_are_compared() {
        for resources in [
            json!("x"),
            json!({"requests": "x", "limits": {"cpu": 9}}),
            json!({"requests": {"cpu": "much"}, "limits": {"cpu": 9}}),
            json!({"requests": {"cpu": -1}, "limits": {"cpu": 9}}),
        ] {
            assert_eq!(container(resources), []);
        }
        let most = "9223372036854775807";
        assert_eq!(container(json!({"requests": {"memory": most}, "limits": {"memory": most}})), []);
        assert_eq!(container(json!({"requests": {"memory": "1m"}, "limits": {"memory": most}})).len(), 1);
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        assert_eq!(refused::<Overcommit>(json!({"cpuPercent": 99})), "cpuPercent");
        assert_eq!(refused::<Overcommit>(json!({"memoryPercent": 100_001})), "memoryPercent");
    }
}

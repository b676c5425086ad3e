//! The preStop hook holds a pod back longer than the outside world waits.
//!
//! ## What it does
//!
//! Finds preStop hooks of regular containers that surely take longer than `maxSeconds`: a `sleep` action, or an exec of
//! nothing but a `sleep`. Other hooks take a time that cannot be told. The grace period is not judged: a database may need
//! a long one.
//!
//! ## Why it matters
//!
//! Every pod that a rollout replaces takes that long to go, and each restart of a hung container too. What is meant to
//! be waited for is not: a spot or preemption notice leaves about 30 s or less, node shutdown and cluster autoscalers
//! have limits of their own, and `kubectl delete --grace-period` overrides all of it. A process that relies on a long
//! hook is killed in the middle of it.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! lifecycle: {preStop: {sleep: {seconds: 300}}}
//! ```
//!
//! Good:
//!
//! ```yaml
//! lifecycle: {preStop: {sleep: {seconds: 10}}}
//! ```
//!
//! ## Parameters
//!
//! `maxSeconds` (1 to 3600, default 120): the longest that a hook may take.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::LONG_RUNNING;
use crate::engine::plan::preset_seconds;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `pre-stop-too-long`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// The longest that a hook may take, seconds, 1 to 3600.
    #[schemars(range(min = 1, max = 3600))]
    pub max_seconds: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { max_seconds: 120 }
    }
}

/// The rule.
pub struct PreStopTooLong;

impl Rule for PreStopTooLong {
    const META: Meta = Meta {
        id: "pre-stop-too-long",
        category: Category::Termination,
        since: "0.1",
        kinds: LONG_RUNNING,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("pre_stop_too_long.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("maxSeconds", params.max_seconds, 1..=3600, "seconds")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for container in template.regular() {
            let Some(seconds) = preset_seconds(&container).filter(|seconds| *seconds > params.max_seconds) else {
                continue;
            };
            let message = format!(
                "container {}: its preStop hook takes {seconds} s, above {} s: every pod takes as long to go, and spot \
                 notices, node shutdowns and autoscalers do not wait for it",
                quoted(container.name()),
                params.max_seconds
            );
            findings.push(
                Finding::new(Self::META.id, container.pointer(&["lifecycle", "preStop"]), message)
                    .container(container.name())
                    .measure(seconds)
                    .mend("lifecycle: {preStop: {sleep: {seconds: 10}}}  # what load balancers need to be told"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, container, messages, passes_over_nonsense, refused};

    fn hook(action: serde_json::Value) -> serde_json::Value {
        json!({"lifecycle": {"preStop": action}})
    }

    #[test]
    fn e14_nobody_waits_two_minutes() {
        let found = container::<PreStopTooLong>(hook(json!({"sleep": {"seconds": 121}})));
        assert_eq!(
            messages(&found),
            ["container \"app\": its preStop hook takes 121 s, above 120 s: every pod takes as long to go, and spot \
              notices, node shutdowns and autoscalers do not wait for it"]
        );
        assert_eq!(found[0].pointer, "/spec/template/spec/containers/0/lifecycle/preStop");
        assert_eq!(found[0].measure, Some(121));
        let found = container::<PreStopTooLong>(hook(json!({"exec": {"command": ["sh", "-c", "sleep 300"]}})));
        assert_eq!(found[0].measure, Some(300));
    }

    #[test]
    fn e14_what_is_short_or_unknown_is_fine() {
        assert_eq!(container::<PreStopTooLong>(hook(json!({"sleep": {"seconds": 120}}))), []);
        assert_eq!(container::<PreStopTooLong>(hook(json!({"exec": {"command": ["/drain", "--wait=600"]}}))), []);
        let long_grace = json!({"terminationGracePeriodSeconds": 3600, "containers": [{"name": "db"}]});
        assert_eq!(Judge::default().pod::<PreStopTooLong>(long_grace), []);
    }

    #[test]
    fn parameters_bound_it() {
        let strict = Judge { params: json!({"maxSeconds": 20}), ..Judge::default() };
        assert_eq!(strict.container::<PreStopTooLong>(hook(json!({"sleep": {"seconds": 30}}))).len(), 1);
        assert_eq!(refused::<PreStopTooLong>(json!({"maxSeconds": 0})), "maxSeconds");
        assert_eq!(refused::<PreStopTooLong>(json!({"maxSeconds": 3601})), "maxSeconds");
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<PreStopTooLong>(&["lifecycle"]);
    }
}

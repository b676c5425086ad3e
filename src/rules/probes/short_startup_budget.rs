//! The startup probe grants so little that it kills slow starts itself.
//!
//! ## What it does
//!
//! Adds up what the startup probe of a regular container or native sidecar grants: `initialDelaySeconds` and
//! `failureThreshold` times `periodSeconds`. Less than `minSeconds` is found; where the policy's own fix of
//! `missing-startup-probe` grants less than that, its `budgetSeconds` is the bound.
//!
//! ## Why it matters
//!
//! A startup probe is there to give a start time. When its budget is over the container is killed and begins again, so
//! that a short one brings about what it should prevent. A long budget costs nothing: the probe is done at its first
//! success.
//!
//! ## Example
//!
//! Bad, for a start of more than 10 s is killed:
//!
//! ```yaml
//! startupProbe: {httpGet: {path: /livez, port: 8080}, periodSeconds: 5, failureThreshold: 2}
//! ```
//!
//! Good:
//!
//! ```yaml
//! startupProbe: {httpGet: {path: /livez, port: 8080}, periodSeconds: 5, failureThreshold: 30}
//! ```
//!
//! ## Parameters
//!
//! `minSeconds` (1 to 3600, default 30): the least that a startup probe must grant.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::missing_startup_probe::MissingStartupProbe;
use super::probe::{Probe, Role, never_fails, undeclared_port};
use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::LONG_RUNNING;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `short-startup-budget`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// The least that a startup probe must grant, seconds, 1 to 3600.
    #[schemars(range(min = 1, max = 3600))]
    pub min_seconds: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { min_seconds: 30 }
    }
}

/// The rule.
pub struct ShortStartupBudget;

impl Rule for ShortStartupBudget {
    const META: Meta = Meta {
        id: "short-startup-budget",
        category: Category::Probes,
        since: "0.1",
        kinds: LONG_RUNNING,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("short_startup_budget.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("minSeconds", params.min_seconds, 1..=3600, "seconds")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for container in template.running() {
            let Some(startup) = Probe::of(&container, Role::Startup) else { continue };
            // What can neither fail nor be asked kills nothing; other rules speak of such a probe.
            let kills = !never_fails(container.value.get(Role::Startup.member()))
                && undeclared_port(&container, startup.action).is_none();
            if !kills {
                continue;
            }
            let granted = startup.tolerance;
            let mut wanted = params.min_seconds;
            if context.fixes(MissingStartupProbe::META.id) {
                wanted = wanted.min(context.policy.params::<MissingStartupProbe>().budget_seconds);
            }
            if granted.seconds >= wanted {
                continue;
            }
            let message = format!(
                "container {}: its startupProbe kills a start of more than {} s ({}), and it begins again: a start \
                 should get {wanted} s at least",
                quoted(container.name()),
                granted.seconds,
                granted.sum()
            );
            let left = wanted - granted.delay;
            let failures = left / granted.period + i64::from(left % granted.period > 0);
            let pointer = container.pointer(&[Role::Startup.member(), "failureThreshold"]);
            findings.push(
                Finding::new(Self::META.id, pointer, message)
                    .container(container.name())
                    .measure(wanted - granted.seconds)
                    .mend(format!("startupProbe:\n  failureThreshold: {failures}")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, container, messages, passes_over_nonsense, refused};

    fn started(mut startup: serde_json::Value) -> serde_json::Value {
        startup["tcpSocket"] = json!({"port": 80});
        json!({"startupProbe": startup})
    }

    #[test]
    fn less_than_half_a_minute() {
        let found = container::<ShortStartupBudget>(started(json!({"periodSeconds": 7})));
        assert_eq!(
            messages(&found),
            [
                "container \"app\": its startupProbe kills a start of more than 21 s (failureThreshold 3 × periodSeconds \
              7), and it begins again: a start should get 30 s at least"
            ]
        );
        assert_eq!(found[0].pointer, "/spec/template/spec/containers/0/startupProbe/failureThreshold");
        assert_eq!(found[0].measure, Some(9));
        assert_eq!(found[0].mend.as_deref(), Some("startupProbe:\n  failureThreshold: 5"));
        let found = container::<ShortStartupBudget>(started(json!({"failureThreshold": 1, "initialDelaySeconds": 15})));
        assert!(
            found[0]
                .message
                .contains("more than 25 s (initialDelaySeconds 15 + failureThreshold 1 × periodSeconds 10)")
        );
        assert_eq!(found[0].mend.as_deref(), Some("startupProbe:\n  failureThreshold: 2"));
    }

    #[test]
    fn d10_the_apis_defaults_grant_30_s() {
        assert_eq!(container::<ShortStartupBudget>(started(json!({}))), []);
        assert_eq!(container::<ShortStartupBudget>(started(json!({"periodSeconds": 1, "failureThreshold": 30}))), []);
        let delayed = json!({"initialDelaySeconds": 25, "periodSeconds": 5, "failureThreshold": 1});
        assert_eq!(container::<ShortStartupBudget>(started(delayed)), []);
    }

    #[test]
    fn what_the_policy_itself_adds_is_not_too_short() {
        let granted = started(json!({"periodSeconds": 5, "failureThreshold": 4}));
        let found = |budget: i64| {
            let fixes = Some(("missing-startup-probe", json!({"budgetSeconds": budget})));
            Judge { fixes, ..Judge::default() }.container::<ShortStartupBudget>(granted.clone()).len()
        };
        assert_eq!((found(20), found(21)), (0, 1));
        assert_eq!(container::<ShortStartupBudget>(granted).len(), 1);
    }

    #[test]
    fn d05_sidecars_are_judged_plain_init_containers_are_not() {
        let init = json!([{"name": "i", "startupProbe": {"tcpSocket": {"port": 1}, "failureThreshold": 1}},
            {"name": "s", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}, "failureThreshold": 1}}]);
        let spec = json!({"containers": [{"name": "a"}], "initContainers": init});
        let found = Judge::default().pod::<ShortStartupBudget>(spec);
        assert_eq!(found.iter().filter_map(|finding| finding.container.as_deref()).collect::<Vec<_>>(), ["s"]);
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        assert_eq!(refused::<ShortStartupBudget>(json!({"minSeconds": 0})), "minSeconds");
        assert_eq!(refused::<ShortStartupBudget>(json!({"minSeconds": 3601})), "minSeconds");
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<ShortStartupBudget>(&["startupProbe"]);
    }
}

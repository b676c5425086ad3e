//! The grace period ends before the application could drain.
//!
//! ## What it does
//!
//! Adds the longest sleep of the preStop hooks and `drainSeconds`, and compares with `terminationGracePeriodSeconds`.
//! A `sleep` action counts, and an exec of nothing but a `sleep`; any other hook counts zero. A serving workload whose
//! grace period is below `minSeconds` gets a warning, never a denial.
//!
//! ## Why it matters
//!
//! The grace period starts before the preStop hook, not after it. What the hook uses up the process lacks, and when
//! nothing is left SIGKILL comes in mid drain (the kubelet grants two seconds at most). The hooks of all containers
//! start together: the longest counts, not the sum.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! terminationGracePeriodSeconds: 15
//! containers:
//! - name: app
//!   lifecycle: {preStop: {sleep: {seconds: 20}}}
//! ```
//!
//! Good:
//!
//! ```yaml
//! terminationGracePeriodSeconds: 45
//! containers:
//! - name: app
//!   lifecycle: {preStop: {sleep: {seconds: 20}}}
//! ```
//!
//! ## Fix safety
//!
//! Raises a grace period that is the API server's default of 30 s and that nobody applied, to what the sleeps need.
//! What an author set is judged, never rewritten.
//!
//! ## Parameters
//!
//! `drainSeconds` (0 to 600, default 5): what a process needs after its hook; read by `missing-pre-stop` too, whatever
//! this rule's action. `minSeconds` (0 to 3600, default 30).
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::finding::{Action, Finding, Fix};
use crate::engine::kind::LONG_RUNNING;
use crate::engine::ownership::{Managed, Place};
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `short-grace-period`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// What a process needs between the end of its preStop hook and SIGKILL, seconds, 0 to 600.
    #[schemars(range(min = 0, max = 600))]
    pub drain_seconds: i64,
    /// Grace period below which a serving workload gets a warning, seconds, 0 to 3600.
    #[schemars(range(min = 0, max = 3600))]
    pub min_seconds: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { drain_seconds: 5, min_seconds: 30 }
    }
}

/// The rule.
pub struct ShortGracePeriod;

impl Rule for ShortGracePeriod {
    const META: Meta = Meta {
        id: "short-grace-period",
        category: Category::Termination,
        since: "0.1",
        kinds: LONG_RUNNING,
        baseline: Action::Deny,
        critical: Action::Deny,
        fixable: true,
        baseline_fix: true,
        source: include_str!("short_grace_period.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("drainSeconds", params.drain_seconds, 0..=600, "seconds")?;
        InvalidParam::unless_in("minSeconds", params.min_seconds, 0..=3600, "seconds")
    }

    fn managed(_params: &Params) -> Vec<Managed> {
        vec![Managed { place: Place::PodSpec(&["terminationGracePeriodSeconds"]), default: Some("30") }]
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        let below = ["spec", "terminationGracePeriodSeconds"];
        let plan = context.termination();
        let (grace, drain) = (plan.grace, plan.drain);
        // A pod with a negative one is given a second (core/v1, PodSpec).
        let given = if grace < 0 { 1 } else { grace };
        let finding = |needed: i64, message: String| {
            Finding::new(Self::META.id, template.pointer(&below), message)
                .measure(needed.saturating_sub(given))
                .mend(format!("terminationGracePeriodSeconds: {needed}"))
        };

        let slept = plan.longest_sleep.as_ref().filter(|(_, sleep)| sleep.saturating_add(drain) > grace);
        let mut found = if let Some((container, sleep)) = slept {
            let needed = sleep.saturating_add(drain);
            finding(
                needed,
                format!(
                    "the preStop hook of container {} takes {sleep} s and the application needs {drain} s to \
                     drain, but terminationGracePeriodSeconds is {grace}: SIGKILL comes {} s too early",
                    quoted(container),
                    needed.saturating_sub(given)
                ),
            )
        } else if grace < params.min_seconds && template.serving() {
            let message = format!(
                "terminationGracePeriodSeconds is {grace}, below {} s: requests in flight are cut off when a pod stops",
                params.min_seconds
            );
            finding(params.min_seconds, message).at_most(Action::Warn)
        } else if plan.planned_grace > grace {
            let message =
                format!("the added preStop sleep needs a terminationGracePeriodSeconds of {}", plan.planned_grace);
            finding(plan.planned_grace, message).at_most(Action::Warn)
        } else {
            return;
        };
        if plan.planned_grace > grace {
            let writes = vec![(template.path(&below), Value::from(plan.planned_grace))];
            let says =
                format!("raised terminationGracePeriodSeconds from the default {grace} to {}", plan.planned_grace);
            found.fix = Some(Fix::new(Self::META.id, writes, says));
        }
        findings.push(found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, messages, refused};

    #[test]
    fn e02_a_sleep_by_exec_counts_in_whatever_unit() {
        let hook = json!({"preStop": {"exec": {"command": ["/bin/sh", "-c", "exec sleep 2m"]}}});
        let found = Judge::default().container::<ShortGracePeriod>(json!({"lifecycle": hook}));
        assert_eq!(
            messages(&found),
            ["the preStop hook of container \"app\" takes 120 s and the application needs 5 s to drain, but \
              terminationGracePeriodSeconds is 30: SIGKILL comes 95 s too early"]
        );
    }

    #[test]
    fn the_lowest_of_all_numbers_is_judged_too() {
        let container = json!({"name": "app", "ports": [{"containerPort": 8080}]});
        let spec = json!({"terminationGracePeriodSeconds": i64::MIN, "containers": [container]});
        let found = Judge::default().pod::<ShortGracePeriod>(spec);
        assert_eq!(found.iter().map(|finding| finding.measure).collect::<Vec<_>>(), [Some(29)]);
    }

    #[test]
    fn both_bounds_are_parameters() {
        assert_eq!(refused::<ShortGracePeriod>(json!({"drainSeconds": 601})), "drainSeconds");
        assert_eq!(refused::<ShortGracePeriod>(json!({"minSeconds": 3601})), "minSeconds");
    }
}

//! A paused workload takes changes and rolls none of them out.
//!
//! ## What it does
//!
//! Finds Deployments and Rollouts with `spec.paused: true`.
//!
//! ## Why it matters
//!
//! While it is paused each apply succeeds and no pod changes; the progress deadline does not run either, so that nothing
//! reports it. What was meant for an hour is found weeks later, when somebody resumes and all changes roll out at once.
//! Pausing on purpose is fine: the finding is only recorded.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! spec:
//!   paused: true
//! ```
//!
//! Good:
//!
//! ```yaml
//! spec:
//!   paused: false
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! None are asked for.

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::rule::{Category, Meta, Rule};

/// The rule.
pub struct PausedRollout;

/// [`PausedRollout`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Rule for PausedRollout {
    const META: Meta = Meta {
        id: "paused-rollout",
        category: Category::Rollout,
        since: "0.1",
        kinds: &["Deployment", "Rollout"],
        baseline: Action::Audit,
        critical: Action::Audit,
        fixable: false,
        baseline_fix: false,
        source: include_str!("paused_rollout.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        if context.object.at(&["spec", "paused"]).as_bool() != Some(true) {
            return;
        }
        let pods = match context.replicas() {
            Some(0) | None => "no pod".to_owned(),
            Some(1) => "the pod".to_owned(),
            Some(replicas) => format!("none of the {replicas} pods"),
        };
        let what = if pods == "the pod" { "does not change" } else { "changes" };
        let message = format!("paused is true: this apply succeeds, but {pods} {what} until it is resumed");
        findings.push(Finding::new(Self::META.id, "/spec/paused", message).mend("spec:\n  paused: false"));
    }
}

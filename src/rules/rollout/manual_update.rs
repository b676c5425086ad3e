//! A change of the template waits until somebody deletes pods by hand.
//!
//! ## What it does
//!
//! Finds StatefulSets and DaemonSets of `updateStrategy: {type: OnDelete}`.
//!
//! ## Why it matters
//!
//! With `OnDelete` the controller never replaces a pod because the template changed. An applied fix runs nowhere until
//! pods are deleted or nodes drained, and then old and new pods run side by side for as long as that takes. For
//! databases whose operator or whose administrator chooses the order this is meant: the finding is only recorded.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! spec:
//!   updateStrategy: {type: OnDelete}
//! ```
//!
//! Good:
//!
//! ```yaml
//! spec:
//!   updateStrategy: {type: RollingUpdate}
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
use crate::rollout::UpdateType;

/// The rule.
pub struct ManualUpdate;

/// [`ManualUpdate`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Rule for ManualUpdate {
    const META: Meta = Meta {
        id: "manual-update",
        category: Category::Rollout,
        since: "0.1",
        kinds: &["StatefulSet", "DaemonSet"],
        baseline: Action::Audit,
        critical: Action::Audit,
        fixable: false,
        baseline_fix: false,
        source: include_str!("manual_update.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(plan) = context.roll().filter(|plan| plan.update_type == UpdateType::OnDelete) else { return };
        let pods = match plan.replicas {
            Some(0) => return,
            Some(1) => "its pod".to_owned(),
            Some(replicas) => format!("each of its {replicas} pods"),
            None => "the pod of each node".to_owned(),
        };
        let message = format!(
            "updateStrategy type OnDelete: a change of the template reaches {pods} only when somebody deletes the old one"
        );
        let finding = Finding::new(Self::META.id, "/spec/updateStrategy/type", message);
        findings.push(finding.mend("spec:\n  updateStrategy:\n    type: RollingUpdate"));
    }
}

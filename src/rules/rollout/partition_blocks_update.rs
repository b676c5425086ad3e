//! A partition keeps every pod of a StatefulSet as it is.
//!
//! ## What it does
//!
//! Finds StatefulSets whose `rollingUpdate.partition` is not below their replicas. It warns, and never more: holding an
//! update back this way, to let it in pod by pod, is a technique.
//!
//! ## Why it matters
//!
//! Pods with an ordinal below the partition keep the old template, even when they are deleted. When that is all of them,
//! an apply succeeds and nothing changes, a security fix included. Often the partition is left over from a rollout in
//! steps, or was above the replicas only since somebody scaled down.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! spec:
//!   replicas: 3
//!   updateStrategy:
//!     rollingUpdate: {partition: 3}
//! ```
//!
//! Good, the last of three pods is updated first:
//!
//! ```yaml
//! spec:
//!   replicas: 3
//!   updateStrategy:
//!     rollingUpdate: {partition: 2}
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
pub struct PartitionBlocksUpdate;

/// [`PartitionBlocksUpdate`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Rule for PartitionBlocksUpdate {
    const META: Meta = Meta {
        id: "partition-blocks-update",
        category: Category::Rollout,
        since: "0.1",
        kinds: &["StatefulSet"],
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("partition_blocks_update.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(plan) = context.roll().filter(|plan| plan.update_type == UpdateType::RollingUpdate) else { return };
        let Some(replicas) = plan.replicas.filter(|replicas| *replicas > 0) else { return };
        let partition = context.object.at(&["spec", "updateStrategy", "rollingUpdate", "partition"]).as_i64();
        let Some(partition) = partition.filter(|partition| *partition >= replicas) else { return };
        let pods = if replicas == 1 { "1 replica" } else { &format!("{replicas} replicas") };
        let message = format!("no pod will be updated: partition {partition} keeps all of {pods} at the old template");
        let finding = Finding::new(Self::META.id, "/spec/updateStrategy/rollingUpdate/partition", message);
        let lower = match replicas - 1 {
            0 => "0".to_owned(),
            last => format!("{last}  # the last pod first; 0: all of them"),
        };
        let mend = format!("spec:\n  updateStrategy:\n    rollingUpdate:\n      partition: {lower}");
        findings.push(finding.at_most(Action::Warn).mend(mend));
    }
}

//! A ReplicaSet that nobody owns.
//!
//! ## What it does
//!
//! Reports a ReplicaSet without `ownerReferences`. One that a Deployment or a Rollout made is never judged.
//!
//! ## Why it matters
//!
//! A ReplicaSet keeps a number of pods and no more: when its template changes it replaces none of them. The old version
//! runs on, pod by pod, until something deletes it, and there is no rollout to watch and no revision to go back to.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: ReplicaSet
//! metadata: {name: web}
//! spec:
//!   selector: {matchLabels: {app: web}}
//! ```
//!
//! Good:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   selector: {matchLabels: {app: web}}
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
pub struct BareReplicaset;

/// [`BareReplicaset`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Rule for BareReplicaset {
    const META: Meta = Meta {
        id: "bare-replicaset",
        category: Category::Workload,
        since: "0.1",
        kinds: &["ReplicaSet"],
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("bare_replicaset.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        if context.template.is_none() || !context.object.at(&["metadata", "ownerReferences"]).items().is_empty() {
            return;
        }
        let message = "nobody owns this ReplicaSet: a new template replaces none of its pods, so the old version runs \
                       on, without a rollout or a revision to go back to";
        let finding = Finding::new(Self::META.id, "/metadata/ownerReferences", message);
        findings.push(finding.mend("apiVersion: apps/v1\nkind: Deployment  # with the same spec"));
    }
}

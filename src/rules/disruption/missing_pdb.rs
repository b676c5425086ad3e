//! A workload of several replicas has no PodDisruptionBudget.
//!
//! ## What it does
//!
//! Looks for a PodDisruptionBudget of the namespace whose selector matches the labels of the workload's pods, as the
//! eviction API would: `matchLabels` and `matchExpressions`, an empty selector matching all. Workloads of fewer than
//! `minReplicas` are not asked for one, for a budget over a single replica can only hold up the node.
//!
//! It never denies: a budget may be applied after the workload that it is for.
//!
//! ## Why it matters
//!
//! `kubectl drain`, node upgrades and cluster autoscalers evict whatever no budget protects, several nodes at a time.
//! Without one all replicas may be evicted at once, however carefully the workload rolls out.
//!
//! ## Example
//!
//! Bad, as long as nothing else stands in the namespace:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 3
//!   template:
//!     metadata: {labels: {app: web}}
//! ```
//!
//! Good, beside it:
//!
//! ```yaml
//! apiVersion: policy/v1
//! kind: PodDisruptionBudget
//! metadata: {name: web}
//! spec:
//!   maxUnavailable: 1
//!   selector: {matchLabels: {app: web}}
//! ```
//!
//! Pods whose owner has no replicas to count (an operator's own kind, a bare Pod) are protected by a whole number in
//! `minAvailable` only: with a percentage or `maxUnavailable` the eviction API allows none at all.
//!
//! ## Parameters
//!
//! * `minReplicas`: fewest replicas that should have a budget, 2 to 1000. Default: 2.
//!
//! ## Unknown facts
//!
//! Where the budgets of the namespace are not known nothing is found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selector_yaml::{match_labels, scalar};
use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::SCALED;
use crate::engine::neighbours::labels;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};

/// The rule.
pub struct MissingPdb;

/// Parameters of [`MissingPdb`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Fewest replicas that should have a budget.
    #[schemars(range(min = 2, max = 1000))]
    pub min_replicas: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { min_replicas: 2 }
    }
}

impl Rule for MissingPdb {
    const META: Meta = Meta {
        id: "missing-pdb",
        category: Category::Disruption,
        since: "0.1",
        kinds: SCALED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("missing_pdb.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("minReplicas", params.min_replicas, 2..=1000, "replicas")
    }

    fn needs(context: &Context<'_>, params: &Params) -> Needs {
        Needs { budgets: several(context, params).is_some(), ..Needs::default() }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let (Some(replicas), Some(template)) = (several(context, params), context.template) else { return };
        let labels = labels(&template.metadata()["labels"]);
        let Some(budgets) = context.facts.budgets.list() else { return };
        if budgets.iter().any(|budget| budget.selects(&labels)) {
            return;
        }
        let message = format!(
            "no PodDisruptionBudget selects these pods: node drains and upgrades may evict all {replicas} replicas at \
             once"
        );
        let finding = Finding::new(Self::META.id, "/spec/replicas", message).at_most(Action::Warn);
        findings.push(match mend(context) {
            Some(yaml) => finding.mend(yaml),
            None => finding,
        });
    }
}

/// Replicas, where they are many enough to need a budget.
fn several(context: &Context<'_>, params: &Params) -> Option<i64> {
    context.template?;
    context.replicas().filter(|replicas| *replicas >= params.min_replicas)
}

/// A budget over the pods of this workload.
fn mend(context: &Context<'_>) -> Option<String> {
    let name = scalar(context.object.at(&["metadata", "name"]).as_str()?);
    let labels = match_labels(context, 4)?;
    Some(format!(
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: {name}\nspec:\n  maxUnavailable: 1\n  \
         selector:\n{labels}"
    ))
}

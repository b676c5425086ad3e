//! One pod serves, and nothing serves while it is gone.
//!
//! ## What it does
//!
//! Finds workloads that serve (a regular container declares a port) with fewer than `minReplicas` replicas, also when they
//! are scaled to that number. A workload of no replica is left out, and so is one whose HorizontalPodAutoscaler keeps
//! `minReplicas` or more. It warns, and never more.
//!
//! ## Why it matters
//!
//! A node drain, a node that dies, an eviction, a container that restarts: each takes the only pod away, and until another
//! is placed, started and ready nothing answers. No PodDisruptionBudget helps: it can only hold the drain up.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! spec:
//!   replicas: 1
//! ```
//!
//! Good:
//!
//! ```yaml
//! spec:
//!   replicas: 2
//! ```
//!
//! ## Parameters
//!
//! `minReplicas` (2 to 100, default 2): fewest replicas that are not found.
//!
//! ## Unknown facts
//!
//! Where the HorizontalPodAutoscalers of the namespace are unknown, or it is not known what is scaled, nothing is found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::autoscaler;
use crate::engine::context::Context;
use crate::engine::facts::{Known, Needs};
use crate::engine::finding::{Action, Finding};
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;

/// The rule.
pub struct SingleReplica;

/// Parameters of [`SingleReplica`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Fewest replicas that are not found, 2 to 100.
    #[schemars(range(min = 2, max = 100))]
    pub min_replicas: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { min_replicas: 2 }
    }
}

/// Whether this number of replicas is found; 0 is scaled to zero on purpose (TRAPS C12).
fn few(context: &Context<'_>, params: &Params) -> Option<i64> {
    context.replicas().filter(|replicas| (1..params.min_replicas).contains(replicas))
}

impl Rule for SingleReplica {
    const META: Meta = Meta {
        id: "single-replica",
        category: Category::Scaling,
        since: "0.1",
        kinds: &["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Rollout", "Scale"],
        baseline: Action::Audit,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("single_replica.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("minReplicas", params.min_replicas, 2..=100, "replicas")
    }

    fn needs(context: &Context<'_>, params: &Params) -> Needs {
        if few(context, params).is_none() {
            return Needs::default();
        }
        let workloads = context.needs_workload();
        let serving = context.workload().is_some_and(|workload| workload.serving);
        Needs { workloads, autoscalers: serving || workloads, ..Needs::default() }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(replicas) = few(context, params) else { return };
        let Some(workload) = context.workload().filter(|workload| workload.serving) else { return };
        let mut mend = format!("spec:\n  replicas: {}", params.min_replicas);
        let autoscaled = match autoscaler(context) {
            Known::Unknown(_) => return,
            Known::Known(autoscaler) if autoscaler.min >= params.min_replicas => return,
            Known::Known(autoscaler) => {
                mend = format!("spec:  # of the HorizontalPodAutoscaler\n  minReplicas: {}", params.min_replicas);
                let name = quoted(&autoscaler.name);
                format!(", and HorizontalPodAutoscaler {name} may leave it at {}", autoscaler.min)
            }
            Known::Absent => String::new(),
        };
        let rest = match replicas - 1 {
            0 => "nothing answers while its only pod is drained, evicted or restarted".to_owned(),
            rest => format!("{rest} of {replicas} answer while one is drained, evicted or restarted"),
        };
        let (below, id) = (params.min_replicas, Self::META.id);
        let message = format!("replicas is {replicas}, below {below}{autoscaled}: {rest}");
        let finding = Finding::new(id, "/spec/replicas", message).measure(below - replicas).at_most(Action::Warn);
        // A second pod on a volume of the first is no mend.
        findings.push(if workload.shared_claims.is_empty() { finding.mend(mend) } else { finding });
    }
}

//! How workloads replace their pods: IntOrString, rounding per kind, and the plan that rules on rollouts share.

use crate::engine::context::Context;

/// How a workload will replace its pods.
#[derive(Debug, Clone, PartialEq)]
pub struct RollPlan {}

impl RollPlan {
    /// Plans from what the author set, the policy and the facts.
    pub fn plan(_context: &Context<'_>) -> Option<RollPlan> {
        None
    }
}

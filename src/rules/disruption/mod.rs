//! PodDisruptionBudgets, and where pods may run.

pub mod budget;
mod covered;
pub mod missing_pdb;
pub mod missing_spread;
pub mod overlapping_pdb;
pub mod pdb_blocks_eviction;
pub mod pdb_selects_nothing;
pub mod pdb_unhealthy_policy;
mod selector_yaml;
#[cfg(test)]
mod tests;

/// Budgets, and the kinds that they cover by a number of replicas: what is wrong between the two shows on whichever is
/// written second.
const BUDGETS_AND_COVERED: &[&str] =
    &["Deployment", "PodDisruptionBudget", "ReplicaSet", "ReplicationController", "Rollout", "StatefulSet"];

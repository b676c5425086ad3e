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

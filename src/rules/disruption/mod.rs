//! PodDisruptionBudgets.

pub mod budget;
pub mod pdb_blocks_eviction;

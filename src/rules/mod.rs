//! The rules, one a file, and the registry: the one list from which policies, schema, docs, CLI and metric labels come.

pub mod rollout;

use crate::engine::rule::{AnyRule, Entry};

/// Every rule, sorted by id.
pub static REGISTRY: &[&dyn AnyRule] = &[
    &Entry::<rollout::default_rolling_update::DefaultRollingUpdate>::new(),
    &Entry::<rollout::rollout_outage::RolloutOutage>::new(),
];

//! Rules on how a workload replaces its pods.

pub mod default_rolling_update;
pub mod rollout_outage;

//! Rules on how a workload replaces its pods.

pub mod default_rolling_update;
pub mod manual_update;
pub mod no_rollback_history;
pub mod partition_blocks_update;
pub mod paused_rollout;
pub mod recreate_strategy;
pub mod rollout_outage;
pub mod shared_rwo_claim;
pub mod short_min_ready;
pub mod short_progress_deadline;
pub mod stalled_rollout;

//! How a pod ends.

pub mod missing_pre_stop;
pub mod short_grace_period;

//! How a pod ends.

pub mod lifecycle_tcp_socket;
pub mod missing_pre_stop;
pub mod pre_stop_exec_sleep;
pub mod pre_stop_too_long;
pub mod short_grace_period;
pub mod sidecar_pre_stop;
pub mod zero_grace;

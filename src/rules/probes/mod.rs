//! Liveness, readiness and startup probes.

pub mod identical_probes;
pub mod liveness_kills_slow_start;
pub mod missing_liveness_probe;
pub mod missing_readiness_probe;
pub mod missing_startup_probe;
pub mod probe;
pub mod probe_does_nothing;
pub mod probe_port_unknown;
pub mod short_startup_budget;
pub mod tight_probe_timeout;

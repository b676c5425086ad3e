//! Liveness, readiness and startup probes.

pub mod missing_startup_probe;

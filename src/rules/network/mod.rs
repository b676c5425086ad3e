//! Services and the ports they send to.

pub mod port_conflict;
pub mod service_port_unknown;
pub mod service_selects_nothing;

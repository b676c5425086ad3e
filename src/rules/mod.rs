//! The rules, one a file, and the registry: the one list from which policies, schema, docs, CLI and metric labels come.

pub mod config;
pub mod disruption;
pub mod exec;
pub mod images;
pub mod probes;
pub mod resources;
pub mod rollout;
pub mod termination;
#[cfg(test)]
mod testing;

use crate::engine::rule::{AnyRule, Entry};

/// Every rule, sorted by id.
pub static REGISTRY: &[&dyn AnyRule] = &[
    &Entry::<config::config_checksum::ConfigChecksum>::new(),
    &Entry::<rollout::default_rolling_update::DefaultRollingUpdate>::new(),
    &Entry::<probes::identical_probes::IdenticalProbes>::new(),
    &Entry::<termination::lifecycle_tcp_socket::LifecycleTcpSocket>::new(),
    &Entry::<probes::liveness_kills_slow_start::LivenessKillsSlowStart>::new(),
    &Entry::<probes::missing_liveness_probe::MissingLivenessProbe>::new(),
    &Entry::<termination::missing_pre_stop::MissingPreStop>::new(),
    &Entry::<probes::missing_readiness_probe::MissingReadinessProbe>::new(),
    &Entry::<resources::missing_requests::MissingRequests>::new(),
    &Entry::<probes::missing_startup_probe::MissingStartupProbe>::new(),
    &Entry::<images::mutable_image_tag::MutableImageTag>::new(),
    &Entry::<disruption::pdb_blocks_eviction::PdbBlocksEviction>::new(),
    &Entry::<termination::pre_stop_exec_sleep::PreStopExecSleep>::new(),
    &Entry::<termination::pre_stop_too_long::PreStopTooLong>::new(),
    &Entry::<probes::probe_does_nothing::ProbeDoesNothing>::new(),
    &Entry::<probes::probe_port_unknown::ProbePortUnknown>::new(),
    &Entry::<rollout::rollout_outage::RolloutOutage>::new(),
    &Entry::<termination::short_grace_period::ShortGracePeriod>::new(),
    &Entry::<probes::short_startup_budget::ShortStartupBudget>::new(),
    &Entry::<termination::sidecar_pre_stop::SidecarPreStop>::new(),
    &Entry::<probes::tight_probe_timeout::TightProbeTimeout>::new(),
    &Entry::<termination::zero_grace::ZeroGrace>::new(),
];

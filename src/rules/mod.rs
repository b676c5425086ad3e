//! The rules, one a file, and the registry: the one list from which policies, schema, docs, CLI and metric labels come.

pub mod config;
pub mod disruption;
pub mod images;
pub mod network;
pub mod probes;
pub mod resources;
pub mod rollout;
pub mod scaling;
pub mod termination;
#[cfg(test)]
mod testing;
pub mod workload;

use crate::engine::rule::{AnyRule, Entry};

/// Every rule, sorted by id.
pub static REGISTRY: &[&dyn AnyRule] = &[
    &Entry::<workload::bare_pod::BarePod>::new(),
    &Entry::<workload::bare_replicaset::BareReplicaset>::new(),
    &Entry::<resources::best_effort::BestEffort>::new(),
    &Entry::<config::config_checksum::ConfigChecksum>::new(),
    &Entry::<config::config_subpath::ConfigSubpath>::new(),
    &Entry::<rollout::default_rolling_update::DefaultRollingUpdate>::new(),
    &Entry::<config::duplicate_env::DuplicateEnv>::new(),
    &Entry::<scaling::hpa_bounds::HpaBounds>::new(),
    &Entry::<scaling::hpa_fights_replicas::HpaFightsReplicas>::new(),
    &Entry::<probes::identical_probes::IdenticalProbes>::new(),
    &Entry::<resources::implausible_quantity::ImplausibleQuantity>::new(),
    &Entry::<resources::init_dominates::InitDominates>::new(),
    &Entry::<termination::lifecycle_tcp_socket::LifecycleTcpSocket>::new(),
    &Entry::<probes::liveness_kills_slow_start::LivenessKillsSlowStart>::new(),
    &Entry::<rollout::manual_update::ManualUpdate>::new(),
    &Entry::<config::missing_config::MissingConfig>::new(),
    &Entry::<probes::missing_liveness_probe::MissingLivenessProbe>::new(),
    &Entry::<resources::missing_memory_limit::MissingMemoryLimit>::new(),
    &Entry::<disruption::missing_pdb::MissingPdb>::new(),
    &Entry::<termination::missing_pre_stop::MissingPreStop>::new(),
    &Entry::<probes::missing_readiness_probe::MissingReadinessProbe>::new(),
    &Entry::<resources::missing_requests::MissingRequests>::new(),
    &Entry::<disruption::missing_spread::MissingSpread>::new(),
    &Entry::<probes::missing_startup_probe::MissingStartupProbe>::new(),
    &Entry::<config::mutable_config::MutableConfig>::new(),
    &Entry::<images::mutable_image_tag::MutableImageTag>::new(),
    &Entry::<rollout::no_rollback_history::NoRollbackHistory>::new(),
    &Entry::<resources::overcommit::Overcommit>::new(),
    &Entry::<disruption::overlapping_pdb::OverlappingPdb>::new(),
    &Entry::<config::oversized_config::OversizedConfig>::new(),
    &Entry::<rollout::partition_blocks_update::PartitionBlocksUpdate>::new(),
    &Entry::<rollout::paused_rollout::PausedRollout>::new(),
    &Entry::<disruption::pdb_blocks_eviction::PdbBlocksEviction>::new(),
    &Entry::<disruption::pdb_selects_nothing::PdbSelectsNothing>::new(),
    &Entry::<disruption::pdb_unhealthy_policy::PdbUnhealthyPolicy>::new(),
    &Entry::<network::port_conflict::PortConflict>::new(),
    &Entry::<termination::pre_stop_exec_sleep::PreStopExecSleep>::new(),
    &Entry::<termination::pre_stop_too_long::PreStopTooLong>::new(),
    &Entry::<probes::probe_does_nothing::ProbeDoesNothing>::new(),
    &Entry::<probes::probe_port_unknown::ProbePortUnknown>::new(),
    &Entry::<rollout::recreate_strategy::RecreateStrategy>::new(),
    &Entry::<images::registry_not_allowed::RegistryNotAllowed>::new(),
    &Entry::<rollout::rollout_outage::RolloutOutage>::new(),
    &Entry::<network::service_port_unknown::ServicePortUnknown>::new(),
    &Entry::<network::service_selects_nothing::ServiceSelectsNothing>::new(),
    &Entry::<rollout::shared_rwo_claim::SharedRwoClaim>::new(),
    &Entry::<termination::short_grace_period::ShortGracePeriod>::new(),
    &Entry::<rollout::short_min_ready::ShortMinReady>::new(),
    &Entry::<rollout::short_progress_deadline::ShortProgressDeadline>::new(),
    &Entry::<probes::short_startup_budget::ShortStartupBudget>::new(),
    &Entry::<termination::sidecar_pre_stop::SidecarPreStop>::new(),
    &Entry::<scaling::single_replica::SingleReplica>::new(),
    &Entry::<rollout::stalled_rollout::StalledRollout>::new(),
    &Entry::<probes::tight_probe_timeout::TightProbeTimeout>::new(),
    &Entry::<config::time_zone_host_path::TimeZoneHostPath>::new(),
    &Entry::<images::unpinned_image::UnpinnedImage>::new(),
    &Entry::<termination::zero_grace::ZeroGrace>::new(),
];

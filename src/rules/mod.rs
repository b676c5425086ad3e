//! The rules, one a file, and the registry: the one list from which policies, schema, docs, CLI and metric labels come.

pub mod config;
pub mod disruption;
pub mod images;
pub mod network;
pub mod probes;
pub mod resources;
pub mod rollout;
pub mod termination;
pub mod workload;

use crate::engine::rule::{AnyRule, Entry};

/// Every rule, sorted by id.
pub static REGISTRY: &[&dyn AnyRule] = &[
    &Entry::<workload::bare_pod::BarePod>::new(),
    &Entry::<workload::bare_replicaset::BareReplicaset>::new(),
    &Entry::<config::config_checksum::ConfigChecksum>::new(),
    &Entry::<rollout::default_rolling_update::DefaultRollingUpdate>::new(),
    &Entry::<disruption::missing_pdb::MissingPdb>::new(),
    &Entry::<termination::missing_pre_stop::MissingPreStop>::new(),
    &Entry::<resources::missing_requests::MissingRequests>::new(),
    &Entry::<disruption::missing_spread::MissingSpread>::new(),
    &Entry::<probes::missing_startup_probe::MissingStartupProbe>::new(),
    &Entry::<images::mutable_image_tag::MutableImageTag>::new(),
    &Entry::<disruption::overlapping_pdb::OverlappingPdb>::new(),
    &Entry::<disruption::pdb_blocks_eviction::PdbBlocksEviction>::new(),
    &Entry::<disruption::pdb_selects_nothing::PdbSelectsNothing>::new(),
    &Entry::<disruption::pdb_unhealthy_policy::PdbUnhealthyPolicy>::new(),
    &Entry::<network::port_conflict::PortConflict>::new(),
    &Entry::<rollout::rollout_outage::RolloutOutage>::new(),
    &Entry::<network::service_port_unknown::ServicePortUnknown>::new(),
    &Entry::<network::service_selects_nothing::ServiceSelectsNothing>::new(),
    &Entry::<termination::short_grace_period::ShortGracePeriod>::new(),
];

//! The rules, one a file, and the registry: the one list from which policies, schema, docs, CLI and metric labels come.

pub mod disruption;
pub mod images;
pub mod resources;

use crate::engine::rule::{AnyRule, Entry};

/// Every rule, sorted by id.
pub static REGISTRY: &[&dyn AnyRule] = &[
    &Entry::<resources::missing_requests::MissingRequests>::new(),
    &Entry::<images::mutable_image_tag::MutableImageTag>::new(),
    &Entry::<disruption::pdb_blocks_eviction::PdbBlocksEviction>::new(),
];

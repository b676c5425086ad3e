//! The rules, one a file, and the registry: the one list from which policies, schema, docs, CLI and metric labels come.

use crate::engine::rule::AnyRule;

/// Every rule, sorted by id.
pub static REGISTRY: &[&dyn AnyRule] = &[];

//! References of pod specs to ConfigMaps and Secrets, and what containers find in their environment.

pub mod config_checksum;
pub mod config_subpath;
pub mod duplicate_env;
pub mod missing_config;
pub mod mutable_config;
pub mod objects;
pub mod oversized_config;
pub mod time_zone_host_path;

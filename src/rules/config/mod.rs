//! References of pod specs to ConfigMaps and Secrets.

pub mod config_checksum;

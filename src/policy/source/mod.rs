//! Where policies come from: a file, or a ConfigMap.
//!
//! Both are loaded once at the start, where anything wrong is an error to end with, and then watched, where anything
//! wrong keeps the last good policy and is shown ([`super::Store`]).

mod config_map;
mod file;

use std::path::PathBuf;

pub use config_map::{ConfigMapSource, KEY, instead};
pub use file::FileSource;

use super::error::MAX_BYTES;
use super::store::Refusal;

/// Why a source has no policy for us.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("the policy file {} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The file is larger than any policy.
    #[error("the policy file {} has more than {MAX_BYTES} bytes; is it the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file holds no text.
    #[error("the policy file {} is not UTF-8; save it as UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// There is no such ConfigMap.
    #[error("there is no ConfigMap {config_map}; create it with the policy under the key {KEY}")]
    Missing {
        /// `NAMESPACE/NAME`.
        config_map: String,
    },
    /// The ConfigMap lacks the key, or it is empty.
    #[error("ConfigMap {config_map} has no policy under the key {KEY}{has}")]
    MissingKey {
        /// `NAMESPACE/NAME`.
        config_map: String,
        /// What it has instead, as the end of the sentence.
        has: String,
    },
    /// The API server did not give it to us.
    #[error("ConfigMap {config_map} cannot be read: {source}")]
    Kube {
        /// `NAMESPACE/NAME`.
        config_map: String,
        /// What the client says.
        source: Box<kube::Error>,
    },
    /// The text is no valid policy.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

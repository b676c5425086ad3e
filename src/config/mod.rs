//! References of a pod spec to ConfigMaps and Secrets, and the digests over what they refer to.

use std::collections::BTreeSet;
use std::fmt;

pub mod digest;
pub mod references;

use crate::engine::text::quoted;

/// Which of the two objects a reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// `v1` ConfigMap.
    ConfigMap,
    /// `v1` Secret.
    Secret,
}

impl Source {
    /// The kind, as in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::ConfigMap => "ConfigMap",
            Source::Secret => "Secret",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One object that a pod spec reads, in the workload's own namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// ConfigMap or Secret.
    pub source: Source,
    /// `metadata.name`.
    pub name: String,
    /// The keys used, where every use names keys; `None`: the whole object.
    pub keys: Option<BTreeSet<String>>,
    /// Whether every use is `optional: true`, so that its absence is no fault.
    pub optional: bool,
}

impl Reference {
    /// As messages name the object: `ConfigMap "settings"`.
    pub fn subject(&self) -> String {
        format!("{} {}", self.source, quoted(&self.name))
    }
}

//! What is known of the cluster: the facts that the engine asks for, from a live API server, from a folder of manifests,
//! or from nowhere.

use std::path::PathBuf;

use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::engine::facts::{Facts, Known, Needs, Reason, ServerVersion};

mod api;
mod cache;
mod crd;
pub mod dir;
mod documents;
pub mod live;
mod lookups;
pub mod manifests;
mod name;
mod object;
mod reflected;
mod wanted;
mod watches;

pub use wanted::MAX_REFERENCES;

/// Where facts come from.
pub trait FactSource: Send + Sync {
    /// The facts that are needed, as far as they can be known before the deadline. What is not needed is not looked up;
    /// what cannot be had is [`Known::Unknown`], never an error. `namespace` is the request's (TRAPS A13, J03).
    fn gather<'a>(&'a self, namespace: &'a str, needs: Needs, deadline: Instant) -> BoxFuture<'a, Facts>;

    /// Whether reviews can be decided (TRAPS I13).
    ///
    /// # Errors
    /// What is missing, for the readiness probe to say.
    fn ready(&self) -> Result<(), String> {
        Ok(())
    }
}

/// What can be wrong with the cluster at start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `--kubeconfig` does not say how to reach a cluster.
    #[error("cannot use kubeconfig {path}: {source}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<kube::config::KubeconfigError>,
    },
    /// Neither a kubeconfig nor a service account is there.
    #[error("no cluster to talk to: {0}; give --kubeconfig FILE, or run with --standalone")]
    NoCluster(#[source] Box<kube::config::InferConfigError>),
    /// The client cannot be made, for instance for want of a readable CA.
    #[error("cannot make a client for the API server: {0}")]
    Client(#[source] Box<kube::Error>),
    /// The folder of manifests is no good.
    #[error(transparent)]
    Manifests(#[from] manifests::Error),
}

/// No cluster at all: only the version is known, because it was given.
#[derive(Debug, Clone, Copy)]
pub struct Offline {
    /// `--kube-version`.
    pub kube_version: ServerVersion,
}

impl FactSource for Offline {
    fn gather<'a>(&'a self, _namespace: &'a str, needs: Needs, _deadline: Instant) -> BoxFuture<'a, Facts> {
        let facts =
            Facts { server_version: Known::Known(self.kube_version), ..Facts::none_of(needs, Reason::NotAsked) };
        Box::pin(std::future::ready(facts))
    }
}

/// A list as a fact: an empty one is an absence.
fn listed<T>(items: Vec<T>) -> Known<Vec<T>> {
    if items.is_empty() { Known::Absent } else { Known::Known(items) }
}

/// Whether any LimitRange sets container defaults, as a fact.
fn any(limit_ranges: Vec<bool>) -> Known<()> {
    if limit_ranges.contains(&true) { Known::Known(()) } else { Known::Absent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Reference, Source};

    #[tokio::test]
    async fn offline_only_the_version_is_known() {
        let kube_version = ServerVersion { major: 1, minor: 30 };
        let reference = Reference { source: Source::ConfigMap, name: "cfg".to_owned(), keys: None, optional: false };
        let references = || vec![reference.clone()];
        let needs =
            Needs { quotas: true, budgets: true, digests: references(), configs: references(), ..Needs::default() };
        let source: &dyn FactSource = &Offline { kube_version };
        let facts = source.gather("default", needs, Instant::now()).await;
        assert_eq!(facts.server_version, Known::Known(kube_version));
        assert_eq!(facts.quotas, Known::Unknown(Reason::NotAsked));
        assert_eq!(facts.digests[&reference], Known::Unknown(Reason::NotAsked));
        assert_eq!(facts.configs[&reference], Known::Unknown(Reason::NotAsked));
        assert_eq!(facts.budgets, Known::Unknown(Reason::NotAsked));
        assert_eq!(source.ready(), Ok(()));
    }

    #[tokio::test]
    async fn an_unusable_kubeconfig_is_named() {
        let error = live::client_config(Some("/nowhere/kubeconfig".as_ref())).await.unwrap_err().to_string();
        assert!(error.starts_with("cannot use kubeconfig /nowhere/kubeconfig: "), "{error}");
    }
}

//! What is asked of the cluster: facts for the engine.

use futures::future::BoxFuture;

use crate::engine::facts::{Facts, Needs};

/// Where facts come from: a live cluster, a folder of manifests, a constant in tests.
pub trait FactSource: Send + Sync {
    /// Looks up what is needed, all of it in `namespace`, and answers by the deadline with what it knows by then:
    /// what it could not find out is unknown, never an error.
    fn gather<'a>(&'a self, namespace: &'a str, needs: Needs, deadline: tokio::time::Instant) -> BoxFuture<'a, Facts>;
}

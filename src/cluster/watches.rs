//! All that is watched.

use std::sync::Arc;

use kube::Client;
use tokio::task::JoinSet;

use super::cache::Cache;
use super::reflected::{
    Autoscalers, Budgets, Claims, DaemonSets, Deployments, Kind, LimitRanges, Namespaces, Quotas, ReplicaSets,
    Rollouts, Services, StatefulSets,
};
use crate::engine::facts::Reason;
use crate::engine::neighbours::Workload;

/// One cache per kind, each of all namespaces.
pub(super) struct Watches {
    pub(super) quotas: Arc<Cache<Quotas>>,
    pub(super) limit_ranges: Arc<Cache<LimitRanges>>,
    pub(super) namespaces: Arc<Cache<Namespaces>>,
    pub(super) budgets: Arc<Cache<Budgets>>,
    pub(super) autoscalers: Arc<Cache<Autoscalers>>,
    pub(super) services: Arc<Cache<Services>>,
    pub(super) claims: Arc<Cache<Claims>>,
    daemon_sets: Arc<Cache<DaemonSets>>,
    deployments: Arc<Cache<Deployments>>,
    replica_sets: Arc<Cache<ReplicaSets>>,
    rollouts: Arc<Cache<Rollouts>>,
    stateful_sets: Arc<Cache<StatefulSets>>,
}

impl Watches {
    /// Starts them all as tasks; waits for none.
    pub(super) fn start(client: &Client, tasks: &mut JoinSet<()>) -> Self {
        Watches {
            quotas: watch(client, tasks),
            limit_ranges: watch(client, tasks),
            namespaces: watch(client, tasks),
            budgets: watch(client, tasks),
            autoscalers: watch(client, tasks),
            services: watch(client, tasks),
            claims: watch(client, tasks),
            daemon_sets: watch(client, tasks),
            deployments: watch(client, tasks),
            replica_sets: watch(client, tasks),
            rollouts: watch(client, tasks),
            stateful_sets: watch(client, tasks),
        }
    }

    /// The workloads of a namespace, by kind and name.
    ///
    /// # Errors
    /// Why they cannot be told: one kind that is unknown makes them all unknown, for any of them may be what a rule
    /// looks for.
    pub(super) fn workloads(&self, namespace: &str) -> Result<Vec<Workload>, Reason> {
        let kinds = [
            self.daemon_sets.of(namespace)?,
            self.deployments.of(namespace)?,
            self.replica_sets.of(namespace)?,
            self.rollouts.of(namespace)?,
            self.stateful_sets.of(namespace)?,
        ];
        Ok(kinds.into_iter().flatten().collect())
    }
}

fn watch<K: Kind>(client: &Client, tasks: &mut JoinSet<()>) -> Arc<Cache<K>> {
    let cache = Cache::new();
    tasks.spawn(Arc::clone(&cache).run(client.clone()));
    cache
}

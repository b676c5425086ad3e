//! Facts from a live API server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use prometheus::Histogram;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::api::Api;
use super::cache::SILENCE;
use super::lookups::{Lookup, Lookups};
use super::wanted::wanted;
use super::watches::Watches;
use super::{Error, FactSource, any, listed};
use crate::config::digest::DigestKey;
use crate::engine::facts::{Facts, Known, Needs, Reason, ServerVersion};

/// Look-ups of one review that run at the same time (TRAPS F02).
const PARALLEL: usize = 4;

/// How often the server's version is read again (TRAPS B12).
const VERSION_EVERY: Duration = Duration::from_secs(600);

/// First and longest pause while the version is not known.
const VERSION_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Longest wait for the version.
const VERSION_WAIT: Duration = Duration::from_secs(10);

/// What a live source can be told.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--kube-version`: taken while the server's version is not known.
    pub kube_version: Option<ServerVersion>,
    /// The key for digests of Secrets. Without it no Secret is ever looked up; whoever has not authenticated the
    /// callers must not give it (TRAPS J01).
    pub digest_key: Option<DigestKey>,
    /// Seconds that each read of a ConfigMap or Secret took, however it ended.
    pub lookup_duration: Option<Histogram>,
}

/// A cluster, read through its API server. Dropping it ends its watches.
pub struct Live {
    lookups: Lookups,
    watches: Watches,
    kube_version: Option<ServerVersion>,
    version: Arc<ArcSwapOption<ServerVersion>>,
    /// Watches; aborted when dropped.
    _tasks: JoinSet<()>,
}

/// How to reach the cluster: by this kubeconfig, else inferred from the environment (a kubeconfig, else the pod's
/// service account).
///
/// # Errors
/// A kubeconfig that cannot be used, or no cluster at all.
pub async fn client_config(kubeconfig: Option<&Path>) -> Result<kube::Config, Error> {
    let Some(path) = kubeconfig else {
        return kube::Config::infer().await.map_err(|source| Error::NoCluster(Box::new(source)));
    };
    let unusable = |source| Error::Kubeconfig { path: path.to_owned(), source: Box::new(source) };
    let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
    kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(unusable)
}

impl Live {
    /// Starts to watch the cluster; does not wait for it. Needs a Tokio runtime.
    ///
    /// # Errors
    /// A configuration of which no client can be made.
    pub fn start(mut config: kube::Config, options: Options) -> Result<Self, Error> {
        // A review has no time for retries with growing pauses; watches have their own.
        config.default_retry = false;
        config.read_timeout = Some(config.read_timeout.map_or(SILENCE, |given| given.min(SILENCE)));
        // A connection may have waited in the pool before it is used again.
        config.reset_reader_on_write = true;
        let client = kube::Client::try_from(config).map_err(|source| Error::Client(Box::new(source)))?;
        let api = Api::new(client.clone());
        let version = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(watch_version(api.clone(), Arc::clone(&version)));
        Ok(Live {
            lookups: Lookups::new(api, options.digest_key, options.lookup_duration),
            watches: Watches::start(&client, &mut tasks),
            kube_version: options.kube_version,
            version,
            _tasks: tasks,
        })
    }

    fn server_version(&self) -> Option<ServerVersion> {
        self.version.load().as_deref().copied().or(self.kube_version)
    }

    async fn facts(&self, namespace: &str, needs: Needs, deadline: Instant) -> Facts {
        let mut facts = Facts::unknown(Reason::NotAsked);
        if needs.server_version {
            facts.server_version = self.server_version().map_or(Known::Unknown(Reason::Failed), Known::Known);
        }
        self.watched(namespace, &needs, &mut facts);
        let lookups = self.lookups(namespace, needs, deadline, &mut facts);
        let mut answers = futures::stream::iter(lookups).buffer_unordered(PARALLEL);
        while let Some(answer) = answers.next().await {
            self.lookups.fill(answer, namespace, &mut facts);
        }
        facts
    }

    /// What only watches tell: lists too long to be read while a review waits.
    fn watched(&self, namespace: &str, needs: &Needs, facts: &mut Facts) {
        let Watches { budgets, autoscalers, services, claims, .. } = &self.watches;
        if needs.budgets {
            facts.budgets = told(budgets.of(namespace));
        }
        if needs.autoscalers {
            facts.autoscalers = told(autoscalers.of(namespace));
        }
        if needs.services {
            facts.services = told(services.of(namespace));
        }
        if needs.claims {
            facts.claims = told(claims.of(namespace));
        }
        if needs.workloads {
            facts.workloads = told(self.watches.workloads(namespace));
        }
    }

    /// What is left to be read; what a watch knows already is filled in.
    fn lookups<'a>(
        &'a self,
        namespace: &'a str,
        needs: Needs,
        deadline: Instant,
        facts: &mut Facts,
    ) -> Vec<Lookup<'a>> {
        let Live { lookups: live, watches, .. } = self;
        let mut lookups = Vec::new();
        if needs.quotas {
            match watches.quotas.of(namespace) {
                Ok(quotas) => facts.quotas = listed(quotas),
                Err(_) => lookups.push(live.quotas(namespace, deadline)),
            }
        }
        if needs.limit_range {
            match watches.limit_ranges.of(namespace) {
                Ok(ranges) => facts.limit_range = any(ranges),
                Err(_) => lookups.push(live.limit_range(namespace, deadline)),
            }
        }
        if needs.namespace_labels {
            match watches.namespaces.named(namespace) {
                Ok(Some(labels)) => facts.namespace_labels = Known::Known(labels),
                _ => lookups.push(live.namespace_labels(namespace, deadline)),
            }
        }
        if needs.crd_sleep {
            lookups.push(live.crd_sleep(deadline));
        }
        if let Some(owner) = needs.revisions {
            lookups.push(live.revisions(namespace, owner, deadline));
        }
        let wanted = wanted(needs.digests, needs.configs, facts).into_iter();
        lookups.extend(wanted.map(|(object, wanted)| live.config(namespace, object, wanted, deadline)));
        lookups
    }
}

impl FactSource for Live {
    fn gather<'a>(&'a self, namespace: &'a str, needs: Needs, deadline: Instant) -> BoxFuture<'a, Facts> {
        self.facts(namespace, needs, deadline).boxed()
    }

    fn ready(&self) -> Result<(), String> {
        match self.server_version() {
            Some(_) => Ok(()),
            None => {
                Err("the API server has not told its version yet (GET /version); or give --kube-version".to_owned())
            }
        }
    }
}

/// A list that is known may be empty.
fn told<T>(list: Result<Vec<T>, Reason>) -> Known<Vec<T>> {
    list.map_or_else(Known::Unknown, Known::Known)
}

/// Reads the version at start, until it is known, and then every ten minutes; keeps the last one known.
async fn watch_version(api: Api, version: Arc<ArcSwapOption<ServerVersion>>) {
    let mut pause = VERSION_PAUSE.0;
    loop {
        match tokio::time::timeout(VERSION_WAIT, api.version()).await.unwrap_or(Err(Reason::TimedOut)) {
            Ok(read) => {
                let before = version.swap(Some(Arc::new(read)));
                if before.as_deref() != Some(&read) {
                    tracing::info!(version = %read, "API server's version");
                }
                tokio::time::sleep(VERSION_EVERY).await;
            }
            Err(reason) => {
                tracing::warn!(%reason, "cannot read the API server's version");
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(VERSION_PAUSE.1);
            }
        }
    }
}

//! Facts from a live API server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use prometheus::Histogram;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::api::{self, Api, Collection};
use super::cache::Cache;
use super::name::is_label_text;
use super::object::{ConfigObject, LimitRangeObject, List, QuotaObject, RevisionObject};
use super::{Error, FactSource, MAX_REFERENCES, listed};
use crate::config::digest::DigestKey;
use crate::config::{Reference, Source};
use crate::engine::facts::{Facts, Known, Needs, Quota, Reason, Revision, RevisionOwner, RevisionStore, ServerVersion};

/// Look-ups of one review that run at the same time (TRAPS F02).
const PARALLEL: usize = 4;

/// Look-ups of all reviews that run at the same time: what bounds memory and connections when the API server hangs
/// (TRAPS I04).
const PARALLEL_IN_ALL: usize = 64;

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
    api: Api,
    options: Options,
    version: Arc<ArcSwapOption<ServerVersion>>,
    quotas: Arc<Cache<Quota>>,
    limit_ranges: Arc<Cache<bool>>,
    permits: Semaphore,
    /// Watches; aborted when dropped.
    tasks: JoinSet<()>,
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
        let client = kube::Client::try_from(config).map_err(|source| Error::Client(Box::new(source)))?;
        let live = Live {
            api: Api::new(client.clone()),
            options,
            version: Arc::default(),
            quotas: Cache::new(),
            limit_ranges: Cache::new(),
            permits: Semaphore::new(PARALLEL_IN_ALL),
            tasks: JoinSet::new(),
        };
        Ok(live.watch(client))
    }

    fn watch(mut self, client: kube::Client) -> Self {
        let resource = |kind, plural| ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", kind), plural);
        let quotas = resource("ResourceQuota", "resourcequotas");
        let limit_ranges = resource("LimitRange", "limitranges");
        self.tasks.spawn(Arc::clone(&self.quotas).run(client.clone(), quotas, keep_quota));
        self.tasks.spawn(Arc::clone(&self.limit_ranges).run(client, limit_ranges, keep_limit_range));
        self.tasks.spawn(watch_version(self.api.clone(), Arc::clone(&self.version)));
        self
    }

    fn server_version(&self) -> Option<ServerVersion> {
        self.version.load().as_deref().copied().or(self.options.kube_version)
    }

    async fn facts(&self, namespace: &str, needs: Needs, deadline: Instant) -> Facts {
        let mut facts = Facts::unknown(Reason::NotAsked);
        if needs.server_version {
            facts.server_version = self.server_version().map_or(Known::Unknown(Reason::Failed), Known::Known);
        }
        let mut lookups: Vec<BoxFuture<'_, Answer>> = Vec::new();
        if needs.quotas {
            match self.quotas.of(namespace) {
                Some(quotas) => facts.quotas = listed(quotas),
                None => lookups.push(self.quotas_live(namespace, deadline).map(Answer::Quotas).boxed()),
            }
        }
        if needs.limit_range {
            match self.limit_ranges.of(namespace) {
                Some(ranges) => facts.limit_range = any(ranges),
                None => lookups.push(self.limit_range_live(namespace, deadline).map(Answer::LimitRange).boxed()),
            }
        }
        if let Some(owner) = needs.revisions {
            lookups.push(self.revisions(namespace, owner, deadline).map(Answer::Revisions).boxed());
        }
        if needs.digests.len() > MAX_REFERENCES {
            let too_many = |reference| (reference, Known::Unknown(Reason::TooMany));
            facts.digests = needs.digests.into_iter().map(too_many).collect();
        } else {
            let digest = |reference| self.digest(namespace, reference, deadline).boxed();
            lookups.extend(needs.digests.into_iter().map(digest));
        }
        let mut answers = futures::stream::iter(lookups).buffer_unordered(PARALLEL);
        while let Some(answer) = answers.next().await {
            match answer {
                Answer::Quotas(quotas) => facts.quotas = quotas,
                Answer::LimitRange(limit_range) => facts.limit_range = limit_range,
                Answer::Revisions(revisions) => facts.revisions = revisions,
                Answer::Digest(reference, digest) => {
                    facts.digests.insert(reference, digest);
                }
            }
        }
        facts
    }

    /// Does the work before the deadline, or not at all.
    async fn before<T>(&self, deadline: Instant, work: impl Future<Output = Result<T, Reason>>) -> Result<T, Reason> {
        let permitted = async {
            let _permit = self.permits.acquire().await.map_err(|_| Reason::Failed)?;
            // The timeout polls this first, even after the deadline: nobody would wait for what is sent then.
            if Instant::now() >= deadline { Err(Reason::TimedOut) } else { work.await }
        };
        timeout_at(deadline, permitted).await.unwrap_or(Err(Reason::TimedOut))
    }

    async fn digest(&self, namespace: &str, reference: Reference, deadline: Instant) -> Answer {
        let collection = match reference.source {
            Source::ConfigMap => api::CONFIG_MAPS,
            Source::Secret if self.options.digest_key.is_some() => api::SECRETS,
            Source::Secret => return Answer::Digest(reference, Known::Unknown(Reason::NotAllowed)),
        };
        let timer = self.options.lookup_duration.as_ref().map(Histogram::start_timer);
        let digest = self
            .before(deadline, async {
                let Some(body) = self.api.get(collection, namespace, &reference.name).await? else {
                    return Ok(Known::Absent);
                };
                let object: ConfigObject = api::parse(&body)?;
                let content = object.content(reference.source).map_err(|_| Reason::Failed)?;
                Ok(content.digest(&reference, namespace, self.options.digest_key.as_ref()))
            })
            .await
            .unwrap_or_else(Known::Unknown);
        drop(timer);
        if let Some(reason) = digest.unknown() {
            tracing::debug!(namespace, kind = reference.source.as_str(), name = reference.name, %reason, "no digest");
        }
        Answer::Digest(reference, digest)
    }

    /// One list call: what the label selector cannot tell apart, the owner's uid does (TRAPS C14).
    async fn revisions(&self, namespace: &str, owner: RevisionOwner, deadline: Instant) -> Known<Vec<Revision>> {
        if owner.uid.is_empty() {
            return Known::Unknown(Reason::Failed);
        }
        let collection = match owner.store {
            RevisionStore::ReplicaSets => api::REPLICA_SETS,
            RevisionStore::ControllerRevisions => api::CONTROLLER_REVISIONS,
        };
        let labels = selector(&owner.match_labels);
        self.before(deadline, async {
            let body = self.api.list(collection, namespace, &labels).await?;
            let list: List<RevisionObject<'_>> = api::parse(&body)?;
            let objects = list.complete().ok_or(Reason::TooMany)?.into_iter();
            let owned = objects.filter(|object| object.metadata.controller() == Some(&owner.uid));
            Ok(owned.filter_map(RevisionObject::revision).collect())
        })
        .await
        .map_or_else(Known::Unknown, listed)
    }

    async fn quotas_live(&self, namespace: &str, deadline: Instant) -> Known<Vec<Quota>> {
        self.list_live(api::QUOTAS, namespace, deadline, QuotaObject::quota).await.map_or_else(Known::Unknown, listed)
    }

    async fn limit_range_live(&self, namespace: &str, deadline: Instant) -> Known<()> {
        let sets = |object: LimitRangeObject| object.sets_defaults();
        self.list_live(api::LIMIT_RANGES, namespace, deadline, sets).await.map_or_else(Known::Unknown, any)
    }

    async fn list_live<O: serde::de::DeserializeOwned, T>(
        &self,
        collection: Collection,
        namespace: &str,
        deadline: Instant,
        keep: impl Fn(O) -> T,
    ) -> Result<Vec<T>, Reason> {
        self.before(deadline, async {
            let body = self.api.list(collection, namespace, "").await?;
            let objects = api::parse::<List<O>>(&body)?.complete().ok_or(Reason::TooMany)?;
            Ok(objects.into_iter().map(keep).collect())
        })
        .await
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

enum Answer {
    Quotas(Known<Vec<Quota>>),
    LimitRange(Known<()>),
    Revisions(Known<Vec<Revision>>),
    Digest(Reference, Known<String>),
}

fn any(limit_ranges: Vec<bool>) -> Known<()> {
    if limit_ranges.contains(&true) { Known::Known(()) } else { Known::Absent }
}

/// A label selector; pairs that could mean anything else in one are left out, which only makes the list longer.
fn selector(labels: &[(String, String)]) -> String {
    let safe = labels.iter().filter(|(key, value)| !key.is_empty() && is_label_text(key) && is_label_text(value));
    safe.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

fn keep_quota(object: &DynamicObject) -> Quota {
    let quota = serde_json::from_value::<QuotaObject>(object.data.clone()).map(QuotaObject::quota);
    let hard = quota.map(|quota| quota.hard).unwrap_or_default();
    Quota { name: object.name_any(), hard }
}

fn keep_limit_range(object: &DynamicObject) -> bool {
    serde_json::from_value::<LimitRangeObject>(object.data.clone()).is_ok_and(|object| object.sets_defaults())
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

//! What is read from the API server while a review waits: bounded in number and time, never retried.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use prometheus::Histogram;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::api::{self, Api, Collection};
use super::name::is_label_text;
use super::object::{self, Config, ConfigObject, List, RevisionObject};
use super::wanted::{Object, Wanted};
use super::{any, crd, listed};
use crate::config::Source;
use crate::config::digest::DigestKey;
use crate::engine::document::Value;
use crate::engine::facts::{Facts, Known, Quota, Reason, Revision, RevisionOwner, RevisionStore};
use crate::engine::neighbours::Labels;

/// Look-ups of all reviews that run at the same time: what bounds memory and connections when the API server hangs
/// (TRAPS I04).
const PARALLEL_IN_ALL: usize = 64;

/// How long the answer about the Rollout CRD counts.
const CRD_EVERY: Duration = Duration::from_secs(600);

/// Live reads of the API server.
pub(super) struct Lookups {
    api: Api,
    digest_key: Option<DigestKey>,
    duration: Option<Histogram>,
    permits: Semaphore,
    /// Whether the Rollout CRD keeps a sleep, and when that was read. Held while reading: a burst of reviews reads a
    /// CRD of a megabyte once.
    crd_sleep: Mutex<Option<(Instant, bool)>>,
}

/// One fact that was looked up.
pub(super) enum Answer {
    Config(Wanted, Result<Option<Config>, Reason>),
    CrdSleep(Known<bool>),
    LimitRange(Known<()>),
    NamespaceLabels(Known<Labels>),
    Quotas(Known<Vec<Quota>>),
    Revisions(Known<Vec<Revision>>),
}

/// A look-up under way.
pub(super) type Lookup<'a> = BoxFuture<'a, Answer>;

impl Lookups {
    pub(super) fn new(api: Api, digest_key: Option<DigestKey>, duration: Option<Histogram>) -> Self {
        Lookups { api, digest_key, duration, permits: Semaphore::new(PARALLEL_IN_ALL), crd_sleep: Mutex::default() }
    }

    /// Writes an answer where it belongs.
    pub(super) fn fill(&self, answer: Answer, namespace: &str, facts: &mut Facts) {
        match answer {
            Answer::Config(wanted, config) => {
                let config = match &config {
                    Ok(Some(config)) => Known::Known(config),
                    Ok(None) => Known::Absent,
                    Err(reason) => Known::Unknown(*reason),
                };
                wanted.answer(config, namespace, self.digest_key.as_ref(), facts);
            }
            Answer::CrdSleep(crd_sleep) => facts.crd_sleep = crd_sleep,
            Answer::LimitRange(limit_range) => facts.limit_range = limit_range,
            Answer::NamespaceLabels(labels) => facts.namespace_labels = labels,
            Answer::Quotas(quotas) => facts.quotas = quotas,
            Answer::Revisions(revisions) => facts.revisions = revisions,
        }
    }

    /// One ConfigMap or Secret.
    pub(super) fn config<'a>(
        &'a self,
        namespace: &'a str,
        (source, name): Object,
        wanted: Wanted,
        deadline: Instant,
    ) -> Lookup<'a> {
        async move {
            let collection = match source {
                Source::ConfigMap => api::CONFIG_MAPS,
                Source::Secret if self.digest_key.is_some() => api::SECRETS,
                Source::Secret => return Answer::Config(wanted, Err(Reason::NotAllowed)),
            };
            let timer = self.duration.as_ref().map(Histogram::start_timer);
            let config = self
                .before(deadline, async {
                    let Some(body) = self.api.get(collection, namespace, &name).await? else { return Ok(None) };
                    let object: ConfigObject = api::parse(&body)?;
                    object.config(source).map(Some).map_err(|_| Reason::Failed)
                })
                .await;
            drop(timer);
            if let Err(reason) = config {
                tracing::debug!(namespace, kind = source.as_str(), name, %reason, "look-up failed");
            }
            Answer::Config(wanted, config)
        }
        .boxed()
    }

    /// One list call: what the label selector cannot tell apart, the owner's uid does (TRAPS C14).
    pub(super) fn revisions<'a>(&'a self, namespace: &'a str, owner: RevisionOwner, deadline: Instant) -> Lookup<'a> {
        async move {
            if owner.uid.is_empty() {
                return Answer::Revisions(Known::Unknown(Reason::Failed));
            }
            let collection = match owner.store {
                RevisionStore::ReplicaSets => api::REPLICA_SETS,
                RevisionStore::ControllerRevisions => api::CONTROLLER_REVISIONS,
            };
            let labels = selector(&owner.match_labels);
            let revisions = self.before(deadline, async {
                let body = self.api.list(collection, namespace, &labels).await?;
                let list: List<RevisionObject<'_>> = api::parse(&body)?;
                let objects = list.complete().ok_or(Reason::TooMany)?.into_iter();
                let owned = objects.filter(|object| object.metadata.controller() == Some(&owner.uid));
                Ok(owned.filter_map(RevisionObject::revision).collect())
            });
            Answer::Revisions(revisions.await.map_or_else(Known::Unknown, listed))
        }
        .boxed()
    }

    /// ResourceQuotas of the namespace.
    pub(super) fn quotas<'a>(&'a self, namespace: &'a str, deadline: Instant) -> Lookup<'a> {
        let quotas = self.list(api::QUOTAS, namespace, deadline, object::quota);
        quotas.map(|quotas| Answer::Quotas(quotas.map_or_else(Known::Unknown, listed))).boxed()
    }

    /// Whether a LimitRange of the namespace sets container defaults.
    pub(super) fn limit_range<'a>(&'a self, namespace: &'a str, deadline: Instant) -> Lookup<'a> {
        let ranges = self.list(api::LIMIT_RANGES, namespace, deadline, |range| Some(object::sets_defaults(range)));
        ranges.map(|ranges| Answer::LimitRange(ranges.map_or_else(Known::Unknown, any))).boxed()
    }

    async fn list<T>(
        &self,
        collection: Collection,
        namespace: &str,
        deadline: Instant,
        keep: impl Fn(&Value<'_>) -> Option<T>,
    ) -> Result<Vec<T>, Reason> {
        self.before(deadline, async {
            let body = self.api.list(collection, namespace, "").await?;
            let list = api::document(&body)?;
            let rest = list["metadata"]["continue"].as_str().unwrap_or_default();
            if rest.is_empty() {
                Ok(list["items"].items().iter().filter_map(keep).collect())
            } else {
                Err(Reason::TooMany)
            }
        })
        .await
    }

    /// Labels of a namespace that the watch has not seen, for instance because it is younger than a moment.
    pub(super) fn namespace_labels<'a>(&'a self, namespace: &'a str, deadline: Instant) -> Lookup<'a> {
        async move {
            let labels = self.before(deadline, async {
                let Some(body) = self.api.get_global(api::NAMESPACES, namespace).await? else {
                    return Ok(Known::Absent);
                };
                Ok(Known::Known(object::metadata_labels(&api::document(&body)?)))
            });
            Answer::NamespaceLabels(labels.await.unwrap_or_else(Known::Unknown))
        }
        .boxed()
    }

    /// Whether the Rollout CRD keeps a `sleep`. An absence is not kept: whoever asks has a Rollout at hand, so that the
    /// CRD is there or comes in a moment.
    pub(super) fn crd_sleep(&self, deadline: Instant) -> Lookup<'_> {
        async move {
            let known = self.before(deadline, async {
                let mut last = self.crd_sleep.lock().await;
                if let Some((read, keeps)) = *last
                    && read.elapsed() < CRD_EVERY
                {
                    return Ok(Known::Known(keeps));
                }
                let Some(body) = self.api.get_global(api::CRDS, crd::ROLLOUTS).await? else { return Ok(Known::Absent) };
                let keeps = crd::keeps_sleep(&api::document(&body)?);
                *last = keeps.known().map(|keeps| (Instant::now(), *keeps));
                Ok(keeps)
            });
            Answer::CrdSleep(known.await.unwrap_or_else(Known::Unknown))
        }
        .boxed()
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
}

/// A label selector; pairs that could mean anything else in one are left out, which only makes the list longer.
fn selector(labels: &[(String, String)]) -> String {
    let safe = labels.iter().filter(|(key, value)| !key.is_empty() && is_label_text(key) && is_label_text(value));
    safe.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

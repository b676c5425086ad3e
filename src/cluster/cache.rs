//! A cache, kept by watching, of what all namespaces have of one kind. It says when it does not know, and why.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use tokio::time::Instant;

use super::reflected::{Kind, Reflected};
use crate::engine::facts::Reason;

/// First and longest pause before a failed watch starts again.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How often it is looked whether a kind that was not served is served now.
const MISSING_PAUSE: Duration = Duration::from_secs(600);

/// The server is told to end each watch after this many seconds; the next one goes on from there. So a connection that
/// died unnoticed cannot hide changes for longer.
const WATCH_SECONDS: u32 = 60;

/// Silence for this long is the end of a connection: no watch that is alive is silent for longer.
pub(super) const SILENCE: Duration = Duration::from_secs(63);

/// Objects of one page of a list. Their text is in memory at once, and a pod template's may well have 100 KiB.
const PAGE: u32 = 100;

/// What is kept of one namespace's objects, sorted by name.
///
/// A sorted list and no tree: most namespaces have a handful, and one node of a tree has room for eleven.
type Named<T> = Vec<(Box<str>, T)>;

/// By namespace.
type Objects<T> = HashMap<Box<str>, Named<T>>;

/// What is kept of all objects of one kind.
///
/// A Deployment with four labels and two ports costs about 1.7 KB, whatever it weighs as JSON, and a cluster of 10,000 of
/// them 17 MB: growth of the resident set over 10,000 Deployments in 500 namespaces, glibc's allocator, measured by
/// `cluster::memory` in the server tests. Other kinds keep less. While a list is read, one page of its text is held, and
/// what an earlier list left is gone: a cache that does not count is empty.
pub(super) struct Cache<K: Kind> {
    state: RwLock<State<K::Kept>>,
}

enum State<T> {
    /// A list was read to its end and the watch since then has not failed.
    Current(Objects<T>),
    /// What there is cannot be told.
    Behind(Reason),
}

impl<K: Kind> Cache<K> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Cache { state: RwLock::new(State::Behind(Reason::TimedOut)) })
    }

    /// What is kept of this namespace's objects, by name.
    ///
    /// # Errors
    /// Why it cannot be told: the first list is still under way ([`Reason::TimedOut`]), or the watch failed.
    pub(super) fn of(&self, namespace: &str) -> Result<Vec<K::Kept>, Reason> {
        self.look(|objects| {
            let here = objects.get(namespace).map(Vec::as_slice).unwrap_or_default();
            here.iter().map(|(_, kept)| kept.clone()).collect()
        })
    }

    /// What is kept of one object that is in no namespace; `None` where there is none.
    ///
    /// # Errors
    /// As [`Cache::of`].
    pub(super) fn named(&self, name: &str) -> Result<Option<K::Kept>, Reason> {
        self.look(|objects| {
            let all = objects.get("")?;
            find(all, name).ok().map(|index| all[index].1.clone())
        })
    }

    fn look<R>(&self, look: impl FnOnce(&Objects<K::Kept>) -> R) -> Result<R, Reason> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Current(objects) => Ok(look(objects)),
            State::Behind(reason) => Err(*reason),
        }
    }

    /// Watches for ever. After any failure the cache does not count until everything has been listed anew.
    pub(super) async fn run(self: Arc<Self>, client: Client) {
        let mut pause = PAUSE.0;
        let mut told = None;
        loop {
            let started = Instant::now();
            let end = self.follow(&client).await;
            if K::MAY_BE_MISSING && end.missing {
                tracing::debug!(kind = K::KIND, "the API server does not serve it");
                *self.write() = State::Current(Objects::new());
                tokio::time::sleep(MISSING_PAUSE).await;
                continue;
            }
            *self.write() = State::Behind(end.reason);
            // A server that lists but refuses to watch is no reason to list every second.
            if started.elapsed() > PAUSE.1 {
                (pause, told) = (PAUSE.0, None);
            }
            let (kind, error, seconds) = (K::KIND, end.error, pause.as_secs());
            if told.replace(end.reason) == Some(end.reason) {
                tracing::debug!(kind, error, seconds, "watch failed again");
            } else {
                tracing::warn!(kind, error, seconds, "watch failed; what it saw does not count until it is back");
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(PAUSE.1);
        }
    }

    /// Lists and watches until either fails.
    async fn follow(&self, client: &Client) -> End {
        let mut config = watcher::Config::default().timeout(WATCH_SECONDS).page_size(PAGE);
        if !K::LABELS.is_empty() {
            config = config.labels(K::LABELS);
        }
        let mut listed = Objects::new();
        let mut events = Box::pin(watcher::watcher(Api::<Reflected<K>>::all(client.clone()), config));
        loop {
            match events.try_next().await {
                Ok(Some(event)) => self.apply(event, &mut listed),
                Ok(None) => return End { reason: Reason::Failed, missing: false, error: String::new() },
                Err(error) => return End::from(error),
            }
        }
    }

    /// `listed` collects what belongs to the list that is under way.
    fn apply(&self, event: Event<Reflected<K>>, listed: &mut Objects<K::Kept>) {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => put(listed, object),
            Event::InitDone => {
                listed.values_mut().for_each(Vec::shrink_to_fit);
                *self.write() = State::Current(std::mem::take(listed));
            }
            Event::Apply(object) => {
                if let State::Current(objects) = &mut *self.write() {
                    put(objects, object);
                }
            }
            Event::Delete(object) => {
                if let State::Current(objects) = &mut *self.write() {
                    remove(objects, object.namespace(), object.name());
                }
            }
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<K::Kept>> {
        // No caller can panic half-way through a change.
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a watch ended.
struct End {
    reason: Reason,
    /// Whether the server does not serve the kind.
    missing: bool,
    error: String,
}

impl From<watcher::Error> for End {
    fn from(error: watcher::Error) -> Self {
        let code = match &error {
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            | watcher::Error::WatchFailed(kube::Error::Api(status))
            | watcher::Error::WatchError(status) => status.code,
            _ => 0,
        };
        let reason = if code == 403 { Reason::Forbidden } else { Reason::Failed };
        End { reason, missing: code == 404, error: error.to_string() }
    }
}

/// Where an object of this name is, else where it would be.
fn find<T>(objects: &Named<T>, name: &str) -> Result<usize, usize> {
    objects.binary_search_by(|(other, _)| (**other).cmp(name))
}

/// Puts what is kept of an object in the place of what was; where nothing is kept the place goes.
fn put<K: Kind>(objects: &mut Objects<K::Kept>, mut object: Reflected<K>) {
    let Some(kept) = object.kept.take() else {
        return remove(objects, object.namespace(), object.name());
    };
    let here = objects.entry(object.namespace().into()).or_default();
    match find(here, object.name()) {
        Ok(index) => here[index].1 = kept,
        Err(index) => here.insert(index, (object.name().into(), kept)),
    }
}

fn remove<T>(objects: &mut Objects<T>, namespace: &str, name: &str) {
    let Some(here) = objects.get_mut(namespace) else { return };
    if let Ok(index) = find(here, name) {
        here.remove(index);
    }
    if here.is_empty() {
        objects.remove(namespace);
    }
}

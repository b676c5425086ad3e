//! A small cache, kept by watching, of what every namespace has one or two of. It says when it does not know.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::api::DynamicObject;
use kube::runtime::watcher::{self, Event};
use kube::{Client, ResourceExt as _};
use tokio::time::Instant;

/// First and longest pause before a failed watch starts again.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What is kept of one object, by namespace and name.
type Objects<T> = HashMap<String, BTreeMap<String, T>>;

/// What is kept of all objects of one kind.
pub(super) struct Cache<T> {
    state: RwLock<State<T>>,
}

struct State<T> {
    objects: Objects<T>,
    /// Whether a list was read to its end and the watch since then has not failed.
    current: bool,
}

impl<T: Clone + Send + Sync + 'static> Cache<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Cache { state: RwLock::new(State { objects: HashMap::new(), current: false }) })
    }

    /// What is kept of this namespace's objects, by name; `None` while the watch is not up to date.
    pub(super) fn of(&self, namespace: &str) -> Option<Vec<T>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let objects = || state.objects.get(namespace).map(|objects| objects.values().cloned().collect());
        state.current.then(|| objects().unwrap_or_default())
    }

    /// Watches for ever. After any failure the cache does not count until everything has been listed anew.
    pub(super) async fn run(
        self: Arc<Self>,
        client: Client,
        resource: kube::api::ApiResource,
        keep: fn(&DynamicObject) -> T,
    ) {
        let mut pause = PAUSE.0;
        loop {
            let started = Instant::now();
            let api = kube::Api::<DynamicObject>::all_with(client.clone(), &resource);
            let mut listed = Objects::new();
            let mut events = Box::pin(watcher::watcher(api, watcher::Config::default()));
            let ended = loop {
                match events.try_next().await {
                    Ok(Some(event)) => self.apply(event, &mut listed, keep),
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            self.write().current = false;
            // A server that lists but refuses to watch is no reason to list every second.
            if started.elapsed() > PAUSE.1 {
                pause = PAUSE.0;
            }
            let error = ended.map(|error| error.to_string()).unwrap_or_default();
            tracing::warn!(
                kind = resource.kind,
                error,
                seconds = pause.as_secs(),
                "watch failed; reading live until it is back"
            );
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(PAUSE.1);
        }
    }

    /// `listed` collects what belongs to the list that is under way.
    fn apply(&self, event: Event<DynamicObject>, listed: &mut Objects<T>, keep: fn(&DynamicObject) -> T) {
        let key = |object: &DynamicObject| (object.namespace().unwrap_or_default(), object.name_any());
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => {
                let (namespace, name) = key(&object);
                listed.entry(namespace).or_default().insert(name, keep(&object));
            }
            Event::InitDone => *self.write() = State { objects: std::mem::take(listed), current: true },
            Event::Apply(object) => {
                let (namespace, name) = key(&object);
                self.write().objects.entry(namespace).or_default().insert(name, keep(&object));
            }
            Event::Delete(object) => {
                let (namespace, name) = key(&object);
                let mut state = self.write();
                if let Some(objects) = state.objects.get_mut(&namespace) {
                    objects.remove(&name);
                    if objects.is_empty() {
                        state.objects.remove(&namespace);
                    }
                }
            }
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<T>> {
        // No caller can panic half-way through a change.
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

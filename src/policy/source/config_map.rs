//! A policy in a ConfigMap, watched through the API: a mounted one reaches our replicas minutes apart (TRAPS I15).

use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};

use super::Error;
use crate::engine::text::listed;
use crate::policy::store::{Offer, Store};

/// The key of the ConfigMap's `data` that holds the policy.
pub const KEY: &str = "policy.yaml";

/// The most bytes of an Event's note (`events.k8s.io/v1`) that the API server takes.
const NOTE_BYTES: usize = 1024;

/// The most keys that are named in place of ours.
const MOST_LISTED: usize = 5;

/// One ConfigMap, whose key [`KEY`] is the policy.
///
/// It wants `get` for [`ConfigMapSource::load`], `list` and `watch` for [`ConfigMapSource::watch`] (all restricted to
/// its name), and, best effort, `create` on `events.k8s.io` Events.
#[derive(Clone)]
pub struct ConfigMapSource {
    client: Client,
    namespace: String,
    name: String,
}

impl ConfigMapSource {
    /// This ConfigMap.
    pub fn new(client: Client, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        ConfigMapSource { client, namespace: namespace.into(), name: name.into() }
    }

    /// Loads it: for the start.
    ///
    /// # Errors
    /// The API server does not give it to us, it lacks the key, or what it holds is no valid policy.
    pub async fn load(&self, store: &Store) -> Result<Offer, Error> {
        let got = self.api().get_opt(&self.name).await;
        match got {
            Ok(Some(config_map)) => Ok(store.offer(self.text(&config_map)?, &self.origin())?),
            Ok(None) => Err(Error::Missing { config_map: self.display() }),
            Err(source) => Err(Error::Kube { config_map: self.display(), source: Box::new(source) }),
        }
    }

    /// Watches it and offers what changed. Runs until it is dropped; a lost connection is taken up again.
    pub async fn watch(&self, store: &Store) {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let mut events = pin!(watcher::watcher(self.api(), config).default_backoff());
        // Whether it was in the list that a (re)started watch begins with.
        let mut listed = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => listed = false,
                Ok(watcher::Event::InitApply(config_map)) => {
                    listed = true;
                    self.offer(store, &config_map).await;
                }
                Ok(watcher::Event::Apply(config_map)) => self.offer(store, &config_map).await,
                Ok(watcher::Event::InitDone) if listed => {}
                Ok(watcher::Event::InitDone | watcher::Event::Delete(_)) => {
                    store.fail(&Error::Missing { config_map: self.display() }.to_string());
                }
                // No word from the API server is no word against the policy in force.
                Err(error) => tracing::warn!("watch of policy ConfigMap {} interrupted: {error}", self.display()),
            }
        }
    }

    async fn offer(&self, store: &Store, config_map: &ConfigMap) {
        let (trouble, news) = match self.text(config_map) {
            Ok(text) => match store.offer(text, &self.origin()) {
                Ok(_) => return,
                Err(refusal) => (refusal.to_string(), refusal.news),
            },
            Err(error) => {
                let trouble = error.to_string();
                let news = store.fail(&trouble);
                (trouble, news)
            }
        };
        if !news {
            return;
        }
        let event = Event {
            type_: EventType::Warning,
            reason: "InvalidPolicy".to_owned(),
            note: Some(cut(&format!("{trouble}\nThe last good policy stays in force."), NOTE_BYTES).to_owned()),
            action: "LoadPolicy".to_owned(),
            secondary: None,
        };
        // A recorder for each: one recorder joins Events of the same reason and shows the first note only.
        let instance = std::env::var("HOSTNAME").ok();
        let reporter = Reporter { controller: "plimsoll.dev/policy".to_owned(), instance };
        let recorder = Recorder::new(self.client.clone(), reporter);
        if let Err(error) = recorder.publish(&event, &config_map.object_ref(&())).await {
            tracing::warn!("no Event could be written on ConfigMap {}: {error}", self.display());
        }
    }

    /// The policy's text in this ConfigMap.
    fn text<'c>(&self, config_map: &'c ConfigMap) -> Result<&'c str, Error> {
        let missing = |has| Error::MissingKey { config_map: self.display(), has };
        match config_map.data.as_ref().and_then(|data| data.get(KEY)) {
            Some(text) if text.trim().is_empty() => Err(missing("; it is empty".to_owned())),
            Some(text) => Ok(text),
            None => {
                let keys = config_map.data.iter().flatten().map(|(key, _)| key.clone());
                let binary = config_map.binary_data.as_ref().is_some_and(|data| data.contains_key(KEY));
                Err(missing(instead(keys, binary)))
            }
        }
    }

    fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn display(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn origin(&self) -> String {
        format!("key {KEY} of ConfigMap {}", self.display())
    }
}

/// What a ConfigMap has instead of the policy's key, as the end of the sentence that says so: the keys of its `data`, and
/// whether its `binaryData` has ours.
pub fn instead(keys: impl Iterator<Item = String>, binary: bool) -> String {
    if binary {
        return "; it is there as binaryData, which means that it is not UTF-8".to_owned();
    }
    match listed(keys, MOST_LISTED) {
        none if none.is_empty() => "; it is empty".to_owned(),
        keys => format!("; it has {keys}"),
    }
}

/// The beginning of a text, at most so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

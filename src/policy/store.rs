//! The policy in force: swapped whole, and kept when what comes next is broken.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;

use super::compile::{self, Catalogue};
use super::error::Error;
use super::{Policy, path};
use crate::rules;

/// Holds the last good policy. One per process; all its functions may be called from any thread.
pub struct Store {
    current: ArcSwapOption<Policy>,
    failures: AtomicU64,
    last: Mutex<Last>,
    catalogue: Catalogue,
}

/// What the sources said last.
#[derive(Default)]
struct Last {
    /// The text of the policy in force.
    loaded: Option<String>,
    /// The text refused last, with what was wrong; until a good one comes.
    refused: Option<(String, Error)>,
    /// The trouble to show; `None`: the last word of the source is in force.
    trouble: Option<String>,
}

/// What came of an offer.
#[derive(Debug)]
pub enum Offer {
    /// It is in force now.
    Loaded(Arc<Policy>),
    /// It is the text in force: nothing was done.
    Unchanged,
}

/// A policy that was refused; the one in force stays.
#[derive(Debug, Clone, thiserror::Error)]
pub struct Refusal {
    /// Where the text is from.
    pub origin: String,
    /// What is wrong with it.
    #[source]
    pub error: Error,
    /// Whether it is news: sources offer the same broken text again and again.
    pub news: bool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is no valid policy:\n{}", self.origin, self.error)
    }
}

impl Default for Store {
    fn default() -> Self {
        Store::new()
    }
}

impl Store {
    /// A store without a policy: not ready until one is offered.
    pub fn new() -> Self {
        Store::with_catalogue(Catalogue(rules::REGISTRY))
    }

    /// A store with this policy in force: the embedded baseline, or a test's.
    pub fn with(policy: Policy) -> Self {
        let store = Store::new();
        store.current.store(Some(Arc::new(policy)));
        store
    }

    pub(super) fn with_catalogue(catalogue: Catalogue) -> Self {
        Store { current: ArcSwapOption::empty(), failures: AtomicU64::new(0), last: Mutex::default(), catalogue }
    }

    /// The policy in force; take it once per review. `None` until the first good one.
    pub fn current(&self) -> Option<Arc<Policy>> {
        self.current.load_full()
    }

    /// How many reloads failed since the start: for `plimsoll_policy_reload_failures_total`. The same broken text
    /// counts once, however often its source offers it.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// What is wrong with the source's last word, for `/readyz`; `None` where that is in force.
    pub fn trouble(&self) -> Option<String> {
        self.last().trouble.clone()
    }

    /// Puts this text in force, if it is a valid policy. `origin` says where it is from, for people: a file's name, a
    /// ConfigMap and key.
    ///
    /// # Errors
    /// What is wrong with it; the policy in force stays, the failure is counted and logged once per text.
    pub fn offer(&self, text: &str, origin: &str) -> Result<Offer, Refusal> {
        let mut last = self.last();
        if last.loaded.as_deref() == Some(text) {
            last.refused = None;
            if last.trouble.take().is_some() {
                tracing::info!(origin, "the policy is again the one in force");
            }
            return Ok(Offer::Unchanged);
        }
        if let Some((_, error)) = last.refused.as_ref().filter(|(refused, _)| refused == text) {
            return Err(Refusal { origin: origin.to_owned(), error: error.clone(), news: false });
        }
        match compile::parse(text, self.catalogue) {
            Ok(policy) => {
                let policy = Arc::new(policy);
                self.current.store(Some(Arc::clone(&policy)));
                *last = Last { loaded: Some(text.to_owned()), ..Last::default() };
                tell(&policy, origin);
                Ok(Offer::Loaded(policy))
            }
            Err(error) => {
                let refusal = Refusal { origin: origin.to_owned(), error, news: true };
                self.note(&mut last, refusal.to_string());
                last.refused = Some((text.to_owned(), refusal.error.clone()));
                Err(refusal)
            }
        }
    }

    /// Notes that the source has no text to offer (a file vanished, a ConfigMap lost its key): the policy in force
    /// stays. Counted and logged once until the source says something else. Returns whether it is news.
    pub fn fail(&self, trouble: &str) -> bool {
        let mut last = self.last();
        if last.trouble.as_deref() == Some(trouble) {
            return false;
        }
        last.refused = None;
        self.note(&mut last, trouble.to_owned());
        true
    }

    fn note(&self, last: &mut Last, trouble: String) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let kept = self.current.load().as_ref().map(|policy| policy.hash.clone());
        tracing::error!(kept, "policy not loaded: {trouble}");
        last.trouble = Some(trouble);
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        // A panic while it was held leaves it as sound as before: each field is set in one step.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs what is in force from now on, and what its author should know.
fn tell(policy: &Policy, origin: &str) {
    tracing::info!(origin, name = path::shorten(&policy.name), hash = policy.hash, "policy loaded");
    for notice in &policy.notices {
        tracing::warn!(origin, "{notice}");
    }
    for expired in policy.expired(chrono::Utc::now().date_naive()) {
        let (name, owner) = (path::shorten(&expired.name), path::shorten(&expired.owner));
        tracing::warn!(origin, name, owner, expired = %expired.expires, "exception has expired and is not honoured");
    }
}

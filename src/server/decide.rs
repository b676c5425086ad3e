//! The seam between HTTP and judgement: the server knows how to ask, the engine how to answer.

use std::sync::Arc;

use chrono::Utc;
use futures::future::{BoxFuture, FutureExt};
use tokio::time::{Instant, timeout_at};

use super::deadline::Deadline;
use crate::cluster::FactSource;
use crate::engine;
use crate::engine::facts::{Facts, Known, Needs, Reason};
use crate::engine::request::{Endpoint, Request};
use crate::engine::verdict::Verdict;
use crate::policy::{Policy, Store};

/// What decides on reviews.
pub trait Decide: Send + Sync {
    /// The policy in force; `None`: there is none yet, and nothing can be decided. One review keeps the policy that it
    /// began with.
    fn policy(&self) -> Option<Arc<Policy>>;

    /// The verdict on one request.
    fn decide<'a>(
        &'a self,
        policy: &'a Policy,
        endpoint: Endpoint,
        request: &'a Request<'a>,
        deadline: Deadline,
    ) -> BoxFuture<'a, Verdict>;
}

/// Decides with the engine: its policy from a store, its facts from a cluster.
pub struct Engine {
    policy: Arc<Store>,
    facts: Arc<dyn FactSource>,
}

impl Engine {
    /// Connects the two.
    pub fn new(policy: Arc<Store>, facts: Arc<dyn FactSource>) -> Self {
        Engine { policy, facts }
    }

    /// Looks up what is needed. Sources keep the deadline of the look-ups themselves and tell what they know by then;
    /// one that does not is left behind when the answer is due.
    async fn gather(&self, namespace: &str, needs: Needs, deadline: Deadline) -> Facts {
        if needs.is_empty() {
            return Facts::unknown(Reason::NotAsked);
        }
        let (digests, configs) = (needs.digests.clone(), needs.configs.clone());
        let gathered = timeout_at(deadline.answer, self.facts.gather(namespace, needs, deadline.lookups)).await;
        gathered.unwrap_or_else(|_elapsed| {
            let digests = digests.into_iter().map(|reference| (reference, Known::Unknown(Reason::TimedOut)));
            let configs = configs.into_iter().map(|reference| (reference, Known::Unknown(Reason::TimedOut)));
            Facts { digests: digests.collect(), configs: configs.collect(), ..Facts::unknown(Reason::TimedOut) }
        })
    }
}

impl Decide for Engine {
    fn policy(&self) -> Option<Arc<Policy>> {
        self.policy.current()
    }

    fn decide<'a>(
        &'a self,
        policy: &'a Policy,
        endpoint: Endpoint,
        request: &'a Request<'a>,
        deadline: Deadline,
    ) -> BoxFuture<'a, Verdict> {
        async move {
            let prepared = engine::prepare(endpoint, policy, request);
            let facts = self.gather(&request.namespace, prepared.needs(), deadline).await;
            prepared.evaluate(&Facts { today: Some(Utc::now().date_naive()), ..facts })
        }
        .boxed()
    }
}

/// Facts that do not change: for tests, and where there is no cluster to ask.
pub struct Constant(pub Facts);

impl FactSource for Constant {
    fn gather<'a>(&'a self, _namespace: &'a str, _needs: Needs, _deadline: Instant) -> BoxFuture<'a, Facts> {
        std::future::ready(self.0.clone()).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{Reference, Source};

    struct Hangs;
    impl FactSource for Hangs {
        fn gather<'a>(&'a self, _namespace: &'a str, _needs: Needs, _deadline: Instant) -> BoxFuture<'a, Facts> {
            std::future::pending().boxed()
        }
    }

    #[tokio::test]
    async fn a07_a_source_that_keeps_no_deadline_leaves_every_fact_timed_out() {
        let engine = Engine::new(Arc::default(), Arc::new(Hangs));
        let reference = Reference { source: Source::ConfigMap, name: "cfg".into(), keys: None, optional: false };
        let needs = Needs { digests: vec![reference.clone()], ..Needs::default() };
        let deadline = Deadline::new(Instant::now(), None, Duration::from_millis(10));
        let facts = engine.gather("shop", needs, deadline).await;
        assert_eq!(facts.digest(&reference), Known::Unknown(Reason::TimedOut));
        assert_eq!(facts.server_version, Known::Unknown(Reason::TimedOut));
    }

    #[tokio::test]
    async fn nothing_needed_nothing_asked() {
        let engine = Engine::new(Arc::default(), Arc::new(Hangs));
        let deadline = Deadline::new(Instant::now(), None, Duration::from_secs(3600));
        assert_eq!(engine.gather("shop", Needs::default(), deadline).await, Facts::unknown(Reason::NotAsked));
    }
}

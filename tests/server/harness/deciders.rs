//! Deciders that are not the engine: to see what the server makes of any verdict, and of none.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use plimsoll::engine::finding::{Action, Finding};
use plimsoll::engine::request::{Endpoint, Request};
use plimsoll::engine::verdict::{Applied, Judged, Verdict};
use plimsoll::policy::Policy;
use plimsoll::server::deadline::Deadline;
use plimsoll::server::decide::Decide;
use tokio::sync::Semaphore;

/// A policy without rules.
pub fn no_rules() -> Arc<Policy> {
    Arc::new(Policy::of(&[]).ok().unwrap())
}

/// Always the same verdict.
pub struct Always(pub Verdict);

/// Panics while it decides, with a piece of the object in the message.
pub struct Panics;

/// Has no policy.
pub struct NoPolicy;

/// Allows, but only while the gate has a permit, which it keeps.
#[derive(Clone)]
pub struct Gated {
    /// The gate.
    pub gate: Arc<Semaphore>,
    /// One permit for each review that reached the gate.
    pub reached: Arc<Semaphore>,
}

impl Gated {
    /// A closed gate.
    pub fn closed() -> Self {
        Gated { gate: Arc::new(Semaphore::new(0)), reached: Arc::new(Semaphore::new(0)) }
    }
}

impl Decide for Always {
    fn policy(&self) -> Option<Arc<Policy>> {
        Some(no_rules())
    }

    fn decide<'a>(&'a self, _: &'a Policy, _: Endpoint, _: &'a Request<'a>, _: Deadline) -> BoxFuture<'a, Verdict> {
        std::future::ready(self.0.clone()).boxed()
    }
}

impl Decide for Panics {
    fn policy(&self) -> Option<Arc<Policy>> {
        Some(no_rules())
    }

    fn decide<'a>(&'a self, _: &'a Policy, _: Endpoint, _: &'a Request<'a>, _: Deadline) -> BoxFuture<'a, Verdict> {
        async { panic!("hunter2") }.boxed()
    }
}

impl Decide for NoPolicy {
    fn policy(&self) -> Option<Arc<Policy>> {
        None
    }

    fn decide<'a>(&'a self, _: &'a Policy, _: Endpoint, _: &'a Request<'a>, _: Deadline) -> BoxFuture<'a, Verdict> {
        unreachable!("nothing is decided without a policy")
    }
}

impl Decide for Gated {
    fn policy(&self) -> Option<Arc<Policy>> {
        Some(no_rules())
    }

    fn decide<'a>(&'a self, _: &'a Policy, _: Endpoint, _: &'a Request<'a>, _: Deadline) -> BoxFuture<'a, Verdict> {
        async {
            self.reached.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
            Verdict::default()
        }
        .boxed()
    }
}

/// A verdict that says everything at once; what of it goes out depends on the webhook.
pub fn everything() -> Verdict {
    let judged = |rule, action| Judged {
        finding: Finding::new(rule, "/spec/template", "value hunter2").container("app"),
        action,
        old: false,
        unenforced: false,
        exception: None,
    };
    Verdict {
        findings: vec![
            judged("missing-requests", Action::Warn),
            judged("mutable-image-tag", Action::Deny),
            judged("rollout-outage", Action::Deny),
        ],
        fixes: vec![Applied { rule: "missing-pre-stop", claim: "missing-pre-stop/app".to_owned() }],
        patch: Some(r#"[{"op":"add","path":"/metadata/labels","value":{}}]"#.to_owned()),
        patch_ops: 1,
        warnings: vec!["first\nsecond".to_owned()],
        denial: Some("2 findings".to_owned()),
        ..Verdict::default()
    }
}

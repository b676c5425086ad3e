//! The engine: pure. It does no I/O, reads no clock, knows no HTTP and no kube client.
//!
//! [`prepare`] decides once whether a request is in scope and whose values are whose; then it tells which facts it wants
//! and, given them, the verdict.

pub mod context;
pub mod document;
pub mod exec;
pub mod facts;
pub mod finding;
pub mod kind;
pub mod neighbours;
pub mod ownership;
pub mod plan;
pub mod pod;
pub mod pointer;
pub mod request;
pub mod rule;
pub mod service;
pub mod text;
pub mod verdict;

mod author;
mod case;
mod fixing;
mod judging;
pub(crate) mod marker;
mod message;
mod patch;
mod scope;
mod workload;

use case::Case;
use document::Value;
use facts::{Facts, Needs};
use request::{Endpoint, Request};
use scope::Scope;
use verdict::Verdict;

use crate::policy::Policy;

/// Label of a namespace or a workload that names a stricter profile of the policy.
const PROFILE_LABEL: &str = "plimsoll.dev/profile";

/// A request prepared once, on its way through: asked which facts it wants, then judged by them.
pub struct Prepared<'r> {
    endpoint: Endpoint,
    policy: &'r Policy,
    request: &'r Request<'r>,
    scope: Scope,
    /// Under the policy that the workload's profile chooses; `None`: out of scope.
    case: Option<Case<'r>>,
}

/// Prepares a request.
pub fn prepare<'r>(endpoint: Endpoint, policy: &'r Policy, request: &'r Request<'r>) -> Prepared<'r> {
    let scope = scope::scope(endpoint, policy, request);
    let case = match (scope, &request.object) {
        (Scope::Judge(kind), Some(object)) => {
            let policy = policy.resolve(None, workload_profile(object));
            Some(Case::new(endpoint, policy, request, kind, object))
        }
        _ => None,
    };
    Prepared { endpoint, policy, request, scope, case }
}

impl Prepared<'_> {
    /// Which facts [`Prepared::evaluate`] will ask for; none for a request that is out of scope.
    pub fn needs(&self) -> Needs {
        let Some(case) = &self.case else { return Needs::default() };
        let mut needs = case.needs();
        // Which profile the namespace chooses is a fact, too: so all that any of them would ask for.
        for namespace in self.policy.profiles.names() {
            let policy = self.policy.resolve(Some(namespace), workload_profile(case.object));
            needs.merge(Case { policy, ..case.clone() }.needs());
            needs.namespace_labels = true;
        }
        needs
    }

    /// The verdict by these facts.
    pub fn evaluate(self, facts: &Facts) -> Verdict {
        let mut verdict = match self.case {
            Some(case) => {
                let namespace = facts.namespace_labels.known().and_then(|labels| labels.get(PROFILE_LABEL));
                let policy = self.policy.resolve(namespace.map(String::as_str), workload_profile(case.object));
                let case = Case { policy, ..case };
                match self.endpoint {
                    Endpoint::Mutate => fixing::mutate(&case, facts),
                    Endpoint::Validate => judging::validate(&case, self.request, facts),
                }
            }
            None => Verdict { out_of_scope: true, ..Verdict::default() },
        };
        if let Scope::Pass(Some(reason)) = self.scope {
            verdict.anomalies.push(reason);
        }
        let said = self.request.object.as_ref().and_then(|object| object["metadata"]["namespace"].as_str());
        if said.is_some_and(|said| !self.request.namespace.is_empty() && said != self.request.namespace) {
            verdict.anomalies.push("namespace-mismatch");
        }
        verdict
    }
}

/// Which facts [`evaluate`] will ask for; none for a request that is out of scope.
pub fn needs(endpoint: Endpoint, policy: &Policy, request: &Request<'_>) -> Needs {
    prepare(endpoint, policy, request).needs()
}

/// The verdict on one request: the same for the same input, in the server, the CLI and a dry run.
pub fn evaluate(endpoint: Endpoint, policy: &Policy, request: &Request<'_>, facts: &Facts) -> Verdict {
    prepare(endpoint, policy, request).evaluate(facts)
}

fn workload_profile<'o>(object: &'o Value<'_>) -> Option<&'o str> {
    object["metadata"]["labels"].get(PROFILE_LABEL).as_str()
}

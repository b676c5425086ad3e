//! The engine: pure. It does no I/O, reads no clock, knows no HTTP and no kube client.

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
mod marker;
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
pub const PROFILE_LABEL: &str = "plimsoll.dev/profile";

/// Which facts [`evaluate`] will ask for; none for a request that is out of scope.
pub fn needs(endpoint: Endpoint, policy: &Policy, request: &Request<'_>) -> Needs {
    let (Scope::Judge(kind), Some(object)) = (scope::scope(endpoint, policy, request), &request.object) else {
        return Needs::default();
    };
    let of = |policy: &Policy| Case::new(endpoint, policy, request, kind, object).needs();
    let workload = workload_profile(object);
    let mut needs = of(policy.resolve(None, workload));
    // Which profile the namespace chooses is a fact, too: so all that any of them would ask for.
    for namespace in policy.profiles.names() {
        needs.merge(of(policy.resolve(Some(namespace), workload)));
        needs.namespace_labels = true;
    }
    needs
}

/// The verdict on one request: the same for the same input, in the server, the CLI and a dry run.
pub fn evaluate(endpoint: Endpoint, policy: &Policy, request: &Request<'_>, facts: &Facts) -> Verdict {
    let mut verdict = match (scope::scope(endpoint, policy, request), &request.object) {
        (Scope::Judge(kind), Some(object)) => {
            let namespace = facts.namespace_labels.known().and_then(|labels| labels.get(PROFILE_LABEL));
            let policy = policy.resolve(namespace.map(String::as_str), workload_profile(object));
            let case = Case::new(endpoint, policy, request, kind, object);
            match endpoint {
                Endpoint::Mutate => fixing::mutate(&case, facts),
                Endpoint::Validate => judging::validate(&case, request, facts),
            }
        }
        (Scope::Pass(reason), _) => {
            Verdict { out_of_scope: true, anomalies: reason.into_iter().collect(), ..Verdict::default() }
        }
        (Scope::Judge(_), None) => Verdict { out_of_scope: true, ..Verdict::default() },
    };
    let said = request.object.as_ref().and_then(|object| object["metadata"]["namespace"].as_str());
    if said.is_some_and(|said| !request.namespace.is_empty() && said != request.namespace) {
        verdict.anomalies.push("namespace-mismatch");
    }
    verdict
}

fn workload_profile<'o>(object: &'o Value<'_>) -> Option<&'o str> {
    object["metadata"]["labels"].get(PROFILE_LABEL).as_str()
}

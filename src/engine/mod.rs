//! The engine: pure. It does no I/O, reads no clock, knows no HTTP and no kube client.

pub mod context;
pub mod document;
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

use case::Case;
use facts::{Facts, Needs};
use request::{Endpoint, Request};
use scope::Scope;
use verdict::Verdict;

use crate::policy::Policy;

/// Which facts [`evaluate`] will ask for; none for a request that is out of scope.
pub fn needs(endpoint: Endpoint, policy: &Policy, request: &Request<'_>) -> Needs {
    match (scope::scope(policy, request), &request.object) {
        (Scope::Judge(kind), Some(object)) => Case::new(endpoint, policy, request, kind, object).needs(),
        _ => Needs::default(),
    }
}

/// The verdict on one request: the same for the same input, in the server, the CLI and a dry run.
pub fn evaluate(endpoint: Endpoint, policy: &Policy, request: &Request<'_>, facts: &Facts) -> Verdict {
    let mut verdict = match (scope::scope(policy, request), &request.object) {
        (Scope::Judge(kind), Some(object)) => {
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

//! The engine: pure. It does no I/O, reads no clock, knows no HTTP and no kube client.

pub mod context;
pub mod document;
pub mod facts;
pub mod finding;
pub mod kind;
pub mod ownership;
pub mod plan;
pub mod pod;
pub mod pointer;
pub mod request;
pub mod rule;
pub mod text;
pub mod verdict;

use facts::{Facts, Needs};
use request::{Endpoint, Request};
use verdict::Verdict;

use crate::policy::Policy;

/// Which facts [`evaluate`] will ask for; asks nothing for requests that are out of scope.
pub fn needs(_endpoint: Endpoint, _policy: &Policy, _request: &Request<'_>) -> Needs {
    Needs::default()
}

/// The verdict on one request.
pub fn evaluate(_endpoint: Endpoint, _policy: &Policy, _request: &Request<'_>, _facts: &Facts) -> Verdict {
    Verdict::default()
}

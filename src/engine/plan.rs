//! How a pod will end: sleep per container and grace, planned once for every rule on termination.

use super::context::Context;

/// The end of a pod, as it is and as it will be.
#[derive(Debug, Clone, PartialEq)]
pub struct Termination {}

impl Termination {
    /// Plans from what the author set, the policy and the facts.
    pub fn plan(_context: &Context<'_>) -> Termination {
        Termination {}
    }
}

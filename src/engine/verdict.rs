//! The engine's answer, free of HTTP and of the review's envelope.

use super::finding::{Action, Finding};

/// A finding and what it does in this review.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The finding.
    pub finding: Finding,
    /// What it does: the policy's action, bounded by the finding's cap, the ratchet, whose doing it is, break-glass and
    /// enforcement.
    pub action: Action,
    /// Whether the old object has it too, no better.
    pub old: bool,
    /// Whether it would deny, did the policy not say `enforcement: warn`.
    pub unenforced: bool,
    /// The policy's exception that bears it.
    pub exception: Option<String>,
}

/// A fix that was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Id of the rule.
    pub rule: &'static str,
    /// Entry of the marker: the rule, and `/` and the container's name where it is a container's.
    pub claim: String,
}

/// The answer to one review.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// What was found, by rule id, then in document order.
    pub findings: Vec<Judged>,
    /// New fixes in the patch, in the marker's order.
    pub fixes: Vec<Applied>,
    /// The JSON Patch (RFC 6902) as JSON text; `None`: no change. Only ever set for `/mutate`.
    pub patch: Option<String>,
    /// Number of operations in the patch.
    pub patch_ops: usize,
    /// Warnings in the order to show, most severe first; not yet cut to what the API server takes.
    pub warnings: Vec<String>,
    /// The denial's whole message; `None`: allowed.
    pub denial: Option<String>,
    /// Whether a break-glass group turned a deny into a warning.
    pub overridden: bool,
    /// Whether the template equals a retained revision.
    pub rollback: bool,
    /// Oddities worth a count, as label values: `null-object`, `unknown-kind`, `patch-dropped` ….
    pub anomalies: Vec<&'static str>,
    /// Whether the request was out of scope, so that nothing was judged.
    pub out_of_scope: bool,
}

impl Verdict {
    /// Whether the object may be stored.
    pub fn allowed(&self) -> bool {
        self.denial.is_none()
    }
}

//! Too few earlier revisions are kept to go back to.
//!
//! ## What it does
//!
//! Finds a `revisionHistoryLimit` of 0, and warns, and never more, of one below `minRevisions`. The API default of 10 is
//! never found.
//!
//! ## Why it matters
//!
//! `revisionHistoryLimit` says how many earlier ReplicaSets or ControllerRevisions are kept beside the running one. With
//! 0 a rollout cannot be undone: in an incident the old template has to be found somewhere else first. With 1 a
//! second attempt to mend pushes the last good revision out. Plimsoll too knows a rollback, which it never blocks, by
//! the revisions that are kept.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! spec:
//!   revisionHistoryLimit: 0
//! ```
//!
//! Good:
//!
//! ```yaml
//! spec:
//!   revisionHistoryLimit: 3
//! ```
//!
//! ## Parameters
//!
//! `minRevisions` (1 to 100, default 2): fewest revisions to keep without a warning.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::ROLLING;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};

/// The rule.
pub struct NoRollbackHistory;

/// Parameters of [`NoRollbackHistory`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Fewest revisions to keep without a warning, 1 to 100.
    #[schemars(range(min = 1, max = 100))]
    pub min_revisions: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { min_revisions: 2 }
    }
}

impl Rule for NoRollbackHistory {
    const META: Meta = Meta {
        id: "no-rollback-history",
        category: Category::Rollout,
        since: "0.1",
        kinds: ROLLING,
        baseline: Action::Deny,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("no_rollback_history.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("minRevisions", params.min_revisions, 1..=100, "revisions")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(kept) = context.object.at(&["spec", "revisionHistoryLimit"]).as_i64() else { return };
        if !(0..params.min_revisions).contains(&kept) {
            return;
        }
        let message = match kept {
            0 => "revisionHistoryLimit is 0: no earlier revision is kept, and a rollout cannot be undone".to_owned(),
            1 => "revisionHistoryLimit is 1: after a second rollout the last good revision is gone".to_owned(),
            kept => format!("revisionHistoryLimit is {kept}, below {}: older revisions are gone", params.min_revisions),
        };
        let finding = Finding::new(Self::META.id, "/spec/revisionHistoryLimit", message)
            .measure(params.min_revisions - kept)
            .mend(format!("spec:\n  revisionHistoryLimit: {}", params.min_revisions.max(2)));
        findings.push(if kept == 0 { finding } else { finding.at_most(Action::Warn) });
    }
}

//! Every replica ends before a new one starts.
//!
//! ## What it does
//!
//! Finds Deployments of `strategy: {type: Recreate}` with two replicas or more, also when they are scaled to that number.
//!
//! ## Why it matters
//!
//! With `Recreate` a rollout ends every pod, waits until all are gone, and only then starts new ones: from the first
//! SIGTERM until the first new pod is ready nothing answers, and a new image that does not start leaves nothing behind.
//! Several replicas are usually there so that this does not happen. One replica with `Recreate`, the common case of a
//! volume that only one node can mount, is not found.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! spec:
//!   replicas: 3
//!   strategy: {type: Recreate}
//! ```
//!
//! Good:
//!
//! ```yaml
//! spec:
//!   replicas: 3
//!   strategy:
//!     type: RollingUpdate
//!     rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
//! ```
//!
//! Where old and new version must never run at the same time, `Recreate` is right: make an exception, and let its reason
//! say so.
//!
//! ## Parameters
//!
//! `minReplicas` (2 to 1000, default 2): fewest replicas that are found.
//!
//! ## Unknown facts
//!
//! When a Deployment is scaled, its strategy is looked up among the workloads of the namespace; unknown, nothing is found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::facts::{Known, Needs};
use crate::engine::finding::{Action, Finding};
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::rollout::NoRoom;

/// The rule.
pub struct RecreateStrategy;

/// Parameters of [`RecreateStrategy`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Fewest replicas that are found, 2 to 1000.
    #[schemars(range(min = 2, max = 1000))]
    pub min_replicas: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { min_replicas: 2 }
    }
}

impl Rule for RecreateStrategy {
    const META: Meta = Meta {
        id: "recreate-strategy",
        category: Category::Rollout,
        since: "0.1",
        kinds: &["Deployment", "Scale"],
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("recreate_strategy.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("minReplicas", params.min_replicas, 2..=1000, "replicas")
    }

    fn needs(context: &Context<'_>, params: &Params) -> Needs {
        let enough = context.replicas().is_some_and(|replicas| replicas >= params.min_replicas);
        Needs { workloads: enough && context.needs_workload(), ..Needs::default() }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(replicas) = context.replicas().filter(|replicas| *replicas >= params.min_replicas) else { return };
        let Some(workload) = context.workload().filter(|workload| workload.recreates) else { return };
        let verb = if workload.serving { "answers" } else { "runs" };
        let message = format!(
            "strategy type Recreate: a rollout ends all {replicas} replicas before it starts a new one, and nothing {verb} \
             in between"
        );
        let at = if context.parent.is_some() { "/spec/replicas" } else { "/spec/strategy/type" };
        let no_room = context.template.and_then(|template| NoRoom::find(&template, &Known::Absent));
        let (surge, unavailable) = if no_room.is_some() { (0, 1) } else { (1, 0) };
        findings.push(Finding::new(Self::META.id, at, message).mend(format!(
            "spec:\n  strategy:\n    type: RollingUpdate\n    rollingUpdate:\n      maxSurge: {surge}\n      \
             maxUnavailable: {unavailable}"
        )));
    }
}

//! A rollout is reported as failed while its pods still start.
//!
//! ## What it does
//!
//! Adds what the startup probes grant a pod, `minReadySeconds`, and `marginSeconds` for placing it and pulling its image,
//! and compares with `progressDeadlineSeconds` (absent: 600) of Deployments and Rollouts. Native sidecars start one after
//! the other before the regular containers, of which the slowest counts. Workloads of no replica are left out.
//!
//! ## Why it matters
//!
//! When no pod became available for `progressDeadlineSeconds`, the rollout gets the condition `Progressing: False`,
//! reason `ProgressDeadlineExceeded`: `kubectl rollout status`, `helm --wait` and delivery tools give up and may roll back
//! a version that was only slow to start, within the time that its own startup probe allows.
//!
//! ## Example
//!
//! Bad, a start may take 300 s:
//!
//! ```yaml
//! spec:
//!   progressDeadlineSeconds: 120
//!   template:
//!     spec:
//!       containers:
//!       - name: app
//!         startupProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 10, failureThreshold: 30}
//! ```
//!
//! Good:
//!
//! ```yaml
//! spec:
//!   progressDeadlineSeconds: 360
//!   template:
//!     spec:
//!       containers:
//!       - name: app
//!         startupProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 10, failureThreshold: 30}
//! ```
//!
//! ## Parameters
//!
//! `marginSeconds` (0 to 3600, default 60): what placing a pod and pulling its image may take.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::finding::{Action, Finding};
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::rollout::{progress_deadline, startup_budget};

/// The rule.
pub struct ShortProgressDeadline;

/// Parameters of [`ShortProgressDeadline`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// What placing a pod and pulling its image may take, seconds, 0 to 3600.
    #[schemars(range(min = 0, max = 3600))]
    pub margin_seconds: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { margin_seconds: 60 }
    }
}

impl Rule for ShortProgressDeadline {
    const META: Meta = Meta {
        id: "short-progress-deadline",
        category: Category::Rollout,
        since: "0.1",
        kinds: &["Deployment", "Rollout"],
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("short_progress_deadline.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("marginSeconds", params.margin_seconds, 0..=3600, "seconds")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template.filter(|_| context.replicas().is_some_and(|replicas| replicas > 0))
        else {
            return;
        };
        let min_ready = match context.object.at(&["spec", "minReadySeconds"]) {
            Value::Null => Some(0),
            value => value.as_i64().filter(|seconds| *seconds >= 0),
        };
        let (Some(deadline), Some(startup), Some(min_ready)) =
            (progress_deadline(context), startup_budget(&template), min_ready)
        else {
            return;
        };
        let margin = params.margin_seconds;
        let needed = startup.saturating_add(min_ready).saturating_add(margin);
        if deadline >= needed {
            return;
        }
        let message = format!(
            "progressDeadlineSeconds is {deadline}, below the {needed} s that a new pod may take (startup probes {startup}, \
             minReadySeconds {min_ready}, placing and pulling {margin}): a good rollout is reported as failed"
        );
        findings.push(
            Finding::new(Self::META.id, "/spec/progressDeadlineSeconds", message)
                .measure(needed - deadline)
                .mend(format!("spec:\n  progressDeadlineSeconds: {needed}")),
        );
    }
}

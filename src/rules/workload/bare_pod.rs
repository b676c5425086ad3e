//! A Pod that nobody owns.
//!
//! ## What it does
//!
//! Reports a Pod without `ownerReferences` that is meant to run on: its `restartPolicy` is `Always`, as it is where
//! nobody says otherwise. A Pod with `Never` or `OnFailure` runs once and ends (a debug shell, a test hook, a build)
//! and is left alone, as are mirrors of static pods.
//!
//! ## Why it matters
//!
//! A Pod is bound to its node. When the node is drained or fails the Pod is gone, and nothing starts it elsewhere. It
//! cannot be rolled out either: to change it is to delete it.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! apiVersion: v1
//! kind: Pod
//! metadata: {name: web}
//! spec:
//!   containers: [{name: app, image: registry.example/web:1.4.2}]
//! ```
//!
//! Good:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   selector: {matchLabels: {app: web}}
//!   template:
//!     metadata: {labels: {app: web}}
//!     spec:
//!       containers: [{name: app, image: registry.example/web:1.4.2}]
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! None are asked for.

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::rule::{Category, Meta, Rule};

/// The rule.
pub struct BarePod;

/// [`BarePod`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Rule for BarePod {
    const META: Meta = Meta {
        id: "bare-pod",
        category: Category::Workload,
        since: "0.1",
        kinds: &["Pod"],
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("bare_pod.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let metadata = context.object.get("metadata");
        let owned = !metadata["ownerReferences"].items().is_empty();
        let mirror = !metadata["annotations"]["kubernetes.io/config.mirror"].is_null();
        let runs_on = context.template.is_some_and(|pod| pod.regular().next().is_some() && pod.restarts_always());
        if owned || mirror || !runs_on {
            return;
        }
        let message =
            "nobody owns this Pod: when its node is drained or fails it is gone, and nothing starts it elsewhere";
        let finding = Finding::new(Self::META.id, "/metadata/ownerReferences", message);
        findings.push(finding.mend(
            "apiVersion: apps/v1\nkind: Deployment  # with the labels and the spec of this Pod in spec.template",
        ));
    }
}

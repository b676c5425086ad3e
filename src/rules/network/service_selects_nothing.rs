//! A Service selects no workload of its namespace.
//!
//! ## What it does
//!
//! Compares the selector with the pod labels of the namespace's workloads. Labels that controllers add to pods
//! (`statefulset.kubernetes.io/pod-name`, `rollouts-pod-template-hash` and their like) are left out of the comparison;
//! a selector of nothing else, an absent one and an `ExternalName` are not judged.
//!
//! It never denies: a Service is usually applied before the workload behind it, and labels may be put on pods while
//! they run, as operators of databases mark their leader.
//!
//! ## Why it matters
//!
//! A Service without endpoints refuses every connection, and looks well otherwise.
//!
//! ## Example
//!
//! Bad, beside a Deployment whose pods are labelled `app: web`:
//!
//! ```yaml
//! apiVersion: v1
//! kind: Service
//! metadata: {name: web}
//! spec: {selector: {app: wbe}, ports: [{port: 80}]}
//! ```
//!
//! Good:
//!
//! ```yaml
//! apiVersion: v1
//! kind: Service
//! metadata: {name: web}
//! spec: {selector: {app: web}, ports: [{port: 80}]}
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! Where the workloads of the namespace are not known nothing is found.

use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::neighbours::Labels;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::service::{may_select, selector};

/// The rule.
pub struct ServiceSelectsNothing;

/// [`ServiceSelectsNothing`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Rule for ServiceSelectsNothing {
    const META: Meta = Meta {
        id: "service-selects-nothing",
        category: Category::Network,
        since: "0.1",
        kinds: &["Service"],
        baseline: Action::Audit,
        critical: Action::Audit,
        fixable: false,
        baseline_fix: false,
        source: include_str!("service_selects_nothing.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        let selector = selector(&context.object["spec"]);
        Needs { workloads: may_select(&selector, &Labels::new()).is_some(), ..Needs::default() }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let selector = selector(&context.object["spec"]);
        let Some(workloads) = context.facts.workloads.list() else { return };
        let selects = |labels: &Labels| may_select(&selector, labels);
        if selects(&Labels::new()).is_none() || workloads.iter().any(|one| selects(&one.labels) == Some(true)) {
            return;
        }
        let message = "the selector matches the pod labels of no workload in the namespace: unless something else \
                       makes such pods, the Service has no endpoints";
        findings.push(Finding::new(Self::META.id, "/spec/selector", message).at_most(Action::Warn));
    }
}

//! A PodDisruptionBudget selects no pod, or every pod of its namespace.
//!
//! ## What it does
//!
//! Reports three selectors that rarely say what was meant:
//!
//! * none at all, which in `policy/v1` selects no pod;
//! * an empty one, which selects every pod of the namespace; this never denies;
//! * one that matches the pod labels of no workload in the namespace. On CREATE this is only recorded, for budgets are
//!   usually applied before the workloads they are for; on UPDATE it warns. It never denies.
//!
//! ## Why it matters
//!
//! A budget that selects nothing protects nothing, and nobody is told. One that selects everything counts jobs, tools
//! and databases as one workload: while some are not ready the rest cannot be evicted, and a second budget on any of
//! them makes its evictions fail.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! apiVersion: policy/v1
//! kind: PodDisruptionBudget
//! metadata: {name: web}
//! spec: {maxUnavailable: 1}
//! ```
//!
//! Good:
//!
//! ```yaml
//! apiVersion: policy/v1
//! kind: PodDisruptionBudget
//! metadata: {name: web}
//! spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! Where the workloads of the namespace are not known only the selector itself is judged.

use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::neighbours::Selector;
use crate::engine::request::Operation;
use crate::engine::rule::{Category, Meta, Rule};

/// The rule.
pub struct PdbSelectsNothing;

/// [`PdbSelectsNothing`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

/// What mends a selector that is none.
const MEND: &str =
    "spec:\n  selector:\n    matchLabels:\n      app: web  # the labels that only the pods it is for carry";

impl Rule for PdbSelectsNothing {
    const META: Meta = Meta {
        id: "pdb-selects-nothing",
        category: Category::Disruption,
        since: "0.1",
        kinds: &["PodDisruptionBudget"],
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("pdb_selects_nothing.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        let selector = Selector::read(&context.object["spec"]["selector"]);
        Needs { workloads: selector.is_some_and(|selector| !is_empty(&selector)), ..Needs::default() }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let spec = context.object.get("spec");
        if spec.as_object().is_none() {
            return;
        }
        let finding = |message: &str| Finding::new(Self::META.id, "/spec/selector", message);
        if spec["selector"].is_null() {
            let message = "without a selector the budget selects no pod: it protects nothing";
            // Measured, so that dropping a selector which selected too much counts as worse.
            findings.push(finding(message).measure(2).mend(MEND));
            return;
        }
        let Some(selector) = Selector::read(&spec["selector"]) else { return };
        if is_empty(&selector) {
            let message = "an empty selector selects every pod of the namespace: pods of one workload that are not \
                           ready hold up the eviction of another's";
            findings.push(finding(message).measure(1).at_most(Action::Warn).mend(MEND));
            return;
        }
        let Some(workloads) = context.facts.workloads.list() else { return };
        if workloads.iter().any(|workload| selector.matches(&workload.labels)) {
            return;
        }
        let message = "the selector matches the pod labels of no workload in the namespace: unless something else \
                       makes such pods, the budget protects nothing";
        let cap = if context.operation == Operation::Create { Action::Audit } else { Action::Warn };
        findings.push(finding(message).measure(1).at_most(cap));
    }
}

fn is_empty(selector: &Selector) -> bool {
    selector.labels.is_empty() && selector.expressions.is_empty()
}

//! Two PodDisruptionBudgets select the same pods.
//!
//! ## What it does
//!
//! On a PodDisruptionBudget: reports another one of the namespace whose selector says the same, in whatever spelling,
//! or that selects the pods of a workload which this one selects too. On a workload: reports that more than one budget
//! selects its pods. Whether two selectors could ever meet on pods that do not exist is not worked out.
//!
//! It never denies: a budget that is renamed stands twice for a moment.
//!
//! ## Why it matters
//!
//! The eviction API refuses a pod that has more than one budget, with an error instead of a wait: node drains and
//! upgrades fail on it until one of the budgets is deleted.
//!
//! ## Example
//!
//! Bad, for pods labelled `app: web`:
//!
//! ```yaml
//! apiVersion: policy/v1
//! kind: PodDisruptionBudget
//! metadata: {name: all}
//! spec: {maxUnavailable: 1, selector: {}}
//! ---
//! apiVersion: policy/v1
//! kind: PodDisruptionBudget
//! metadata: {name: web}
//! spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
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
//! Where the budgets of the namespace are not known nothing is found; where its workloads are not known, only budgets
//! that say the same are.

use super::BUDGETS_AND_COVERED;
use super::covered::covering;
use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::neighbours::{Budget, Selector, labels};
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// The rule.
pub struct OverlappingPdb;

/// [`OverlappingPdb`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

/// What follows, whichever side it is seen from.
const CONSEQUENCE: &str =
    "the eviction API refuses pods with more than one budget, so node drains and upgrades fail on them; keep one";

impl Rule for OverlappingPdb {
    const META: Meta = Meta {
        id: "overlapping-pdb",
        category: Category::Disruption,
        since: "0.1",
        kinds: BUDGETS_AND_COVERED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("overlapping_pdb.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        match context.kind.template {
            Some(_) => Needs { budgets: context.template.is_some(), ..Needs::default() },
            None => {
                let selects = Selector::read(&context.object["spec"]["selector"]).is_some();
                Needs { budgets: selects, workloads: selects, ..Needs::default() }
            }
        }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(budgets) = context.facts.budgets.list() else { return };
        if context.kind.template.is_some() {
            findings.extend(on_workload(context, budgets));
        } else {
            on_budget(context, budgets, findings);
        }
    }
}

fn on_workload(context: &Context<'_>, budgets: &[Budget]) -> Option<Finding> {
    let template = context.template?;
    let covering = covering(budgets, &labels(&template.metadata()["labels"]));
    let (last, first) = covering.split_last().filter(|(_, first)| !first.is_empty())?;
    let first: Vec<String> = first.iter().map(|budget| quoted(&budget.name)).collect();
    let message = format!(
        "the PodDisruptionBudgets {} and {} select these pods: {CONSEQUENCE}",
        first.join(", "),
        quoted(&last.name)
    );
    let pointer = template.pointer(&["metadata", "labels"]);
    Some(Finding::new(OverlappingPdb::META.id, pointer, message).at_most(Action::Warn))
}

fn on_budget(context: &Context<'_>, budgets: &[Budget], findings: &mut Vec<Finding>) {
    let Some(selector) = Selector::read(&context.object["spec"]["selector"]) else { return };
    let name = context.object["metadata"]["name"].as_str();
    let mut others: Vec<&Budget> = budgets.iter().filter(|other| Some(other.name.as_str()) != name).collect();
    others.sort_by(|a, b| a.name.cmp(&b.name));
    let workloads = context.facts.workloads.list().unwrap_or_default();
    for other in others {
        let budget = quoted(&other.name);
        let shared = workloads
            .iter()
            .filter(|workload| selector.matches(&workload.labels) && other.selects(&workload.labels))
            .map(|workload| (&workload.kind, &workload.name))
            .min();
        let message = match (shared, &other.selector) {
            (_, Some(theirs)) if selector.says_the_same_as(theirs) => {
                format!("selects the same pods as PodDisruptionBudget {budget}: {CONSEQUENCE}")
            }
            (Some((kind, workload)), _) => {
                let workload = quoted(workload);
                format!("selects the pods of {kind} {workload}, as PodDisruptionBudget {budget} does: {CONSEQUENCE}")
            }
            _ => continue,
        };
        findings.push(Finding::new(OverlappingPdb::META.id, "/spec/selector", message).at_most(Action::Warn));
    }
}

//! A PodDisruptionBudget allows no eviction at all.
//!
//! ## What it does
//! Reports budgets that allow nothing whatever the number of pods: `maxUnavailable: 0`, `maxUnavailable: "0%"` and
//! `minAvailable: "100%"` or more. A budget without a selector selects no pod in `policy/v1`, so it blocks nothing and
//! is not reported here.
//!
//! Where the workloads of the namespace are known it also warns of a `minAvailable` that leaves none of their replicas
//! to evict, on the budget and on the workload, whichever comes second: `minAvailable: 1` over one replica. What an
//! autoscaler scales counts with its minimum, and workloads scaled to 0 do not count. This never denies, for the
//! numbers stand in other objects.
//!
//! ## Why it matters
//! `kubectl drain`, node upgrades and cluster autoscalers go through the eviction API. With such a budget they wait
//! until someone deletes it, usually at night and by force, and the pods then go down without any protection. It does
//! not protect a rollout either: controllers replacing their own pods do not ask budgets.
//!
//! ## Example
//! Bad:
//! ```yaml
//! apiVersion: policy/v1
//! kind: PodDisruptionBudget
//! metadata: {name: web}
//! spec: {minAvailable: "100%", selector: {matchLabels: {app: web}}}
//! ```
//! Good:
//! ```yaml
//! apiVersion: policy/v1
//! kind: PodDisruptionBudget
//! metadata: {name: web}
//! spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
//! ```
//! For state that one instance holds, where an operator must be asked before each eviction, such a budget can be
//! meant: let the policy warn, or make an exception for that namespace.
//!
//! ## Parameters
//! None.
//!
//! ## Unknown facts
//! Where the workloads, the autoscalers or, for a workload, the budgets of the namespace are not known, only what
//! blocks whatever the number of pods is found. Nor is a budget judged by number that also selects pods which nobody
//! counts: a DaemonSet's, a Job's, a bare Pod.

use super::budget::{Amount, Budget};
use super::covered::{Covered, covered, covering};
use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::neighbours::{Selector, labels};
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::{listed, quoted};

/// The rule `pdb-blocks-eviction`.
pub struct PdbBlocksEviction;

/// `pdb-blocks-eviction` has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

/// Most workloads that a message names.
const NAMED: usize = 3;

impl Rule for PdbBlocksEviction {
    const META: Meta = Meta {
        id: "pdb-blocks-eviction",
        category: Category::Disruption,
        since: "0.1",
        kinds: &["Deployment", "PodDisruptionBudget", "ReplicaSet", "ReplicationController", "Rollout", "StatefulSet"],
        baseline: Action::Deny,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("pdb_blocks_eviction.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        let counted = if context.kind.template.is_some() {
            context.template.is_some() && context.replicas().is_some_and(|replicas| replicas > 0)
        } else {
            let spec = context.object.get("spec");
            !spec["selector"].is_null()
                && Amount::read(&spec["minAvailable"])
                    .is_some_and(|amount| !Budget::MinAvailable(amount).blocks_always())
        };
        let budgets = counted && context.kind.template.is_some();
        Needs { budgets, workloads: counted, autoscalers: counted, ..Needs::default() }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        if context.kind.template.is_some() {
            on_workload(context, findings);
        } else {
            on_budget(context, findings);
        }
    }
}

fn on_budget(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let spec = context.object.get("spec");
    if spec["selector"].is_null() {
        return;
    }
    let budgets = [
        ("maxUnavailable", Amount::read(&spec["maxUnavailable"]).map(Budget::MaxUnavailable)),
        ("minAvailable", Amount::read(&spec["minAvailable"]).map(Budget::MinAvailable)),
    ];
    for (field, budget) in budgets {
        let Some(budget) = budget else { continue };
        let (message, measure) = if budget.blocks_always() {
            let message = format!(
                "{budget} blocks every voluntary eviction, however many pods there are: node drains and upgrades wait \
                 until the budget is changed"
            );
            // Worse than what a number of pods brings about, which may change without the budget.
            (message, 1)
        } else {
            let Some(selector) = Selector::read(&spec["selector"]) else { continue };
            let covered = covered(|labels| selector.matches(labels), context.facts, None);
            let Some(with) = covered.as_deref().and_then(|covered| leaves_none(budget, covered)) else { continue };
            (format!("{budget} {with}"), 0)
        };
        let finding = Finding::new(PdbBlocksEviction::META.id, format!("/spec/{field}"), message).measure(measure);
        findings.push(match measure {
            0 => finding.at_most(Action::Warn).mend(mend(budget, ", or run more replicas")),
            _ => finding.mend(mend(budget, "")),
        });
    }
}

fn on_workload(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let (Some(template), Some(replicas)) = (context.template, context.replicas()) else { return };
    let (Some(budgets), Some(autoscalers)) = (context.facts.budgets.list(), context.facts.autoscalers.list()) else {
        return;
    };
    let name = context.object["metadata"]["name"].as_str().unwrap_or_default();
    let judged = Covered::new(context.kind.group, context.kind.kind, name, replicas, autoscalers);
    for neighbour in covering(budgets, &labels(&template.metadata()["labels"])) {
        let min_available = neighbour.min_available.as_deref().and_then(Amount::parse).map(Budget::MinAvailable);
        // What blocks whatever the number of pods is said of the budget.
        let Some(budget) = min_available.filter(|budget| !budget.blocks_always()) else { continue };
        let others = covered(|labels| neighbour.selects(labels), context.facts, Some((context.kind, name)));
        let Some(mut all) = others else { continue };
        all.insert(0, judged.clone());
        let Some(with) = leaves_none(budget, &all) else { continue };
        let message = format!("PodDisruptionBudget {} ({budget}) {with}", quoted(&neighbour.name));
        let yaml =
            format!("# PodDisruptionBudget {}\n{}", quoted(&neighbour.name), mend(budget, ", or run more replicas"));
        let finding = Finding::new(PdbBlocksEviction::META.id, "/spec/replicas", message);
        findings.push(finding.at_most(Action::Warn).mend(yaml));
    }
}

/// The budget in a form that always leaves one pod to evict.
fn mend(budget: Budget, or: &str) -> String {
    format!("spec:\n  maxUnavailable: 1  # in place of {budget}{or}")
}

/// What follows from a budget that allows no eviction among these pods; `None` where it allows one, or there are none.
fn leaves_none(budget: Budget, covered: &[Covered]) -> Option<String> {
    let pods = covered.iter().fold(0_i64, |sum, workload| sum.saturating_add(workload.pods.max(0)));
    if pods == 0 || budget.allowed_disruptions(pods) > 0 {
        return None;
    }
    let names = covered.iter().map(|workload| match workload.autoscaled {
        true => format!("{} at its autoscaler's minimum", workload.name),
        false => workload.name.clone(),
    });
    let plural = if pods == 1 { "replica" } else { "replicas" };
    Some(format!(
        "allows no eviction with {pods} {plural} ({}): node drains and upgrades wait until there are more, or \
         the budget is changed",
        listed(names, NAMED)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::context::Declined;
    use crate::engine::document::Value;
    use crate::engine::facts::{Facts, Reason};
    use crate::engine::kind::lookup;
    use crate::engine::request::{Endpoint, Operation};
    use crate::policy::Policy;

    fn check(spec: serde_json::Value) -> Vec<(String, String)> {
        let text = json!({"spec": spec}).to_string();
        let object = Value::parse(&text).unwrap();
        let facts = Facts::unknown(Reason::NotAsked);
        let policy = Policy::of(&[("pdb-blocks-eviction", Action::Deny, false, json!({}))]).unwrap();
        let declined = Declined::default();
        let kind = lookup("policy", "PodDisruptionBudget").unwrap();
        let context = Context::new(Endpoint::Validate, Operation::Create, kind, &object, &facts, &policy, &declined);
        let mut findings = Vec::new();
        PdbBlocksEviction::check(&context, &Params {}, &mut findings);
        findings.into_iter().map(|finding| (finding.pointer, finding.message)).collect()
    }

    fn blocks(field: &str, value: serde_json::Value) -> bool {
        let findings = check(json!({field: value, "selector": {"matchLabels": {"app": "web"}}}));
        assert!(findings.iter().all(|(pointer, _)| *pointer == format!("/spec/{field}")));
        !findings.is_empty()
    }

    #[test]
    fn g02_budgets_that_allow_nothing() {
        assert!(blocks("maxUnavailable", json!(0)));
        assert!(blocks("maxUnavailable", json!("0%")));
        assert!(blocks("minAvailable", json!("100%")));
        assert!(blocks("minAvailable", json!("101%")));
    }

    #[test]
    fn g02_the_message_names_field_and_value() {
        let findings = check(json!({"minAvailable": "100%", "selector": {}}));
        assert_eq!(
            findings,
            [(
                "/spec/minAvailable".to_owned(),
                "minAvailable 100% blocks every voluntary eviction, however many pods there are: node drains and \
                 upgrades wait until the budget is changed"
                    .to_owned()
            )]
        );
    }

    #[test]
    fn g03_what_depends_on_the_workload_is_not_judged() {
        assert!(!blocks("minAvailable", json!(1)));
        assert!(!blocks("minAvailable", json!("99%")));
        assert!(!blocks("maxUnavailable", json!(1)));
        assert!(!blocks("maxUnavailable", json!("1%")));
    }

    #[test]
    fn g06_without_a_selector_no_pod_is_blocked() {
        assert_eq!(check(json!({"maxUnavailable": 0})), []);
        assert_eq!(check(json!({"maxUnavailable": 0, "selector": null})), []);
        assert_eq!(check(json!({"maxUnavailable": 0, "selector": {}})).len(), 1);
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        assert_eq!(check(json!(null)), []);
        assert_eq!(check(json!("spec")), []);
        for value in [json!(null), json!(-1), json!("0"), json!(0.0), json!([]), json!({}), json!("100")] {
            assert!(!blocks("maxUnavailable", value.clone()), "{value}");
            assert!(!blocks("minAvailable", value.clone()), "{value}");
        }
    }
}

//! A PodDisruptionBudget allows no eviction at all.
//!
//! ## What it does
//! Reports budgets that allow nothing whatever the number of pods: `maxUnavailable: 0`, `maxUnavailable: "0%"` and
//! `minAvailable: "100%"` or more. A budget without a selector selects no pod in `policy/v1`, so it blocks nothing and
//! is not reported here.
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
//! It needs none: a `minAvailable` given as a number is compared with no workload here.

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::rule::{Category, Meta, Rule};
use crate::rules::disruption::budget::{Amount, Budget};

/// The rule `pdb-blocks-eviction`.
pub struct PdbBlocksEviction;

/// `pdb-blocks-eviction` has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Rule for PdbBlocksEviction {
    const META: Meta = Meta {
        id: "pdb-blocks-eviction",
        category: Category::Disruption,
        since: "0.1",
        kinds: &["PodDisruptionBudget"],
        baseline: Action::Deny,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("pdb_blocks_eviction.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let spec = context.object.get("spec");
        if spec["selector"].is_null() {
            return;
        }
        let budgets = [
            ("maxUnavailable", Amount::read(&spec["maxUnavailable"]).map(Budget::MaxUnavailable)),
            ("minAvailable", Amount::read(&spec["minAvailable"]).map(Budget::MinAvailable)),
        ];
        for (field, budget) in budgets {
            let Some(budget) = budget.filter(|budget| budget.blocks_always()) else { continue };
            let message = format!(
                "{budget} blocks every voluntary eviction, however many pods there are: node drains and upgrades wait \
                 until the budget is changed"
            );
            let finding = Finding::new(Self::META.id, format!("/spec/{field}"), message);
            findings.push(finding.mend(format!("spec:\n  maxUnavailable: 1  # in place of {budget}")));
        }
    }
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

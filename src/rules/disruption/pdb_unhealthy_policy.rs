//! A PodDisruptionBudget keeps pods that never become ready from being evicted.
//!
//! ## What it does
//!
//! Reports a budget without `unhealthyPodEvictionPolicy`, which then means `IfHealthyBudget`. What an author set,
//! either way, is not judged, and neither is a budget without a selector, which holds up no pod.
//!
//! ## Why it matters
//!
//! Under `IfHealthyBudget` a pod that is not ready may only be evicted while its workload has as many healthy pods as
//! the budget wants. A workload that crashes in a loop never has them: the node that its pods are on cannot be drained,
//! though nobody would miss them.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
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
//! spec:
//!   maxUnavailable: 1
//!   unhealthyPodEvictionPolicy: AlwaysAllow
//!   selector: {matchLabels: {app: web}}
//! ```
//!
//! ## Fix safety
//!
//! Adds `AlwaysAllow` where the member is absent; what an author set is never rewritten. It also lets a drain evict
//! pods that are still starting, which is why the baseline leaves rule and fix off: turn it on where pods start
//! quickly. Servers before 1.27 do not know the member and drop it.
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! None are asked for.

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::finding::{Action, Finding, Fix};
use crate::engine::ownership::{Managed, Place};
use crate::engine::rule::{Category, Meta, Rule};

/// The rule.
pub struct PdbUnhealthyPolicy;

/// [`PdbUnhealthyPolicy`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

/// The member that the fix writes.
const MEMBER: &[&str] = &["spec", "unhealthyPodEvictionPolicy"];

impl Rule for PdbUnhealthyPolicy {
    const META: Meta = Meta {
        id: "pdb-unhealthy-policy",
        category: Category::Disruption,
        since: "0.1",
        kinds: &["PodDisruptionBudget"],
        baseline: Action::Off,
        critical: Action::Warn,
        fixable: true,
        baseline_fix: false,
        source: include_str!("pdb_unhealthy_policy.rs"),
    };

    type Params = Params;

    fn managed(_params: &Params) -> Vec<Managed> {
        vec![Managed { place: Place::Object("PodDisruptionBudget", MEMBER), default: None }]
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let spec = context.object.get("spec");
        if spec["selector"].as_object().is_none() || !context.object.at(MEMBER).is_null() {
            return;
        }
        let message = "not set: a pod that is not ready is evicted only while enough others are ready, so a workload \
                       that crashes in a loop keeps its nodes from being drained";
        let fix = context.fixes(Self::META.id).then(|| {
            let path = MEMBER.iter().map(|member| (*member).to_owned()).collect();
            let says =
                "set unhealthyPodEvictionPolicy to AlwaysAllow, so that pods that are not ready never hold up a drain";
            Fix::new(Self::META.id, vec![(path, Value::from("AlwaysAllow"))], says)
        });
        let finding = Finding::new(Self::META.id, "/spec/unhealthyPodEvictionPolicy", message);
        findings.push(finding.mend("spec:\n  unhealthyPodEvictionPolicy: AlwaysAllow").fix(fix));
    }
}

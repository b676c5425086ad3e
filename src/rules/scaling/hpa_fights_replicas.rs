//! A manifest and an autoscaler both say how many replicas there are.
//!
//! ## What it does
//!
//! Finds workloads that a HorizontalPodAutoscaler scales and whose author sets `spec.replicas`. On CREATE that is any
//! number but the API default 1, or a 1 that was applied. On UPDATE the number may be the autoscaler's own: there it is
//! found only where a server-side apply, or the annotation of `kubectl apply`, names the field; a write through the
//! subresource `scale` is nobody's manifest. A workload of 0 replicas, which its autoscaler leaves alone, is not found.
//!
//! ## Why it matters
//!
//! Each apply sets the number in the manifest, the autoscaler sets its own again a little later. An apply at peak load
//! takes most pods down at once; GitOps tools report a difference for ever, or undo each scaling.
//!
//! ## Example
//!
//! Bad, beside a HorizontalPodAutoscaler on it:
//!
//! ```yaml
//! kind: Deployment
//! spec:
//!   replicas: 3
//! ```
//!
//! Good:
//!
//! ```yaml
//! kind: Deployment
//! spec: {}
//! ```
//!
//! Taking the line out of the manifest of a running workload sets it to the default 1 for a moment. To avoid that, take
//! it out of the annotation first, with `kubectl apply edit-last-applied`; with server-side apply, let the autoscaler
//! own the field before the manifest gives it up.
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! Where the HorizontalPodAutoscalers of the namespace are unknown, nothing is found.

use super::autoscaler;
use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::facts::{Known, Needs};
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::SCALED;
use crate::engine::ownership::{applied, author_set};
use crate::engine::request::Operation;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// The rule.
pub struct HpaFightsReplicas;

/// [`HpaFightsReplicas`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

const PATH: [&str; 2] = ["spec", "replicas"];

/// The number that the author set.
fn authors(context: &Context<'_>) -> Option<i64> {
    let replicas = context.object.at(&PATH).as_i64().filter(|replicas| *replicas > 0)?;
    let set = match context.operation {
        Operation::Update => applied(context.object, &PATH),
        _ => author_set(context.object, context.kind, &PATH, &Value::from(context.kind.absent_replicas)),
    };
    set.then_some(replicas)
}

impl Rule for HpaFightsReplicas {
    const META: Meta = Meta {
        id: "hpa-fights-replicas",
        category: Category::Scaling,
        since: "0.1",
        kinds: SCALED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("hpa_fights_replicas.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        let asks = context.workload_name().is_some() && authors(context).is_some();
        Needs { autoscalers: asks, ..Needs::default() }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(replicas) = authors(context) else { return };
        let Known::Known(autoscaler) = autoscaler(context) else { return };
        let message = format!(
            "the manifest sets replicas {replicas}, but HorizontalPodAutoscaler {} sets it from {} to {}: each apply undoes \
             its scaling",
            quoted(&autoscaler.name),
            autoscaler.min,
            autoscaler.max
        );
        findings.push(Finding::new(Self::META.id, "/spec/replicas", message).mend(
            "# take `replicas` out of the manifest; on a running workload `kubectl apply edit-last-applied` first",
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::engine::context::Declined;
    use crate::engine::facts::{Facts, Reason};
    use crate::engine::kind::lookup;
    use crate::engine::neighbours::Autoscaler;
    use crate::engine::request::Endpoint;
    use crate::policy::Policy;

    /// Whether the rule asks for autoscalers, and whether it finds something where there is one.
    fn found(operation: Operation, kind: &str, metadata: Json, replicas: Json) -> (bool, bool) {
        let mut metadata = metadata;
        metadata["name"] = json!("web");
        let text = json!({"metadata": metadata, "spec": {"replicas": replicas, "template": {}}}).to_string();
        let object = Value::parse(&text).unwrap();
        let row = lookup(if kind == "Rollout" { "argoproj.io" } else { "apps" }, kind).unwrap();
        let hpa = |name: &str, target: &str| Autoscaler {
            name: name.to_owned(),
            target_group: row.group.to_owned(),
            target_kind: kind.to_owned(),
            target_name: target.to_owned(),
            min: 2,
            max: 10,
        };
        let autoscalers = Known::Known(vec![hpa("other", "api"), hpa("web", "web")]);
        let (facts, declined) = (Facts { autoscalers, ..Facts::unknown(Reason::NotAsked) }, Declined::default());
        let policy = Policy::of(&[("hpa-fights-replicas", Action::Warn, false, json!({}))]).unwrap();
        let context = Context::new(Endpoint::Validate, operation, row, &object, &facts, &policy, &declined);
        let mut findings = Vec::new();
        HpaFightsReplicas::check(&context, &Params {}, &mut findings);
        (HpaFightsReplicas::needs(&context, &Params {}).autoscalers, findings.len() == 1)
    }

    fn entry(operation: &str, sub_resource: &str) -> Json {
        let entry =
            json!({"operation": operation, "subresource": sub_resource, "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        json!({"managedFields": [entry]})
    }

    fn last_applied() -> Json {
        let text = json!({"spec": {"replicas": 3}}).to_string();
        json!({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": text}})
    }

    const YES: (bool, bool) = (true, true);
    const NO: (bool, bool) = (false, false);

    #[test]
    fn c12_a_default_of_one_is_not_the_authors() {
        let create = |metadata, replicas| found(Operation::Create, "Deployment", metadata, replicas);
        assert_eq!(create(json!({}), json!(1)), NO);
        assert_eq!(create(json!({}), json!(null)), NO);
        assert_eq!(create(json!({}), json!(0)), NO);
        assert_eq!(create(json!({}), json!("3")), NO);
        assert_eq!(create(json!({}), json!(3)), YES);
        assert_eq!(create(last_applied(), json!(1)), YES);
        assert_eq!(create(entry("Apply", ""), json!(1)), YES);
    }

    #[test]
    fn c12_on_update_only_a_manifest_that_names_the_field() {
        let update = |metadata| found(Operation::Update, "Deployment", metadata, json!(7));
        assert_eq!(update(json!({})), NO);
        assert_eq!(update(entry("Update", "")), NO);
        assert_eq!(update(entry("Apply", "scale")), NO, "the autoscaler's own");
        assert_eq!(update(entry("Apply", "")), YES);
        assert_eq!(update(last_applied()), YES);
    }

    #[test]
    fn c17_a_rollout_has_no_defaults() {
        assert_eq!(found(Operation::Create, "Rollout", json!({}), json!(1)), YES);
        assert_eq!(found(Operation::Create, "Rollout", json!({}), json!(null)), NO);
        assert_eq!(found(Operation::Update, "Rollout", json!({}), json!(1)), NO);
    }
}

//! Pods of a workload that serves count as ready before they answer.
//!
//! ## What it does
//!
//! Finds Deployments, StatefulSets, DaemonSets and Rollouts that replace their pods little by little, whose regular
//! containers declare a port, and of which no regular container has a readiness probe. Not judged: `Recreate` and
//! `OnDelete`, pods with `readinessGates`, which something else answers for, and native sidecars, whose readiness says
//! nothing of the application.
//!
//! ## Why it matters
//!
//! Without a readiness probe a pod is ready as soon as its containers run. It gets requests before it listens, and a
//! rollout goes on at once: `maxUnavailable` counts pods that answer nobody. A startup probe holds
//! both back, but only once: a pod that hangs or is overloaded later keeps its share of the requests.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! containers:
//! - name: app
//!   ports: [{containerPort: 8080}]
//! ```
//!
//! Good:
//!
//! ```yaml
//! containers:
//! - name: app
//!   ports: [{containerPort: 8080}]
//!   readinessProbe: {httpGet: {path: /readyz, port: 8080}}
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::missing_startup_probe::MissingStartupProbe;
use super::probe::example_handler;
use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::ROLLING;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;
use crate::rollout::UpdateType;

/// Parameters of `missing-readiness-probe`: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The rule.
pub struct MissingReadinessProbe;

impl Rule for MissingReadinessProbe {
    const META: Meta = Meta {
        id: "missing-readiness-probe",
        category: Category::Probes,
        since: "0.1",
        kinds: ROLLING,
        baseline: Action::Warn,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("missing_readiness_probe.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        let rolls =
            context.roll().is_some_and(|plan| !matches!(plan.update_type, UpdateType::Recreate | UpdateType::OnDelete));
        if !rolls || !template.spec()["readinessGates"].items().is_empty() {
            return;
        }
        if template.regular().any(|container| !container.value["readinessProbe"].is_null()) {
            return;
        }
        let Some(first) = template.regular().find(|container| container.has_ports()) else { return };
        // A container is not ready before its startup probe succeeded.
        let held_back = template.regular().filter(|container| container.has_ports()).all(|container| {
            !container.value["startupProbe"].is_null() || MissingStartupProbe::adds_to(context, &template, &container)
        });
        let name = quoted(first.name());
        let consequence = if held_back {
            format!(
                "container {name} counts as ready for good once its startupProbe succeeds, so a pod that hangs or is \
                 overloaded keeps its share of the requests"
            )
        } else {
            let old = match context.replicas().filter(|_| context.kind.scales) {
                Some(1) => "the only old pod".to_owned(),
                Some(replicas) if replicas > 1 => format!("all {replicas} old pods"),
                _ => "all old pods".to_owned(),
            };
            format!(
                "a pod counts as ready once it runs, so container {name} gets requests before it answers, and a rollout \
                 may end {old} before that"
            )
        };
        let message = format!("no container has a readinessProbe: {consequence}");
        let mend = format!("readinessProbe:\n  {}", example_handler(&first, "/readyz"));
        findings.push(Finding::new(Self::META.id, first.pointer(&["readinessProbe"]), message).mend(mend));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, container, messages, passes_over_nonsense};

    #[test]
    fn no_regular_container_has_one() {
        let found = container::<MissingReadinessProbe>(json!({"ports": [{"containerPort": 8080}]}));
        assert_eq!(
            messages(&found),
            [
                "no container has a readinessProbe: a pod counts as ready once it runs, so container \"app\" gets requests \
                 before it answers, and a rollout may end the only old pod before that"
            ]
        );
        assert_eq!(found[0].pointer, "/spec/template/spec/containers/0/readinessProbe");
        let mend = "readinessProbe:\n  httpGet: {path: /readyz, port: 8080}  # or tcpSocket, grpc, exec";
        assert_eq!((found[0].mend.as_deref(), found[0].cap, found[0].container.as_deref()), (Some(mend), None, None));
    }

    #[test]
    fn one_is_enough_and_only_regular_containers_count() {
        let app = || json!({"name": "app", "ports": [{"containerPort": 80}]});
        let probed = json!({"name": "b", "readinessProbe": {"exec": {"command": ["check"]}}});
        let pod = |spec| Judge::default().pod::<MissingReadinessProbe>(spec).len();
        assert_eq!(pod(json!({"containers": [app(), probed]})), 0);
        let sidecar = json!({"name": "s", "restartPolicy": "Always", "readinessProbe": {"tcpSocket": {"port": 1}}});
        assert_eq!(pod(json!({"containers": [app()], "initContainers": [sidecar]})), 1);
        assert_eq!(pod(json!({"containers": [{"name": "worker"}]})), 0);
        assert_eq!(pod(json!({"containers": [app()], "readinessGates": [{"conditionType": "x/y"}]})), 0);
    }

    #[test]
    fn a_startup_probe_holds_the_first_requests_back() {
        let started = json!({"ports": [{"containerPort": 80}], "startupProbe": {"tcpSocket": {"port": 80}}});
        let found = container::<MissingReadinessProbe>(started);
        assert!(found[0].message.contains("counts as ready for good once its startupProbe succeeds"));
        // So does the one that the policy's fix adds.
        let live = json!({"ports": [{"containerPort": 80}], "livenessProbe": {"tcpSocket": {"port": 80}}});
        let fixing = Judge { fixes: Some(("missing-startup-probe", json!({}))), ..Judge::default() };
        assert!(
            fixing.container::<MissingReadinessProbe>(live.clone())[0]
                .message
                .contains("once its startupProbe succeeds")
        );
        assert!(container::<MissingReadinessProbe>(live)[0].message.contains("a pod counts as ready once it runs"));
    }

    #[test]
    fn says_how_many_pods_a_rollout_may_end() {
        let spec = json!({"replicas": 3, "template": {"spec": {"containers": [
            {"name": "app", "ports": [{"containerPort": 80}]}]}}});
        let judge = |kind| Judge { kind, ..Judge::default() }.object::<MissingReadinessProbe>(json!({"spec": spec}));
        assert!(judge("Deployment")[0].message.ends_with("a rollout may end all 3 old pods before that"));
        assert!(judge("DaemonSet")[0].message.ends_with("a rollout may end all old pods before that"));
    }

    #[test]
    fn only_what_rolls() {
        let template = json!({"spec": {"containers": [{"name": "app", "ports": [{"containerPort": 80}]}]}});
        let found = |kind, spec: serde_json::Value| {
            let mut spec = spec;
            spec["template"] = template.clone();
            Judge { kind, ..Judge::default() }.object::<MissingReadinessProbe>(json!({"spec": spec})).len()
        };
        assert_eq!(found("Deployment", json!({"strategy": {"type": "Recreate"}})), 0);
        assert_eq!(found("StatefulSet", json!({"updateStrategy": {"type": "OnDelete"}})), 0);
        assert_eq!(found("DaemonSet", json!({})), 1);
        assert_eq!(found("StatefulSet", json!({})), 1);
        assert_eq!(found("Rollout", json!({"strategy": {"blueGreen": {}}})), 1);
        assert_eq!(found("Rollout", json!({"strategy": {"canary": {"trafficRouting": {}}}})), 1);
        assert_eq!(found("Pod", json!({})), 0);
        assert_eq!(found("ReplicaSet", json!({})), 0);
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<MissingReadinessProbe>(&["readinessProbe", "startupProbe", "livenessProbe"]);
    }
}

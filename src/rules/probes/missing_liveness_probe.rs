//! A process that hangs is never restarted.
//!
//! ## What it does
//!
//! Finds Deployments, StatefulSets, DaemonSets and Rollouts whose pods restart always and whose regular containers
//! declare a port, where no regular container has a liveness probe. Native sidecars do not count: restarting a proxy
//! does not mend the application.
//!
//! ## Why it matters
//!
//! The kubelet restarts what ends. A process that deadlocks does not end: its pod stays, useless, until somebody notices
//! and deletes it. A good liveness probe asks the process alone, never its dependencies, and is far more patient than
//! the readiness probe; a bad one is worse than none, so that this rule does not deny.
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
//!   livenessProbe: {httpGet: {path: /livez, port: 8080}, periodSeconds: 20, failureThreshold: 3}
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

use super::probe::example_handler;
use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::ROLLING;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `missing-liveness-probe`: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The rule.
pub struct MissingLivenessProbe;

impl Rule for MissingLivenessProbe {
    const META: Meta = Meta {
        id: "missing-liveness-probe",
        category: Category::Probes,
        since: "0.1",
        kinds: ROLLING,
        baseline: Action::Audit,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("missing_liveness_probe.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template.filter(|template| template.restarts_always()) else { return };
        if template.regular().any(|container| !container.value["livenessProbe"].is_null()) {
            return;
        }
        let Some(first) = template.regular().find(|container| container.has_ports()) else { return };
        let left_alone = if template.regular().any(|container| !container.value["readinessProbe"].is_null()) {
            "stays out of service"
        } else {
            "keeps its share of the requests"
        };
        let share = match context.replicas().filter(|replicas| context.kind.scales && *replicas > 0) {
            Some(1) => ", the only one,".to_owned(),
            Some(replicas) => format!(", one of {replicas},"),
            None => String::new(),
        };
        let message = format!(
            "no container has a livenessProbe: where container {} hangs it is not restarted, and its pod{share} {left_alone} \
             until somebody deletes it",
            quoted(first.name())
        );
        let mend = format!(
            "livenessProbe:\n  {}\n  periodSeconds: 20\n  failureThreshold: 3",
            example_handler(&first, "/livez")
        );
        findings.push(Finding::new(Self::META.id, first.pointer(&["livenessProbe"]), message).mend(mend));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, container, messages, passes_over_nonsense};

    #[test]
    fn says_what_becomes_of_a_process_that_hangs() {
        let found = container::<MissingLivenessProbe>(json!({"ports": [{"containerPort": 8080}]}));
        assert_eq!(
            messages(&found),
            [
                "no container has a livenessProbe: where container \"app\" hangs it is not restarted, and its pod, the only \
              one, keeps its share of the requests until somebody deletes it"
            ]
        );
        assert_eq!(found[0].pointer, "/spec/template/spec/containers/0/livenessProbe");
        let spec = json!({"replicas": 3, "template": {"spec": {"containers": [
            {"name": "app", "ports": [{"containerPort": 80}], "readinessProbe": {"tcpSocket": {"port": 80}}}]}}});
        let judge = |kind| Judge { kind, ..Judge::default() }.object::<MissingLivenessProbe>(json!({"spec": spec}));
        assert!(judge("Deployment")[0].message.contains("and its pod, one of 3, stays out of service until"));
        assert!(judge("DaemonSet")[0].message.contains("and its pod stays out of service until"));
        assert!(judge("ReplicaSet").is_empty());
    }

    #[test]
    fn where_nothing_speaks_tcp_the_mend_is_an_exec() {
        let found = container::<MissingLivenessProbe>(json!({"ports": [{"containerPort": 53, "protocol": "UDP"}]}));
        assert!(found[0].mend.as_deref().unwrap().starts_with("livenessProbe:\n  exec: {command: [/check]}"));
    }

    #[test]
    fn d09_what_runs_to_completion_is_passed_over() {
        let pod = |policy| {
            let app = json!({"name": "app", "ports": [{"containerPort": 80}]});
            let spec = json!({"restartPolicy": policy, "containers": [app]});
            Judge { kind: "Rollout", ..Judge::default() }.pod::<MissingLivenessProbe>(spec).len()
        };
        assert_eq!((pod("Always"), pod("OnFailure"), pod("Never")), (1, 0, 0));
        assert!(!MissingLivenessProbe::META.kinds.iter().any(|kind| ["Job", "CronJob", "Pod"].contains(kind)));
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<MissingLivenessProbe>(&["readinessProbe", "livenessProbe"]);
    }
}

//! A start that is slower than usual is killed by the liveness probe, and nothing stops it.
//!
//! ## What it does
//!
//! Finds regular containers without a startup probe whose liveness probe kills a start of less than `minStartSeconds`:
//! `initialDelaySeconds` and `failureThreshold` times `periodSeconds` together. Where the policy's fix of
//! `missing-startup-probe` adds a startup probe there is nothing to find. Native sidecars, which start in moments, are
//! passed over; a probe on a port name that the container lacks kills nothing, see `probe-port-unknown`.
//!
//! ## Why it matters
//!
//! Starts get slow together: after a node failed, with cold caches, when everything pulls images. The liveness probe
//! kills the container, it begins again, slower still, and the workload never comes back up.
//!
//! ## Example
//!
//! Bad, for a start of more than 30 s is killed:
//!
//! ```yaml
//! livenessProbe: {httpGet: {path: /livez, port: 8080}, periodSeconds: 10, failureThreshold: 3}
//! ```
//!
//! Good:
//!
//! ```yaml
//! livenessProbe: {httpGet: {path: /livez, port: 8080}, periodSeconds: 10, failureThreshold: 3}
//! startupProbe: {httpGet: {path: /livez, port: 8080}, periodSeconds: 5, failureThreshold: 30}
//! ```
//!
//! ## Parameters
//!
//! `minStartSeconds` (1 to 3600, default 40): how long a start may at least take.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::missing_startup_probe::MissingStartupProbe;
use super::probe::{Probe, Role, never_fails, undeclared_port};
use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::LONG_RUNNING;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `liveness-kills-slow-start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// How long a start may at least take, seconds, 1 to 3600.
    #[schemars(range(min = 1, max = 3600))]
    pub min_start_seconds: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { min_start_seconds: 40 }
    }
}

/// Seconds between two tries of the startup probe that a finding proposes.
const PERIOD: i64 = 5;

/// The rule.
pub struct LivenessKillsSlowStart;

impl Rule for LivenessKillsSlowStart {
    const META: Meta = Meta {
        id: "liveness-kills-slow-start",
        category: Category::Probes,
        since: "0.1",
        kinds: LONG_RUNNING,
        baseline: Action::Warn,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("liveness_kills_slow_start.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("minStartSeconds", params.min_start_seconds, 1..=3600, "seconds")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template.filter(|template| template.restarts_always()) else { return };
        for container in template.regular().filter(|container| container.value["startupProbe"].is_null()) {
            let Some(liveness) = Probe::of(&container, Role::Liveness) else { continue };
            let tolerated = liveness.tolerance;
            if never_fails(container.value.get(Role::Liveness.member()))
                || tolerated.seconds >= params.min_start_seconds
                || undeclared_port(&container, liveness.action).is_some()
                || MissingStartupProbe::adds_to(context, &template, &container)
            {
                continue;
            }
            let message = format!(
                "container {}: its livenessProbe kills a start of more than {} s ({}), and it begins again: a start \
                 should get {} s at least",
                quoted(container.name()),
                tolerated.seconds,
                tolerated.sum(),
                params.min_start_seconds
            );
            let failures = (params.min_start_seconds + PERIOD - 1) / PERIOD;
            let mend = format!(
                "startupProbe:\n  # and the livenessProbe's own handler\n  periodSeconds: {PERIOD}\n  failureThreshold: \
                 {failures}"
            );
            findings.push(
                Finding::new(Self::META.id, container.pointer(&[Role::Liveness.member()]), message)
                    .container(container.name())
                    .measure(params.min_start_seconds - tolerated.seconds)
                    .mend(mend),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, container, messages, passes_over_nonsense, refused};

    fn live(mut liveness: serde_json::Value) -> serde_json::Value {
        liveness["tcpSocket"] = json!({"port": 80});
        json!({"livenessProbe": liveness})
    }

    #[test]
    fn a_start_that_the_numbers_do_not_allow() {
        let found = container::<LivenessKillsSlowStart>(live(json!({})));
        assert_eq!(
            messages(&found),
            [
                "container \"app\": its livenessProbe kills a start of more than 30 s (failureThreshold 3 × periodSeconds \
              10), and it begins again: a start should get 40 s at least"
            ]
        );
        assert_eq!(found[0].pointer, "/spec/template/spec/containers/0/livenessProbe");
        assert_eq!((found[0].measure, found[0].cap), (Some(10), None));
        let mend = "startupProbe:\n  # and the livenessProbe's own handler\n  periodSeconds: 5\n  failureThreshold: 8";
        assert_eq!(found[0].mend.as_deref(), Some(mend));
        let found = container::<LivenessKillsSlowStart>(live(json!({"initialDelaySeconds": 9})));
        assert!(
            found[0].message.contains("more than 39 s (initialDelaySeconds 9 + failureThreshold 3 × periodSeconds 10)")
        );
    }

    #[test]
    fn a_patient_liveness_or_a_startup_probe_is_fine() {
        assert_eq!(container::<LivenessKillsSlowStart>(live(json!({"initialDelaySeconds": 10}))), []);
        assert_eq!(container::<LivenessKillsSlowStart>(live(json!({"failureThreshold": 4}))), []);
        let mut started = live(json!({}));
        started["startupProbe"] = json!({"tcpSocket": {"port": 80}});
        assert_eq!(container::<LivenessKillsSlowStart>(started), []);
    }

    #[test]
    fn the_policys_fix_takes_care_of_it() {
        let fixing = |kind, declined| Judge {
            kind,
            fixes: Some(("missing-startup-probe", json!({}))),
            declined,
            ..Judge::default()
        };
        let found = |kind, declined| fixing(kind, declined).container::<LivenessKillsSlowStart>(live(json!({}))).len();
        assert_eq!(found("Deployment", &[][..]), 0);
        assert_eq!(found("Rollout", &[]), 0);
        // Not where its author declined it, nor for kinds that it is not for.
        assert_eq!(found("Deployment", &["missing-startup-probe"]), 1);
        assert_eq!(found("Deployment", &["missing-pre-stop"]), 0);
        assert_eq!(found("Pod", &[]), 1);
        assert_eq!(found("ReplicationController", &[]), 1);
    }

    #[test]
    fn d07_a_port_that_nobody_can_ask_kills_nothing() {
        let http = |port| json!({"ports": [{"name": "http", "containerPort": 80}], "livenessProbe": {"httpGet": {"port": port}}});
        assert_eq!(container::<LivenessKillsSlowStart>(http("web")), []);
        assert_eq!(container::<LivenessKillsSlowStart>(http("http")).len(), 1);
    }

    #[test]
    fn d05_d09_sidecars_init_containers_and_what_ends_are_passed_over() {
        let init = json!([{"name": "i", "livenessProbe": {"tcpSocket": {"port": 1}}},
            {"name": "s", "restartPolicy": "Always", "livenessProbe": {"tcpSocket": {"port": 1}}}]);
        let pod = |spec| Judge { kind: "Pod", ..Judge::default() }.pod::<LivenessKillsSlowStart>(spec);
        assert_eq!(pod(json!({"containers": [{"name": "a"}], "initContainers": init})), []);
        let app = json!({"name": "a", "livenessProbe": {"tcpSocket": {"port": 1}}});
        assert_eq!(pod(json!({"restartPolicy": "OnFailure", "containers": [app]})), []);
        assert!(!LivenessKillsSlowStart::META.kinds.contains(&"Job"));
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        assert_eq!(refused::<LivenessKillsSlowStart>(json!({"minStartSeconds": 0})), "minStartSeconds");
        assert_eq!(refused::<LivenessKillsSlowStart>(json!({"minStartSeconds": 3601})), "minStartSeconds");
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<LivenessKillsSlowStart>(&["startupProbe", "livenessProbe"]);
    }
}

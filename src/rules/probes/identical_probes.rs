//! Liveness asks what readiness asks, and is no more patient.
//!
//! ## What it does
//!
//! Compares the readiness and the liveness probe of each regular container and native sidecar, absent members filled in
//! with the API's defaults and port names with their numbers. Finds pairs that ask the same where the liveness probe
//! bears failures (`failureThreshold` times `periodSeconds`) for less than `patience` times as long as the readiness
//! probe, and does not wait `patience` times as long for an answer either.
//!
//! ## Why it matters
//!
//! A failing readiness probe takes a pod out of its Services until it recovers; a failing liveness probe restarts it.
//! Where both ask the same in the same rhythm there is no time to recover: an overload, or a dependency that the
//! endpoint checks, restarts every replica at once and makes the load on the rest worse.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! readinessProbe: {httpGet: {path: /healthz, port: 8080}}
//! livenessProbe: {httpGet: {path: /healthz, port: 8080}}
//! ```
//!
//! Good:
//!
//! ```yaml
//! readinessProbe: {httpGet: {path: /healthz, port: 8080}}
//! livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 20, failureThreshold: 6}
//! ```
//!
//! ## Parameters
//!
//! `patience` (2 to 100, default 2): how many times as long as readiness a liveness probe that asks the same must bear
//! failures.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::probe::{Probe, Role};
use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::LONG_RUNNING;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `identical-probes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// How many times as long as the readiness probe a liveness probe that asks the same must bear failures, 2 to 100.
    #[schemars(range(min = 2, max = 100))]
    pub patience: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { patience: 2 }
    }
}

/// The rule.
pub struct IdenticalProbes;

impl Rule for IdenticalProbes {
    const META: Meta = Meta {
        id: "identical-probes",
        category: Category::Probes,
        since: "0.1",
        kinds: LONG_RUNNING,
        baseline: Action::Audit,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("identical_probes.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("patience", params.patience, 2..=100, "times")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for container in template.running() {
            let (Some(readiness), Some(liveness)) =
                (Probe::of(&container, Role::Readiness), Probe::of(&container, Role::Liveness))
            else {
                continue;
            };
            let (bears, wanted) =
                (liveness.tolerance.running(), params.patience.saturating_mul(readiness.tolerance.running()));
            // A slow answer, the usual sign of overload, is borne too.
            let waits = liveness.tolerance.timeout >= params.patience * readiness.tolerance.timeout;
            if bears >= wanted || waits || !liveness.asks_as(&readiness, &container) {
                continue;
            }
            let message = format!(
                "container {}: readinessProbe and livenessProbe both ask {}: failures take it out of service after {} s \
                 and restart it after {bears} s, so that an overload restarts it",
                quoted(container.name()),
                liveness.asks(),
                readiness.tolerance.running()
            );
            let period = liveness.tolerance.period;
            let failures = wanted / period + i64::from(wanted % period > 0);
            findings.push(
                Finding::new(Self::META.id, container.pointer(&[Role::Liveness.member()]), message)
                    .container(container.name())
                    .measure(wanted - bears)
                    .mend(format!(
                        "livenessProbe:\n  periodSeconds: {period}\n  failureThreshold: {failures}  # or ask the process \
                         alone, without its dependencies"
                    )),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, container, messages, passes_over_nonsense, refused};

    fn pair(readiness: serde_json::Value, liveness: serde_json::Value) -> Vec<Finding> {
        let ports = json!([{"name": "http", "containerPort": 8080}]);
        container::<IdenticalProbes>(json!({"ports": ports, "readinessProbe": readiness, "livenessProbe": liveness}))
    }

    #[test]
    fn d08_equal_after_defaults() {
        let readiness = json!({"httpGet": {"path": "/", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10,
            "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3});
        let found = pair(readiness, json!({"httpGet": {"port": 8080}}));
        assert_eq!(
            messages(&found),
            [
                "container \"app\": readinessProbe and livenessProbe both ask httpGet \"/\": failures take it out of service after \
              30 s and restart it after 30 s, so that an overload restarts it"
            ]
        );
        assert_eq!(found[0].pointer, "/spec/template/spec/containers/0/livenessProbe");
        assert_eq!((found[0].measure, found[0].container.as_deref()), (Some(30), Some("app")));
        let mend = "livenessProbe:\n  periodSeconds: 10\n  failureThreshold: 6  # or ask the process alone, without its \
                    dependencies";
        assert_eq!(found[0].mend.as_deref(), Some(mend));
    }

    #[test]
    fn d08_another_question_or_clearly_more_patience_is_fine() {
        let same = || json!({"tcpSocket": {"port": 8080}});
        assert_eq!(pair(same(), json!({"httpGet": {"port": 8080}})), []);
        assert_eq!(pair(same(), json!({"tcpSocket": {"port": 8080}, "periodSeconds": 20})), []);
        assert_eq!(pair(same(), json!({"tcpSocket": {"port": 8080}, "failureThreshold": 6})), []);
        assert_eq!(pair(same(), json!({"tcpSocket": {"port": 8080}, "timeoutSeconds": 2})), []);
        assert_eq!(pair(same(), json!({"tcpSocket": {"port": 8080}, "failureThreshold": 5})).len(), 1);
        // A delay is over once the container runs.
        assert_eq!(pair(same(), json!({"tcpSocket": {"port": 8080}, "initialDelaySeconds": 600})).len(), 1);
        assert_eq!(pair(same(), json!(null)), []);
    }

    #[test]
    fn d05_sidecars_are_judged_plain_init_containers_are_not() {
        let probes = |mut container: serde_json::Value| {
            container["readinessProbe"] = json!({"tcpSocket": {"port": 1}});
            container["livenessProbe"] = json!({"tcpSocket": {"port": 1}});
            container
        };
        let init = [probes(json!({"name": "i"})), probes(json!({"name": "s", "restartPolicy": "Always"}))];
        let found =
            Judge::default().pod::<IdenticalProbes>(json!({"containers": [{"name": "a"}], "initContainers": init}));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].pointer, "/spec/template/spec/initContainers/1/livenessProbe");
    }

    #[test]
    fn a_stricter_policy_wants_more() {
        let twice = json!({"readinessProbe": {"tcpSocket": {"port": 1}},
            "livenessProbe": {"tcpSocket": {"port": 1}, "failureThreshold": 6}});
        let strict = Judge { params: json!({"patience": 3}), ..Judge::default() };
        let found = strict.container::<IdenticalProbes>(twice);
        assert_eq!(found[0].measure, Some(30));
        assert!(found[0].mend.as_deref().unwrap().contains("failureThreshold: 9"));
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        assert_eq!(refused::<IdenticalProbes>(json!({"patience": 1})), "patience");
        assert_eq!(refused::<IdenticalProbes>(json!({"patience": 101})), "patience");
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<IdenticalProbes>(&["readinessProbe", "livenessProbe"]);
    }

    #[test]
    fn the_largest_numbers_are_judged_too() {
        let probe = || json!({"tcpSocket": {"port": 80}, "periodSeconds": i32::MAX, "failureThreshold": i32::MAX});
        let judge = Judge { params: json!({"patience": 100}), ..Judge::default() };
        let found = judge.container::<IdenticalProbes>(json!({"readinessProbe": probe(), "livenessProbe": probe()}));
        assert_eq!(found.len(), 1);
    }
}

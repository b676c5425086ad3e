//! A liveness probe kills the container while it still starts.
//!
//! ## What it does
//!
//! Finds regular containers with a liveness probe and no startup probe in Deployments, StatefulSets, DaemonSets and
//! Rollouts whose pods restart always. A liveness probe that cannot fail (`exec` of `true`) kills no start.
//!
//! ## Why it matters
//!
//! A start that takes longer than usual (a cold cache, a busy node, a migration) meets a liveness probe made for a
//! process that runs. It is killed, starts from the beginning, is killed again: for ever.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 10, failureThreshold: 3}
//! ```
//!
//! Good:
//!
//! ```yaml
//! livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 10, failureThreshold: 3}
//! startupProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 5, failureThreshold: 30}
//! ```
//!
//! ## Fix safety
//!
//! Adds a startup probe with the liveness probe's own handler: never the readiness probe's, which may check
//! dependencies, and a failing startup probe kills. It grants `budgetSeconds`, or what the liveness probe tolerated
//! where that is more; the liveness probe is untouched. It asks every 5 s at the most, because readiness probes wait
//! for it. Nothing is added from a probe on a port name that the container does not declare.
//!
//! ## Parameters
//!
//! `budgetSeconds` (1 to 86400, default 150): how long a start may take.
//!
//! ## Unknown facts
//!
//! None are asked for.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::probe::{Tolerance, handler, never_fails, undeclared_port};
use crate::engine::context::Context;
use crate::engine::document::{Object, Value};
use crate::engine::finding::{Action, Finding, Fix};
use crate::engine::kind::ROLLING;
use crate::engine::ownership::{Managed, Place};
use crate::engine::pod::{Class, Container, Template};
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `missing-startup-probe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// How long a start may take, seconds, 1 to 86400.
    #[schemars(range(min = 1, max = 86400))]
    pub budget_seconds: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { budget_seconds: 150 }
    }
}

/// Longest time between two tries of the added probe, seconds: readiness waits for the startup probe (TRAPS D03).
const MAX_PERIOD: i64 = 5;

/// The rule.
pub struct MissingStartupProbe;

impl MissingStartupProbe {
    /// Whether the policy's fix adds a startup probe to this container.
    pub fn adds_to(context: &Context<'_>, template: &Template<'_>, container: &Container<'_>) -> bool {
        let liveness = container.value.get("livenessProbe");
        context.fixes(Self::META.id)
            && Self::META.is_for(context.kind)
            && template.restarts_always()
            && container.class == Class::Regular
            && liveness.as_object().is_some()
            && !never_fails(liveness)
            && container.value["startupProbe"].is_null()
            && Tolerance::of(liveness).is_some_and(|tolerated| {
                let params = context.policy.params::<MissingStartupProbe>();
                startup_probe(container, liveness, tolerated, &params).is_ok()
            })
    }
}

impl Rule for MissingStartupProbe {
    const META: Meta = Meta {
        id: "missing-startup-probe",
        category: Category::Probes,
        since: "0.1",
        kinds: ROLLING,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: true,
        baseline_fix: true,
        source: include_str!("missing_startup_probe.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("budgetSeconds", params.budget_seconds, 1..=86_400, "seconds")
    }

    fn managed(_params: &Params) -> Vec<Managed> {
        vec![Managed { place: Place::Container(&["startupProbe"]), default: None }]
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template.filter(|template| template.restarts_always()) else { return };
        for container in template.regular() {
            let liveness = &container.value["livenessProbe"];
            let kills = liveness.as_object().is_some() && !never_fails(liveness);
            if !kills || !container.value["startupProbe"].is_null() {
                continue;
            }
            // A probe that the API server will refuse is not ours to speak of.
            let Some(tolerated) = Tolerance::of(liveness) else { continue };
            let name = container.name();
            let probe = startup_probe(&container, liveness, tolerated, params);
            // The reason comes before the consequence: what is too long for a warning is cut at its end.
            let why = probe.as_ref().err().map(|why| format!(" (nothing is added: {why})")).unwrap_or_default();
            let message = format!(
                "container {} has a livenessProbe and no startupProbe{why}: a start of more than {} s is killed and begins again",
                quoted(name),
                tolerated.seconds
            );
            let fix = probe.ok().map(|(probe, budget)| {
                let claim = format!("{}/{name}", Self::META.id);
                let writes = vec![(container.path(&["startupProbe"]), probe)];
                let says = format!(
                    "container {}: added a startupProbe that allows {budget} s to start, made from its livenessProbe",
                    quoted(name)
                );
                Fix::new(claim, writes, says)
            });
            findings.push(
                Finding::new(Self::META.id, container.pointer(&["startupProbe"]), message).container(name).fix(fix),
            );
        }
    }
}

/// The probe to add and the seconds it grants, or why there is none.
fn startup_probe(
    container: &Container<'_>,
    liveness: &Value<'_>,
    tolerance: Tolerance,
    params: &Params,
) -> Result<(Value<'static>, i64), String> {
    let Some((handler, action)) = handler(liveness) else {
        return Err("its livenessProbe does not have exactly one handler".to_owned());
    };
    if let Some(port) = undeclared_port(container, action) {
        return Err(format!("its livenessProbe asks port {}, which the container does not declare", quoted(port)));
    }
    let period = tolerance.period.min(MAX_PERIOD);
    let budget = params.budget_seconds.max(tolerance.seconds);
    let failures = budget.div_euclid(period) + i64::from(budget.rem_euclid(period) > 0);
    if failures > i64::from(i32::MAX) {
        return Err("its livenessProbe tolerates more than a startupProbe can express".to_owned());
    }
    let mut probe = Object::default();
    probe.insert(Cow::Owned(handler.to_owned()), action.to_static());
    probe.insert("periodSeconds", Value::from(period));
    if !liveness["timeoutSeconds"].is_null() {
        probe.insert("timeoutSeconds", liveness["timeoutSeconds"].to_static());
    }
    probe.insert("failureThreshold", Value::from(failures));
    Ok((Value::Object(probe), failures * period))
}

//! A container that serves is told to stop before the load balancers know.
//!
//! ## What it does
//!
//! Finds regular containers without `lifecycle.preStop` in Deployments, StatefulSets and Rollouts whose pods restart
//! always (DaemonSets by parameter). Native sidecars are left out: their hook runs together with the application's and
//! only eats the shared grace period. A preStop hook that is there, `sleep: {seconds: 0}` included, is the author's.
//!
//! ## Why it matters
//!
//! When a pod is deleted, the kubelet starts to stop its containers while endpoint controllers, kube-proxies and load
//! balancers are still being told. Nobody waits for them. A short sleep covers that propagation: until it is over the
//! process keeps answering. The hook runs on deletion, preemption and failed liveness, not when the process exits by
//! itself; restarting a hung container takes the sleep longer.
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
//!   lifecycle: {preStop: {sleep: {seconds: 5}}}
//! ```
//!
//! ## Fix safety
//!
//! Adds the native `sleep` action, never an exec: images without a shell would fail it. Needs Kubernetes ≥ 1.30. The
//! sleep shrinks to fit a grace period that the author set; where nothing fits, nothing is added. Pods then take the
//! sleep longer to stop.
//!
//! ## Parameters
//!
//! `sleepSeconds` (1 to 60, default 5), `onlyIfPorts` (default false: true skips containers that declare no port),
//! `daemonSets` (default false: with maxSurge 0 the sleep is pure downtime on every node).
//!
//! ## Unknown facts
//!
//! Where the server's version, or whether a CRD keeps the `sleep` action, is unknown, nothing is added and the warning
//! says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::document::{Value, object};
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding, Fix};
use crate::engine::kind::ROLLING;
use crate::engine::ownership::{Managed, Place};
use crate::engine::plan::{NoSleep, native_sleep};
use crate::engine::pod::{Container, Template};
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `missing-pre-stop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// How long the added hook sleeps, seconds, 1 to 60.
    #[schemars(range(min = 1, max = 60))]
    pub sleep_seconds: i64,
    /// Whether containers that declare no port are left alone.
    pub only_if_ports: bool,
    /// Whether DaemonSets are looked at.
    pub daemon_sets: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { sleep_seconds: 5, only_if_ports: false, daemon_sets: false }
    }
}

/// The rule.
pub struct MissingPreStop;

impl MissingPreStop {
    /// How long a missing hook of this template should sleep, seconds, before the grace period is looked at.
    ///
    /// # Errors
    /// Why none is added.
    pub fn sleep_for(context: &Context<'_>, template: &Template<'_>) -> Result<i64, NoSleep> {
        let params = context.policy.params::<MissingPreStop>();
        let missing = Self::looks_at(context, template, &params)
            && template.regular().any(|container| Self::misses(&container, &params));
        if !missing || !context.fixes(Self::META.id) {
            return Err(NoSleep::NotWanted);
        }
        native_sleep(context)?;
        Ok(params.sleep_seconds)
    }

    fn looks_at(context: &Context<'_>, template: &Template<'_>, params: &Params) -> bool {
        Self::META.is_for(context.kind) && template.restarts_always() && (!context.kind.per_node || params.daemon_sets)
    }

    fn misses(container: &Container<'_>, params: &Params) -> bool {
        let lifecycle = &container.value["lifecycle"];
        let readable = lifecycle.is_null() || lifecycle.as_object().is_some();
        readable && lifecycle["preStop"].is_null() && (container.has_ports() || !params.only_if_ports)
    }
}

impl Rule for MissingPreStop {
    const META: Meta = Meta {
        id: "missing-pre-stop",
        category: Category::Termination,
        since: "0.1",
        kinds: ROLLING,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: true,
        baseline_fix: true,
        source: include_str!("missing_pre_stop.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("sleepSeconds", params.sleep_seconds, 1..=60, "seconds")
    }

    fn managed(_params: &Params) -> Vec<Managed> {
        vec![Managed { place: Place::Container(&["lifecycle", "preStop"]), default: None }]
    }

    fn needs(context: &Context<'_>, params: &Params) -> Needs {
        let missing = context.template.is_some_and(|template| {
            Self::looks_at(context, &template, params)
                && template.regular().any(|container| Self::misses(&container, params))
        });
        let asks = missing && context.fixes(Self::META.id);
        Needs { server_version: asks, crd_sleep: asks && !context.kind.defaulted, ..Needs::default() }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        if !Self::looks_at(context, &template, params) {
            return;
        }
        let plan = &context.termination().added_sleep;
        for container in template.regular().filter(|container| Self::misses(container, params)) {
            let name = container.name();
            // The reason comes before the consequence: what is too long for a warning is cut at its end.
            let why = plan.as_ref().err().and_then(|why| why.says());
            let why = why.map(|why| format!(" (nothing is added: {why})")).unwrap_or_default();
            let message = format!(
                "container {} has no preStop hook{why}: it gets SIGTERM while load balancers still send it requests",
                quoted(name)
            );
            let mut finding =
                Finding::new(Self::META.id, container.pointer(&["lifecycle", "preStop"]), message).container(name);
            // A server that does not know the action drops it and then refuses the empty hook (TRAPS B12).
            if plan.as_ref().err().is_none_or(|why| !why.is_lookup()) {
                let seconds = params.sleep_seconds;
                finding = finding.mend(format!("lifecycle: {{preStop: {{sleep: {{seconds: {seconds}}}}}}}"));
            }
            match plan {
                Ok(seconds) => {
                    let sleep = object([("sleep", object([("seconds", Value::from(*seconds))]))]);
                    let claim = format!("{}/{name}", Self::META.id);
                    let says = format!("container {}: added a preStop sleep of {seconds} s", quoted(name));
                    let writes = vec![(container.path(&["lifecycle", "preStop"]), sleep)];
                    finding.fix = Some(Fix::new(claim, writes, says));
                }
                Err(why) => finding.stopped_by_lookup = why.is_lookup(),
            }
            findings.push(finding);
        }
    }
}

//! A container may take all the memory of its node.
//!
//! ## What it does
//! Reports containers and native sidecars without a memory limit, where the pod as a whole (`spec.resources`) has none
//! either. A limit of `0` is none: the kubelet sets no bound for it. What is no quantity at all is left to the API
//! server.
//!
//! ## Why it matters
//! Memory cannot be throttled. A container that leaks takes what its node has, and then the kernel kills whichever
//! process uses most above its request, often a neighbour's. With a limit the container itself is killed and starts
//! again.
//!
//! ## Example
//! Bad:
//! ```yaml
//! resources:
//!   requests: {cpu: 250m, memory: 128Mi}
//! ```
//! Good:
//! ```yaml
//! resources:
//!   requests: {cpu: 250m, memory: 128Mi}
//!   limits: {memory: 128Mi}
//! ```
//!
//! ## Parameters
//! * `initContainers`: whether plain init containers are judged too; `false`.
//!
//! ## Unknown facts
//! A LimitRange of the namespace can supply limits when a pod is created, unseen in the template. Where there is one
//! that sets container defaults, and where that is unknown, the rule warns at most.

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::{Class, Template};
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::resources::quantity::Quantity;
use crate::rules::resources::stanza::{Stanza, amount, limit_range_bound, malformed, stanzas, written};

/// The rule `missing-memory-limit`.
pub struct MissingMemoryLimit;

/// Parameters of `missing-memory-limit`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Whether plain init containers are judged too.
    pub init_containers: bool,
}

impl Rule for MissingMemoryLimit {
    const META: Meta = Meta {
        id: "missing-memory-limit",
        category: Category::Resources,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Audit,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("missing_memory_limit.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, params: &Params) -> Needs {
        let unbounded = context.template.is_some_and(|template| unbounded(template, params).next().is_some());
        Needs { limit_range: unbounded, ..Needs::default() }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        findings.extend(unbounded(template, params).map(|stanza| report(context, &stanza)));
    }
}

/// The stanzas of containers that nothing bounds.
fn unbounded<'a>(template: Template<'a>, params: &Params) -> impl Iterator<Item = Stanza<'a>> {
    let init = params.init_containers;
    let pod_bounds = bounds(template.spec().get("resources"));
    let containers = stanzas(template).filter(move |stanza| match stanza.class() {
        Some(Class::Regular | Class::Sidecar) => !pod_bounds,
        Some(Class::Init) => init && !pod_bounds,
        Some(Class::Ephemeral) | None => false,
    });
    containers.filter(|stanza| !bounds(stanza.resources))
}

/// Whether there is a memory limit, or something that the API server will refuse.
fn bounds(resources: &Value<'_>) -> bool {
    let limit = &resources["limits"]["memory"];
    malformed(resources) || (!limit.is_null() && Quantity::read(limit).is_none_or(|limit| limit.milli() != 0))
}

fn report(context: &Context<'_>, stanza: &Stanza<'_>) -> Finding {
    let subject = stanza.subject();
    let limit = &stanza.resources["limits"]["memory"];
    let has = if limit.is_null() {
        "no memory limit".to_owned()
    } else {
        format!("limits.memory {}, which is no limit", quoted(&written(limit)))
    };
    let request = stanza.milli("requests", "memory").filter(|milli| *milli > 0);
    let instead = request.map(|milli| format!(" instead of the {} that it requests", amount("memory", milli)));
    let (says, bound) =
        if limit.is_null() { limit_range_bound(&context.facts.limit_range) } else { Default::default() };
    let message = format!(
        "{subject} has {has}: it may take all the memory of its node{}, and when that runs out its neighbours are evicted \
         or killed too{says}",
        instead.unwrap_or_default()
    );
    let mend = match request {
        Some(milli) => format!("{}  # as its request; measure it", amount("memory", milli)),
        None => "128Mi  # an example: measure it".to_owned(),
    };
    let finding = stanza.finding(MissingMemoryLimit::META.id, &["limits", "memory"], message);
    Finding { cap: bound, ..finding.mend(format!("resources:\n  limits:\n    memory: {mend}")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::facts::{Facts, Known, Reason};
    use crate::rules::testing::{Judge, in_pod_spec};

    fn named(spec: serde_json::Value, params: serde_json::Value) -> Vec<String> {
        let findings = in_pod_spec::<MissingMemoryLimit>(spec, params);
        findings.into_iter().filter_map(|finding| finding.container).collect()
    }

    #[test]
    fn h02_a_limit_range_or_not_knowing_warns_at_most() {
        let cap = |resources: serde_json::Value, limit_range| {
            let spec = json!({"spec": {"containers": [{"name": "app", "resources": resources}]}});
            let facts = Facts { limit_range, ..Facts::unknown(Reason::NotAsked) };
            let (findings, needs) = Judge { kind: "Pod", facts, ..Judge::default() }.judge::<MissingMemoryLimit>(&spec);
            assert!(needs.limit_range);
            findings[0].cap
        };
        assert_eq!(cap(json!({}), Known::Absent), None);
        assert_eq!(cap(json!({}), Known::Known(())), Some(Action::Warn));
        assert_eq!(cap(json!({}), Known::Unknown(Reason::Forbidden)), Some(Action::Warn));
        // A LimitRange fills in what is absent only.
        assert_eq!(cap(json!({"limits": {"memory": 0}}), Known::Known(())), None);
    }

    #[test]
    fn h03_a_limit_of_the_pod_bounds_every_container() {
        let spec = |resources| json!({"resources": resources, "containers": [{"name": "app"}]});
        assert_eq!(named(spec(json!({"limits": {"memory": "1Gi"}})), json!({})), [""; 0]);
        assert_eq!(named(spec(json!({"requests": {"memory": "1Gi"}})), json!({})), ["app"]);
        assert_eq!(named(spec(json!("1Gi")), json!({})), [""; 0]);
    }

    #[test]
    fn h08_sidecars_are_judged_plain_init_containers_on_demand() {
        let spec = json!({
            "containers": [{"name": "app"}],
            "initContainers": [{"name": "init"}, {"name": "proxy", "restartPolicy": "Always"}],
            "ephemeralContainers": [{"name": "debug"}],
        });
        assert_eq!(named(spec.clone(), json!({})), ["app", "proxy"]);
        assert_eq!(named(spec, json!({"initContainers": true})), ["app", "init", "proxy"]);
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        for resources in [json!("x"), json!({"limits": "x"}), json!({"limits": {"memory": "much"}})] {
            assert_eq!(named(json!({"containers": [{"name": "app", "resources": resources}]}), json!({})), [""; 0]);
        }
        for spec in [json!(null), json!({"containers": null}), json!({"containers": [null, "x"]})] {
            assert_eq!(named(spec, json!({})), [""; 0]);
        }
    }
}

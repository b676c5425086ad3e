//! A pod asks for nothing, so it gets what is left.
//!
//! ## What it does
//! Reports pods of the quality-of-service class BestEffort: neither the pod (`spec.resources`) nor any of its
//! containers, init containers and sidecars requests or limits cpu or memory. As in Kubernetes a quantity of `0` and
//! other resources (ephemeral storage, devices) do not count. What is no quantity at all is left to the API server.
//!
//! ## Why it matters
//! The scheduler counts such a pod as needing nothing, so a rollout can pile all replicas onto one full node. When that
//! node runs short of memory, BestEffort pods are the first to be evicted and the first that the kernel kills, and
//! under load they get no more than a sliver of cpu.
//!
//! ## Example
//! Bad:
//! ```yaml
//! containers:
//!   - name: app
//!     image: app:1.4.2
//! ```
//! Good:
//! ```yaml
//! containers:
//!   - name: app
//!     image: app:1.4.2
//!     resources:
//!       requests: {cpu: 250m, memory: 128Mi}
//! ```
//!
//! ## Parameters
//! None.
//!
//! ## Unknown facts
//! A LimitRange of the namespace can supply requests and limits when a pod is created, unseen in the template. Where
//! there is one that sets container defaults, and where that is unknown, the rule warns at most.

use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::Template;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::resources::missing_requests::example;
use crate::rules::resources::quantity::Quantity;
use crate::rules::resources::stanza::{Stanza, limit_range_bound, malformed, stanzas};

/// The resources that decide the class (kubernetes: pkg/apis/core/v1/helper/qos, supportedQoSComputeResources).
const DECISIVE: [&str; 2] = ["cpu", "memory"];

/// The rule `best-effort`.
pub struct BestEffort;

/// Parameters of `best-effort`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {}

impl Rule for BestEffort {
    const META: Meta = Meta {
        id: "best-effort",
        category: Category::Resources,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("best_effort.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        Needs { limit_range: context.template.is_some_and(is_best_effort), ..Needs::default() }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template.filter(|template| is_best_effort(*template)) else { return };
        let count = stanzas(template).filter(|stanza| stanza.container.is_some()).count();
        let who = if count == 1 { "its only container".to_owned() } else { format!("none of its {count} containers") };
        let verb =
            if count == 1 { "neither requests nor limits cpu or memory" } else { "requests or limits cpu or memory" };
        let (says, bound) = limit_range_bound(&context.facts.limit_range);
        let message = format!(
            "the pod is BestEffort, {who} {verb}: the scheduler counts 0 for it, and it is evicted first when its node \
             runs short of memory{says}"
        );
        let name = template.regular().next().map(|container| container.name()).unwrap_or_default();
        let mend = format!(
            "containers:\n- name: {}\n  resources:\n    requests:\n      cpu: {}\n      memory: {}",
            quoted(name),
            example("cpu"),
            example("memory")
        );
        let pointer = template.pointer(&["spec", "containers"]);
        findings.push(Finding { cap: bound, ..Finding::new(Self::META.id, pointer, message).mend(mend) });
    }
}

/// Whether its pods are of that class; not where the API server will refuse what is said, nor without a container.
fn is_best_effort(template: Template<'_>) -> bool {
    template.regular().next().is_some() && stanzas(template).all(|stanza| asks_nothing(&stanza))
}

fn asks_nothing(stanza: &Stanza<'_>) -> bool {
    let nothing = |list, name| match stanza.resources.get(list).get(name) {
        value if value.is_null() => true,
        value => Quantity::read(value).is_some_and(|quantity| quantity.milli() == 0),
    };
    !malformed(stanza.resources)
        && ["requests", "limits"].into_iter().all(|list| DECISIVE.into_iter().all(|name| nothing(list, name)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::facts::{Facts, Known, Reason};
    use crate::rules::testing::{Judge, in_pod_spec};

    fn found(spec: serde_json::Value) -> bool {
        !in_pod_spec::<BestEffort>(spec, json!({})).is_empty()
    }

    #[test]
    fn one_container_of_any_class_that_asks_for_something_is_enough() {
        let spec = |app, init, sidecar| {
            json!({
                "containers": [{"name": "app", "resources": app}],
                "initContainers": [
                    {"name": "init", "resources": init},
                    {"name": "proxy", "restartPolicy": "Always", "resources": sidecar},
                ],
            })
        };
        let (some, none) = (json!({"limits": {"cpu": "10m"}}), json!({}));
        assert!(found(spec(none.clone(), none.clone(), none.clone())));
        assert!(!found(spec(some.clone(), none.clone(), none.clone())));
        assert!(!found(spec(none.clone(), some.clone(), none.clone())));
        assert!(!found(spec(none.clone(), none, some)));
    }

    #[test]
    fn zero_and_other_resources_do_not_count() {
        let spec = |resources| json!({"containers": [{"name": "app", "resources": resources}]});
        assert!(found(spec(json!({"requests": {"cpu": 0, "memory": "0"}}))));
        assert!(found(spec(json!({"limits": {"ephemeral-storage": "1Gi", "example.com/gpu": 1}}))));
        assert!(!found(spec(json!({"requests": {"memory": "1"}}))));
    }

    #[test]
    fn h02_a_limit_range_or_not_knowing_warns_at_most() {
        let pod = json!({"spec": {"containers": [{"name": "app"}]}});
        let judged = |limit_range| {
            let facts = Facts { limit_range, ..Facts::unknown(Reason::NotAsked) };
            let (findings, needs) = Judge { kind: "Pod", facts, ..Judge::default() }.judge::<BestEffort>(&pod);
            assert!(needs.limit_range);
            findings[0].cap
        };
        assert_eq!(judged(Known::Absent), None);
        assert_eq!(judged(Known::Known(())), Some(Action::Warn));
        assert_eq!(judged(Known::Unknown(Reason::TimedOut)), Some(Action::Warn));
    }

    #[test]
    fn h03_resources_of_the_pod_count() {
        assert!(!found(json!({"resources": {"requests": {"cpu": "1"}}, "containers": [{"name": "app"}]})));
        assert!(found(json!({"resources": {"requests": {}}, "containers": [{"name": "app"}]})));
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        for resources in [json!("x"), json!({"requests": []}), json!({"requests": {"cpu": "much"}})] {
            assert!(!found(json!({"containers": [{"name": "app", "resources": resources}]})));
        }
        for spec in [json!(null), json!({}), json!({"containers": null}), json!({"containers": [null, "x"]})] {
            assert!(!found(spec));
        }
    }
}

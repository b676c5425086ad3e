//! An init container reserves more than the pod ever uses again.
//!
//! ## What it does
//! Reports init containers whose effective request of cpu or memory is above `maxPercent` of what the pod requests while
//! it runs. As the scheduler counts: an init container's own request and those of the sidecars before it, against
//! the sum over all containers and sidecars. A limit counts as a request of the same size. Nothing is compared where
//! the pod as a whole (`spec.resources`) requests the resource, or where a container or sidecar requests none of it or 0.
//!
//! ## Why it matters
//! A pod reserves the larger of the two for as long as it lives, although the init container is gone after a moment. The
//! difference is lost to everybody, once per replica, and again for each surge pod of a rollout, which may then find
//! no node.
//!
//! ## Example
//! Bad:
//! ```yaml
//! initContainers:
//!   - name: migrate
//!     resources: {requests: {cpu: 2, memory: 2Gi}}
//! containers:
//!   - name: app
//!     resources: {requests: {cpu: 250m, memory: 256Mi}}
//! ```
//! Good:
//! ```yaml
//! initContainers:
//!   - name: migrate
//!     resources: {requests: {cpu: 250m, memory: 256Mi}, limits: {memory: 256Mi}}
//! containers:
//!   - name: app
//!     resources: {requests: {cpu: 250m, memory: 256Mi}}
//! ```
//!
//! ## Parameters
//! * `maxPercent`: the largest effective init request, percent of the running pod's, 100 to 100000; `100`.
//!
//! ## Unknown facts
//! It needs none: where a LimitRange would have to say what a container requests, nothing is compared.

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::{Class, Template};
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::resources::quantity::Quantity;
use crate::rules::resources::stanza::{Stanza, amount, requested, stanzas, written};

/// The rule `init-dominates`.
pub struct InitDominates;

/// Parameters of `init-dominates`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// The largest effective init request, percent of what the running pod requests, 100 to 100000.
    #[schemars(range(min = 100, max = 100_000))]
    pub max_percent: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { max_percent: 100 }
    }
}

impl Rule for InitDominates {
    const META: Meta = Meta {
        id: "init-dominates",
        category: Category::Resources,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("init_dominates.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("maxPercent", params.max_percent, 100..=100_000, "percent of the running pod")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        // `replicas` counts pods only where the kind says so.
        let replicas = context.replicas().filter(|_| context.kind.scales).unwrap_or(1);
        for resource in ["cpu", "memory"] {
            if let Some(Effective { running, init: Some(init) }) = Effective::of(template, resource) {
                findings.extend(judge(resource, running, &init, replicas, params));
            }
        }
    }
}

/// What a pod requests of one resource, thousandths (KEP-753, "Resources calculation for scheduling and pod admission").
struct Effective<'a> {
    /// While it runs: containers and sidecars.
    running: i128,
    /// The init container that needs most; the first of equals.
    init: Option<Init<'a>>,
}

/// An init container with what runs beside it.
struct Init<'a> {
    stanza: Stanza<'a>,
    /// The list that says its request.
    list: &'static str,
    /// Its own request, thousandths.
    own: i128,
    /// Those of the sidecars that were started before it, thousandths.
    before: i128,
}

impl<'a> Effective<'a> {
    /// `None` where a request is unknown, none or 0, or the pod's own decides (KEP-2837).
    fn of(template: Template<'a>, resource: &str) -> Option<Self> {
        let (mut running, mut sidecars, mut init) = (0, 0, None::<Init<'a>>);
        for stanza in stanzas(template) {
            let said = requested(stanza.resources, resource);
            let own = said.and_then(|(_, value)| Quantity::read(value)).map(Quantity::milli).filter(|own| *own > 0);
            match stanza.class() {
                None if said.is_some() => return None,
                Some(Class::Regular) => running += own?,
                Some(Class::Sidecar) => {
                    running += own?;
                    sidecars += own?;
                }
                Some(Class::Init) => {
                    if let (Some((list, _)), Some(own)) = (said, own)
                        && init.as_ref().is_none_or(|most| own + sidecars > most.own + most.before)
                    {
                        init = Some(Init { stanza, list, own, before: sidecars });
                    }
                }
                Some(Class::Ephemeral) | None => {}
            }
        }
        (running > 0).then_some(Effective { running, init })
    }
}

fn judge(resource: &str, running: i128, init: &Init<'_>, replicas: i64, params: &Params) -> Option<Finding> {
    let (effective, allowed) = (init.own + init.before, i128::from(params.max_percent));
    if effective * 100 <= running * allowed {
        return None;
    }
    let (show, list) = (|milli| amount(resource, milli), init.list);
    let mut message = format!(
        "init {}: {list}.{resource} {}",
        init.stanza.subject(),
        quoted(&written(&init.stanza.resources[list][resource]))
    );
    if init.before > 0 {
        message.push_str(&format!(" comes to {} with the sidecars before it", show(effective)));
    }
    let wasted = effective - running;
    message.push_str(&format!(
        ", while the running pod requests {}: each pod reserves {} {resource} as long as it lives, {} more than it runs with",
        show(running),
        show(effective),
        show(wasted)
    ));
    if replicas > 1 {
        message.push_str(&format!(", {} in {replicas} replicas", show(wasted.saturating_mul(i128::from(replicas)))));
    }
    let percent = (effective * 100 + running - 1) / running;
    let finding = init.stanza.finding(InitDominates::META.id, &[list, resource], message);
    let finding = finding.measure(i64::try_from(percent).unwrap_or(i64::MAX));
    let room = running * allowed / 100 - init.before;
    let mend = format!("resources:\n  requests:\n    {resource}: {}  # or less", show(room));
    Some(if room > 0 { finding.mend(mend) } else { finding })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, in_pod_spec, refused};

    fn cpu(name: &str, cpu: &str) -> serde_json::Value {
        json!({"name": name, "resources": {"requests": {"cpu": cpu}}})
    }

    fn sidecar(name: &str, cpu: &str) -> serde_json::Value {
        json!({"name": name, "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}})
    }

    /// The finding's container, message and mend, for these containers and init containers.
    fn found(containers: &[serde_json::Value], init: &[serde_json::Value]) -> Vec<(String, String, String)> {
        let spec = json!({"containers": containers, "initContainers": init});
        let findings = in_pod_spec::<InitDominates>(spec, json!({}));
        let told = findings.into_iter().map(|finding| (finding.container, finding.message, finding.mend));
        told.map(|(container, message, mend)| (container.unwrap(), message, mend.unwrap_or_default())).collect()
    }

    #[test]
    fn the_sum_of_the_containers_is_compared_with_the_largest_init_container() {
        assert_eq!(found(&[cpu("a", "100m"), cpu("b", "200m")], &[cpu("i", "300m"), cpu("j", "250m")]), []);
        let findings = found(&[cpu("a", "100m"), cpu("b", "250m")], &[cpu("i", "400m"), cpu("j", "2"), cpu("k", "2")]);
        let message = "init container \"j\": requests.cpu \"2\", while the running pod requests 350m: each pod reserves 2 cpu \
                       as long as it lives, 1650m more than it runs with";
        let mend = "resources:\n  requests:\n    cpu: 350m  # or less";
        assert_eq!(findings, [("j".to_owned(), message.to_owned(), mend.to_owned())]);
    }

    #[test]
    fn sidecars_count_for_what_starts_after_them_and_for_the_running_pod() {
        // KEP-753: max(app + sidecars, init + sidecars before it). Here 100m + 200m against 300m + 0.
        assert_eq!(found(&[cpu("a", "100m")], &[cpu("i", "300m"), sidecar("s", "200m")]), []);
        // 100m + 200m against 150m + 200m.
        let findings = found(&[cpu("a", "100m")], &[sidecar("s", "200m"), cpu("i", "150m")]);
        let message = "init container \"i\": requests.cpu \"150m\" comes to 350m with the sidecars before it, while the \
                       running pod requests 300m: each pod reserves 350m cpu as long as it lives, 50m more than it runs with";
        let mend = "resources:\n  requests:\n    cpu: 100m  # or less";
        assert_eq!(findings, [("i".to_owned(), message.to_owned(), mend.to_owned())]);
        // The later one is smaller by itself: 250m + 0 against 100m + 200m.
        let findings = found(&[cpu("a", "50m")], &[cpu("i", "250m"), sidecar("s", "200m"), cpu("j", "100m")]);
        assert_eq!(findings[0].0, "j");
    }

    #[test]
    fn nothing_is_compared_where_a_running_container_requests_nothing() {
        assert_eq!(found(&[cpu("a", "1"), json!({"name": "b"})], &[cpu("i", "9")]), []);
        assert_eq!(found(&[cpu("a", "0")], &[cpu("i", "9")]), []);
        assert_eq!(found(&[cpu("a", "1")], &[json!({"name": "s", "restartPolicy": "Always"}), cpu("i", "9")]), []);
        assert_eq!(found(&[cpu("a", "much")], &[cpu("i", "9")]), []);
        assert_eq!(found(&[], &[cpu("i", "9")]), []);
    }

    #[test]
    fn h02_limits_count_as_requests() {
        let limits = |name: &str, memory: &str| json!({"name": name, "resources": {"limits": {"memory": memory}}});
        let findings = found(&[limits("a", "256Mi")], &[limits("i", "1Gi")]);
        assert!(
            findings[0]
                .1
                .contains("limits.memory \"1Gi\", while the running pod requests 256Mi: each pod reserves 1Gi memory")
        );
        assert!(findings[0].1.ends_with("768Mi more than it runs with"));
    }

    #[test]
    fn h03_requests_of_the_pod_decide_alone() {
        let spec = json!({
            "resources": {"requests": {"cpu": "1"}},
            "containers": [cpu("a", "1")],
            "initContainers": [cpu("i", "9")],
        });
        assert_eq!(in_pod_spec::<InitDominates>(spec, json!({})), []);
    }

    #[test]
    fn the_loss_is_counted_over_all_replicas() {
        let spec = json!({"containers": [cpu("a", "1")], "initContainers": [cpu("i", "2")]});
        let object = json!({"spec": {"replicas": 3, "template": {"spec": spec}}});
        let findings = Judge { kind: "StatefulSet", ..Judge::default() }.object::<InitDominates>(object);
        assert!(findings[0].message.ends_with("1 more than it runs with, 3 in 3 replicas"), "{}", findings[0].message);
        assert_eq!(findings[0].measure, Some(200));
    }

    #[test]
    fn the_largest_numbers_are_judged_too() {
        let spec = json!({"containers": [cpu("a", "1")], "initContainers": [cpu("i", "9223372036854775807")]});
        let object = json!({"spec": {"replicas": i64::MAX, "template": {"spec": spec}}});
        assert_eq!(Judge::default().object::<InitDominates>(object).len(), 1);
    }

    #[test]
    fn the_bound_is_a_parameter() {
        let spec = json!({"containers": [cpu("a", "1")], "initContainers": [cpu("i", "2")]});
        assert_eq!(in_pod_spec::<InitDominates>(spec.clone(), json!({"maxPercent": 200})), []);
        assert_eq!(in_pod_spec::<InitDominates>(spec, json!({"maxPercent": 199})).len(), 1);
        assert_eq!(refused::<InitDominates>(json!({"maxPercent": 99})), "maxPercent");
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        for init in
            [json!("x"), json!([null, 1, {"name": 2, "resources": []}]), json!([{"resources": {"requests": "x"}}])]
        {
            let spec = json!({"containers": [cpu("a", "1")], "initContainers": init});
            assert_eq!(in_pod_spec::<InitDominates>(spec, json!({})), []);
        }
    }
}

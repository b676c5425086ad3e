//! A container does not say what it needs.
//!
//! ## What it does
//! Reports containers and native sidecars that request none of a resource named by the parameter `resources`, once per
//! container with all that is missing. A limit counts as a request of the same size, since pods get it as one. A
//! request or limit of the whole pod (`spec.resources`) counts for each of its containers. An explicit `0` is a
//! statement and not missing; what is no quantity at all is left to the API server.
//!
//! ## Why it matters
//! The scheduler adds up requests. A pod without them fits on every node, so a rollout can pile pods onto one that has
//! no room, and those pods are the first to be throttled or evicted when the node runs short. A HorizontalPodAutoscaler
//! that goes by utilization cannot count them either.
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
//! * `resources`: the resources that must be requested; `[cpu, memory]`.
//! * `initContainers`: whether plain init containers are judged too; `false`.
//!
//! ## Unknown facts
//! A LimitRange of the namespace can supply requests when a pod is created, unseen in the template. Where there is one
//! that sets container defaults, and where that is unknown, the rule warns at most.

use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::{Class, Container, Template};
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::resources::stanza::{limit_range_bound, malformed, requested};

/// The rule `missing-requests`.
pub struct MissingRequests;

/// Parameters of `missing-requests`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// The resources that must be requested.
    pub resources: Vec<String>,
    /// Whether plain init containers are judged too.
    pub init_containers: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { resources: vec!["cpu".to_owned(), "memory".to_owned()], init_containers: false }
    }
}

impl Rule for MissingRequests {
    const META: Meta = Meta {
        id: "missing-requests",
        category: Category::Resources,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("missing_requests.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        if params.resources.is_empty() {
            let message = "no resource at all; to judge no request, set the rule's action to off";
            return Err(InvalidParam { path: "resources".to_owned(), message: message.to_owned() });
        }
        match params.resources.iter().position(|name| !is_resource_name(name)) {
            Some(index) => Err(InvalidParam {
                path: format!("resources[{index}]"),
                message: format!(
                    "{} is no resource name such as cpu, memory or example.com/gpu",
                    quoted(&params.resources[index])
                ),
            }),
            None => Ok(()),
        }
    }

    fn needs(context: &Context<'_>, params: &Params) -> Needs {
        let missing = context.template.is_some_and(|template| {
            judged(template, params).any(|container| missing(template, container, params).next().is_some())
        });
        Needs { limit_range: missing, ..Needs::default() }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for container in judged(template, params) {
            let missing: Vec<&str> = missing(template, container, params).collect();
            if !missing.is_empty() {
                findings.push(report(context, container, &missing));
            }
        }
    }
}

/// Whether a resource can have this name: a qualified name of letters, digits, `-`, `_`, `.` and one `/`.
fn is_resource_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/'))
}

/// The containers whose requests count while the pod runs; plain init containers on demand. Ephemeral ones can have no
/// resources.
fn judged<'a>(template: Template<'a>, params: &Params) -> impl Iterator<Item = Container<'a>> {
    let init = params.init_containers;
    template.containers().filter(move |container| match container.class {
        Class::Regular | Class::Sidecar => true,
        Class::Init => init,
        Class::Ephemeral => false,
    })
}

/// The resources that neither the container nor its pod requests. None where the API server will refuse what is said.
fn missing<'a>(template: Template<'a>, container: Container<'a>, params: &'a Params) -> impl Iterator<Item = &'a str> {
    let (pod, own) = (template.spec().get("resources"), container.value.get("resources"));
    let names: &[String] = if malformed(pod) || malformed(own) { &[] } else { &params.resources };
    let names = names.iter().map(String::as_str);
    names.filter(move |name| requested(own, name).is_none() && requested(pod, name).is_none())
}

fn report(context: &Context<'_>, container: Container<'_>, missing: &[&str]) -> Finding {
    let mut message = format!(
        "container {} requests no {}: none is reserved, and it is the first to starve or be evicted on a full node",
        quoted(container.name()),
        missing.join(" and no ")
    );
    let (says, bound) = limit_range_bound(&context.facts.limit_range);
    message.push_str(&says);
    let mut mend = String::from("resources:\n  requests:");
    for name in missing {
        mend.push_str(&format!("\n    {name}: {}", example(name)));
    }
    let finding = Finding::new(MissingRequests::META.id, container.pointer(&["resources", "requests"]), message)
        .container(container.name())
        .measure(i64::try_from(missing.len()).unwrap_or(i64::MAX))
        .mend(mend);
    Finding { cap: bound, ..finding }
}

/// A value to start from, said to be one: what a container needs only its author knows.
pub(super) fn example(resource: &str) -> &'static str {
    match resource {
        "cpu" => "100m  # an example: measure it",
        "memory" | "ephemeral-storage" => "128Mi  # an example: measure it",
        _ => "1  # an example",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::facts::{Facts, Known, Reason};
    use crate::rules::testing::{Judge, refused};

    /// Checks a Deployment with this pod spec; also says whether the rule asks for LimitRanges.
    fn run(spec: serde_json::Value, params: serde_json::Value, limit_range: Known<()>) -> (Vec<Finding>, bool) {
        let facts = Facts { limit_range, ..Facts::unknown(Reason::NotAsked) };
        let object = json!({"spec": {"template": {"spec": spec}}});
        let (findings, needs) = Judge { params, facts, ..Judge::default() }.judge::<MissingRequests>(&object);
        (findings, needs.limit_range)
    }

    fn check(spec: serde_json::Value) -> Vec<Finding> {
        run(spec, json!({}), Known::Absent).0
    }

    /// Checks a container with these resources.
    fn container(resources: serde_json::Value) -> Vec<Finding> {
        check(json!({"containers": [{"name": "app", "resources": resources}]}))
    }

    #[test]
    fn one_finding_names_all_that_is_missing() {
        let findings = container(json!({}));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].pointer, "/spec/template/spec/containers/0/resources/requests");
        assert_eq!(findings[0].container.as_deref(), Some("app"));
        assert_eq!((findings[0].measure, findings[0].cap), (Some(2), None));
        assert_eq!(
            findings[0].message,
            "container \"app\" requests no cpu and no memory: none is reserved, and it is the first to starve or be \
             evicted on a full node"
        );
        let findings = container(json!({"requests": {"cpu": "100m"}}));
        assert!(findings[0].message.contains("requests no memory: none"));
        assert_eq!(findings[0].measure, Some(1));
        let mend = "resources:\n  requests:\n    memory: 128Mi  # an example: measure it";
        assert_eq!(findings[0].mend.as_deref(), Some(mend));
        assert_eq!(container(json!({"requests": {"cpu": "100m", "memory": "64Mi"}})), []);
    }

    #[test]
    fn h02_limits_count_as_requests() {
        assert_eq!(container(json!({"limits": {"cpu": "1", "memory": "64Mi"}})), []);
        assert_eq!(container(json!({"limits": {"cpu": 1}, "requests": {"memory": "64Mi"}})), []);
        assert_eq!(container(json!({"limits": {"cpu": "1"}})).len(), 1);
    }

    #[test]
    fn h02_a_limit_range_or_not_knowing_warns_at_most() {
        let app = json!({"containers": [{"name": "app"}]});
        let judged = |limit_range| {
            let (findings, asked) = run(app.clone(), json!({}), limit_range);
            assert!(asked && findings.len() == 1);
            (findings[0].cap, findings[0].message.split_once("; ").map(|(_, tail)| tail.to_owned()))
        };
        assert_eq!(judged(Known::Absent), (None, None));
        let (cap, tail) = judged(Known::Known(()));
        assert_eq!(cap, Some(Action::Warn));
        assert_eq!(tail.as_deref(), Some("a LimitRange may supply it"));
        let (cap, tail) = judged(Known::Unknown(Reason::TimedOut));
        assert_eq!(cap, Some(Action::Warn));
        assert_eq!(tail.as_deref(), Some("a LimitRange may supply it (look-up timed out)"));
    }

    #[test]
    fn h02_nobody_asks_for_limit_ranges_where_nothing_is_missing() {
        let app = json!({"containers": [{"name": "app", "resources": {"limits": {"cpu": "1", "memory": "64Mi"}}}]});
        assert!(!run(app, json!({}), Known::Absent).1);
    }

    #[test]
    fn h03_resources_of_the_pod_count_for_each_container() {
        let spec = |resources| json!({"resources": resources, "containers": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(check(spec(json!({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}))), []);
        let findings = check(spec(json!({"requests": {"cpu": "1"}})));
        assert_eq!(findings.len(), 2);
        assert!(findings.iter().all(|finding| finding.message.contains("requests no memory: none")));
    }

    #[test]
    fn h04_zero_and_what_is_no_quantity_are_not_missing() {
        assert_eq!(container(json!({"requests": {"cpu": 0, "memory": "0"}})), []);
        assert_eq!(container(json!({"requests": {"cpu": "much", "memory": "1K"}})), []);
        assert_eq!(container(json!({"requests": {"cpu": null, "memory": "64Mi"}})).len(), 1);
    }

    #[test]
    fn h08_sidecars_are_judged_plain_init_containers_on_demand() {
        let spec = json!({
            "containers": [{"name": "app", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}],
            "initContainers": [{"name": "init"}, {"name": "proxy", "restartPolicy": "Always"}],
            "ephemeralContainers": [{"name": "debug"}],
        });
        let names = |params| {
            let (findings, _) = run(spec.clone(), params, Known::Absent);
            findings.into_iter().filter_map(|finding| finding.container).collect::<Vec<_>>()
        };
        assert_eq!(names(json!({})), ["proxy"]);
        assert_eq!(names(json!({"initContainers": true})), ["init", "proxy"]);
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        for resources in [json!("x"), json!([]), json!({"requests": "x"}), json!({"limits": [1]})] {
            assert_eq!(container(resources.clone()), [], "{resources}");
            assert_eq!(check(json!({"resources": resources, "containers": [{"name": "app"}]})), []);
        }
        for spec in [json!(null), json!({"containers": null}), json!({"containers": [null, "x"]})] {
            assert_eq!(check(spec), []);
        }
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        assert_eq!(refused::<MissingRequests>(json!({"resources": []})), "resources");
        assert_eq!(refused::<MissingRequests>(json!({"resources": ["cpu", "a b"]})), "resources[1]");
        assert_eq!(refused::<MissingRequests>(json!({"initContainers": "yes"})), "initContainers");
        assert_eq!(refused::<MissingRequests>(json!({"init": true})), "init");
    }
}

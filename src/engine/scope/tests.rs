use serde_json::{Value as Json, json};

use crate::engine::document::Value;
use crate::engine::facts::{Facts, Needs, Reason};
use crate::engine::finding::Action;
use crate::engine::request::{Endpoint, Operation, Request, User};
use crate::engine::verdict::Verdict;
use crate::engine::{evaluate, needs};
use crate::policy::Policy;

/// A review as it arrives: the object's kind may be another than the resource's.
fn request<'a>(operation: Operation, gvk: (&str, &str), sub_resource: &str, object: &'a str) -> Request<'a> {
    let value = Value::parse(object).unwrap();
    Request {
        operation,
        group: gvk.0.to_owned(),
        kind: gvk.1.to_owned(),
        sub_resource: sub_resource.to_owned(),
        namespace: "team-a".to_owned(),
        name: "web".to_owned(),
        user: User::default(),
        old_object: (operation == Operation::Update).then(|| value.clone()),
        object: Some(value),
        dry_run: false,
        own: false,
    }
}

/// Every rule that could speak, none of them lenient.
fn policy() -> Policy {
    Policy::of(&[
        ("mutable-image-tag", Action::Deny, false, json!({})),
        ("missing-requests", Action::Deny, false, json!({})),
        ("missing-pre-stop", Action::Deny, true, json!({})),
    ])
    .unwrap()
}

fn both(request: &Request<'_>) -> [Verdict; 2] {
    let facts = Facts::unknown(Reason::NotAsked);
    [Endpoint::Mutate, Endpoint::Validate].map(|endpoint| evaluate(endpoint, &policy(), request, &facts))
}

fn passes_untouched(request: &Request<'_>) {
    for verdict in both(request) {
        assert!(verdict.allowed() && verdict.patch.is_none() && verdict.warnings.is_empty(), "{verdict:?}");
        assert!(verdict.out_of_scope && verdict.findings.is_empty(), "{verdict:?}");
    }
    for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
        assert_eq!(needs(endpoint, &policy(), request), Needs::default());
    }
}

fn pod(metadata: Json, more: Json) -> String {
    let mut spec = json!({"containers": [{"name": "app", "image": "x:latest", "ports": [{"containerPort": 80}]}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).to_string()
}

#[test]
fn a16_ephemeral_containers_pass() {
    let object = pod(json!({"name": "web"}), json!({"ephemeralContainers": [{"name": "dbg", "image": "busybox"}]}));
    passes_untouched(&request(Operation::Update, ("", "Pod"), "ephemeralcontainers", &object));
}

#[test]
fn a16_a_pod_that_carries_one_is_judged_by_its_own_containers() {
    let object = pod(
        json!({"name": "web"}),
        json!({"containers": [{"name": "app", "image": "x:1.2",
                               "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
               "ephemeralContainers": [{"name": "dbg", "image": "busybox"}]}),
    );
    let [_, validated] = both(&request(Operation::Create, ("", "Pod"), "", &object));
    assert!(validated.allowed() && validated.findings.iter().all(|judged| judged.action != Action::Deny));
}

#[test]
fn a17_a_resize_passes() {
    let object = pod(json!({"name": "web"}), json!({}));
    passes_untouched(&request(Operation::Update, ("", "Pod"), "resize", &object));
}

#[test]
fn a18_evictions_and_bindings_pass() {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-0"}}).to_string();
    passes_untouched(&request(Operation::Create, ("policy", "Eviction"), "eviction", &eviction));
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web-0"},
                         "target": {"kind": "Node", "name": "n1"}})
    .to_string();
    passes_untouched(&request(Operation::Create, ("", "Binding"), "binding", &binding));
    // Even where a sender fills in the kind of the resource.
    passes_untouched(&request(Operation::Create, ("", "Pod"), "eviction", &eviction));
}

#[test]
fn c16_a_pod_of_a_controller_passes_and_a_bare_one_is_denied() {
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4", "uid": "u", "controller": true}]);
    let owned = pod(json!({"name": "web-1", "ownerReferences": owner}), json!({}));
    let request_of_owned = request(Operation::Create, ("", "Pod"), "", &owned);
    passes_untouched(&request_of_owned);
    assert_eq!(both(&request_of_owned)[1].anomalies, ["owned-pod"]);

    let bare = pod(json!({"name": "web-1"}), json!({}));
    let [mutated, validated] = both(&request(Operation::Create, ("", "Pod"), "", &bare));
    assert!(mutated.allowed() && mutated.patch.is_none());
    assert!(validated.denial.unwrap().contains("[mutable-image-tag]"));
}

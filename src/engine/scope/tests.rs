use serde_json::{Value as Json, json};

use crate::engine::facts::{Facts, Needs, Reason};
use crate::engine::finding::Action;
use crate::engine::request::{Endpoint, Request};
use crate::engine::verdict::Verdict;
use crate::engine::{evaluate, needs};
use crate::policy::Policy;
use crate::review::Review;

/// An AdmissionReview for `pods`, as it is received: the object's kind may be another than the resource's.
fn review(operation: &str, (group, kind): (&str, &str), sub_resource: &str, object: &Json) -> String {
    let old = if operation == "UPDATE" { object } else { &Json::Null };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": operation, "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "subResource": sub_resource,
        "name": "web", "namespace": "team-a", "object": object, "oldObject": old}})
    .to_string()
}

fn request(review: &str) -> Request<'_> {
    Review::parse(review.as_bytes()).unwrap().into_request(None).unwrap()
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

fn both(review: &str) -> [Verdict; 2] {
    let request = request(review);
    let facts = Facts::unknown(Reason::NotAsked);
    [Endpoint::Mutate, Endpoint::Validate].map(|endpoint| evaluate(endpoint, &policy(), &request, &facts))
}

#[test]
fn b11_only_what_exists_can_be_going() {
    let object = json!({"metadata": {"deletionTimestamp": "2026-11-30T00:00:00Z"},
        "spec": {"containers": [{"name": "app", "image": "app:latest"}]}});
    let [_, created] = both(&review("CREATE", ("", "Pod"), "", &object));
    assert!(!created.allowed(), "an author may write anything there");
    // A PUT that leaves it out does not bring the object back.
    let mut dropped: Json = serde_json::from_str(&review("UPDATE", ("", "Pod"), "", &object)).unwrap();
    dropped["request"]["object"]["metadata"] = json!({});
    dropped["request"]["object"]["spec"]["containers"][0]["name"] = json!("renamed");
    passes_untouched(&dropped.to_string());
}

fn passes_untouched(review: &str) {
    for verdict in both(review) {
        assert!(verdict.allowed() && verdict.patch.is_none() && verdict.warnings.is_empty(), "{verdict:?}");
        assert!(verdict.out_of_scope && verdict.findings.is_empty(), "{verdict:?}");
    }
    for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
        assert_eq!(needs(endpoint, &policy(), &request(review)), Needs::default());
    }
}

fn pod(metadata: Json, more: Json) -> Json {
    let mut spec = json!({"containers": [{"name": "app", "image": "x:latest", "ports": [{"containerPort": 80}]}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

#[test]
fn a16_ephemeral_containers_pass() {
    let object = pod(json!({"name": "web"}), json!({"ephemeralContainers": [{"name": "dbg", "image": "busybox"}]}));
    passes_untouched(&review("UPDATE", ("", "Pod"), "ephemeralcontainers", &object));
}

#[test]
fn a16_a_pod_that_carries_one_is_judged_by_its_own_containers() {
    let object = pod(
        json!({"name": "web"}),
        json!({"containers": [{"name": "app", "image": "x:1.2",
                               "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
               "ephemeralContainers": [{"name": "dbg", "image": "busybox"}]}),
    );
    let [_, validated] = both(&review("CREATE", ("", "Pod"), "", &object));
    assert!(validated.allowed() && validated.findings.iter().all(|judged| judged.action != Action::Deny));
}

#[test]
fn a17_a_resize_passes() {
    let object = pod(json!({"name": "web"}), json!({}));
    passes_untouched(&review("UPDATE", ("", "Pod"), "resize", &object));
}

#[test]
fn a18_evictions_and_bindings_pass() {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-0"}});
    passes_untouched(&review("CREATE", ("policy", "Eviction"), "eviction", &eviction));
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web-0"},
                         "target": {"kind": "Node", "name": "n1"}});
    passes_untouched(&review("CREATE", ("", "Binding"), "binding", &binding));
    // Even where a sender fills in the kind of the resource.
    passes_untouched(&review("CREATE", ("", "Pod"), "eviction", &eviction));
}

#[test]
fn c16_a_pod_of_a_controller_passes_and_a_bare_one_is_denied() {
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4", "uid": "u", "controller": true}]);
    let owned = pod(json!({"name": "web-1", "ownerReferences": owner}), json!({}));
    let of_owned = review("CREATE", ("", "Pod"), "", &owned);
    passes_untouched(&of_owned);
    assert_eq!(both(&of_owned)[1].anomalies, ["owned-pod"]);

    let bare = pod(json!({"name": "web-1"}), json!({}));
    let [mutated, validated] = both(&review("CREATE", ("", "Pod"), "", &bare));
    assert!(mutated.allowed() && mutated.patch.is_none());
    assert!(validated.denial.unwrap().contains("[mutable-image-tag]"));
}

//! Faults that chance found, each by the smallest case that shows it.

use plimsoll::config::{Reference, Source};
use plimsoll::engine::facts::{Facts, Known, Reason, ServerVersion};
use plimsoll::engine::request::Endpoint;
use plimsoll::engine::verdict::Verdict;
use plimsoll::engine::{evaluate, needs};
use plimsoll::policy::Policy;
use plimsoll::review::Review;
use serde_json::{Value as Json, json};

use super::apply::patched;

const P0: &str = include_str!("../p0.yaml");

/// The verdict under P0 on a Deployment, created or changed; server 1.37, no quota, ConfigMap `cfg` there.
fn judge(endpoint: Endpoint, old: Option<&Json>, object: &Json) -> Verdict {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": operation, "namespace": "team-a", "name": "web",
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "object": object, "oldObject": old}});
    let text = review.to_string();
    let request = Review::parse(text.as_bytes()).unwrap().into_request(None).unwrap();
    let policy = Policy::parse(P0).unwrap();
    let mut facts = Facts {
        server_version: Known::Known(ServerVersion { major: 1, minor: 37 }),
        quotas: Known::Absent,
        limit_range: Known::Absent,
        revisions: Known::Absent,
        ..Facts::unknown(Reason::NotAsked)
    };
    let cfg = Reference { source: Source::ConfigMap, name: "cfg".to_owned(), keys: None, optional: false };
    facts.digests.insert(cfg, Known::Known("0123456789abcdef".repeat(4)));
    let _ = needs(endpoint, &policy, &request);
    evaluate(endpoint, &policy, &request, &facts)
}

/// The object as `/mutate` leaves it.
fn mutated(old: Option<&Json>, object: &Json) -> Json {
    match judge(Endpoint::Mutate, old, object).patch {
        Some(patch) => serde_json::from_str(&patched(&object.to_string(), &patch).unwrap()).unwrap(),
        None => object.clone(),
    }
}

/// A Deployment of one container that these members are added to.
fn deployment(container: Json) -> Json {
    let mut members = json!({"name": "c", "image": "reg.example/app:1.2.3",
                             "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}});
    members.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    json!({"metadata": {"name": "web"}, "spec": {"replicas": 2,
           "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
           "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [members]}}}})
}

fn marker(object: &Json) -> &Json {
    &object["metadata"]["annotations"]["plimsoll.dev/fixed"]
}

#[test]
fn b06_a_second_round_of_an_update_keeps_the_marker_of_the_first() {
    let old = deployment(json!({}));
    let mut new = deployment(json!({"envFrom": [{"configMapRef": {"name": "cfg"}}]}));
    new["spec"]["template"]["metadata"]["labels"]["version"] = json!("2");
    let first = mutated(Some(&old), &new);
    assert_eq!(*marker(&first), "config-checksum,missing-pre-stop/c");
    assert_eq!(judge(Endpoint::Mutate, Some(&old), &first).patch, None);
}

#[test]
fn b06_a_second_round_that_restores_the_old_template_keeps_the_marker() {
    // The author's own sleep goes, and ours comes in its place with the same value.
    let old = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 10}}}}));
    let first = mutated(Some(&old), &deployment(json!({})));
    assert_eq!(first["spec"]["template"], old["spec"]["template"]);
    assert_eq!(*marker(&first), "missing-pre-stop/c");
    assert_eq!(judge(Endpoint::Mutate, Some(&old), &first).patch, None);
}

#[test]
fn b06_a_marker_that_comes_with_an_update_is_believed_only_where_it_is_true() {
    let old = deployment(json!({}));
    let mut forged = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 15}}}}));
    forged["metadata"]["annotations"] = json!({"plimsoll.dev/fixed": "missing-pre-stop/c"});
    let stored = mutated(Some(&old), &forged);
    assert_eq!(*marker(&stored), "");
    assert_eq!(stored["spec"], forged["spec"]);
}

#[test]
fn a23_a_sleep_and_a_grace_at_the_ends_of_their_range_overflow_nothing() {
    let mut object = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": i64::MAX}}}}));
    for grace in [i64::MIN, -1, 0, i64::MAX] {
        object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(grace);
        let verdict = judge(Endpoint::Validate, None, &object);
        let measure = verdict.findings.iter().find_map(|judged| judged.finding.measure);
        assert_eq!(measure.is_some(), grace != i64::MAX, "{grace}: {verdict:?}");
    }
}

#[test]
fn d02_a_liveness_probe_that_cannot_fail_is_not_copied() {
    for command in [json!(["true"]), json!(["sh", "-c", "exit 0"])] {
        let object = deployment(json!({"livenessProbe": {"exec": {"command": command}}}));
        let stored = mutated(None, &object);
        assert_eq!(*marker(&stored), "missing-pre-stop/c", "{command}");
        assert!(stored["spec"]["template"]["spec"]["containers"][0]["startupProbe"].is_null(), "{command}");
    }
}

//! A: the protocol.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use plimsoll::cluster::FactSource;
use plimsoll::engine::facts::{Facts, Known, Needs, Reason};
use plimsoll::engine::finding::Action;
use plimsoll::engine::verdict::Verdict;
use plimsoll::policy::Policy;
use serde_json::{Value, json};

use crate::harness::deciders::{Always, everything};
use crate::harness::{Server, review, update};

/// Denies what has a mutable tag or no requests; every fix is on.
fn strict() -> Policy {
    let none = || json!({});
    let rules = [
        ("config-checksum", Action::Warn, true, none()),
        ("missing-pre-stop", Action::Warn, true, none()),
        ("missing-requests", Action::Deny, false, none()),
        ("mutable-image-tag", Action::Deny, false, none()),
    ];
    Policy::of(&rules).ok().unwrap()
}

fn engine() -> Server {
    // No LimitRange; nothing else is known.
    Server::start(strict(), Facts { limit_range: Known::Absent, ..Facts::unknown(Reason::NotAsked) })
}

/// Violates both deny rules, and would be fixed.
const UNSAFE: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c0, image: 'app:latest', ports: [{containerPort: 80}]}
      - {name: c1, image: 'app:1.2.3'}
";

fn passes_untouched(server: &Server, review: &Value) {
    for reply in [server.mutate(review), server.validate(review)] {
        assert!(reply.allowed(), "{}", reply.text);
        assert_eq!(reply.patch(), None);
        assert_eq!(reply.warnings(), Vec::<&str>::new());
        assert_eq!(reply.response()["uid"], review["request"]["uid"]);
    }
}

#[test]
fn a01_a_denial_is_http_200_with_code_403() {
    let reply = Server::decided_by(Always(everything())).validate(&review("CREATE", "Deployment", UNSAFE));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.response()["allowed"], false);
    assert_eq!(reply.response()["status"], json!({"code": 403, "reason": "Forbidden", "message": "2 findings"}));
}

#[test]
fn a01_the_engines_denial_is_http_200_with_code_403() {
    let reply = engine().validate(&review("CREATE", "Deployment", UNSAFE));
    assert!(!reply.allowed());
    assert_eq!(reply.response()["status"]["code"], 403);
}

#[test]
fn a01_no_request_is_400_in_one_line_and_the_next_review_is_answered() {
    let server = Server::decided_by(Always(Verdict::default()));
    let mut client = server.connect();
    let reply = client.post("/validate", &json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}));
    assert_eq!((reply.status, reply.text.as_str()), (400, "plimsoll: the AdmissionReview has no request\n"));
    for body in [r#"{"kind":"AdmissionReview"}"#, "", "[]", "{", "null", "\u{0}"] {
        let reply = client.send("POST", "/validate", Some("application/json"), body.into());
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.text.lines().count(), 1, "{body}");
    }
    assert!(client.post("/validate", &review("CREATE", "Deployment", UNSAFE)).allowed());
    assert_eq!(server.metric(r#"plimsoll_bodies_rejected_total{reason="shape"}"#), 3.0);
}

#[test]
fn a02_a_null_object_is_allowed_with_exactly_this_answer_and_counted() {
    let server = engine();
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "a-1",
        "operation": "CREATE", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "object": null}});
    for reply in [server.mutate(&review), server.validate(&review)] {
        assert_eq!(
            reply.json,
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": {"uid": "a-1", "allowed": true}})
        );
    }
    assert_eq!(server.metric(r#"plimsoll_anomalies_total{reason="null-object"}"#), 2.0);
}

#[test]
fn a03_v1beta1_is_answered_as_v1beta1_and_other_versions_are_400() {
    let server = Server::decided_by(Always(Verdict::default()));
    let mut review = review("CREATE", "Deployment", UNSAFE);
    review["apiVersion"] = json!("admission.k8s.io/v1beta1");
    let reply = server.mutate(&review);
    assert_eq!(reply.json["apiVersion"], "admission.k8s.io/v1beta1");
    assert_eq!(reply.response()["uid"], "0a1b2c");
    for version in ["admission.k8s.io/v2", "v1", ""] {
        review["apiVersion"] = json!(version);
        assert_eq!(server.mutate(&review).status, 400);
    }
}

#[test]
fn a04_validate_never_patches_and_mutate_never_denies() {
    let server = Server::decided_by(Always(everything()));
    let review = review("CREATE", "Deployment", UNSAFE);
    assert_eq!(server.validate(&review).patch(), None);
    let reply = server.mutate(&review);
    assert!(reply.allowed());
    assert_eq!(reply.patch(), Some(json!([{"op": "add", "path": "/metadata/labels", "value": {}}])));
}

#[test]
fn a04_an_empty_patch_is_no_patch() {
    for patch in ["", "[]"] {
        let verdict = Verdict { patch: Some(patch.to_owned()), ..Verdict::default() };
        let reply = Server::decided_by(Always(verdict)).mutate(&review("CREATE", "Deployment", UNSAFE));
        assert_eq!(reply.response(), &json!({"uid": "0a1b2c", "allowed": true}));
    }
}

#[test]
fn a06_one_denial_names_every_finding_in_the_same_order_each_time() {
    let server = engine();
    let review = review("CREATE", "Deployment", UNSAFE);
    let mut client = server.connect();
    let first = client.post("/validate", &review);
    let places = ["mutable-image-tag", "missing-requests", "c0", "c1"];
    assert!(places.iter().all(|place| first.message().contains(place)), "{}", first.text);
    for _ in 0..100 {
        assert_eq!(client.post("/validate", &review).text, first.text);
    }
}

/// Look-ups that never come back.
struct Hangs;

impl FactSource for Hangs {
    fn gather<'a>(&'a self, _: &'a str, _: Needs, _: tokio::time::Instant) -> BoxFuture<'a, Facts> {
        std::future::pending().boxed()
    }
}

#[test]
fn a07_look_ups_that_hang_are_left_behind_and_told() {
    let server = Server::asking(strict(), Arc::new(Hangs));
    let review = review(
        "CREATE",
        "Deployment",
        "
metadata: {name: web}
spec:
  template:
    spec:
      containers: [{name: app, image: 'app:1.0.0', envFrom: [{configMapRef: {name: cfg}}]}]
",
    );
    let reply = server.connect().post("/mutate?timeout=1s", &review);
    assert!(reply.allowed());
    assert!(reply.warnings().iter().any(|warning| warning.contains("timed out")), "{}", reply.text);
    assert!(!reply.patch().unwrap_or_default().to_string().contains("config-checksum"));
}

#[test]
fn a07_the_query_does_not_hide_the_path() {
    let server = Server::decided_by(Always(Verdict::default()));
    for query in ["?timeout=3s", "?timeout=soon", "?", "?a=b&timeout=1m0s"] {
        let reply = server.connect().post(&format!("/mutate{query}"), &review("CREATE", "Deployment", UNSAFE));
        assert!(reply.allowed(), "{query}");
    }
}

#[test]
fn a08_six_mebibytes_pass_and_eight_are_413() {
    let server = engine();
    let mut client = server.connect();
    let mut review = update("example.io/v1/Widget", "metadata: {name: big}", "metadata: {name: big}");
    let annotations = &mut review["request"]["object"]["metadata"]["annotations"];
    annotations["padding"] = json!("x".repeat(6 << 20));
    assert!(client.post("/validate", &review).allowed());
    review["request"]["object"]["metadata"]["annotations"]["padding"] = json!("x".repeat(8 << 20));
    let reply = client.post("/validate", &review);
    assert_eq!(reply.status, 413);
    assert_eq!(reply.text, "plimsoll: the body is larger than 7340032 bytes, see --max-body-bytes\n");
    assert_eq!(server.metric(r#"plimsoll_bodies_rejected_total{reason="too-large"}"#), 1.0);
}

#[test]
fn a09_json_with_any_parameters_post_only_and_no_other_paths() {
    let server = Server::decided_by(Always(Verdict::default()));
    let body = || review("CREATE", "Deployment", UNSAFE).to_string().into_bytes();
    for (method, path, content_type, status) in [
        ("POST", "/mutate", Some("application/json; charset=utf-8"), 200),
        ("POST", "/mutate", Some("Application/JSON"), 200),
        ("POST", "/mutate", Some("text/plain"), 415),
        ("POST", "/mutate", Some("application/json-patch+json"), 415),
        ("POST", "/mutate", None, 415),
        ("GET", "/mutate", Some("application/json"), 405),
        ("PUT", "/validate", Some("application/json"), 405),
        ("POST", "/", Some("application/json"), 404),
        ("GET", "/readyz", None, 404),
    ] {
        let reply = server.connect().send(method, path, content_type, body());
        assert_eq!(reply.status, status, "{method} {path} {content_type:?}");
    }
}

#[test]
fn a10_delete_passes_and_is_never_patched() {
    let mut review = review("DELETE", "Deployment", UNSAFE);
    review["request"]["oldObject"] = review["request"]["object"].take();
    passes_untouched(&engine(), &review);
    assert_eq!(Server::decided_by(Always(everything())).mutate(&review).patch(), None);
}

#[test]
fn a11_connect_with_option_objects_passes() {
    let mut review = review("CONNECT", "/v1/PodExecOptions", "{kind: PodExecOptions, command: [sh]}");
    review["request"]["subResource"] = json!("exec");
    passes_untouched(&engine(), &review);
}

#[test]
fn a12_a_generated_name_is_shown_with_a_star() {
    let server = Server::decided_by(Always(Verdict::default()));
    server.mutate(&review("CREATE", "Pod", "metadata: {generateName: web-5d4-}"));
    assert_eq!(server.records()[0]["name"], "web-5d4-*");
}

#[test]
fn a13_the_requests_namespace_counts_and_a_differing_one_is_an_anomaly() {
    let server = engine();
    let text = "{metadata: {name: web, namespace: kube-system}, spec: {template: {spec: {containers: []}}}}";
    server.mutate(&review("CREATE", "Deployment", text));
    assert_eq!(server.records()[0]["ns"], "shop");
    let (_, metrics) = server.admin("/metrics");
    assert!(metrics.contains("plimsoll_anomalies_total{"), "no anomaly is counted");
}

#[test]
fn a14_a15_a16_a17_a18_subresources_pass_untouched() {
    let server = engine();
    let mut status = update("Deployment", UNSAFE, UNSAFE);
    status["request"]["subResource"] = json!("status");
    passes_untouched(&server, &status);

    let mut scale = review("UPDATE", "autoscaling/v1/Scale", "{metadata: {name: web}, spec: {replicas: 0}}");
    scale["request"]["subResource"] = json!("scale");
    scale["request"]["resource"] = json!({"group": "apps", "version": "v1", "resource": "deployments"});
    passes_untouched(&server, &scale);

    let pod = "{metadata: {name: web-0}, spec: {containers: [{name: app, image: 'app:latest'}],
        ephemeralContainers: [{name: dbg, image: busybox}]}}";
    for sub_resource in ["ephemeralcontainers", "resize"] {
        let mut review = update("Pod", pod, pod);
        review["request"]["subResource"] = json!(sub_resource);
        passes_untouched(&server, &review);
    }

    let mut eviction = review("CREATE", "policy/v1/Eviction", "metadata: {name: web-0}");
    eviction["request"]["subResource"] = json!("eviction");
    passes_untouched(&server, &eviction);
}

#[test]
fn a19_warnings_go_out_without_line_feeds() {
    let reply = Server::decided_by(Always(everything())).mutate(&review("CREATE", "Deployment", UNSAFE));
    assert_eq!(reply.warnings(), ["first second"]);
}

#[test]
fn a20_a_dry_run_has_the_same_answer_and_is_told_apart() {
    let server = Server::decided_by(Always(everything()));
    let mut review = review("CREATE", "Deployment", UNSAFE);
    let wet = [server.mutate(&review).text, server.validate(&review).text];
    review["request"]["dryRun"] = json!(true);
    assert_eq!([server.mutate(&review).text, server.validate(&review).text], wet);
    let dry: Vec<_> = server.records().iter().map(|record| record["dryRun"].clone()).collect();
    assert_eq!(dry, [false, false, true, true]);
    let series = r#"plimsoll_reviews_total{decision="deny",dry_run="true",endpoint="validate",kind="Deployment",operation="CREATE"}"#;
    assert_eq!(server.metric(series), 1.0);
}

#[test]
fn a21_a_converted_object_is_recorded_with_the_kind_it_was_sent_as() {
    let server = Server::decided_by(Always(Verdict::default()));
    let mut review = review("CREATE", "Deployment", UNSAFE);
    review["request"]["requestKind"] = json!({"group": "extensions", "version": "v1beta1", "kind": "Deployment"});
    assert!(server.mutate(&review).allowed());
    assert_eq!(server.records()[0]["requestKind"], "extensions/v1beta1/Deployment");
}

#[test]
fn a22_an_unknown_kind_passes_and_is_counted_under_other() {
    let server = engine();
    passes_untouched(&server, &review("CREATE", "example.io/v1/Widget", "{metadata: {name: w}, spec: nonsense}"));
    let series = r#"plimsoll_reviews_total{decision="allow",dry_run="false",endpoint="validate",kind="other",operation="CREATE"}"#;
    assert_eq!(server.metric(series), 1.0);
}

#[test]
fn a23_nonsense_passes_for_the_api_server_to_refuse() {
    let server = engine();
    for object in [
        "{metadata: {name: broken}, spec: {replicas: 1, selector: null, template: {metadata: {}, spec: {containers: null}}}}",
        "{}",
        "[]",
        "text",
        "7",
        "{metadata: null, spec: null}",
        "{metadata: [], spec: {replicas: -1, template: 7}}",
        "{metadata: {name: 7}, spec: {template: {spec: {containers: {}}}}}",
        "{spec: {template: {spec: {containers: [null, 7, {}], volumes: {}}}}}",
    ] {
        for kind in ["Deployment", "StatefulSet", "CronJob", "Rollout", "PodDisruptionBudget"] {
            for operation in ["CREATE", "UPDATE"] {
                let mut review = review(operation, kind, object);
                review["request"]["oldObject"] = review["request"]["object"].clone();
                assert_eq!(server.mutate(&review).status, 200, "{operation} {kind} {object}");
                assert_eq!(server.validate(&review).status, 200, "{operation} {kind} {object}");
            }
        }
    }
    assert_eq!(server.metric("plimsoll_panics_total"), 0.0);
}

#[test]
fn a24_two_hundred_levels_are_400() {
    let body = review("CREATE", "Deployment", "spec: {x: DEEP}").to_string();
    let body = body.replace("\"DEEP\"", &format!("{}{}", "[".repeat(200), "]".repeat(200)));
    let reply = engine().connect().send("POST", "/mutate", Some("application/json"), body.into());
    assert_eq!(reply.status, 400);
    assert!(reply.text.starts_with("plimsoll: request.object: recursion limit exceeded"), "{}", reply.text);
}

#[test]
fn a24_a_doubled_member_of_the_envelope_is_400_and_one_of_the_object_passes() {
    let server = engine();
    let body = review("CREATE", "Deployment", "{spec: {replicas: 1}}").to_string();
    for (from, to, status) in
        [(r#""uid":"#, r#""uid":"x","uid":"#, 400), (r#""replicas":1"#, r#""replicas":2,"replicas":1"#, 200)]
    {
        let body = body.replace(from, to);
        assert_eq!(server.connect().send("POST", "/mutate", Some("application/json"), body.into()).status, status);
    }
}

#[test]
fn a25_a_float_where_an_integer_belongs_is_left_to_the_api_server() {
    let server = engine();
    let object = "{metadata: {name: web}, spec: {replicas: 3.0, template: {spec: {terminationGracePeriodSeconds: 30.0,
        containers: []}}}}";
    passes_untouched(&server, &review("CREATE", "Deployment", object));
}

#[test]
fn a26_an_object_without_metadata_is_answered_in_v1() {
    let reply = engine().validate(&review("CONNECT", "/v1/PodProxyOptions", "kind: PodProxyOptions"));
    assert!(reply.allowed());
    assert_eq!(reply.json["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(reply.response()["uid"], "0a1b2c");
}

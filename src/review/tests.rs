use proptest::prelude::*;
use serde_json::json;

use super::*;

fn review(request: serde_json::Value) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

fn answer(response: &Response<'_>) -> serde_json::Value {
    serde_json::from_str(&response.to_json()).unwrap()
}

#[test]
fn a01_a_review_without_request_is_an_error_not_a_denial() {
    let error = Review::parse(br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#).unwrap_err();
    assert_eq!(error, ReviewError::NoRequest);
}

#[test]
fn a02_the_answer_to_a_plain_review_is_exactly_this() {
    assert_eq!(
        Response::allow(Version::V1, "a-1").to_json(),
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"a-1","allowed":true}}"#
    );
}

#[test]
fn a03_versions_are_kept_and_others_refused() {
    let body = review(json!({"uid": "u"})).replace("io/v1", "io/v1beta1");
    assert_eq!(Review::parse(body.as_bytes()).unwrap().version, Version::V1Beta1);
    let body = review(json!({"uid": "u"})).replace("io/v1", "io/v2");
    let error = Review::parse(body.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        error,
        "apiVersion is \"admission.k8s.io/v2\", expected admission.k8s.io/v1 or admission.k8s.io/v1beta1"
    );
}

#[test]
fn a05_a_denial_has_code_reason_and_a_message() {
    let response = Response { denial: Some(""), ..Response::allow(Version::V1, "u") };
    assert_eq!(
        answer(&response)["response"]["status"],
        json!({"code": 403, "reason": "Forbidden", "message": "denied by the policy"})
    );
}

#[test]
fn a04_patch_and_type_stand_together_in_standard_base64() {
    let patch = r#"[{"op":"add","path":"/a","value":"??>>"}]"#;
    let response = answer(&Response { patch: Some(patch), ..Response::allow(Version::V1, "u") });
    assert_eq!(response["response"]["patchType"], "JSONPatch");
    assert_eq!(response["response"]["patch"], "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6Ij8/Pj4ifV0=");
}

#[test]
fn a19_warnings_lose_control_characters_and_are_cut() {
    let mut warnings = vec!["a\nb\tc\u{1b}d".to_owned(), "x".repeat(300)];
    warnings.extend((0..15).map(|number| number.to_string()));
    let response = answer(&Response { warnings: &warnings, ..Response::allow(Version::V1, "u") });
    let shown: Vec<_> = response["response"]["warnings"].as_array().unwrap().iter().collect();
    assert_eq!(shown.len(), 15);
    assert_eq!(shown[0], "a b c d");
    assert_eq!(shown[1].as_str().unwrap().chars().count(), 240);
    assert_eq!(shown[14], "+3 more warnings");
}

#[test]
fn a19_fifteen_warnings_are_all_shown() {
    let warnings: Vec<_> = (0..15).map(|number| number.to_string()).collect();
    let response = answer(&Response { warnings: &warnings, ..Response::allow(Version::V1, "u") });
    assert_eq!(response["response"]["warnings"][14], "14");
}

#[test]
fn a21_the_kind_decides_and_a_differing_request_kind_is_told() {
    let body = review(json!({
        "uid": "u",
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "requestKind": {"group": "extensions", "version": "v1beta1", "kind": "Deployment"},
    }));
    let review = Review::parse(body.as_bytes()).unwrap();
    assert_eq!(review.converted_from().as_deref(), Some("extensions/v1beta1/Deployment"));
    assert_eq!(review.into_request(None).unwrap().group, "apps");
}

#[test]
fn a11_a14_objects_of_foreign_kinds_and_subresources_stay_undecoded() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let body = review(json!({"uid": "u", "kind": {"group": "example.io", "kind": "Widget"}, "object": "X"}))
        .replace("\"X\"", &deep);
    let request = Review::parse(body.as_bytes()).unwrap().into_request(None).unwrap();
    assert!(request.object.is_none());
    let body = review(json!({"uid": "u", "kind": {"group": "apps", "kind": "Deployment"}, "subResource": "status",
        "object": {"a": 1}}));
    assert!(Review::parse(body.as_bytes()).unwrap().into_request(None).unwrap().object.is_none());
}

#[test]
fn a15_a_scale_is_decoded_for_its_own_subresource_only() {
    let scale = json!({"uid": "u", "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "object": {"spec": {"replicas": 2}}});
    for (sub_resource, decoded) in [("scale", true), ("status", false), ("", false)] {
        let mut request = scale.clone();
        request["subResource"] = json!(sub_resource);
        let body = review(request);
        let request = Review::parse(body.as_bytes()).unwrap().into_request(None).unwrap();
        assert_eq!(request.object.is_some(), decoded, "{sub_resource:?}");
        assert_eq!(request.parent().map(|kind| kind.kind), (!sub_resource.is_empty()).then_some("Deployment"));
    }
}

#[test]
fn a24_deep_nesting_in_a_known_kind_is_an_error() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let body = review(json!({"uid": "u", "kind": {"group": "apps", "kind": "Deployment"}, "object": {"spec": "X"}}))
        .replace("\"X\"", &deep);
    let error = Review::parse(body.as_bytes()).unwrap().into_request(None).unwrap_err().to_string();
    assert!(error.starts_with("request.object: recursion limit exceeded"), "{error}");
}

#[test]
fn i20_unknown_members_are_ignored_and_null_reads_as_absent() {
    let body = review(json!({"uid": "u", "futureThing": {}, "name": null, "namespace": null, "userInfo": null,
        "dryRun": null, "object": null, "oldObject": null, "kind": null, "operation": null}));
    let request = Review::parse(body.as_bytes()).unwrap().into_request(None).unwrap();
    assert_eq!((request.name.as_str(), request.dry_run, request.operation), ("", false, Operation::Other));
}

#[test]
fn j06_an_error_names_the_place_and_never_the_value() {
    let body = review(json!({"uid": "u", "userInfo": {"groups": "hunter2"}}));
    let error = Review::parse(body.as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with("request.userInfo.groups: wrong type"), "{error}");
    assert!(!error.contains("hunter2"));
}

#[test]
fn the_own_user_is_compared_whole() {
    let own = "system:serviceaccount:plimsoll:plimsoll";
    for (name, expected) in [(own, true), ("system:serviceaccount:plimsoll:plimsoll-x", false)] {
        let body = review(json!({"uid": "u", "userInfo": {"username": name}}));
        assert_eq!(Review::parse(body.as_bytes()).unwrap().into_request(Some(own)).unwrap().own, expected);
    }
}

#[test]
fn bytes_that_are_no_utf8_are_told_with_their_place() {
    assert_eq!(Review::parse(b"{\"a\":\"\xff\"}").unwrap_err(), ReviewError::NotUtf8(6));
}

proptest! {
    #[test]
    fn what_is_written_reads_back(text in any::<String>(), more in "\\PC*[\u{0}-\u{20}\"\\\\\u{7f}]*") {
        let mut out = String::new();
        push_json(&mut out, &text);
        prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        let mut out = String::new();
        push_json(&mut out, &more);
        prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), more);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Review::parse(&bytes);
    }
}

#[test]
fn j05_nothing_that_a_terminal_obeys_leaves_us() {
    let text = "a\u{1b}[31m\u{9b}31m\u{202e}b\u{2028}c\u{2066}d\u{7f}\u{0}é";
    let mut out = String::new();
    push_json(&mut out, text);
    assert_eq!(out, r#""a\u001b[31m\u009b31m\u202eb\u2028c\u2066d\u007f\u0000é""#);
    assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    let warnings = [text.to_owned()];
    let response = Response { denial: Some(text), warnings: &warnings, ..Response::allow(Version::V1, "u") };
    let response = answer(&response);
    assert_eq!(response["response"]["warnings"][0], "a [31m 31m b c d  é");
    assert_eq!(response["response"]["status"]["message"], "a [31m 31m b c d  é");
}

#[test]
fn j07_more_containers_than_any_pod_has_are_not_judged() {
    let with = |containers: usize, inits: usize| {
        let list = |count| vec![json!({}); count];
        let spec = json!({"containers": list(containers), "initContainers": list(inits)});
        let object = json!({"spec": {"template": {"spec": spec}}});
        let kind = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
        let body = review(json!({"uid": "u", "operation": "CREATE", "kind": kind, "object": object}));
        Review::parse(body.as_bytes()).unwrap().into_request(None).map(|_| ())
    };
    assert_eq!(with(500, 12), Ok(()));
    let problem = "513 containers, at most 512 are judged".to_owned();
    assert_eq!(with(500, 13), Err(ReviewError::Object { member: "object", problem }));
}

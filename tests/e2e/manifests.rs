//! Objects that people send.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::changes::{Change, added, changed};

/// The image of [`safe`] Deployments, and one to update them to.
pub const IMAGE: &str = "reg.example/app:1.2.3";
pub const NEXT_IMAGE: &str = "reg.example/app:1.2.4";

/// The folder of our chart.
pub fn chart() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/charts/plimsoll").to_owned()
}

/// The reference policy P0 as a policy's spec; the chart fills in the exempt namespaces.
pub fn p0() -> Value {
    json!({
        "extends": "none",
        "enforcement": "enforce",
        "breakGlass": {"groups": ["platform-breakglass"]},
        "rules": {
            "missing-pre-stop": {"action": "warn", "fix": true, "params": {"sleepSeconds": 10}},
            "short-grace-period": {"action": "deny", "fix": true, "params": {"drainSeconds": 5, "minSeconds": 30}},
            "default-rolling-update": {"action": "warn", "fix": true, "params": {"tiers": [{"maxUnavailable": 0}]}},
            "missing-startup-probe": {"action": "warn", "fix": true, "params": {"budgetSeconds": 120}},
            "config-checksum": {"action": "warn", "fix": true},
            "rollout-outage": {"action": "deny", "params": {"maxUnavailablePercent": 100}},
            "mutable-image-tag": {"action": "deny"},
            "missing-requests": {"action": "deny"},
            "pdb-blocks-eviction": {"action": "deny"},
        },
    })
}

/// P0 with pods that go away quickly, for scenarios that wait for many of them.
pub fn p0_with_short_sleep() -> Value {
    set(p0(), "/rules/missing-pre-stop/params/sleepSeconds", 1)
}

/// A Deployment that nothing is wrong with, and that has room for every fix of P0.
pub fn safe(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{
                    "name": "app",
                    "image": IMAGE,
                    "ports": [{"name": "http", "containerPort": 8080}],
                    "envFrom": [{"configMapRef": {"name": "cfg"}}],
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
                }]},
            },
        },
    })
}

/// What P0 tells who sends [`safe`], line by line, as kubectl prints it.
pub const TOLD_OF_SAFE: [&str; 4] = [
    "Warning: [config-checksum] fixed: wrote the digest of ConfigMap \"cfg\" into the pod template",
    "Warning: [default-rolling-update] fixed: set maxUnavailable to 0 (maxUnavailable was the API default 25%)",
    "Warning: [missing-pre-stop] fixed: container \"app\": added a preStop sleep of 10 s",
    "Warning: [missing-startup-probe] fixed: container \"app\": added a startupProbe that allows 120 s to start, \
     made from its livenessProbe",
];

/// What P0 makes of [`safe`], with this digest of its ConfigMap.
pub fn fixes_of_safe(digest: &str) -> Vec<Change> {
    vec![
        added(
            "/metadata/annotations/plimsoll.dev~1fixed",
            "config-checksum,default-rolling-update,missing-pre-stop/app,missing-startup-probe/app",
        ),
        changed("/spec/strategy/rollingUpdate/maxUnavailable", "25%", 0),
        added("/spec/template/metadata/annotations/plimsoll.dev~1config-checksum", digest),
        added("/spec/template/spec/containers/0/lifecycle", json!({"preStop": {"sleep": {"seconds": 10}}})),
        // From the liveness probe as the API server completes it: 24 x 5 s make the 120 s.
        added(
            "/spec/template/spec/containers/0/startupProbe",
            json!({
                "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 5,
                "successThreshold": 1,
                "failureThreshold": 24,
            }),
        ),
    ]
}

/// A Deployment whose rollout takes every replica down, from an image that may change
/// under it, with nothing reserved.
pub fn unsafe_deployment(name: &str) -> Value {
    let mut manifest = set(safe(name), "/spec/replicas", 3);
    manifest["spec"]["strategy"] = json!({
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "100%", "maxSurge": 0},
    });
    let container = &mut manifest["spec"]["template"]["spec"]["containers"][0];
    container["image"] = "reg.example/app:latest".into();
    container["resources"] = json!({});
    manifest
}

/// The ConfigMap that [`safe`] Deployments read.
pub fn config(value: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cfg"},
        "data": {"MODE": value},
    })
}

/// [`safe`] with a spec of 850 KB: one container reads 8,500 variables.
pub fn large(name: &str) -> Value {
    let mut manifest = safe(name);
    let variables = (0..8_500).map(|n| json!({"name": format!("VARIABLE_{n:05}"), "value": "x".repeat(64)}));
    manifest["spec"]["template"]["spec"]["containers"][0]["env"] = variables.collect();
    // Nobody needs its pods.
    set(manifest, "/spec/replicas", 0)
}

/// A patch that changes the image of the first container.
pub fn image_patch(image: &str) -> String {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}).to_string()
}

/// Several objects in one manifest.
pub fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// The manifest with another value at a pointer that exists.
pub fn set(mut manifest: Value, pointer: &str, value: impl Into<Value>) -> Value {
    match manifest.pointer_mut(pointer) {
        Some(place) => *place = value.into(),
        None => panic!("nothing at {pointer} in {manifest}"),
    }
    manifest
}

/// An endpoint of Plimsoll's Service, as the endpoint controller would make it for a pod.
pub fn endpoint(address: IpAddr, port: u16) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "plimsoll-e2e", "labels": {"kubernetes.io/service-name": "plimsoll"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address.to_string()], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    })
}

/// The digest that a stored workload carries.
#[track_caller]
pub fn digest(workload: &Value) -> String {
    let digest = workload["spec"]["template"]["metadata"]["annotations"]["plimsoll.dev/config-checksum"]
        .as_str()
        .unwrap_or_default();
    let hex = !digest.is_empty() && digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    assert!(hex && digest.len() <= 64, "not a digest: {digest:?}");
    digest.to_owned()
}

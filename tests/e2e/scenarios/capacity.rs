//! Where no extra pod can exist, a rollout must be allowed to take one down first.

use serde_json::{Value, json};

use crate::case::{Case, Setup};
use crate::control_plane::NODES;
use crate::kubectl::Kubectl;
use crate::manifests::{NEXT_IMAGE, config, image_patch, p0_with_short_sleep, safe, set};

/// Creates a Deployment that fills all the room there is, updates it, and expects the
/// strategy to be left alone and the rollout to complete.
fn completes(case: &Case, manifest: &Value, reason: &str) {
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let count = case.count();
    let output = case.kubectl.run_with(&["apply", "-f", "-"], manifest);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output.stderr.contains("default-rolling-update") && output.stderr.contains(reason),
        "a warning that says why nothing was changed: {output:?}"
    );
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment allow"]);
    case.rolled_out("web");
    let stored = case.kubectl.get("deployment/web");
    assert_eq!(stored["spec"]["strategy"], case.without_us(manifest)["spec"]["strategy"]);
    assert_eq!(
        stored["metadata"]["annotations"]["plimsoll.dev/fixed"],
        "config-checksum,missing-pre-stop/app,missing-startup-probe/app"
    );

    let count = case.count();
    case.kubectl.ok(&["patch", "deployment", "web", "-p", &image_patch(NEXT_IMAGE)]);
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);
    case.rolled_out("web");
    assert_eq!(case.generation("deployment/web"), 2);
    let replicas: Vec<i64> = case.replica_sets("web").iter().map(|set| set.replicas).collect();
    assert_eq!(replicas, [0, NODES as i64]);
}

pub fn a_full_quota_does_not_stop_the_rollout() {
    let prepare = |kubectl: &Kubectl| {
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"},
            "spec": {"hard": {"pods": NODES.to_string()}},
        });
        kubectl.ok_with(&["create", "-f", "-"], &quota);
    };
    let setup = Setup { policy: p0_with_short_sleep(), before: Some(&prepare), ..Setup::default() };
    let case = Case::with("quota", &setup);
    completes(&case, &set(safe("web"), "/spec/replicas", NODES), "ResourceQuota");
}

pub fn required_anti_affinity_does_not_stop_the_rollout() {
    let setup = Setup { policy: p0_with_short_sleep(), ..Setup::default() };
    let case = Case::with("anti-affinity", &setup);
    let mut manifest = set(safe("web"), "/spec/replicas", NODES);
    manifest["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    ]}});
    completes(&case, &manifest, "anti-affinity");
}

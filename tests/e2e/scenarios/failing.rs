//! When nobody answers.

use serde_json::json;

use crate::case::{Case, Setup};
use crate::manifests::{config, safe, unsafe_deployment};

pub fn closed_when_asked_to_and_open_for_pods() {
    let case = Case::new("closed");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    case.kubectl.ok_with(&["create", "-f", "-"], &safe("web"));
    case.rolled_out("web");
    case.server.process.kill();

    let refused = case.kubectl.run_with(&["create", "-f", "-"], &safe("other"));
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("failed calling webhook"), "{refused:?}");
    // The cluster keeps itself alive: pods, metadata, scale and other namespaces.
    let template = safe("pod")["spec"]["template"].clone();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": template["spec"],
    });
    case.kubectl.ok_with(&["create", "-f", "-"], &pod);
    case.kubectl.ok(&["label", "deployment", "web", "team=a"]);
    case.kubectl.ok(&["scale", "deployment", "web", "--replicas=3"]);
    case.plane
        .wait_for("three pods", || {
            let ready = case.kubectl.get("deployment/web")["status"]["readyReplicas"].clone();
            if ready == 3 { Ok(()) } else { Err(ready.to_string()) }
        })
        .unwrap();
    let system = case.kubectl.in_namespace("kube-system");
    system.ok_with(&["create", "--dry-run=server", "-f", "-"], &unsafe_deployment("dns"));
    case.kubectl.ok(&["delete", "deployment", "web", "--wait=false"]);
}

pub fn open_as_shipped() {
    let case = Case::with("open", &Setup { failure_policy: "Ignore", ..Setup::default() });
    let count = case.count();
    let denied = case.kubectl.run_with(&["create", "-f", "-"], &unsafe_deployment("web"));
    assert_eq!(denied.code, 1, "a denial is no failure: {denied:?}");
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment deny"]);
    let alone = case.without_us(&unsafe_deployment("web"));
    case.server.process.kill();

    case.kubectl.ok_with(&["create", "-f", "-"], &unsafe_deployment("web"));
    assert_eq!(crate::changes::changes(&alone, &case.kubectl.get("deployment/web")), []);
    assert_eq!(case.generation("deployment/web"), 1);
}

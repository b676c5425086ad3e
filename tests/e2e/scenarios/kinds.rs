//! Kinds other than Deployments.

use serde_json::{Value, json};

use crate::case::Case;
use crate::changes::{Change, added};
use crate::manifests::{IMAGE, config, digest, safe, set};

fn pod(name: &str, image: &str) -> Value {
    let template = safe(name)["spec"]["template"].clone();
    let mut spec = set(template["spec"].clone(), "/containers/0/image", image);
    // The API server would mount a token under a name of its own.
    spec["automountServiceAccountToken"] = false.into();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
}

pub fn bare_pods_and_replica_sets_are_judged() {
    let case = Case::new("bare");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let count = case.count();
    let denied = case.kubectl.run_with(&["create", "-f", "-"], &pod("bad", "app:latest"));
    assert_eq!(denied.code, 1, "{denied:?}");
    assert!(denied.stderr.contains("pods.validate.plimsoll.dev"), "{denied:?}");
    assert_eq!(count.moved(), ["validate CREATE Pod deny"]);
    case.kubectl.ok_with(&["create", "-f", "-"], &pod("good", IMAGE));
    assert_eq!(count.moved(), ["validate CREATE Pod allow", "validate CREATE Pod deny"]);
    let mut found = case.changes(&pod("good", IMAGE), "pod/good");
    found.retain(|change| !matches!(change, Change::Added(at, _) if at == "/spec/nodeName"));
    assert_eq!(found, []);

    let set_of = |image: &str| {
        let mut manifest = set(safe("bare"), "/kind", "ReplicaSet");
        manifest["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        manifest
    };
    let count = case.count();
    let denied = case.kubectl.run_with(&["create", "-f", "-"], &set_of("app:latest"));
    assert_eq!(denied.code, 1, "{denied:?}");
    assert_eq!(count.moved(), ["validate CREATE ReplicaSet deny"]);
    case.kubectl.ok_with(&["create", "-f", "-"], &set_of(IMAGE));
    let both = ["validate CREATE ReplicaSet allow", "validate CREATE ReplicaSet deny"];
    assert_eq!(count.moved(), both);
    assert_eq!(case.changes(&set_of(IMAGE), "replicaset/bare"), []);
    case.wait("its pods", || {
        let ready = case.kubectl.get("replicaset/bare")["status"]["readyReplicas"].clone();
        if ready == 2 { Ok(()) } else { Err(ready.to_string()) }
    });
    assert_eq!(count.moved(), both, "pods that a ReplicaSet controls are not asked about");
}

pub fn jobs_are_judged_and_left_as_they_are() {
    let case = Case::new("jobs");
    let job = |name: &str, image: &str| {
        let mut template = safe(name)["spec"]["template"].clone();
        template["spec"]["restartPolicy"] = "Never".into();
        template["spec"]["containers"][0]["image"] = image.into();
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}})
    };
    let count = case.count();
    let denied = case.kubectl.run_with(&["create", "-f", "-"], &job("bad", "app:latest"));
    assert_eq!(denied.code, 1, "{denied:?}");
    assert_eq!(count.moved(), ["validate CREATE Job deny"]);

    case.kubectl.ok_with(&["create", "-f", "-"], &job("good", IMAGE));
    // The API server gives each Job a selector and labels with its uid.
    let stored = case.kubectl.get("job/good");
    let container = &stored["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["lifecycle"], &container["startupProbe"]), (&Value::Null, &Value::Null));
    assert_eq!(stored["metadata"]["annotations"], Value::Null);
    // The Job controller's writes, its finalizers among them, are not asked about.
    case.wait("its pod", || {
        let active = case.kubectl.get("job/good")["status"]["active"].clone();
        if active == 1 { Ok(()) } else { Err(active.to_string()) }
    });
    case.kubectl.ok(&["patch", "job", "good", "-p", r#"{"spec":{"suspend":true}}"#]);
    assert_eq!(count.moved(), ["validate CREATE Job allow", "validate CREATE Job deny", "validate UPDATE Job allow"]);

    let cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job("x", "app")["spec"]}},
    });
    let count = case.count();
    let denied = case.kubectl.run_with(&["create", "-f", "-"], &cron);
    assert_eq!(denied.code, 1, "{denied:?}");
    assert_eq!(count.moved(), ["validate CREATE CronJob deny"]);
}

pub fn a_budget_that_blocks_every_eviction_is_denied() {
    let case = Case::new("budget");
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": "100%", "selector": {"matchLabels": {"app": "web"}}},
    });
    let count = case.count();
    let denied = case.kubectl.run_with(&["apply", "-f", "-"], &budget);
    assert_eq!(denied.code, 1, "{denied:?}");
    assert!(denied.stderr.contains("minAvailable 100%"), "{denied:?}");
    assert!(denied.stderr.contains("blocks every voluntary eviction"), "{denied:?}");
    let denied = ["mutate CREATE PodDisruptionBudget allow", "validate CREATE PodDisruptionBudget deny"];
    assert_eq!(count.moved(), denied);

    let good = set(budget, "/spec/minAvailable", "50%");
    case.kubectl.ok_with(&["apply", "-f", "-"], &good);
    assert_eq!(case.changes(&good, "poddisruptionbudget/web"), []);
    assert_eq!(
        count.moved(),
        [
            "mutate CREATE PodDisruptionBudget allow",
            "validate CREATE PodDisruptionBudget allow",
            "validate CREATE PodDisruptionBudget deny",
        ]
    );
}

pub fn stateful_and_daemon_sets_get_their_fixes() {
    let case = Case::new("sets");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let startup_probe = json!({
        "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
        "timeoutSeconds": 1, "periodSeconds": 5, "successThreshold": 1, "failureThreshold": 24,
    });
    let checksum = "/spec/template/metadata/annotations/plimsoll.dev~1config-checksum";
    let probe = "/spec/template/spec/containers/0/startupProbe";
    let marker = "/metadata/annotations/plimsoll.dev~1fixed";

    let mut stateful = set(safe("db"), "/kind", "StatefulSet");
    stateful["spec"]["serviceName"] = "db".into();
    let count = case.count();
    case.kubectl.ok_with(&["apply", "-f", "-"], &stateful);
    assert_eq!(count.moved(), ["mutate CREATE StatefulSet allow", "validate CREATE StatefulSet allow"]);
    let value = digest(&case.kubectl.get("statefulset/db"));
    assert_eq!(
        case.changes(&stateful, "statefulset/db"),
        [
            added(marker, "config-checksum,missing-pre-stop/app,missing-startup-probe/app"),
            added(checksum, value),
            added("/spec/template/spec/containers/0/lifecycle", json!({"preStop": {"sleep": {"seconds": 10}}})),
            added(probe, startup_probe.clone()),
        ]
    );
    assert_eq!(case.generation("statefulset/db"), 1);

    // The old pod of a DaemonSet ends before the new one starts: a sleep is downtime.
    let mut daemon = set(safe("agent"), "/kind", "DaemonSet");
    daemon["spec"].as_object_mut().unwrap().remove("replicas");
    let count = case.count();
    case.kubectl.ok_with(&["apply", "-f", "-"], &daemon);
    assert_eq!(count.moved(), ["mutate CREATE DaemonSet allow", "validate CREATE DaemonSet allow"]);
    let value = digest(&case.kubectl.get("daemonset/agent"));
    assert_eq!(
        case.changes(&daemon, "daemonset/agent"),
        [
            added(marker, "config-checksum,missing-startup-probe/app"),
            added(checksum, value),
            added(probe, startup_probe),
        ]
    );
    assert_eq!(case.generation("daemonset/agent"), 1);
    for what in ["statefulset/db", "daemonset/agent"] {
        case.wait(what, || case.kubectl.try_ok(&["rollout", "status", what, "--timeout=1s"]));
    }
}

pub fn rollouts_are_judged() {
    let case = Case::new("rollouts");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rollouts.argoproj.io"},
        "spec": {
            "group": "argoproj.io",
            "scope": "Namespaced",
            "names": {"kind": "Rollout", "plural": "rollouts", "singular": "rollout"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let admin = &case.plane.kubectl;
    admin.ok_with(&["apply", "-f", "-"], &definition);
    admin.ok(&["wait", "--for=condition=Established", "crd/rollouts.argoproj.io"]);

    let mut rollout = set(safe("web"), "/kind", "Rollout");
    rollout["apiVersion"] = "argoproj.io/v1alpha1".into();
    rollout["spec"]["strategy"] = json!({"canary": {"steps": [{"setWeight": 50}]}});
    let bad = set(rollout.clone(), "/spec/template/spec/containers/0/image", "app:latest");
    let count = case.count();
    let denied = case.kubectl.run_with(&["create", "-f", "-"], &bad);
    assert_eq!(denied.code, 1, "{denied:?}");
    assert!(denied.stderr.contains("rollouts.validate.plimsoll.dev"), "{denied:?}");
    let refused = ["mutate CREATE Rollout allow", "validate CREATE Rollout deny"];
    assert_eq!(count.moved(), refused);

    let count = case.count();
    case.kubectl.ok_with(&["create", "-f", "-"], &rollout);
    let created = ["mutate CREATE Rollout allow", "validate CREATE Rollout allow"];
    assert_eq!(count.moved(), created);
    // The CRD keeps what it does not know, the sleep too. No defaults: the API server
    // fills in nothing.
    let value = digest(&case.kubectl.get("rollout/web"));
    assert_eq!(
        case.changes(&rollout, "rollout/web"),
        [
            added(
                "/metadata/annotations/plimsoll.dev~1fixed",
                "config-checksum,default-rolling-update,missing-pre-stop/app,missing-startup-probe/app"
            ),
            added("/spec/strategy/canary/maxUnavailable", 0),
            added("/spec/template/metadata/annotations/plimsoll.dev~1config-checksum", value),
            added("/spec/template/spec/containers/0/lifecycle", json!({"preStop": {"sleep": {"seconds": 10}}})),
            added(
                "/spec/template/spec/containers/0/startupProbe",
                json!({"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 5, "failureThreshold": 24})
            ),
        ]
    );
    case.kubectl.ok(&["label", "rollout", "web", "team=a"]);
    assert_eq!(count.moved(), created, "a label does not reach us");
    assert_eq!(case.generation("rollout/web"), 1);
}

//! The defaults that an API server (1.37) fills in before it asks webhooks: core/v1, apps/v1, batch/v1 and
//! autoscaling/v2 `defaults.go`. A test compares them with what a real one answers.

use serde_json::{Value, json};

/// The object as the webhooks would see it. What a CRD describes has no defaults.
pub fn defaulted(object: &Value) -> Value {
    let mut object = without_nulls(object);
    object.as_object_mut().expect("an object").remove("status");
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let Some(spec) = object.get_mut("spec") else { return object };
    match kind.as_str() {
        "Deployment" => deployment(spec),
        "StatefulSet" => stateful_set(spec),
        "DaemonSet" => daemon_set(spec),
        "ReplicaSet" | "ReplicationController" => {
            default(spec, "replicas", json!(1));
            template(&mut spec["template"]);
        }
        "Job" => {
            // Only where neither is said: a job with a work queue says `parallelism` alone.
            if spec["completions"].is_null() && spec["parallelism"].is_null() {
                spec["completions"] = json!(1);
            }
            default(spec, "parallelism", json!(1));
            default(spec, "backoffLimit", json!(6));
            default(spec, "completionMode", json!("NonIndexed"));
            default(spec, "suspend", json!(false));
            default(spec, "manualSelector", json!(false));
            let replacement = if spec["podFailurePolicy"].is_null() { "TerminatingOrFailed" } else { "Failed" };
            default(spec, "podReplacementPolicy", json!(replacement));
            template(&mut spec["template"]);
        }
        "CronJob" => {
            default(spec, "concurrencyPolicy", json!("Allow"));
            default(spec, "suspend", json!(false));
            default(spec, "successfulJobsHistoryLimit", json!(3));
            default(spec, "failedJobsHistoryLimit", json!(1));
            template(&mut spec["jobTemplate"]["spec"]["template"]);
        }
        "Pod" => pod(spec),
        "HorizontalPodAutoscaler" => default(spec, "minReplicas", json!(1)),
        "Service" => {
            default(spec, "type", json!("ClusterIP"));
            default(spec, "sessionAffinity", json!("None"));
            each(spec, "ports", |port| {
                default(port, "protocol", json!("TCP"));
                let number = port["port"].clone();
                default(port, "targetPort", number);
            });
        }
        _ => {}
    }
    object
}

fn deployment(spec: &mut Value) {
    default(spec, "replicas", json!(1));
    default(spec, "revisionHistoryLimit", json!(10));
    default(spec, "progressDeadlineSeconds", json!(600));
    default(spec, "strategy", json!({}));
    default(&mut spec["strategy"], "type", json!("RollingUpdate"));
    if spec["strategy"]["type"] == "RollingUpdate" {
        default(&mut spec["strategy"], "rollingUpdate", json!({}));
        default(&mut spec["strategy"]["rollingUpdate"], "maxSurge", json!("25%"));
        default(&mut spec["strategy"]["rollingUpdate"], "maxUnavailable", json!("25%"));
    }
    template(&mut spec["template"]);
}

fn stateful_set(spec: &mut Value) {
    default(spec, "replicas", json!(1));
    default(spec, "revisionHistoryLimit", json!(10));
    default(spec, "podManagementPolicy", json!("OrderedReady"));
    default(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    default(&mut spec["persistentVolumeClaimRetentionPolicy"], "whenDeleted", json!("Retain"));
    default(&mut spec["persistentVolumeClaimRetentionPolicy"], "whenScaled", json!("Retain"));
    default(spec, "updateStrategy", json!({}));
    let strategy = &mut spec["updateStrategy"];
    // Only where the type is not said, the members are.
    if strategy["type"].is_null() {
        strategy["type"] = json!("RollingUpdate");
        default(strategy, "rollingUpdate", json!({}));
    }
    if strategy["type"] == "RollingUpdate" && strategy["rollingUpdate"].is_object() {
        default(&mut strategy["rollingUpdate"], "partition", json!(0));
        default(&mut strategy["rollingUpdate"], "maxUnavailable", json!(1));
    }
    each(spec, "volumeClaimTemplates", |claim| {
        default(claim, "apiVersion", json!("v1"));
        default(claim, "kind", json!("PersistentVolumeClaim"));
        default(&mut claim["spec"], "volumeMode", json!("Filesystem"));
        default(claim, "status", json!({"phase": "Pending"}));
    });
    template(&mut spec["template"]);
}

fn daemon_set(spec: &mut Value) {
    default(spec, "revisionHistoryLimit", json!(10));
    default(spec, "updateStrategy", json!({}));
    default(&mut spec["updateStrategy"], "type", json!("RollingUpdate"));
    if spec["updateStrategy"]["type"] == "RollingUpdate" {
        default(&mut spec["updateStrategy"], "rollingUpdate", json!({}));
        default(&mut spec["updateStrategy"]["rollingUpdate"], "maxSurge", json!(0));
        default(&mut spec["updateStrategy"]["rollingUpdate"], "maxUnavailable", json!(1));
    }
    template(&mut spec["template"]);
}

fn template(template: &mut Value) {
    if template["spec"].is_object() {
        pod_spec(&mut template["spec"]);
    }
}

/// What a bare Pod gets beyond its template's defaults.
fn pod(spec: &mut Value) {
    pod_spec(spec);
    default(spec, "enableServiceLinks", json!(true));
    for class in ["containers", "initContainers"] {
        each(spec, class, |container| {
            let limits = container["resources"]["limits"].clone();
            for (resource, limit) in limits.as_object().into_iter().flatten() {
                default(&mut container["resources"], "requests", json!({}));
                default(&mut container["resources"]["requests"], resource, limit.clone());
            }
        });
    }
}

fn pod_spec(spec: &mut Value) {
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "schedulerName", json!("default-scheduler"));
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", json!(30));
    // The old name is written beside the new one.
    if !spec["serviceAccountName"].is_null() {
        let name = spec["serviceAccountName"].clone();
        default(spec, "serviceAccount", name);
    }
    for class in ["containers", "initContainers"] {
        each(spec, class, container);
    }
    each(spec, "volumes", |volume| {
        for source in ["configMap", "secret"] {
            if volume[source].is_object() {
                default(&mut volume[source], "defaultMode", json!(420));
            }
        }
        if volume["hostPath"].is_object() {
            default(&mut volume["hostPath"], "type", json!(""));
        }
    });
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    let tagged = name.contains('@') || name.split_once(':').is_some_and(|(_, tag)| tag != "latest");
    let pull = if tagged { "IfNotPresent" } else { "Always" };
    default(container, "imagePullPolicy", json!(pull));
    default(container, "resources", json!({}));
    default(container, "terminationMessagePath", json!("/dev/termination-log"));
    default(container, "terminationMessagePolicy", json!("File"));
    each(container, "ports", |port| default(port, "protocol", json!("TCP")));
    each(container, "env", |env| {
        if env["valueFrom"]["fieldRef"].is_object() {
            default(&mut env["valueFrom"]["fieldRef"], "apiVersion", json!("v1"));
        }
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) else { continue };
        // A zero counts as absent, as it does for the server.
        for (member, value) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            if probe[member].as_i64() == Some(0) {
                probe[member] = Value::Null;
            }
            default(probe, member, json!(value));
        }
        handler(probe);
    }
    for hook in ["preStop", "postStart"] {
        if let Some(hook) = container.pointer_mut(&format!("/lifecycle/{hook}")) {
            handler(hook);
        }
    }
}

fn handler(handler: &mut Value) {
    if handler["httpGet"].is_object() {
        default(&mut handler["httpGet"], "path", json!("/"));
        default(&mut handler["httpGet"], "scheme", json!("HTTP"));
    }
    if handler["grpc"].is_object() {
        default(&mut handler["grpc"], "service", json!(""));
    }
}

/// Sets what is absent.
fn default(object: &mut Value, member: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        let member = object.entry(member.to_owned()).or_insert(Value::Null);
        if member.is_null() {
            *member = value;
        }
    }
}

fn each(object: &mut Value, list: &str, change: impl Fn(&mut Value)) {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().for_each(change);
}

/// A null in a manifest is a member that is not there.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

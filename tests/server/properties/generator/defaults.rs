//! What the API server fills in before a webhook sees an object (`pkg/apis/{core,apps,batch,policy}/v1/defaults.go`),
//! as far as anybody here looks at it.

use plimsoll::engine::document::Value;

use super::json::{Json, json, put};

/// Fills in the defaults of this kind; leaves alone what is not of the right type.
pub fn fill_in(kind: &str, object: &mut Json) {
    match kind {
        "Deployment" => {
            unless_set(object, "spec.replicas", "1");
            unless_set(object, "spec.strategy.type", "\"RollingUpdate\"");
            rolling(object, "strategy", &[("maxUnavailable", "\"25%\""), ("maxSurge", "\"25%\"")]);
            unless_set(object, "spec.revisionHistoryLimit", "10");
            unless_set(object, "spec.progressDeadlineSeconds", "600");
        }
        "DaemonSet" => {
            unless_set(object, "spec.updateStrategy.type", "\"RollingUpdate\"");
            rolling(object, "updateStrategy", &[("maxUnavailable", "1"), ("maxSurge", "0")]);
            unless_set(object, "spec.revisionHistoryLimit", "10");
        }
        "StatefulSet" => {
            unless_set(object, "spec.replicas", "1");
            unless_set(object, "spec.podManagementPolicy", "\"OrderedReady\"");
            // Only where `type` was empty, too (TRAPS B16).
            if object.at(&["spec", "updateStrategy", "type"]).is_null() {
                unless_set(object, "spec.updateStrategy.type", "\"RollingUpdate\"");
                rolling(object, "updateStrategy", &[("partition", "0")]);
            }
            unless_set(object, "spec.revisionHistoryLimit", "10");
        }
        "ReplicaSet" | "ReplicationController" => unless_set(object, "spec.replicas", "1"),
        _ => {}
    }
    let template: &[&str] = match kind {
        "Pod" => &[],
        "CronJob" => &["spec", "jobTemplate", "spec", "template"],
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job" | "ReplicationController" => {
            &["spec", "template"]
        }
        // Nothing is filled into a custom resource.
        _ => return,
    };
    let mut pod = object.at(template).clone();
    if pod["spec"].as_object().is_some() {
        fill_in_pod(&mut pod);
        object.set(template, pod);
    }
}

fn unless_set(object: &mut Json, path: &str, value: &str) {
    if object.at(&path.split('.').collect::<Vec<_>>()).is_null() {
        put(object, path, json(value));
    }
}

fn rolling(object: &mut Json, strategy: &str, members: &[(&str, &str)]) {
    if object.at(&["spec", strategy, "type"]).as_str() == Some("RollingUpdate") {
        for (member, value) in members {
            unless_set(object, &format!("spec.{strategy}.rollingUpdate.{member}"), value);
        }
    }
}

fn fill_in_pod(pod: &mut Json) {
    for (path, value) in [
        ("restartPolicy", "\"Always\""),
        ("terminationGracePeriodSeconds", "30"),
        ("dnsPolicy", "\"ClusterFirst\""),
        ("securityContext", "{}"),
        ("schedulerName", "\"default-scheduler\""),
    ] {
        unless_set(pod, &format!("spec.{path}"), value);
    }
    for list in ["containers", "initContainers"] {
        if let Value::Array(mut containers) = pod["spec"][list].clone() {
            containers.iter_mut().filter(|one| one.as_object().is_some()).for_each(fill_in_container);
            pod.set(&["spec", list], Value::Array(containers));
        }
    }
}

fn fill_in_container(container: &mut Json) {
    unless_set(container, "resources", "{}");
    unless_set(container, "terminationMessagePath", "\"/dev/termination-log\"");
    unless_set(container, "terminationMessagePolicy", "\"File\"");
    unless_set(container, "imagePullPolicy", "\"IfNotPresent\"");
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].as_object().is_some() {
            let numbers = [
                ("timeoutSeconds", "1"),
                ("periodSeconds", "10"),
                ("successThreshold", "1"),
                ("failureThreshold", "3"),
            ];
            for (member, value) in numbers {
                unless_set(container, &format!("{probe}.{member}"), value);
            }
            if container[probe]["httpGet"].as_object().is_some() {
                unless_set(container, &format!("{probe}.httpGet.scheme"), "\"HTTP\"");
            }
        }
    }
    if let Value::Array(mut ports) = container["ports"].clone() {
        for port in ports.iter_mut().filter(|port| port.as_object().is_some()) {
            unless_set(port, "protocol", "\"TCP\"");
        }
        put(container, "ports", Value::Array(ports));
    }
}

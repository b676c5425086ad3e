//! A CustomResourceDefinition for Rollouts, structural as Argo's is: what it does not list, the API server drops.

use serde_json::{Value, json};

/// The definition; `sleep`: whether its schema lists the preStop action of that name, as newer ones do.
pub fn rollout_crd(sleep: bool) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let anythings = json!({"type": "array", "items": anything});
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let text_map = json!({"type": "object", "additionalProperties": text});
    let number = json!({"type": "integer"});
    let flag = json!({"type": "boolean"});
    let number_or_text = json!({"x-kubernetes-int-or-string": true});
    let object = |properties: Value| json!({"type": "object", "properties": properties});

    let mut hook = json!({
        "exec": object(json!({"command": texts})),
        "httpGet": object(json!({"host": text, "path": text, "port": number_or_text, "scheme": text})),
        "tcpSocket": object(json!({"host": text, "port": number_or_text})),
    });
    let mut probe = hook.clone();
    for member in ["initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold"] {
        probe[member] = number.clone();
    }
    if sleep {
        hook["sleep"] = object(json!({"seconds": number}));
    }
    let port = object(json!({"containerPort": number, "hostPort": number, "name": text, "protocol": text}));
    let container = object(json!({
        "name": text,
        "image": text,
        "command": texts,
        "args": texts,
        "restartPolicy": text,
        "env": anythings,
        "envFrom": anythings,
        "ports": {"type": "array", "items": port},
        "resources": anything,
        "volumeMounts": anythings,
        "lifecycle": object(json!({"preStop": object(hook)})),
        "livenessProbe": object(probe.clone()),
        "readinessProbe": object(probe.clone()),
        "startupProbe": object(probe),
    }));
    let containers = json!({"type": "array", "items": container});
    let template = object(json!({
        "metadata": object(json!({"labels": text_map, "annotations": text_map})),
        "spec": object(json!({
            "containers": containers,
            "initContainers": containers,
            "volumes": anythings,
            "affinity": anything,
            "restartPolicy": text,
            "hostNetwork": flag,
            "terminationGracePeriodSeconds": number,
        })),
    }));
    let canary = object(json!({
        "maxSurge": number_or_text,
        "maxUnavailable": number_or_text,
        "canaryService": text,
        "stableService": text,
        "trafficRouting": anything,
        "steps": anythings,
    }));
    let schema = object(json!({
        "spec": object(json!({
            "replicas": number,
            "revisionHistoryLimit": number,
            "minReadySeconds": number,
            "progressDeadlineSeconds": number,
            "paused": flag,
            "selector": anything,
            "workloadRef": anything,
            "strategy": object(json!({"canary": canary, "blueGreen": anything})),
            "template": template,
        })),
        "status": anything,
    }));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rollouts.argoproj.io"},
        "spec": {
            "group": "argoproj.io",
            "scope": "Namespaced",
            "names": {"kind": "Rollout", "plural": "rollouts", "singular": "rollout"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

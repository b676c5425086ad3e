//! Objects that an API server mostly accepts and that rules have much to say about: the same seed, the same object.

#[path = "../../../server/properties/generator/entropy.rs"]
mod entropy;

use entropy::{Entropy, bytes};
use serde_json::{Value, json};

/// Bytes that an object needs at most.
const ENOUGH: usize = 512;

/// One object to create.
pub struct Generated {
    /// `/apis/apps/v1`.
    pub api: &'static str,
    /// `deployments`.
    pub resource: &'static str,
    /// As its author wrote it.
    pub object: Value,
}

/// The object of this seed.
pub fn generate(seed: u64) -> Generated {
    let bytes = bytes(seed, ENOUGH);
    let mut entropy = Entropy::new(&bytes);
    let entropy = &mut entropy;
    let (api, kind, resource) = match entropy.below(100) {
        0..=42 => ("/apis/apps/v1", "Deployment", "deployments"),
        43..=56 => ("/apis/apps/v1", "StatefulSet", "statefulsets"),
        57..=67 => ("/apis/apps/v1", "DaemonSet", "daemonsets"),
        68..=75 => ("/apis/argoproj.io/v1alpha1", "Rollout", "rollouts"),
        76..=79 => ("/apis/batch/v1", "Job", "jobs"),
        80..=82 => ("/apis/batch/v1", "CronJob", "cronjobs"),
        83..=86 => ("/api/v1", "Pod", "pods"),
        87..=88 => ("/apis/apps/v1", "ReplicaSet", "replicasets"),
        89 => ("/api/v1", "ReplicationController", "replicationcontrollers"),
        90..=93 => ("/apis/policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        94..=96 => ("/apis/autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        _ => ("/api/v1", "Service", "services"),
    };
    let api_version = api.trim_start_matches("/apis/").trim_start_matches("/api/");
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata(entropy)});
    object["spec"] = match kind {
        "PodDisruptionBudget" => budget(entropy),
        "HorizontalPodAutoscaler" => autoscaler(entropy),
        "Service" => service(entropy),
        "Pod" => pod(entropy, true),
        "Job" => json!({"template": {"spec": pod(entropy, false)}}),
        "CronJob" => {
            json!({"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {"spec": pod(entropy, false)}}}})
        }
        _ => workload(entropy, kind),
    };
    if entropy.chance(30) {
        let text = object.to_string();
        object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = text.into();
    }
    Generated { api, resource, object }
}

fn metadata(entropy: &mut Entropy<'_>) -> Value {
    // The namespace's autoscaler and Services know `web`.
    let mut metadata = json!({"name": entropy.pick(&["web", "web", "api", "db"])});
    if entropy.chance(8) {
        let claims =
            ["missing-pre-stop/app", "default-rolling-update,missing-startup-probe/app", "short-grace-period", ""];
        metadata["annotations"]["plimsoll.dev/fixed"] = entropy.pick(&claims).into();
    }
    if entropy.chance(6) {
        metadata["annotations"]["plimsoll.dev/skip-fixes"] =
            entropy.pick(&["all", "missing-pre-stop", "config-checksum, no-such-rule"]).into();
    }
    metadata
}

fn workload(entropy: &mut Entropy<'_>, kind: &str) -> Value {
    let app = entropy.pick(&["web", "web", "api", "db"]);
    let labels = json!({"app": app});
    let mut spec = json!({
        "selector": if kind == "ReplicationController" { labels.clone() } else { json!({"matchLabels": labels}) },
        "template": {"metadata": {"labels": labels}, "spec": pod(entropy, true)},
    });
    if entropy.chance(12) {
        spec["template"]["metadata"]["annotations"] = json!({"checksum/config": "by-the-chart"});
    }
    if kind != "DaemonSet" && entropy.chance(75) {
        spec["replicas"] = entropy.pick(&[3, 2, 1, 1, 4, 10, 0]).into();
    }
    if kind == "ReplicaSet" || kind == "ReplicationController" {
        return spec;
    }
    if entropy.chance(20) {
        spec["revisionHistoryLimit"] = entropy.pick(&[0, 1, 2, 10]).into();
    }
    if entropy.chance(20) {
        spec["minReadySeconds"] = entropy.pick(&[0, 5, 10, 30]).into();
    }
    let rolls = |bounds: Value| json!({"type": "RollingUpdate", "rollingUpdate": bounds});
    match kind {
        "Deployment" => {
            if entropy.chance(10) {
                spec["progressDeadlineSeconds"] = entropy.pick(&[60, 120, 600]).into();
            }
            match entropy.below(12) {
                0..=4 => {}
                5 => spec["strategy"] = json!({"type": "Recreate"}),
                6 => spec["strategy"] = json!({"type": "RollingUpdate"}),
                7 => spec["strategy"] = rolls(json!({"maxUnavailable": "25%", "maxSurge": "25%"})),
                8 => spec["strategy"] = rolls(json!({"maxUnavailable": 0, "maxSurge": 1})),
                9 => spec["strategy"] = rolls(json!({"maxUnavailable": 1, "maxSurge": 0})),
                10 => spec["strategy"] = rolls(json!({"maxUnavailable": "100%"})),
                // Refused.
                _ => spec["strategy"] = rolls(json!({"maxUnavailable": 0, "maxSurge": 0})),
            }
        }
        "Rollout" => {
            spec["strategy"] = match entropy.below(5) {
                0 => json!({"canary": {}}),
                1 => json!({"canary": {"maxUnavailable": "100%", "steps": [{"setWeight": 20}, {"pause": {}}]}}),
                2 => json!({"canary": {"maxUnavailable": 0, "maxSurge": 1}}),
                3 => json!({"canary": {"trafficRouting": {"nginx": {"stableIngress": "web"}}}}),
                _ => json!({"blueGreen": {"activeService": "web"}}),
            };
        }
        "StatefulSet" => {
            spec["serviceName"] = app.into();
            if entropy.chance(40) {
                spec["podManagementPolicy"] = entropy.pick(&["OrderedReady", "Parallel"]).into();
            }
            match entropy.below(6) {
                0..=2 => {}
                3 => spec["updateStrategy"] = json!({"type": "OnDelete"}),
                4 => spec["updateStrategy"] = rolls(json!({"partition": 2})),
                _ => spec["updateStrategy"] = rolls(json!({"maxUnavailable": entropy.pick(&["100%", "50%"])})),
            }
        }
        _ => match entropy.below(6) {
            0..=2 => {}
            3 => spec["updateStrategy"] = json!({"type": "OnDelete"}),
            4 => spec["updateStrategy"] = rolls(json!({"maxUnavailable": entropy.pick(&["10%", "60%", "100%"])})),
            _ => spec["updateStrategy"] = rolls(json!({"maxUnavailable": 0, "maxSurge": 1})),
        },
    }
    spec
}

fn pod(entropy: &mut Entropy<'_>, stays: bool) -> Value {
    let mut spec = json!({});
    let restart = if stays { "Always" } else { entropy.pick(&["Never", "OnFailure"]) };
    if !stays || entropy.chance(30) {
        spec["restartPolicy"] = restart.into();
    }
    let names = ["app", "web", "log"];
    let count = entropy.pick(&[1, 1, 1, 2, 3]);
    spec["containers"] = names[..count].iter().map(|name| container(entropy, name, true)).collect();
    if entropy.chance(25) {
        let sidecar = entropy.chance(40);
        let mut init = container(entropy, "init", sidecar);
        if sidecar {
            init["restartPolicy"] = "Always".into();
        }
        spec["initContainers"] = json!([init]);
    }
    if entropy.chance(35) {
        spec["terminationGracePeriodSeconds"] = entropy.pick(&[30, 60, 10, 5, 0, 35, 1, 600]).into();
    }
    // Every mount of a container finds its volume.
    spec["volumes"] = json!([
        {"name": "config", "configMap": {"name": entropy.pick(&["cfg", "cfg", "gone"])}},
        {"name": "data", "emptyDir": {}},
        {"name": "zone", "hostPath": {"path": "/etc/localtime"}},
    ]);
    if entropy.chance(20) {
        spec["volumes"][1] =
            json!({"name": "data", "persistentVolumeClaim": {"claimName": entropy.pick(&["one", "many", "none"])}});
    }
    if entropy.chance(8) {
        spec["hostNetwork"] = true.into();
    }
    if entropy.chance(12) {
        let term = json!({"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"});
        spec["affinity"] = match entropy.chance(50) {
            true => json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}),
            false => json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": term}]}}),
        };
    }
    spec
}

fn container(entropy: &mut Entropy<'_>, name: &str, serves: bool) -> Value {
    let image = entropy.pick(&[
        "reg.example/app:1.2.3",
        "reg.example/app:1.2.3",
        "reg.example/app:1.2.3",
        "reg.example/app:1.2.3",
        "other.example:5000/app:1.2.3@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "nginx:1.27",
        "app:latest",
        "reg.example:5000/app",
    ]);
    let mut container = json!({"name": name, "image": image});
    let amounts = ["100m", "1", "500m", "2"];
    let sizes = ["128Mi", "256Mi", "1Gi", "64Mi"];
    for of in ["requests", "limits"] {
        if entropy.chance(50) {
            // Requests above limits are refused now and then.
            let (most, least) = if of == "limits" { (4, 1) } else { (2, 0) };
            let index = least + entropy.below(most - least);
            container["resources"][of] = json!({"cpu": amounts[index], "memory": sizes[index]});
        }
    }
    if entropy.chance(25) {
        container["env"] = json!([{"name": "MODE", "value": "a"}, {"name": "MODE", "value": "b"},
            {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "cfg", "key": entropy.pick(&["MODE", "GONE"])}}}]);
    }
    if entropy.chance(20) {
        container["envFrom"] = json!([{"configMapRef": {"name": entropy.pick(&["cfg", "gone"])}},
            {"secretRef": {"name": "keys"}}]);
    }
    if entropy.chance(30) {
        container["volumeMounts"] = match entropy.below(3) {
            0 => json!([{"name": "config", "mountPath": "/etc/app"}, {"name": "data", "mountPath": "/data"}]),
            1 => json!([{"name": "config", "mountPath": "/etc/app/a.conf", "subPath": "a.conf"}]),
            _ => json!([{"name": "zone", "mountPath": "/etc/localtime", "readOnly": true}]),
        };
    }
    if !serves {
        return container;
    }
    if entropy.chance(75) {
        container["ports"] = match entropy.below(5) {
            0..=2 => json!([{"name": "http", "containerPort": 8080}]),
            3 => json!([{"containerPort": 8080}, {"name": "metrics", "containerPort": 9090}]),
            _ => json!([{"name": "http", "containerPort": 8080, "hostPort": 8080}]),
        };
    }
    if entropy.chance(50) {
        container["livenessProbe"] = probe(entropy);
    }
    if entropy.chance(45) {
        container["readinessProbe"] =
            if entropy.chance(40) { container["livenessProbe"].clone() } else { probe(entropy) };
    }
    if entropy.chance(10) {
        container["startupProbe"] = probe(entropy);
    }
    if entropy.chance(20) {
        container["lifecycle"]["preStop"] = match entropy.below(7) {
            0 => json!({"sleep": {"seconds": 5}}),
            1 => json!({"sleep": {"seconds": 25}}),
            // Refused where it is longer than the grace period.
            2 => json!({"sleep": {"seconds": 40}}),
            3 => json!({"exec": {"command": ["sleep", "20"]}}),
            4 => json!({"exec": {"command": ["sh", "-c", "sleep 130"]}}),
            5 => json!({"httpGet": {"path": "/quit", "port": 8080}}),
            _ => json!({"tcpSocket": {"port": 8080}}),
        };
    }
    container
}

fn probe(entropy: &mut Entropy<'_>) -> Value {
    let mut probe = match entropy.below(8) {
        0..=2 => json!({"httpGet": {"path": "/healthz", "port": 8080}}),
        3 => json!({"httpGet": {"path": "/healthz", "port": "http"}}),
        4 => json!({"tcpSocket": {"port": "http"}}),
        5 => json!({"exec": {"command": ["cat", "/tmp/healthy"]}}),
        6 => json!({"exec": {"command": ["true"]}}),
        _ => json!({"grpc": {"port": 9090}}),
    };
    let numbers: [(&str, u32, &[i64]); 4] = [
        ("initialDelaySeconds", 25, &[5, 30, 60]),
        ("periodSeconds", 35, &[10, 5, 1, 30]),
        ("timeoutSeconds", 35, &[1, 2, 5, 20]),
        ("failureThreshold", 35, &[3, 1, 5, 30]),
    ];
    for (member, percent, usual) in numbers {
        if entropy.chance(percent) {
            probe[member] = entropy.pick(usual).into();
        }
    }
    probe
}

fn budget(entropy: &mut Entropy<'_>) -> Value {
    let app = entropy.pick(&["web", "api", "neighbour", "nothing"]);
    let selector = json!({"matchLabels": {"app": app}});
    match entropy.below(6) {
        0 => json!({"maxUnavailable": 1, "selector": selector}),
        1 => json!({"maxUnavailable": 0, "selector": selector}),
        2 => json!({"minAvailable": "100%", "selector": selector, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
        3 => json!({"minAvailable": 3, "selector": selector}),
        4 => json!({"minAvailable": "50%", "selector": selector}),
        _ => json!({"maxUnavailable": "25%", "selector": {}}),
    }
}

fn autoscaler(entropy: &mut Entropy<'_>) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": entropy.pick(&["web", "neighbour"])});
    let (min, max) = entropy.pick(&[(2, 5), (3, 3), (1, 1), (9, 3)]);
    json!({"scaleTargetRef": target, "minReplicas": min, "maxReplicas": max})
}

fn service(entropy: &mut Entropy<'_>) -> Value {
    let app = entropy.pick(&["web", "neighbour", "nothing"]);
    let ports = match entropy.below(4) {
        0 => json!([{"port": 80, "targetPort": "http"}]),
        1 => json!([{"name": "a", "port": 80, "targetPort": "gone"}, {"name": "b", "port": 443, "targetPort": 8443}]),
        2 => json!([{"port": 8080}]),
        _ => json!([{"port": 80, "targetPort": 8080, "protocol": "UDP"}]),
    };
    json!({"selector": {"app": app}, "ports": ports})
}

//! Objects of every kind that is judged, and of some that are not.

use plimsoll::engine::document::Value;
use plimsoll::rollout::IntOrPercent;

use super::defaults::fill_in;
use super::entropy::Entropy;
use super::json::{Json, damage, json, map, put, text, wild};
use super::pod;
use super::template_path;

/// A kind as a review names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// API group.
    pub group: &'static str,
    /// Version of the group.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// The plural.
    pub resource: &'static str,
}

const fn named(group: &'static str, version: &'static str, kind: &'static str, resource: &'static str) -> Named {
    Named { group, version, kind, resource }
}

const DEPLOYMENT: Named = named("apps", "v1", "Deployment", "deployments");
const STATEFUL_SET: Named = named("apps", "v1", "StatefulSet", "statefulsets");
const DAEMON_SET: Named = named("apps", "v1", "DaemonSet", "daemonsets");
const REPLICA_SET: Named = named("apps", "v1", "ReplicaSet", "replicasets");
const ROLLOUT: Named = named("argoproj.io", "v1alpha1", "Rollout", "rollouts");
const POD: Named = named("", "v1", "Pod", "pods");
const BUDGET: Named = named("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
const AUTOSCALER: Named = named("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
const SERVICE: Named = named("", "v1", "Service", "services");

/// The kinds, each as often as it is generated.
const KINDS: &[Named] = &[
    DEPLOYMENT,
    DEPLOYMENT,
    DEPLOYMENT,
    DEPLOYMENT,
    DEPLOYMENT,
    DEPLOYMENT,
    DEPLOYMENT,
    DEPLOYMENT,
    DEPLOYMENT,
    DEPLOYMENT,
    STATEFUL_SET,
    STATEFUL_SET,
    STATEFUL_SET,
    STATEFUL_SET,
    STATEFUL_SET,
    STATEFUL_SET,
    DAEMON_SET,
    DAEMON_SET,
    DAEMON_SET,
    REPLICA_SET,
    REPLICA_SET,
    ROLLOUT,
    ROLLOUT,
    ROLLOUT,
    POD,
    POD,
    POD,
    BUDGET,
    BUDGET,
    BUDGET,
    BUDGET,
    AUTOSCALER,
    AUTOSCALER,
    SERVICE,
    SERVICE,
    SERVICE,
    named("batch", "v1", "Job", "jobs"),
    named("batch", "v1", "CronJob", "cronjobs"),
    named("", "v1", "ReplicationController", "replicationcontrollers"),
    named("", "v1", "ConfigMap", "configmaps"),
    named("example.io", "v1", "Widget", "widgets"),
];

/// An object as its author wrote it, whether or not the API server fills in its defaults.
pub struct Authored {
    /// Its kind.
    pub named: Named,
    /// The object.
    pub object: Json,
    /// Whether defaults are filled in.
    pub defaulted: bool,
    /// Whether it is an object as the API describes it, wrong values aside.
    pub sound: bool,
}

/// An object of some kind.
pub fn authored(entropy: &mut Entropy<'_>) -> Authored {
    let named = entropy.pick(KINDS);
    let mut object = map();
    put(&mut object, "apiVersion", text(&format!("{}/{}", named.group, named.version)));
    put(&mut object, "kind", text(named.kind));
    object.set(&["metadata"], metadata(entropy, named));
    match named.kind {
        "PodDisruptionBudget" => put(&mut object, "spec", json(entropy.pick(BUDGETS))),
        "HorizontalPodAutoscaler" => put(&mut object, "spec", json(entropy.pick(AUTOSCALERS))),
        "Service" => put(&mut object, "spec", json(entropy.pick(SERVICES))),
        "ConfigMap" => put(&mut object, "data", json(r#"{"policy.yaml":"kind: Policy"}"#)),
        "Pod" => object.set(&["spec"], pod::spec(entropy)),
        "CronJob" => object.set(&["spec", "jobTemplate", "spec", "template"], pod::template(entropy)),
        _ => {
            object.set(&["spec"], spec(entropy, named.kind));
            object.set(&["spec", "template"], pod::template(entropy));
        }
    }
    let wildness = entropy.below(64);
    if wildness == 63 {
        object = wild(entropy, 6);
    } else if wildness > 52 {
        (0..1 + entropy.below(4)).for_each(|_| damage(&mut object, entropy));
    }
    let defaulted = entropy.chance(60);
    if defaulted {
        fill_in(named.kind, &mut object);
    } else if object["metadata"].as_object().is_some() && named.kind != "Rollout" {
        // What somebody applied is in the object: where defaults are not filled in, nobody applied anything.
        object.remove(&["metadata", "managedFields"], 2);
        object.remove(&["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"], 3);
    }
    Authored { named, object, defaulted, sound: wildness <= 52 }
}

const BUDGETS: &[&str] = &[
    r#"{"maxUnavailable":1,"selector":{"matchLabels":{"app":"web"}}}"#,
    r#"{"maxUnavailable":0,"selector":{"matchLabels":{"app":"web"}}}"#,
    r#"{"minAvailable":"100%","selector":{"matchLabels":{"app":"web"}},"unhealthyPodEvictionPolicy":"AlwaysAllow"}"#,
    r#"{"minAvailable":2,"selector":{"matchLabels":{"app":"db"}}}"#,
    r#"{"minAvailable":1,"selector":{"matchLabels":{"app":"nothing"}}}"#,
    r#"{"maxUnavailable":"0%","selector":{}}"#,
    r#"{"maxUnavailable":1,"selector":null}"#,
    r#"{"minAvailable":"50%","selector":{"matchExpressions":[{"key":"app","operator":"In","values":["web","api"]}]}}"#,
    r#"{"minAvailable":-1,"maxUnavailable":"x%","selector":{"matchExpressions":[{"operator":"Gt"}]}}"#,
];

const AUTOSCALERS: &[&str] = &[
    r#"{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"minReplicas":2,"maxReplicas":5}"#,
    r#"{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"minReplicas":3,"maxReplicas":3}"#,
    r#"{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web"},"minReplicas":9,"maxReplicas":3}"#,
    r#"{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"maxReplicas":1}"#,
    r#"{"scaleTargetRef":null,"minReplicas":"2","maxReplicas":null}"#,
];

const SERVICES: &[&str] = &[
    r#"{"selector":{"app":"web"},"ports":[{"port":80,"targetPort":"http"}]}"#,
    r#"{"selector":{"app":"web"},"ports":[{"port":80,"targetPort":"gone"},{"port":443,"targetPort":8443}]}"#,
    r#"{"selector":{"app":"web"},"ports":[{"port":8080}]}"#,
    r#"{"selector":{"app":"nothing"},"ports":[{"port":80,"targetPort":8080}]}"#,
    r#"{"selector":null,"clusterIP":"None","ports":null}"#,
    r#"{"type":"ExternalName","externalName":"a.example"}"#,
    r#"{"selector":{"app":7},"ports":[null,{"port":"80"}]}"#,
];

/// Objects that a namespace may hold beside the one under review.
pub fn neighbour(entropy: &mut Entropy<'_>) -> Json {
    let (kind, api_version, spec) = match entropy.below(5) {
        0 => ("PodDisruptionBudget", "policy/v1", json(entropy.pick(BUDGETS))),
        1 => ("HorizontalPodAutoscaler", "autoscaling/v2", json(entropy.pick(AUTOSCALERS))),
        2 => ("Service", "v1", json(entropy.pick(SERVICES))),
        3 => return claim(entropy),
        _ => {
            let mut spec = spec(entropy, "Deployment");
            spec.set(&["template"], pod::template(entropy));
            (entropy.pick(&["Deployment", "StatefulSet", "ReplicaSet"]), "apps/v1", spec)
        }
    };
    beside(kind, api_version, entropy.pick(&["web", "other", "api"]), spec)
}

/// A PersistentVolumeClaim.
pub fn claim(entropy: &mut Entropy<'_>) -> Json {
    let modes = entropy.pick(&[
        r#"{"accessModes":["ReadWriteOnce"]}"#,
        r#"{"accessModes":["ReadWriteOnce"]}"#,
        r#"{"accessModes":["ReadWriteMany"]}"#,
        r#"{"accessModes":["ReadWriteOncePod","ReadOnlyMany"]}"#,
        r#"{"accessModes":null}"#,
    ]);
    beside("PersistentVolumeClaim", "v1", "data", json(modes))
}

fn beside(kind: &str, api_version: &str, name: &str, spec: Json) -> Json {
    let mut object = map();
    put(&mut object, "apiVersion", text(api_version));
    put(&mut object, "kind", text(kind));
    put(&mut object, "metadata.name", text(name));
    object.set(&["spec"], spec);
    object
}

fn metadata(entropy: &mut Entropy<'_>, named: Named) -> Json {
    let mut metadata = map();
    let naming = if entropy.chance(4) { "generateName" } else { "name" };
    put(&mut metadata, naming, text("web"));
    if entropy.chance(15) {
        let labels = entropy.pick(&[
            r#"{"app":"web"}"#,
            r#"{"plimsoll.dev/profile":"critical"}"#,
            r#"{"plimsoll.dev/profile":"nobody-knows","app":7}"#,
            "null",
        ]);
        put(&mut metadata, "labels", json(labels));
    }
    if entropy.chance(35) {
        metadata.set(&["annotations"], annotations(entropy, named));
    }
    if entropy.chance(12) {
        let owners = entropy.pick(&[
            r#"[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5d4","uid":"u","controller":true}]"#,
            r#"[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"u","controller":true}]"#,
            r#"[{"apiVersion":"example.io/v1","kind":"Widget","name":"w","uid":"u","controller":true}]"#,
            r#"[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u"}]"#,
            "[null,7]",
        ]);
        let pod = named.kind == "Pod" && entropy.chance(60);
        let owner_of_pods = r#"[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u","controller":true}]"#;
        put(&mut metadata, "ownerReferences", json(if pod { owner_of_pods } else { owners }));
    }
    if entropy.chance(3) {
        put(&mut metadata, "deletionTimestamp", text("2026-11-30T00:00:00Z"));
    }
    if entropy.chance(15) {
        let fields = entropy.pick(&[
            r#"{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxUnavailable":{}}}}}"#,
            r#"{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:terminationGracePeriodSeconds":{}}}}}"#,
            r#"{"f:metadata":{"f:labels":{}}}"#,
            "[]",
        ]);
        let operation = entropy.pick(&["Apply", "Apply", "Update"]);
        let entry = format!(r#"[{{"manager":"m","operation":"{operation}","fieldsV1":{fields}}}]"#);
        // As a parsed object has it: the engine keeps this member as text.
        let raw = Value::parse(&format!(r#"{{"managedFields":{entry}}}"#)).unwrap().to_static();
        metadata.set(&["managedFields"], raw["managedFields"].clone());
    }
    metadata
}

fn annotations(entropy: &mut Entropy<'_>, named: Named) -> Json {
    let mut annotations = map();
    if entropy.chance(45) {
        annotations.set(&["plimsoll.dev/fixed"], text(&marker(entropy)));
    }
    if entropy.chance(20) {
        let declined =
            entropy.pick(&["all", "missing-pre-stop", "config-checksum, short-grace-period", "no-such-rule", ","]);
        annotations.set(&["plimsoll.dev/skip-fixes"], text(declined));
    }
    if entropy.chance(35) {
        let applied = entropy.pick(&[
            r#"{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}}}"#,
            r#"{"spec":{"replicas":3,"template":{"spec":{"terminationGracePeriodSeconds":30}}}}"#,
            r#"{"spec":{"minReadySeconds":0,"replicas":2}}"#,
            "{",
        ]);
        annotations.set(&["kubectl.kubernetes.io/last-applied-configuration"], text(applied));
    }
    if entropy.chance(8) {
        annotations.set(&["kubernetes.io/config.mirror"], text("hash"));
    }
    if entropy.chance(3) {
        // As large as annotations may be together, and a little less (TRAPS B17).
        let length = 262_144 - entropy.pick(&[60, 100, 18, 0, 300]);
        annotations.set(&["big"], text(&"x".repeat(length)));
    }
    if named.kind == "Deployment" && entropy.chance(10) {
        annotations.set(&["deployment.kubernetes.io/revision"], text("3"));
    }
    annotations
}

/// A marker that somebody wrote by hand: true, false or nonsense.
pub fn marker(entropy: &mut Entropy<'_>) -> String {
    let entries = [
        "missing-pre-stop/app",
        "short-grace-period",
        "config-checksum",
        "missing-startup-probe/app",
        "default-rolling-update",
        "short-min-ready",
        "pdb-unhealthy-policy",
        "missing-pre-stop/web",
        "missing-pre-stop",
        "no-such-rule",
        "missing-pre-stop/",
        "short-grace-period/app",
        " ,",
        "missing-pre-stop/a/b",
    ];
    (0..1 + entropy.below(4)).map(|_| entropy.pick(&entries)).collect::<Vec<_>>().join(",")
}

fn spec(entropy: &mut Entropy<'_>, kind: &str) -> Json {
    let mut spec = map();
    if entropy.chance(80) && kind != "DaemonSet" && kind != "Job" {
        let replicas = [
            "3",
            "2",
            "1",
            "4",
            "10",
            "0",
            "2",
            "5",
            "100",
            "3",
            "4",
            "2",
            "-1",
            "\"3\"",
            "2.0",
            "9223372036854775807",
        ];
        put(&mut spec, "replicas", json(entropy.pick(&replicas)));
    }
    put(&mut spec, "selector", json(entropy.pick(&[r#"{"matchLabels":{"app":"web"}}"#, "null", "{}"])));
    let strategies: &[&str] = match kind {
        "Deployment" => DEPLOYMENT_STRATEGIES,
        "Rollout" => ROLLOUT_STRATEGIES,
        _ => &[],
    };
    if !strategies.is_empty() && entropy.chance(55) {
        put(&mut spec, "strategy", json(entropy.pick(strategies)));
    }
    if matches!(kind, "StatefulSet" | "DaemonSet") && entropy.chance(75) {
        put(&mut spec, "updateStrategy", json(entropy.pick(UPDATE_STRATEGIES)));
    }
    let numbers: &[(&str, u32, &[&str])] = &[
        ("minReadySeconds", 30, &["5", "0", "10", "30", "700"]),
        ("progressDeadlineSeconds", 30, &["60", "600", "30", "5", "2147483647"]),
        ("revisionHistoryLimit", 25, &["0", "1", "10", "2", "-1"]),
    ];
    for (member, percent, usual) in numbers {
        if entropy.chance(*percent) {
            put(&mut spec, member, json(entropy.pick(usual)));
        }
    }
    if entropy.chance(12) {
        put(&mut spec, "paused", Value::Bool(true));
    }
    if kind == "StatefulSet" {
        if entropy.chance(40) {
            put(&mut spec, "podManagementPolicy", text(entropy.pick(&["OrderedReady", "Parallel"])));
        }
        if entropy.chance(30) {
            put(&mut spec, "volumeClaimTemplates", json(r#"[{"metadata":{"name":"data"},"spec":{}}]"#));
        }
    }
    spec
}

const DEPLOYMENT_STRATEGIES: &[&str] = &[
    r#"{"type":"RollingUpdate"}"#,
    r#"{"type":"Recreate"}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"100%","maxSurge":0}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":3}}"#,
    r#"{"rollingUpdate":{"maxSurge":"50%"}}"#,
    r#"{"type":"Recreate"}"#,
    r#"{"type":"Recreate"}"#,
    r#"{"type":"Recreate"}"#,
    r#"{"type":"Recreate","rollingUpdate":null}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":null}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0,"maxSurge":0}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"1","maxSurge":"200%"}}"#,
    r#"{"type":"BlueGreen","rollingUpdate":"yes"}"#,
    "null",
];

const ROLLOUT_STRATEGIES: &[&str] = &[
    r#"{"canary":{}}"#,
    r#"{"canary":{"maxUnavailable":"100%","steps":[{"setWeight":20}]}}"#,
    r#"{"canary":{"maxUnavailable":0,"maxSurge":1}}"#,
    r#"{"canary":{"trafficRouting":{"istio":{}}}}"#,
    r#"{"blueGreen":{"activeService":"web"}}"#,
    r#"{"blueGreen":{},"canary":{}}"#,
    "{}",
    r#"{"canary":null}"#,
];

const UPDATE_STRATEGIES: &[&str] = &[
    r#"{"type":"RollingUpdate"}"#,
    r#"{"type":"OnDelete"}"#,
    r#"{"type":"OnDelete"}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"partition":2}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"partition":2}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"partition":1}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"partition":3}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"partition":9}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"100%"}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2,"partition":1}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}"#,
    r#"{"rollingUpdate":{"maxUnavailable":"10%"}}"#,
    r#"{"type":"RollingUpdate","rollingUpdate":null}"#,
    r#"{"type":7}"#,
];

/// Makes of an object what an API server would have stored: it refuses counts that are negative, no number, or text
/// without a percent sign (apps/v1, validation of `replicas`, `maxUnavailable` and `maxSurge`), seconds that are no
/// number, and a budget's `unhealthyPodEvictionPolicy` that is no text.
pub fn as_stored(object: &mut Json, kind: &str) {
    let grace: Vec<&str> =
        template_path(kind).iter().copied().chain(["spec", "terminationGracePeriodSeconds"]).collect();
    for (path, number) in [(&grace[..], "30"), (&["spec", "minReadySeconds"], "0")] {
        if !object.at(path).is_null() && object.at(path).as_i64().is_none() {
            object.set(path, json(number));
        }
    }
    let replicas = object.at(&["spec", "replicas"]);
    if !replicas.is_null() && replicas.as_i64().is_none_or(|count| count < 0) {
        object.set(&["spec", "replicas"], json("1"));
    }
    for parent in ["strategy.rollingUpdate", "updateStrategy.rollingUpdate", "strategy.canary"] {
        for member in ["maxUnavailable", "maxSurge"] {
            let path: Vec<&str> = std::iter::once("spec").chain(parent.split('.')).chain([member]).collect();
            let count = object.at(&path);
            if !count.is_null() && IntOrPercent::parse(count).is_none() {
                object.set(&path, json("1"));
            }
        }
    }
    let eviction = ["spec", "unhealthyPodEvictionPolicy"];
    if !object.at(&eviction).is_null() && object.at(&eviction).as_str().is_none() {
        object.set(&eviction, json("null"));
    }
}

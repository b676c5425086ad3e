//! What the chart renders: how much of the cluster it can hold up.

use serde_json::Value;

use crate::case::{Case, RELEASE, SYSTEM};
use crate::control_plane;
use crate::helm::Helm;
use crate::kubectl::{Kubectl, Output};
use crate::manifests::chart;

/// The chart's objects with these values set.
fn render(values: &[&str]) -> Output {
    let mut args = vec!["template", "plimsoll", "--namespace", "plimsoll-system"];
    for value in values {
        args.extend(["--set", value]);
    }
    let chart = chart();
    args.push(&chart);
    Helm::new(control_plane()).run(&args)
}

fn rendered(values: &[&str]) -> Vec<Value> {
    let output = render(values);
    assert_eq!(output.code, 0, "{output:?}");
    serde_saphyr::from_multiple(&output.stdout).unwrap()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|o| o["kind"] == kind);
    let first = found.next().unwrap_or_else(|| panic!("no {kind} among {objects:?}"));
    assert_eq!(found.next(), None, "a second {kind}");
    first
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

const URL: &str = "webhook.url=https://127.0.0.1:8443";
const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// What must go on while Plimsoll is down, whatever the values say; each in an entry of
/// its own.
const NEVER_WAITS: [&str; 4] = ["deployments/scale statefulsets/scale", "services", "pods", "configmaps"];

pub fn asks_only_about_what_it_names() {
    let closed = [URL, "webhook.mutating.failurePolicy=Fail", "webhook.validating.failurePolicy=Fail"];
    let objects = rendered(&closed);
    let mut kinds = Vec::new();
    for (kind, path) in [(MUTATING, "/mutate"), (VALIDATING, "/validate")] {
        for entry in of_kind(&objects, kind)["webhooks"].as_array().unwrap() {
            let name = entry["name"].as_str().unwrap();
            assert_eq!(entry["clientConfig"]["url"], format!("https://127.0.0.1:8443{path}"), "{name}");
            assert_eq!(entry["clientConfig"]["caBundle"], Value::Null, "{name}");
            assert_eq!(entry["sideEffects"], "None", "{name}");
            assert_eq!(entry["matchPolicy"], "Equivalent", "{name}");
            assert_eq!(strings(&entry["admissionReviewVersions"]), ["v1"], "{name}");
            assert!(entry["timeoutSeconds"].as_i64().unwrap() <= 5, "{name}");
            assert_eq!(entry["objectSelector"], Value::Null, "{name}: a label is no way out");
            if kind == MUTATING {
                assert_eq!(entry["reinvocationPolicy"], "IfNeeded", "{name}");
            }
            let rules = entry["rules"].as_array().unwrap();
            let resources: Vec<&str> = rules.iter().flat_map(|rule| strings(&rule["resources"])).collect();
            let never_waits = NEVER_WAITS.contains(&resources.join(" ").as_str());
            assert_eq!(entry["failurePolicy"], if never_waits { "Ignore" } else { "Fail" }, "{name}");
            let (pods, scales) = (resources == ["pods"], resources.iter().all(|r| r.ends_with("/scale")));
            let policy = resources == ["configmaps"];
            for rule in rules {
                let operations = strings(&rule["operations"]);
                let expected: &[&str] = match (pods, scales) {
                    (true, _) => &["CREATE"],
                    (_, true) => &["UPDATE"],
                    _ => &["CREATE", "UPDATE"],
                };
                assert_eq!(operations, expected, "{name}");
                assert_eq!(rule["scope"], "Namespaced", "{name}");
                for key in ["apiGroups", "apiVersions", "resources"] {
                    let values = strings(&rule[key]);
                    assert!(!values.is_empty(), "{name}");
                    for value in values {
                        assert!(!value.trim_end_matches("/scale").contains(['*', '/']), "{name}: {value}");
                    }
                }
            }
            // Metadata-only writes, and what controllers make, do not come here.
            let conditions = entry["matchConditions"].to_string();
            assert_eq!(conditions.contains("object.spec != oldObject.spec"), !pods && !policy, "{name}");
            // Of all ConfigMaps one.
            assert_eq!(conditions.contains("object.metadata.name == 'plimsoll-policy'"), policy, "{name}");
            let owned = ["pods", "replicasets", "jobs"].iter().any(|r| resources.contains(r));
            assert_eq!(conditions.contains("ownerReferences"), owned, "{name}");
            kinds.push(format!("{path}: {}", resources.join(" ")));
        }
    }
    assert_eq!(
        kinds,
        [
            "/mutate: deployments statefulsets daemonsets",
            "/mutate: rollouts",
            "/mutate: poddisruptionbudgets",
            "/validate: deployments statefulsets daemonsets",
            "/validate: rollouts",
            "/validate: replicasets replicationcontrollers",
            "/validate: jobs cronjobs",
            "/validate: poddisruptionbudgets",
            "/validate: deployments/scale statefulsets/scale",
            "/validate: horizontalpodautoscalers",
            "/validate: services",
            "/validate: pods",
            "/validate: configmaps",
        ]
    );
}

pub fn leaves_exempt_namespaces_out_of_selector_and_policy() {
    let objects = rendered(&["exemptNamespaces={kube-system,network}"]);
    for kind in [MUTATING, VALIDATING] {
        for entry in of_kind(&objects, kind)["webhooks"].as_array().unwrap() {
            // Only our own policy is asked about in our own namespace.
            let expected = match entry["name"].as_str() {
                Some("policy.validate.plimsoll.dev") => {
                    serde_json::json!({"matchLabels": {"kubernetes.io/metadata.name": "plimsoll-system"}})
                }
                _ => serde_json::json!({"matchExpressions": [{
                    "key": "kubernetes.io/metadata.name", "operator": "NotIn",
                    "values": ["kube-system", "network", "plimsoll-system"]}]}),
            };
            assert_eq!(entry["namespaceSelector"], expected);
            assert_eq!(entry["failurePolicy"], "Ignore", "as shipped");
            assert_eq!(entry["timeoutSeconds"], 3, "as shipped");
            let service = &entry["clientConfig"]["service"];
            assert_eq!(service["name"], of_kind(&objects, "Service")["metadata"]["name"]);
            assert_eq!(service["namespace"], "plimsoll-system");
        }
    }
    let text = of_kind(&objects, "ConfigMap")["data"]["policy.yaml"].as_str().unwrap();
    let policy: Value = serde_saphyr::from_str(text).unwrap();
    assert_eq!(strings(&policy["spec"]["exempt"]["namespaces"]), ["kube-system", "network"]);
    assert_eq!(policy["spec"]["enforcement"], "warn", "as shipped");

    let objects = rendered(&["policy.existingConfigMap=ours"]);
    assert!(objects.iter().all(|o| o["kind"] != "ConfigMap"));
    let role = of_kind(&objects, "Role");
    assert_eq!(strings(&role["rules"][0]["resourceNames"]), ["ours"]);
}

pub fn asks_for_no_secrets_and_no_wildcards() {
    let objects = rendered(&[]);
    for kind in ["ClusterRole", "Role"] {
        for rule in of_kind(&objects, kind)["rules"].as_array().unwrap() {
            let text = rule.to_string();
            assert!(!text.contains("secrets") && !text.contains('*'), "{kind}: {text}");
            // But for Events, which nothing is decided by, it only reads.
            let may: &[&str] = if strings(&rule["resources"]) == ["events"] && kind == "Role" {
                &["create"]
            } else {
                &["get", "list", "watch"]
            };
            assert!(strings(&rule["verbs"]).iter().all(|verb| may.contains(verb)), "{kind}: {text}");
            let all_config = strings(&rule["resources"]).contains(&"configmaps")
                && strings(&rule["verbs"]) != ["get"]
                && rule["resourceNames"] == Value::Null;
            assert!(!all_config, "{kind} hands out every ConfigMap: {text}");
        }
    }
}

pub fn refuses_values_that_contradict() {
    for (values, complaint) in [
        (vec![URL, "webhook.service=other"], "exclude each other"),
        (vec!["webhook.timeoutSeconds=10"], "it must be 1 to 5"),
        (vec!["policy.spec.exempt.namespaces={a}"], "list the namespaces there"),
    ] {
        let output = render(&values);
        assert_ne!(output.code, 0, "{values:?}");
        assert!(output.stderr.contains(complaint), "{values:?}: {}", output.stderr);
    }
}

pub fn the_service_account_may_read_what_the_server_needs_and_no_more() {
    let case = Case::new("rbac");
    let plane = case.plane;
    let server = Kubectl::new(&plane.assets.kubectl, &plane.home, &case.dir.join("plimsoll.kubeconfig"));
    let who = server.ok(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]);
    assert_eq!(who, format!("system:serviceaccount:{SYSTEM}:{RELEASE}"));
    let policy = format!("configmap/{RELEASE}-policy");
    for (namespace, verb, what, allowed) in [
        (SYSTEM, "get", policy.as_str(), "yes"),
        (SYSTEM, "list", &policy, "yes"),
        (SYSTEM, "watch", &policy, "yes"),
        (SYSTEM, "watch", "configmaps", "no"),
        (SYSTEM, "update", &policy, "no"),
        (SYSTEM, "create", "events.events.k8s.io", "yes"),
        (&case.namespace, "create", "events.events.k8s.io", "no"),
        (&case.namespace, "get", "configmaps", "yes"),
        (&case.namespace, "list", "configmaps", "no"),
        (&case.namespace, "watch", "resourcequotas", "yes"),
        (&case.namespace, "watch", "limitranges", "yes"),
        (&case.namespace, "watch", "namespaces", "yes"),
        (&case.namespace, "get", "namespaces", "yes"),
        (&case.namespace, "watch", "poddisruptionbudgets.policy", "yes"),
        (&case.namespace, "watch", "horizontalpodautoscalers.autoscaling", "yes"),
        (&case.namespace, "watch", "services", "yes"),
        (&case.namespace, "watch", "persistentvolumeclaims", "yes"),
        (&case.namespace, "watch", "deployments.apps", "yes"),
        (&case.namespace, "watch", "statefulsets.apps", "yes"),
        (&case.namespace, "watch", "daemonsets.apps", "yes"),
        (&case.namespace, "watch", "replicasets.apps", "yes"),
        (&case.namespace, "get", "services", "no"),
        (&case.namespace, "list", "pods", "no"),
        (&case.namespace, "get", "customresourcedefinitions.apiextensions.k8s.io/rollouts.argoproj.io", "yes"),
        (&case.namespace, "list", "customresourcedefinitions.apiextensions.k8s.io", "no"),
        (&case.namespace, "list", "replicasets.apps", "yes"),
        (&case.namespace, "list", "controllerrevisions.apps", "yes"),
        (&case.namespace, "get", "secrets", "no"),
        (&case.namespace, "create", "pods", "no"),
        (&case.namespace, "update", "deployments.apps", "no"),
    ] {
        let answer = server.in_namespace(namespace).run(&["auth", "can-i", verb, what]).stdout;
        assert_eq!(answer.trim(), allowed, "{verb} {what} in {namespace}");
    }
}

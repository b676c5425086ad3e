//! The corpus is what is out there: its shares are those counted over 2,132 public workloads.

use serde_json::{Value, json};

use super::manifests::defaults::defaulted;
use super::manifests::{Manifest, manifests};

/// Each of these says how its pods are replaced: what a rollout is about.
const ROLLING: [&str; 4] = ["Deployment", "StatefulSet", "DaemonSet", "Rollout"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap()
}

fn pod(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]
}

fn items<'v>(value: &'v Value, member: &str) -> Vec<&'v Value> {
    value[member].as_array().into_iter().flatten().collect()
}

/// Regular containers: sidecars' probes say nothing of the application.
fn containers(object: &Value) -> Vec<&Value> {
    items(pod(object), "containers")
}

fn any_container(object: &Value, so: impl Fn(&Value) -> bool) -> bool {
    containers(object).into_iter().any(so)
}

fn has_probe(object: &Value, probes: &[&str]) -> bool {
    any_container(object, |container| probes.iter().any(|probe| container[*probe].is_object()))
}

/// The ports that probes ask, by number or name.
fn probed_ports(object: &Value) -> Vec<&Value> {
    let all = containers(object).into_iter().chain(items(pod(object), "initContainers"));
    all.flat_map(|container| PROBES.map(|probe| &container[probe]))
        .flat_map(|probe| [&probe["httpGet"]["port"], &probe["tcpSocket"]["port"]])
        .filter(|port| !port.is_null())
        .collect()
}

fn moves(image: &Value) -> bool {
    let image = image.as_str().unwrap();
    let name = image.rsplit('/').next().unwrap();
    !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// Whether the author wrote a value that the API server would have filled in: without it the object is the same.
fn says_a_default(object: &Value) -> bool {
    let full = defaulted(object);
    let mut pointers = Vec::new();
    leaves(&object["spec"], "/spec".to_owned(), &mut pointers);
    pointers.iter().any(|pointer| {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let mut without = object.clone();
        let parent = without.pointer_mut(parent).and_then(Value::as_object_mut);
        // A zero or an empty value is what is absent, for the API server.
        let Some(value) = parent.and_then(|parent| parent.remove(&member.replace("~1", "/"))) else { return false };
        [json!(0), json!(""), json!(false), json!({})].contains(&value) || defaulted(&without) == full
    })
}

fn leaves(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                leaves(value, format!("{at}/{}", key.replace('/', "~1")), found);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                leaves(value, format!("{at}/{index}"), found);
            }
        }
        Value::Null => {}
        _ => found.push(at),
    }
}

fn percent<T>(of: &[T], so: impl Fn(&T) -> bool) -> f64 {
    100.0 * of.iter().filter(|one| so(one)).count() as f64 / of.len() as f64
}

#[test]
fn the_mix_is_that_of_public_workloads() {
    let all = manifests();
    let all: Vec<&Value> = all.iter().map(|Manifest { object, .. }| object).collect();
    // A Rollout by reference has no pods of its own to look at.
    let rolling: Vec<&Value> = all
        .iter()
        .copied()
        .filter(|object| ROLLING.contains(&kind(object)) && object["spec"]["template"].is_object())
        .collect();
    let deployments: Vec<&Value> = rolling.iter().copied().filter(|object| kind(object) == "Deployment").collect();
    let services: Vec<&Value> = all.iter().copied().filter(|object| kind(object) == "Service").collect();
    let claims: Vec<&Value> = all.iter().copied().filter(|object| kind(object) == "PersistentVolumeClaim").collect();

    let selected: Vec<&Value> = rolling
        .iter()
        .copied()
        .filter(|object| {
            let labels = &object["spec"]["template"]["metadata"]["labels"];
            let all_match =
                |selector: &Value| selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value);
            services.iter().any(|service| all_match(&service["spec"]["selector"]))
        })
        .collect();
    let ports: Vec<&Value> = rolling.iter().copied().flat_map(probed_ports).collect();
    let strategy = |object: &Value| object["spec"]["strategy"]["type"].as_str().unwrap_or_default().to_owned();
    let no_strategy =
        |object: &Value| object["spec"]["strategy"].as_object().is_none_or(|strategy| strategy.is_empty());
    let grace = |object: &Value| pod(object)["terminationGracePeriodSeconds"].as_i64();
    let on_a_node_claim = |object: &Value| {
        items(pod(object), "volumes").iter().any(|volume| {
            let name = &volume["persistentVolumeClaim"]["claimName"];
            let claim = claims.iter().find(|claim| claim["metadata"]["name"] == *name);
            claim.is_some_and(|claim| claim["spec"]["accessModes"] == json!(["ReadWriteOnce"]))
        })
    };
    let annotated =
        |object: &Value| object["spec"]["template"]["metadata"]["annotations"].get("checksum/config").is_some();

    let shares = [
        (
            "Deployments of one replica",
            80.0,
            percent(&deployments, |d| d["spec"]["replicas"].as_i64().unwrap_or(1) == 1),
        ),
        ("Deployments with Recreate", 14.0, percent(&deployments, |d| strategy(d) == "Recreate")),
        ("Deployments without a strategy", 65.0, percent(&deployments, |d| no_strategy(d))),
        (
            "Deployments rolling on a ReadWriteOnce claim",
            5.0,
            percent(&deployments, |d| strategy(d) != "Recreate" && on_a_node_claim(d)),
        ),
        ("no probe at all", 35.0, percent(&rolling, |w| !has_probe(w, &PROBES))),
        ("selected by a Service, no readiness", 36.0, percent(&selected, |w| !has_probe(w, &["readinessProbe"]))),
        ("preStop", 3.0, percent(&rolling, |w| any_container(w, |c| !c["lifecycle"]["preStop"].is_null()))),
        ("startupProbe", 5.0, percent(&rolling, |w| has_probe(w, &["startupProbe"]))),
        ("probes of a named port", 57.0, percent(&ports, |port| port.is_string())),
        ("grace 10 s or 5 s", 4.0, percent(&rolling, |w| matches!(grace(w), Some(5 | 10)))),
        ("grace 0 s", 1.0, percent(&rolling, |w| grace(w) == Some(0))),
        ("latest or no tag", 10.0, percent(&rolling, |w| any_container(w, |c| moves(&c["image"])))),
        ("checksum/config of the chart", 11.0, percent(&rolling, |w| annotated(w))),
        ("an explicit API default", 95.0, percent(&rolling, |w| says_a_default(w))),
    ];
    let off: Vec<String> = shares
        .iter()
        .filter(|(_, public, ours)| (public - ours).abs() > 2.0)
        .map(|(what, public, ours)| format!("{what}: {ours:.1} % here, {public} % out there"))
        .collect();
    assert!(off.is_empty(), "{off:#?}\n{shares:#?}");
}

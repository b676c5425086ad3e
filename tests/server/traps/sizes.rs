//! J07: who sends a lot gets no more of our time than it takes to read it.
//!
//! Each object is judged by every rule at two sizes, one eight times the other, and the processor time of this thread is
//! compared: eight times in proportion, sixty-four times by the square. The bound lies far from both.

use plimsoll::engine::facts::{ConfigFacts, Facts, Known, Reason, ServerVersion};
use plimsoll::engine::finding::Action;
use plimsoll::engine::neighbours::Claim;
use plimsoll::engine::request::Endpoint;
use plimsoll::engine::{evaluate, needs};
use plimsoll::policy::Policy;
use plimsoll::review::Review;
use plimsoll::rules::REGISTRY;
use serde_json::{Map, Value, json};

/// Elements of the smaller object.
const SMALL: usize = 400;
/// How many times as many the larger one has.
const TIMES: usize = 8;
/// How many times as long it may take.
const MOST: f64 = 28.0;

fn list(count: usize, element: impl Fn(usize) -> Value) -> Value {
    (0..count).map(element).collect()
}

fn map(count: usize, member: impl Fn(usize) -> (String, Value)) -> Value {
    Value::Object((0..count).map(member).collect::<Map<_, _>>())
}

fn deployment(pod: Value) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"replicas": 3, "template": {"metadata": {}, "spec": pod}}})
}

fn one_container(mut members: Value) -> Value {
    members["name"] = json!("app");
    members["image"] = json!("app:latest");
    deployment(json!({"containers": [members]}))
}

/// Containers are bounded in number: an eighth of the other lists' elements.
fn containers(count: usize, element: impl Fn(usize) -> Value) -> Value {
    deployment(json!({"containers": list(count / 8, element)}))
}

/// Processor time of this thread, seconds.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Judges a review, its look-ups answered, by both webhooks; the processor time that it took, the best of three.
fn judge(policy: &Policy, body: &str) -> f64 {
    let once = || {
        let start = processor_time();
        for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
            let request = Review::parse(body.as_bytes()).unwrap().into_request(None).unwrap();
            let needs = needs(endpoint, policy, &request);
            let missing = ConfigFacts { missing_keys: vec!["k".to_owned()], ..ConfigFacts::default() };
            let claim =
                |name: usize| Claim { name: format!("n{name}"), access_modes: vec!["ReadWriteOnce".to_owned()] };
            let facts = Facts {
                server_version: Known::Known(ServerVersion::NEWEST),
                budgets: Known::Absent,
                autoscalers: Known::Absent,
                services: Known::Absent,
                workloads: Known::Absent,
                claims: Known::Known((0..SMALL).map(claim).collect()),
                digests: needs.digests.iter().map(|one| (one.clone(), Known::Known("digest".to_owned()))).collect(),
                configs: needs.configs.iter().map(|one| (one.clone(), Known::Known(missing.clone()))).collect(),
                ..Facts::unknown(Reason::NotAsked)
            };
            std::hint::black_box(evaluate(endpoint, policy, &request, &facts));
        }
        processor_time() - start
    };
    (0..3).map(|_| once()).fold(f64::MAX, f64::min)
}

fn grows_in_proportion(kind: (&str, &str), old: Option<&dyn Fn(usize) -> Value>, object: &dyn Fn(usize) -> Value) {
    let rules: Vec<_> =
        REGISTRY.iter().map(|rule| (rule.meta().id, Action::Deny, rule.meta().fixable, json!({}))).collect();
    let policy = Policy::of(&rules).unwrap();
    let time = |size: usize| {
        let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "operation": operation, "namespace": "shop", "object": object(size),
            "kind": {"group": kind.0, "version": "v1", "kind": kind.1}, "oldObject": old.map(|old| old(size))}});
        judge(&policy, &review.to_string())
    };
    let (small, large) = (time(SMALL), time(SMALL * TIMES));
    assert!(large < small * MOST, "{TIMES} times the size took {} times as long", large / small);
}

fn created(object: &dyn Fn(usize) -> Value) {
    grows_in_proportion(("apps", "Deployment"), None, object);
}

fn updated(old: &dyn Fn(usize) -> Value, object: &dyn Fn(usize) -> Value) {
    grows_in_proportion(("apps", "Deployment"), Some(old), object);
}

#[test]
fn j07_containers() {
    let port = |index: usize| json!([{"name": "http", "containerPort": index + 1, "hostPort": 80}]);
    created(&|size| containers(size, |index| json!({"name": format!("c{index}"), "image": "a", "ports": port(index)})));
    created(&|size| containers(size, |_| json!({"name": "c", "image": "a", "ports": port(1)})));
}

#[test]
fn j07_environment() {
    let name = |index: usize| format!("E{index}");
    created(&|size| one_container(json!({"env": list(size, |i| json!({"name": name(i % (size / 2)), "value": "v"}))})));
    let key = |name: String, key: String| json!({"configMapKeyRef": {"name": name, "key": key}});
    created(&|size| {
        one_container(json!({"env": list(size, |i| json!({"name": name(i), "valueFrom": key("m".into(), name(i))}))}))
    });
    created(&|size| {
        let one = |i: usize| json!({"name": name(i), "valueFrom": key(format!("m{i}"), "k".into())});
        one_container(json!({"env": list(size, one)}))
    });
    let opened = "$(".repeat(20);
    created(&|size| {
        let one = |i: usize| json!({"name": name(i % (size / 2)), "value": format!("{opened}E)")});
        one_container(json!({"env": list(size, one)}))
    });
}

#[test]
fn j07_volumes() {
    let with = |size: usize, volume: &dyn Fn(usize) -> Value| {
        let mount = |i: usize| json!({"name": format!("n{i}"), "mountPath": "/m", "subPath": "s"});
        let mut object = one_container(json!({"volumeMounts": list(size, mount)}));
        object["spec"]["template"]["spec"]["volumes"] = list(size, |i| {
            let mut volume = volume(i);
            volume["name"] = json!(format!("n{i}"));
            volume
        });
        object
    };
    created(&|size| with(size, &|i| json!({"configMap": {"name": format!("m{i}")}})));
    created(&|size| with(size, &|_| json!({"hostPath": {"path": "/etc/localtime"}})));
    created(&|size| with(size, &|i| json!({"persistentVolumeClaim": {"claimName": format!("n{i}")}})));
    let item = |i: usize| json!({"configMap": {"name": "m", "items": [{"key": format!("k{i}"), "path": "p"}]}});
    created(&|size| with(1, &|_| json!({"projected": {"sources": list(size, item)}})));
    grows_in_proportion(("apps", "StatefulSet"), None, &|size| {
        let mut object = with(size, &|_| json!({"persistentVolumeClaim": {"claimName": "one"}}));
        object["spec"]["volumeClaimTemplates"] = list(size, |i| json!({"metadata": {"name": format!("x{i}")}}));
        object
    });
}

#[test]
fn j07_annotations_and_our_own_among_them() {
    let annotated = |key: &'static str, entry: &'static dyn Fn(usize) -> String| {
        move |size: usize| {
            let container = |i: usize| json!({"name": format!("c{i}"), "ports": [{"containerPort": 80}]});
            let mut object = containers(size, container);
            let entries: Vec<String> = (0..size).map(entry).collect();
            object["metadata"]["annotations"] = json!({key: entries.join(",")});
            object
        }
    };
    created(&annotated("plimsoll.dev/fixed", &|i| format!("missing-pre-stop/c{i}")));
    created(&annotated("plimsoll.dev/skip-fixes", &|i| format!("rule-{i}")));
    let marked = annotated("plimsoll.dev/fixed", &|i| format!("missing-pre-stop/c{i}"));
    let hooked = |size: usize| {
        let mut object = marked(size);
        for container in object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap() {
            container["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 5}}});
        }
        object
    };
    updated(&hooked, &marked);
    let many = |turned: bool| {
        move |size: usize| {
            let mut object = one_container(json!({}));
            let number = |i: usize| if turned { size - i } else { i };
            object["spec"]["template"]["metadata"]["annotations"] =
                map(size, |i| (format!("a{i}"), json!(number(i).to_string())));
            object
        }
    };
    updated(&many(false), &many(true));
}

#[test]
fn j07_selectors_and_services() {
    grows_in_proportion(("policy", "PodDisruptionBudget"), None, &|size| {
        let expression = |i: usize| json!({"key": format!("k{i}"), "operator": "NotIn", "values": ["v"]});
        json!({"metadata": {"name": "b"}, "spec": {"minAvailable": "100%",
            "selector": {"matchExpressions": list(size, expression)}}})
    });
    grows_in_proportion(("", "Service"), None, &|size| {
        let port = |i: usize| json!({"port": i, "targetPort": format!("n{i}")});
        json!({"metadata": {"name": "s"}, "spec": {"selector": {"app": "web"}, "ports": list(size, port)}})
    });
}

//! Group E: termination.

use plimsoll::engine::finding::Action;
use plimsoll::policy::Policy;
use serde_json::{Value, json};

use super::b::{B02, B13};
use super::world::{World, container, same_operations, yaml};

const PRE_STOP: &str = "/spec/template/spec/containers/0/lifecycle/preStop";
const GRACE: &str = "/spec/template/spec/terminationGracePeriodSeconds";

/// A workload that satisfies P0 but has no preStop hook.
fn hookless() -> Value {
    let mut object = yaml(B13);
    object["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": 0, "maxSurge": 1});
    container(&mut object).remove("lifecycle");
    object
}

/// It with this preStop hook and grace period.
fn with_hook(hook: Value, grace: i64) -> Value {
    let mut object = hookless();
    container(&mut object).insert("lifecycle".to_owned(), json!({"preStop": hook}));
    object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(grace);
    object
}

fn with_sleep(seconds: i64, grace: i64) -> Value {
    with_hook(json!({"sleep": {"seconds": seconds}}), grace)
}

fn with_grace(grace: i64) -> Value {
    let mut object = hookless();
    object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(grace);
    object
}

fn of_kind(api_version: &str, kind: &str) -> Value {
    let mut object = hookless();
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["spec"].as_object_mut().unwrap().remove("strategy");
    object
}

fn marked(claims: &str) -> Value {
    json!({"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": claims}})
}

fn adds_sleep(seconds: i64) -> Value {
    json!({"op": "add", "path": "/spec/template/spec/containers/0/lifecycle",
           "value": {"preStop": {"sleep": {"seconds": seconds}}}})
}

fn never_a_hook(world: &World, object: &Value) {
    let answer = world.create(object).mutate();
    assert!(!answer.patch.unwrap_or_default().to_string().contains("preStop"), "{object}");
}

#[test]
fn e01_the_sleep_is_native_and_an_exec_is_the_authors() {
    let world = World::p0();
    same_operations(
        &world.create(&hookless()).mutate().patch(),
        &json!([marked("missing-pre-stop/c"), adds_sleep(10)]),
    );
    let exec = with_hook(json!({"exec": {"command": ["/bin/sh", "-c", "sleep 10"]}}), 30);
    assert_eq!(world.create(&exec).mutate().patch, None);
    assert!(world.create(&exec).validate().allowed);
}

#[test]
fn e02_sleep_and_drain_must_fit_the_grace() {
    let world = World::p0();
    assert!(world.create(&with_sleep(25, 30)).validate().is_silent());
    let exec = |seconds: i64| with_hook(json!({"exec": {"command": ["sleep", seconds.to_string()]}}), 45);
    assert!(world.create(&exec(40)).validate().is_silent());
    for (object, needed) in
        [(with_sleep(41, 45), 46), (with_sleep(45, 45), 50), (exec(41), 46), (with_sleep(600, 45), 605)]
    {
        let asked = world.create(&object);
        assert_eq!(asked.mutate().patch, None, "what an author set is judged, never rewritten");
        let answer = asked.validate();
        assert!(answer.denied(), "{answer:?}");
        assert!(answer.message.contains(&format!("[short-grace-period] {GRACE}: ")), "{answer:?}");
        assert!(answer.message.contains(&format!("terminationGracePeriodSeconds: {needed}")), "{answer:?}");
    }
    // Hooks whose time cannot be told count nothing.
    assert!(world.create(&with_hook(json!({"httpGet": {"path": "/stop", "port": 80}}), 30)).validate().allowed);
}

#[test]
fn e02_a_sleep_that_fits_the_default_needs_no_other_grace() {
    let patch = World::p0().create(&hookless()).mutate().patch();
    same_operations(&patch, &json!([marked("missing-pre-stop/c"), adds_sleep(10)]));
}

#[test]
fn e02_a_longer_sleep_raises_the_default_grace_in_the_same_patch() {
    let world = World::p0().params("missing-pre-stop", json!({"sleepSeconds": 28}));
    same_operations(
        &world.create(&hookless()).mutate().patch(),
        &json!([
            marked("missing-pre-stop/c,short-grace-period"),
            adds_sleep(28),
            {"op": "replace", "path": GRACE, "value": 33}
        ]),
    );
    // The two rules agree: what was written is right, and a second round changes nothing.
    let stored = world.mutated(&hookless());
    assert!(world.create(&stored).validate().is_silent());
    assert!(world.create(&stored).mutate().is_silent());
}

#[test]
fn e02_an_authors_grace_stays_and_the_sleep_shrinks_to_it() {
    let world = World::p0().params("missing-pre-stop", json!({"sleepSeconds": 28}));
    for (grace, sleep) in [(60, 28), (33, 28), (32, 27), (20, 15), (6, 1)] {
        let patch = world.create(&with_grace(grace)).mutate().patch();
        same_operations(&patch, &json!([marked("missing-pre-stop/c"), adds_sleep(sleep)]));
    }
    for grace in [5, 1] {
        assert_eq!(world.create(&with_grace(grace)).mutate().patch, None, "grace {grace}");
        let answer = world.create(&with_grace(grace)).validate();
        assert!(answer.allowed && answer.warns(&[PRE_STOP, "leaves no room beside 5 s to drain"]), "{answer:?}");
    }
    // 30 is the author's where somebody applied it.
    let mut applied = hookless();
    applied["metadata"]["managedFields"] = json!([{
        "manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:terminationGracePeriodSeconds": {}}}}}
    }]);
    let patch = world.create(&applied).mutate().patch();
    same_operations(&patch, &json!([marked("missing-pre-stop/c"), adds_sleep(25)]));
}

#[test]
fn e02_a_hook_that_the_default_grace_cannot_hold_is_mended_where_nobody_set_it() {
    let world = World::p0();
    same_operations(
        &world.create(&with_sleep(40, 30)).mutate().patch(),
        &json!([marked("short-grace-period"), {"op": "replace", "path": GRACE, "value": 45}]),
    );
    // What the policy's own fix can mend never denies.
    assert!(world.create(&with_sleep(40, 30)).validate().allowed);
    // Without the fix it does.
    let action = Action::Deny;
    let no_fix = World::p0().rule("short-grace-period", action, false, json!({"drainSeconds": 5, "minSeconds": 30}));
    assert_eq!(no_fix.create(&with_sleep(40, 30)).mutate().patch, None);
    assert!(no_fix.create(&with_sleep(40, 30)).validate().denied());
}

#[test]
fn e02_a_negative_grace_gets_no_sleep() {
    let world = World::p0();
    let answer = world.create(&with_grace(-1)).mutate();
    assert_eq!(answer.patch, None);
    assert!(world.create(&with_grace(-1)).validate().allowed);
}

#[test]
fn e02_a_short_grace_of_a_serving_workload_only_warns() {
    let mut object = with_sleep(2, 10);
    let world = World::p0();
    assert!(world.create(&object).validate().is_silent(), "nobody is served");
    container(&mut object).insert("ports".to_owned(), json!([{"containerPort": 8080}]));
    let answer = world.create(&object).validate();
    assert!(answer.allowed && answer.warns(&["[short-grace-period]", "is 10, below 30 s"]), "{answer:?}");
    assert_eq!(world.create(&object).mutate().patch, None);
}

#[test]
fn e03_a_grace_of_zero_runs_no_hook() {
    for kind in ["Deployment", "StatefulSet"] {
        let mut object = with_grace(0);
        object["kind"] = json!(kind);
        let asked = World::p0();
        let answer = asked.create(&object).mutate();
        assert!(!answer.writes("/spec/template/spec/containers/0/lifecycle"), "{answer:?}");
        let answer = asked.create(&object).validate();
        assert!(answer.allowed, "{answer:?}");
        assert!(answer.warns(&[PRE_STOP, "a terminationGracePeriodSeconds of 0 runs no hook"]), "{answer:?}");
    }
}

#[test]
fn e04_a_hook_that_is_there_stays() {
    let world = World::p0();
    let answer = world.create(&yaml(B02)).mutate();
    assert!(!answer.writes("/spec/template/spec/containers/0/lifecycle"), "{answer:?}");
    for hook in [
        json!({"sleep": {"seconds": 0}}),
        json!({"exec": {"command": ["/bin/drain"]}}),
        json!({"httpGet": {"path": "/stop", "port": 8080}}),
        json!({"newer": {}}),
        json!({}),
    ] {
        let object = with_hook(hook.clone(), 30);
        assert_eq!(world.create(&object).mutate().patch, None, "{hook}");
        assert!(world.create(&object).validate().is_silent(), "{hook}");
    }
}

#[test]
fn e05_the_rest_of_lifecycle_stays() {
    let mut object = hookless();
    let lifecycle = json!({"postStart": {"exec": {"command": ["/bin/warm"]}}, "stopSignal": "SIGUSR1"});
    container(&mut object).insert("lifecycle".to_owned(), lifecycle);
    same_operations(
        &World::p0().create(&object).mutate().patch(),
        &json!([marked("missing-pre-stop/c"), {"op": "add", "path": PRE_STOP, "value": {"sleep": {"seconds": 10}}}]),
    );
}

#[test]
fn e06_only_where_somebody_can_connect() {
    let world = World::p0().params("missing-pre-stop", json!({"sleepSeconds": 10, "onlyIfPorts": true}));
    assert!(world.create(&hookless()).mutate().is_silent());
    assert!(world.create(&hookless()).validate().is_silent());
    let mut serving = hookless();
    container(&mut serving).insert("ports".to_owned(), json!([{"containerPort": 8080}]));
    assert!(world.create(&serving).mutate().writes("/spec/template/spec/containers/0/lifecycle"));
}

#[test]
fn e06_nobody_is_told_that_the_endpoint_goes_first() {
    let answer = World::p0().create(&hookless()).validate();
    assert!(answer.warns(&["container \"c\" has no preStop hook: it gets SIGTERM while load balancers still send it"]));
}

#[test]
fn e07_every_regular_container_sleeps_and_the_longest_counts() {
    let world = World::p0();
    let mut object = with_sleep(20, 45);
    let containers = object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
    let mut second = containers[0].clone();
    second["name"] = json!("d");
    containers.push(second);
    // 20 s and 20 s are 20 s, not 40.
    assert!(world.create(&object).validate().is_silent());
    object["spec"]["template"]["spec"]["containers"][1]["lifecycle"]["preStop"]["sleep"]["seconds"] = json!(41);
    let answer = world.create(&object).validate();
    assert!(answer.denied() && answer.message.contains("container \"d\" takes 41 s"), "{answer:?}");

    for index in [0, 1] {
        let container = &mut object["spec"]["template"]["spec"]["containers"][index];
        container.as_object_mut().unwrap().remove("lifecycle");
    }
    let sleep = json!({"preStop": {"sleep": {"seconds": 10}}});
    same_operations(
        &world.create(&object).mutate().patch(),
        &json!([
            marked("missing-pre-stop/c,missing-pre-stop/d"),
            {"op": "add", "path": "/spec/template/spec/containers/0/lifecycle", "value": sleep},
            {"op": "add", "path": "/spec/template/spec/containers/1/lifecycle", "value": sleep}
        ]),
    );
}

#[test]
fn e08_native_sidecars_get_no_hook() {
    let mut object = with_sleep(10, 30);
    object["spec"]["template"]["spec"]["initContainers"] = json!([
        {"name": "mesh", "image": "reg.example/mesh:1", "restartPolicy": "Always",
         "ports": [{"containerPort": 15001}], "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]);
    let world = World::p0();
    assert!(world.create(&object).mutate().is_silent());
    assert!(world.create(&object).validate().is_silent());
}

#[test]
fn e09_the_sleep_stays_small() {
    for seconds in [0, 61, 3600] {
        let world = World::p0().params("missing-pre-stop", json!({"sleepSeconds": seconds}));
        let error = Policy::parse(&world.policy()).unwrap_err().to_string();
        assert!(error.contains("spec.rules.missing-pre-stop.params.sleepSeconds"), "{error}");
        assert!(error.contains(&format!("{seconds} is out of range: 1 to 60 seconds")), "{error}");
    }
    for seconds in [1, 60] {
        let world = World::p0().params("missing-pre-stop", json!({"sleepSeconds": seconds}));
        assert!(Policy::parse(&world.policy()).is_ok());
    }
}

#[test]
fn e10_what_runs_to_completion_gets_no_sleep() {
    let world = World::p0();
    let job = of_kind("batch/v1", "Job");
    assert_eq!(world.create(&job).mutate().patch, None);
    let mut cron_job = of_kind("batch/v1", "CronJob");
    cron_job["spec"] = json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": job["spec"]["template"]}}});
    assert_eq!(world.create(&cron_job).mutate().patch, None);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                     "spec": job["spec"]["template"]["spec"]});
    assert_eq!(world.create(&pod).mutate().patch, None);
    for policy in ["Never", "OnFailure"] {
        let mut object = hookless();
        object["spec"]["template"]["spec"]["restartPolicy"] = json!(policy);
        assert_eq!(world.create(&object).mutate().patch, None, "{policy}");
    }
}

#[test]
fn e11_a_tcp_socket_hook_is_left_alone() {
    let object = with_hook(json!({"tcpSocket": {"port": 80}}), 30);
    assert_eq!(World::p0().create(&object).mutate().patch, None);
    assert!(World::p0().create(&object).validate().allowed);
}

#[test]
fn e12_no_exec_sleep_on_any_system_or_server() {
    let mut object = hookless();
    object["spec"]["template"]["spec"]["os"] = json!({"name": "windows"});
    let world = World::p0().server_version("1.28");
    let answer = world.create(&object).mutate();
    assert!(!answer.writes("/spec/template/spec/containers/0/lifecycle"), "{answer:?}");
    assert!(answer.warns(&["native sleep needs Kubernetes ≥ 1.30"]), "{answer:?}");
    // The native one is the kubelet's, whatever the system.
    assert!(World::p0().create(&object).mutate().writes("/spec/template/spec/containers/0/lifecycle"));
}

#[test]
fn e13_daemon_sets_only_by_parameter() {
    let mut object = of_kind("apps/v1", "DaemonSet");
    object["spec"].as_object_mut().unwrap().remove("replicas");
    object["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    let world = World::p0();
    assert!(world.create(&object).mutate().is_silent());
    assert!(world.create(&object).validate().is_silent());
    let world = World::p0().params("missing-pre-stop", json!({"sleepSeconds": 10, "daemonSets": true}));
    same_operations(&world.create(&object).mutate().patch(), &json!([marked("missing-pre-stop/c"), adds_sleep(10)]));
}

#[test]
fn a_crd_that_drops_the_sleep_gets_none() {
    let mut object = of_kind("argoproj.io/v1alpha1", "Rollout");
    object["spec"]["strategy"] = json!({"blueGreen": {"activeService": "web"}});
    let world = World::p0().crd_sleep(false);
    never_a_hook(&world, &object);
    assert!(world.create(&object).mutate().warns(&[PRE_STOP, "does not know the sleep action"]));
    let patch = World::p0().create(&object).mutate().patch();
    same_operations(&patch, &json!([marked("missing-pre-stop/c"), adds_sleep(10)]));
}

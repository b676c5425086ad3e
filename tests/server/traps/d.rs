//! Group D: probes.

use serde_json::{Value, json};

use super::b::B13;
use super::world::{World, container, same_operations, yaml};

/// The object of D03: starts slowly, its liveness probe is patient.
const D03: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: slow}
spec:
  replicas: 2
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata: {labels: {app: slow}, annotations: {}}
    spec:
      terminationGracePeriodSeconds: 30
      containers:
      - name: c
        image: reg.example/app:1.2.3
        resources: {requests: {cpu: 10m, memory: 16Mi}}
        lifecycle: {preStop: {sleep: {seconds: 10}}}
        ports: [{name: http, containerPort: 8080}]
        livenessProbe:
          httpGet: {path: /healthz, port: http, scheme: HTTPS, httpHeaders: [{name: X-P, value: "1"}]}
          initialDelaySeconds: 200
          periodSeconds: 10
          timeoutSeconds: 2
          successThreshold: 1
          failureThreshold: 3
"#;

/// A workload that satisfies P0, its strategy given.
fn safe() -> Value {
    let mut object = yaml(B13);
    object["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": 0, "maxSurge": 1});
    object
}

/// It with this liveness probe.
fn with_liveness(probe: Value) -> Value {
    let mut object = safe();
    container(&mut object).insert("livenessProbe".to_owned(), probe);
    object
}

/// The startup probe that is added to the first container.
fn startup_probe(object: &Value) -> Value {
    let mutated = World::p0().mutated(object);
    let container = &mutated["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["livenessProbe"], object["spec"]["template"]["spec"]["containers"][0]["livenessProbe"],
        "the liveness probe is untouched"
    );
    container["startupProbe"].clone()
}

/// No probe is added, and nothing else is changed.
fn adds_nothing(object: &Value) {
    assert_eq!(World::p0().create(object).mutate().patch, None, "{object}");
}

#[test]
fn d01_no_success_threshold_is_written() {
    let probe = startup_probe(&with_liveness(json!({"tcpSocket": {"port": 80}, "successThreshold": 1})));
    assert_eq!(probe, json!({"tcpSocket": {"port": 80}, "periodSeconds": 5, "failureThreshold": 24}));
    // Nor one that only a readiness probe may have.
    let mut object = with_liveness(json!({"tcpSocket": {"port": 80}, "successThreshold": 1}));
    container(&mut object)
        .insert("readinessProbe".to_owned(), json!({"httpGet": {"path": "/ready", "port": 80}, "successThreshold": 3}));
    assert_eq!(startup_probe(&object), probe);
}

#[test]
fn d02_a_readiness_probe_alone_makes_no_startup_probe() {
    let mut object = safe();
    container(&mut object).insert("readinessProbe".to_owned(), json!({"httpGet": {"path": "/ready", "port": 80}}));
    adds_nothing(&object);
    assert!(World::p0().create(&object).validate().is_silent());
}

#[test]
fn d03_the_budget_does_not_shrink_what_liveness_allowed() {
    same_operations(
        &World::p0().create(&yaml(D03)).mutate().patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "missing-startup-probe/c"}},
            {"op": "add", "path": "/spec/template/spec/containers/0/startupProbe", "value": {
                "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTPS",
                            "httpHeaders": [{"name": "X-P", "value": "1"}]},
                "periodSeconds": 5, "timeoutSeconds": 2, "failureThreshold": 46}}
        ]),
    );
}

#[test]
fn d03_numbers() {
    // (initialDelaySeconds, periodSeconds, failureThreshold) to (periodSeconds, failureThreshold), budget 120 s.
    for (liveness, expected) in [
        ((0, 10, 3), (5, 24)),
        ((0, 0, 3), (5, 24)),
        ((0, 3, 3), (3, 40)),
        ((0, 1, 1), (1, 120)),
        ((1, 7, 17), (5, 24)),
        ((2, 7, 17), (5, 25)),
        ((0, 60, 3), (5, 36)),
        ((0, 4, 31), (4, 31)),
    ] {
        let (delay, period, failures) = liveness;
        let probe = startup_probe(&with_liveness(json!({"tcpSocket": {"port": 80}, "initialDelaySeconds": delay,
            "periodSeconds": period, "failureThreshold": failures})));
        assert_eq!((&probe["periodSeconds"], &probe["failureThreshold"]), (&json!(expected.0), &json!(expected.1)));
        assert!(probe.get("initialDelaySeconds").is_none() && probe.get("timeoutSeconds").is_none(), "{probe}");
    }
}

#[test]
fn d04_the_handler_is_copied_as_it_is() {
    for (handler, action) in [
        ("exec", json!({"command": ["/bin/check", "--deep"]})),
        ("httpGet", json!({"path": "/healthz", "port": 8080, "scheme": "HTTP", "newer": {"a": [1, null]}})),
        ("tcpSocket", json!({"port": 5432, "host": "127.0.0.1"})),
        ("grpc", json!({"port": 9090, "service": null})),
        ("newerHandler", json!({"anything": [1.50, "x"]})),
    ] {
        let probe = startup_probe(&with_liveness(json!({handler: action, "periodSeconds": 10})));
        assert_eq!(probe[handler], action, "{handler}");
        assert_eq!(probe.as_object().unwrap().len(), 3, "{probe}");
    }
    // Members that are null are none.
    let probe = startup_probe(&with_liveness(json!({"exec": null, "grpc": null, "tcpSocket": {"port": 80}})));
    assert_eq!(probe, json!({"tcpSocket": {"port": 80}, "periodSeconds": 5, "failureThreshold": 24}));
}

#[test]
fn d04_no_handler_or_two_are_left_to_the_server() {
    adds_nothing(&with_liveness(json!({"periodSeconds": 10})));
    adds_nothing(&with_liveness(json!({"tcpSocket": {"port": 80}, "exec": {"command": ["true"]}})));
    adds_nothing(&with_liveness(json!({"httpGet": "/healthz"})));
    adds_nothing(&with_liveness(json!("yes")));
    for number in [json!(-1), json!(1.5), json!("10")] {
        adds_nothing(&with_liveness(json!({"tcpSocket": {"port": 80}, "periodSeconds": number})));
    }
}

#[test]
fn d05_init_containers_get_no_probe() {
    let mut object = safe();
    let probe = json!({"tcpSocket": {"port": 80}});
    object["spec"]["template"]["spec"]["initContainers"] = json!([
        {"name": "i", "image": "x:1", "livenessProbe": probe},
        {"name": "on-failure", "image": "x:1", "restartPolicy": "OnFailure", "livenessProbe": probe},
        {"name": "sidecar", "image": "x:1", "restartPolicy": "Always", "livenessProbe": probe,
         "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}},
    ]);
    adds_nothing(&object);
    assert!(!World::p0().create(&object).validate().warns(&["startupProbe"]));
}

#[test]
fn d05_a_regular_container_may_have_a_restart_policy_of_its_own() {
    let mut object = with_liveness(json!({"tcpSocket": {"port": 80}}));
    container(&mut object).insert("restartPolicy".to_owned(), json!("Never"));
    assert_eq!(startup_probe(&object)["failureThreshold"], 24);
}

#[test]
fn d06_the_probes_own_grace_is_not_copied() {
    let object = with_liveness(json!({"tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": 60}));
    let probe = startup_probe(&object);
    assert_eq!(probe, json!({"tcpSocket": {"port": 80}, "periodSeconds": 5, "failureThreshold": 24}));
}

#[test]
fn d07_no_probe_from_a_port_that_the_container_does_not_declare() {
    let mut object = with_liveness(json!({"httpGet": {"path": "/", "port": "web"}}));
    container(&mut object).insert("ports".to_owned(), json!([{"name": "http", "containerPort": 80}]));
    // Names resolve within the same container only.
    let neighbour = json!({"name": "d", "image": "x:1", "ports": [{"name": "web", "containerPort": 81}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}, "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}});
    object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().push(neighbour);
    adds_nothing(&object);
    let answer = World::p0().create(&object).validate();
    assert!(answer.allowed && answer.warns(&["[missing-startup-probe]", "port \"web\", which the container does not"]));
    container(&mut object).insert("ports".to_owned(), json!([{"name": "web", "containerPort": 80}]));
    assert_eq!(startup_probe(&object)["httpGet"]["port"], "web");
}

#[test]
fn d08_equal_probes_are_no_denial() {
    let mut object = with_liveness(json!({"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}}));
    container(&mut object).insert("readinessProbe".to_owned(), json!({"httpGet": {"port": 80}}));
    container(&mut object).insert("startupProbe".to_owned(), json!({"httpGet": {"port": 80}}));
    adds_nothing(&object);
    assert!(World::p0().create(&object).validate().allowed);
}

#[test]
fn d09_what_runs_to_completion_gets_no_startup_probe() {
    let pod = json!({"restartPolicy": "OnFailure", "containers": [{
        "name": "c", "image": "reg.example/app:1", "livenessProbe": {"tcpSocket": {"port": 80}},
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]});
    let meta = json!({"name": "once"});
    adds_nothing(
        &json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": {"spec": pod}}}),
    );
    adds_nothing(&json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta,
                         "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}}));
    let mut object = with_liveness(json!({"tcpSocket": {"port": 80}}));
    object["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    adds_nothing(&object);
}

#[test]
fn d10_numbers_that_a_crd_leaves_out_are_the_apis_defaults() {
    let mut object = with_liveness(json!({"httpGet": {"path": "/healthz", "port": 8080}, "initialDelaySeconds": 100}));
    object["apiVersion"] = json!("argoproj.io/v1alpha1");
    object["kind"] = json!("Rollout");
    object["spec"]["strategy"] = json!({"blueGreen": {"activeService": "web"}});
    // 100 s and 3 times 10 s.
    let expected = json!({"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 5, "failureThreshold": 26});
    assert_eq!(startup_probe(&object), expected);
}

#[test]
fn a_startup_probe_that_is_there_is_the_authors() {
    let mut object = with_liveness(json!({"tcpSocket": {"port": 80}}));
    container(&mut object).insert("startupProbe".to_owned(), json!({"tcpSocket": {"port": 81}, "failureThreshold": 1}));
    adds_nothing(&object);
}

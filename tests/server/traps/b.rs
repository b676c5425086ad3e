//! Group B: patching.

use serde_json::{Value, json};

use super::world::{World, digest_in, same_operations, yaml};

/// The object of B01: satisfies P0 but for the digest.
pub const B01: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata: {labels: {app: web}, annotations: {team: a}}
    spec:
      terminationGracePeriodSeconds: 30
      containers:
      - name: c
        image: reg.example/app:1.2.3
        resources: {requests: {cpu: 10m, memory: 16Mi}}
        lifecycle: {preStop: {sleep: {seconds: 10}}}
        envFrom: [{configMapRef: {name: cfg}}]
"#;

/// The object of B02: B01 without template annotations.
pub const B02: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 30
      containers:
      - name: c
        image: reg.example/app:1.2.3
        resources: {requests: {cpu: 10m, memory: 16Mi}}
        lifecycle: {preStop: {sleep: {seconds: 10}}}
        envFrom: [{configMapRef: {name: cfg}}]
"#;

/// The object of B13: the API server's default strategy, which nobody wrote.
pub const B13: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 25%, maxSurge: 25%}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 30
      containers:
      - name: c
        image: reg.example/app:1.2.3
        resources: {requests: {cpu: 10m, memory: 16Mi}}
        lifecycle: {preStop: {sleep: {seconds: 10}}}
"#;

/// B02's object after its patch.
fn b02_result(world: &World) -> Value {
    world.mutated(&yaml(B02))
}

#[test]
fn b01_a_slash_in_an_annotation_key_is_escaped() {
    let patch = World::p0().create(&yaml(B01)).mutate().patch();
    let digest = digest_in(&patch);
    same_operations(
        &patch,
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "config-checksum"}},
            {"op": "add", "path": "/spec/template/metadata/annotations/plimsoll.dev~1config-checksum", "value": digest}
        ]),
    );
}

#[test]
fn b02_a_missing_map_is_created_with_its_final_value() {
    let patch = World::p0().create(&yaml(B02)).mutate().patch();
    let digest = digest_in(&patch);
    same_operations(
        &patch,
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "config-checksum"}},
            {"op": "add", "path": "/spec/template/metadata/annotations",
             "value": {"plimsoll.dev/config-checksum": digest}}
        ]),
    );
}

#[test]
fn b02_a_template_without_metadata_gets_it_in_one_operation() {
    let mut object = yaml(B02);
    object["spec"]["template"].as_object_mut().unwrap().remove("metadata");
    let patch = World::p0().create(&object).mutate().patch();
    let digest = digest_in(&patch);
    same_operations(
        &patch,
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "config-checksum"}},
            {"op": "add", "path": "/spec/template/metadata",
             "value": {"annotations": {"plimsoll.dev/config-checksum": digest}}}
        ]),
    );
}

#[test]
fn b03_annotations_that_exist_are_never_replaced_as_a_whole() {
    let patch = World::p0().create(&yaml(B01)).mutate().patch();
    for operation in patch.as_array().unwrap() {
        assert_ne!(operation["path"], "/spec/template/metadata/annotations");
    }
}

#[test]
fn b04_what_does_not_resolve_drops_the_patch_and_is_counted() {
    // `annotations` of a workload is a string: the marker has no place.
    let mut object = yaml(B13);
    object["metadata"]["annotations"] = json!("nonsense");
    let world = World::p0();
    let answer = world.create(&object).mutate();
    assert!(answer.allowed && answer.patch.is_none());
    assert_eq!(world.metric("plimsoll_anomalies_total", &[("reason", "patch-dropped")]), 1);
}

#[test]
fn b05_members_newer_than_our_schema_survive() {
    let mut object = yaml(B02);
    object["spec"]["template"]["spec"]["containers"][0]["resizePolicy"] =
        json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"}]);
    object["spec"]["template"]["spec"]["brandNew"] = json!({"deep": [1, {"a": null}]});
    let world = World::p0();
    let patch = world.create(&object).mutate().patch();
    assert!(patch.as_array().unwrap().iter().all(|operation| operation["op"] != "remove"));
    let mutated = world.mutated(&object);
    assert_eq!(mutated["spec"]["template"]["spec"], object["spec"]["template"]["spec"]);
}

#[test]
fn b06_a_second_round_changes_nothing() {
    let world = World::p0();
    let result = b02_result(&world);
    assert_eq!(world.create(&result).mutate().patch, None);
}

#[test]
fn b06_what_the_api_server_completed_is_still_in_place() {
    let mut object = yaml(B13);
    let container = &mut object["spec"]["template"]["spec"]["containers"][0];
    container["ports"] = json!([{"name": "http", "containerPort": 8080}]);
    container["livenessProbe"] = json!({
        "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
    });
    let world = World::p0();
    let mut stored = world.mutated(&object);
    let marker = "/metadata/annotations/plimsoll.dev~1fixed";
    assert_eq!(stored.pointer(marker).unwrap(), "default-rolling-update,missing-startup-probe/c");
    let probe = stored.pointer_mut("/spec/template/spec/containers/0/startupProbe").unwrap();
    probe["successThreshold"] = 1.into();
    // As another webhook's change brings it back, and as the next update does.
    let again = world.create(&stored).mutate();
    assert_eq!((again.patch, again.warnings), (None, vec![]));
    let mut next = stored.clone();
    next["spec"]["template"]["spec"]["containers"][0]["image"] = json!("reg.example/app:1.2.4");
    let update = world.update(&stored, &next).mutate();
    assert_eq!((update.patch, update.warnings), (None, vec![]));

    // What somebody wrote into it is not what we would write: theirs from now on.
    stored["spec"]["template"]["spec"]["containers"][0]["startupProbe"]["initialDelaySeconds"] = 7.into();
    let theirs = world.mutated(&stored);
    assert_eq!(theirs.pointer(marker).unwrap(), "default-rolling-update");
}

#[test]
fn b07_a_container_that_came_later_is_no_denial() {
    let mut object = yaml(B01);
    let mesh = json!({"name": "mesh", "image": "reg.example/mesh:1",
                      "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}});
    object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().push(mesh);
    let answer = World::p0().create(&object).validate();
    assert!(answer.allowed);
    assert!(
        answer.warnings.iter().any(|warning| warning.starts_with(
            "[missing-pre-stop] /spec/template/spec/containers/1/lifecycle/preStop: container \"mesh\" has no preStop hook"
        )),
        "{:?}",
        answer.warnings
    );
}

#[test]
fn b08_a_pod_is_never_patched_on_update_nor_held_up_when_it_goes() {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "b-8", "operation": "UPDATE",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "object": {"metadata": {"name": "old", "deletionTimestamp": "2026-11-30T00:00:00Z", "finalizers": []},
                   "spec": {"containers": [{"name": "c", "image": "x:latest"}]}},
        "oldObject": {"metadata": {"name": "old", "finalizers": ["batch.kubernetes.io/job-tracking"]},
                      "spec": {"containers": [{"name": "c", "image": "x:latest"}]}}
    }});
    let world = World::p0();
    for answer in [world.review(review.clone()).mutate(), world.review(review).validate()] {
        assert!(answer.allowed && answer.patch.is_none() && answer.warnings.is_empty());
    }
}

#[test]
fn b09_a_job_is_not_patched_on_update() {
    let job = yaml(
        r#"
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  suspend: false
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "reg.example/app:1", envFrom: [{configMapRef: {name: cfg}}]}]
"#,
    );
    let mut suspended = job.clone();
    suspended["spec"]["suspend"] = json!(true);
    let answer = World::p0().update(&job, &suspended).mutate();
    assert!(answer.allowed && answer.patch.is_none());
}

const B10: &str = r#"
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-abc
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u1, controller: true}]
spec:
  replicas: 2
  template: {spec: {containers: [{name: c, image: "x:1"}]}}
"#;

#[test]
fn b10_a_deployments_replica_set_is_left_alone() {
    let world = World::p0();
    let object = yaml(B10);
    for answer in [world.create(&object).mutate(), world.create(&object).validate()] {
        assert!(answer.allowed && answer.patch.is_none() && answer.warnings.is_empty(), "{answer:?}");
    }
}

#[test]
fn b10_naming_some_other_controller_is_no_way_round() {
    let mut object = yaml(B13);
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "any", "uid": "u", "controller": true}]);
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:latest");
    let world = World::p0();
    assert_eq!(world.create(&object).mutate().patch, None, "its operator would fight back");
    let answer = world.create(&object).validate();
    assert!(!answer.allowed);
    assert!(
        answer.message.contains("[mutable-image-tag] /spec/template/spec/containers/0/image"),
        "{}",
        answer.message
    );
}

#[test]
fn b10_a_fix_that_is_never_written_excuses_nothing() {
    let mut object = yaml(B13);
    object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(30);
    object["spec"]["template"]["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 40}}});
    let world = World::p0();
    assert!(world.create(&object).validate().allowed, "our fix mends it");
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "any", "uid": "u", "controller": true}]);
    assert_eq!(world.create(&object).mutate().patch, None);
    let answer = world.create(&object).validate();
    assert!(!answer.allowed && answer.message.contains("[short-grace-period]"), "{answer:?}");
}

#[test]
fn b11_what_is_being_deleted_always_passes() {
    let mut object = yaml(B13);
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:latest");
    let old = yaml(B13);
    object["metadata"]["deletionTimestamp"] = json!("2026-11-30T00:00:00Z");
    let world = World::p0();
    for answer in [world.update(&old, &object).mutate(), world.update(&old, &object).validate()] {
        assert!(answer.allowed && answer.patch.is_none() && answer.warnings.is_empty());
    }
}

#[test]
fn b12_no_sleep_on_servers_that_drop_it() {
    let mut object = yaml(B02);
    object["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("lifecycle");
    let world = World::p0().server_version("1.28");
    let answer = world.create(&object).mutate();
    assert!(!answer.patch().to_string().contains("lifecycle"));
    let expected = "[missing-pre-stop] /spec/template/spec/containers/0/lifecycle/preStop: container \"c\" has no preStop \
                    hook (nothing is added: native sleep needs Kubernetes ≥ 1.30, this server is 1.28): it gets SIGTERM \
                    while load balancers still send it requ…";
    assert!(answer.warnings.iter().any(|warning| warning == expected), "{:?}", answer.warnings);
    // In the same words from the other webhook, so that the API server shows it once.
    assert!(world.create(&object).validate().warnings.iter().any(|warning| warning == expected));
}

#[test]
fn b12_no_sleep_while_the_version_is_unknown() {
    let mut object = yaml(B13);
    object["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("lifecycle");
    let answer = World::p0().server_version("unknown").create(&object).mutate();
    assert!(!answer.patch().to_string().contains("lifecycle"));
    assert!(answer.warnings.iter().any(|warning| warning.contains("this server's version is unknown")));
}

#[test]
fn b13_a_default_that_nobody_wrote_is_fixed() {
    same_operations(
        &World::p0().create(&yaml(B13)).mutate().patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "default-rolling-update"}},
            {"op": "replace", "path": "/spec/strategy/rollingUpdate/maxUnavailable", "value": 0}
        ]),
    );
}

#[test]
fn b13_a_default_that_somebody_applied_stays() {
    let mut applied = yaml(B13);
    applied["metadata"]["managedFields"] = json!([{
        "manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxUnavailable": {}}}}}
    }]);
    let mut last_applied = yaml(B13);
    last_applied["metadata"]["annotations"] = json!({
        "kubectl.kubernetes.io/last-applied-configuration":
            json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": "25%"}}}}).to_string()
    });
    let world = World::p0();
    assert_eq!(world.create(&applied).mutate().patch, None);
    assert_eq!(world.create(&last_applied).mutate().patch, None);
    // An `Update` entry owns defaulted fields too and proves nothing.
    applied["metadata"]["managedFields"][0]["operation"] = json!("Update");
    assert!(world.create(&applied).mutate().patch.is_some());
}

#[test]
fn b14_an_explicit_value_is_never_overridden() {
    let mut object = yaml(B13);
    object["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": 1, "maxSurge": 0});
    let world = World::p0();
    assert_eq!(world.create(&object).mutate().patch, None);
    let answer = world.create(&object).validate();
    assert!(answer.allowed && answer.warnings.is_empty(), "{:?}", answer.warnings);
}

#[test]
fn b15_bookkeeping_and_selectors_are_never_touched() {
    let world = World::p0();
    let mut bare = yaml(B13);
    bare["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("lifecycle");
    bare["spec"]["template"]["spec"]["containers"][0]["livenessProbe"] = json!({"tcpSocket": {"port": 80}});
    bare["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "cfg"}}]);
    let patch = world.create(&bare).mutate().patch();
    assert_eq!(patch.as_array().unwrap().len(), 5, "{patch}");
    for operation in patch.as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        for never in [
            "/metadata/managedFields",
            "/metadata/ownerReferences",
            "/metadata/labels",
            "/spec/selector",
            "/spec/template/metadata/labels",
            "/status",
        ] {
            assert!(!path.starts_with(never), "{path}");
        }
    }
}

#[test]
fn b16_a_stateful_sets_strategy_is_not_patched() {
    let mut object = yaml(B13);
    object["kind"] = json!("StatefulSet");
    object["spec"].as_object_mut().unwrap().remove("strategy");
    object["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
    assert_eq!(World::p0().create(&object).mutate().patch, None);
}

#[test]
fn b17_no_room_for_the_marker_means_no_fix_and_one_warning() {
    let mut object = yaml(B13);
    object["metadata"]["annotations"] = json!({"big": "x".repeat(262_144 - 20)});
    let answer = World::p0().create(&object).mutate();
    assert_eq!(answer.patch, None);
    assert_eq!(
        answer.warnings,
        ["nothing is fixed: there is no room for the annotation plimsoll.dev/fixed in the 262144 bytes"]
    );
}

#[test]
fn b17_no_room_for_the_digest_leaves_the_other_fixes() {
    let mut object = yaml(B02);
    object["spec"]["template"]["metadata"]["annotations"] = json!({"big": "x".repeat(262_144 - 50)});
    object["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
    let answer = World::p0().create(&object).mutate();
    same_operations(
        &answer.patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "default-rolling-update"}},
            {"op": "replace", "path": "/spec/strategy/rollingUpdate/maxUnavailable", "value": 0}
        ]),
    );
    assert!(answer.warnings.iter().any(|warning| warning.starts_with("[config-checksum] not fixed: the annotations")));
}

#[test]
fn b18_a_label_rolls_nothing_even_when_the_config_changed() {
    let world = World::p0();
    let old = b02_result(&world);
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"x": "y"});
    let changed = World::p0().config("cfg", "other");
    let answer = changed.update(&old, &new).mutate();
    assert_eq!(answer.patch, None);
    assert!(
        answer.warnings.iter().any(|warning| warning.contains("config changed since last rollout")),
        "{:?}",
        answer.warnings
    );
    assert!(world.update(&old, &new).mutate().warnings.is_empty(), "nothing changed, nothing is said");
}

#[test]
fn b18_a_replace_gets_the_old_digest_back() {
    let world = World::p0();
    let old = b02_result(&world);
    let h1 = old["spec"]["template"]["metadata"]["annotations"]["plimsoll.dev/config-checksum"].clone();
    let patch = World::p0().config("cfg", "other").update(&old, &yaml(B02)).mutate().patch();
    same_operations(
        &patch,
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "config-checksum"}},
            {"op": "add", "path": "/spec/template/metadata/annotations", "value": {"plimsoll.dev/config-checksum": h1}}
        ]),
    );
}

#[test]
fn b18_a_workload_older_than_plimsoll_is_not_rolled_by_a_scale() {
    let mut old = yaml(B13);
    old["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("lifecycle");
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(6);
    assert_eq!(World::p0().update(&old, &new).mutate().patch, None);
}

#[test]
fn b18_new_fixes_begin_with_the_authors_next_template() {
    let mut old = yaml(B13);
    old["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("lifecycle");
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("reg.example/app:1.2.4");
    same_operations(
        &World::p0().update(&old, &new).mutate().patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations",
             "value": {"plimsoll.dev/fixed": "default-rolling-update,missing-pre-stop/c"}},
            {"op": "replace", "path": "/spec/strategy/rollingUpdate/maxUnavailable", "value": 0},
            {"op": "add", "path": "/spec/template/spec/containers/0/lifecycle",
             "value": {"preStop": {"sleep": {"seconds": 10}}}}
        ]),
    );
}

#[test]
fn b18_a_value_that_differs_from_ours_is_the_authors() {
    let world = World::p0();
    let mut bare = yaml(B13);
    bare["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("lifecycle");
    let old = world.mutated(&bare);
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] = json!(20);
    same_operations(
        &world.update(&old, &new).mutate().patch(),
        &json!([{"op": "replace", "path": "/metadata/annotations/plimsoll.dev~1fixed", "value": "default-rolling-update"}]),
    );
}

#[test]
fn b18_a_changed_policy_reaches_a_workload_at_its_authors_next_change() {
    let mut bare = yaml(B13);
    bare["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("lifecycle");
    let old = World::p0().mutated(&bare);
    let longer = World::p0().params("missing-pre-stop", json!({"sleepSeconds": 12}));
    let mut scaled = old.clone();
    scaled["spec"]["replicas"] = json!(5);
    assert_eq!(longer.update(&old, &scaled).mutate().patch, None);
    let mut image = old.clone();
    image["spec"]["template"]["spec"]["containers"][0]["image"] = json!("reg.example/app:1.2.4");
    same_operations(
        &longer.update(&old, &image).mutate().patch(),
        &json!([{"op": "replace", "path": "/spec/template/spec/containers/0/lifecycle/preStop",
                 "value": {"sleep": {"seconds": 12}}}]),
    );
}

#[test]
fn marker_that_came_with_a_create_is_kept_only_where_it_is_true() {
    let world = World::p0();
    let mut forged = yaml(B13);
    forged["metadata"]["annotations"] = json!({"plimsoll.dev/fixed": "missing-pre-stop/c,missing-startup-probe/c"});
    forged["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": 1, "maxSurge": 1});
    forged["spec"]["template"]["spec"]["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] = json!(15);
    same_operations(
        &world.create(&forged).mutate().patch(),
        &json!([{"op": "replace", "path": "/metadata/annotations/plimsoll.dev~1fixed", "value": ""}]),
    );
    // 10 s is what this review would write.
    forged["spec"]["template"]["spec"]["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] = json!(10);
    same_operations(
        &world.create(&forged).mutate().patch(),
        &json!([{"op": "replace", "path": "/metadata/annotations/plimsoll.dev~1fixed", "value": "missing-pre-stop/c"}]),
    );
}

#[test]
fn strategy_of_ours_is_put_back_when_a_put_brings_the_default() {
    let world = World::p0();
    let old = world.mutated(&yaml(B13));
    same_operations(
        &world.update(&old, &yaml(B13)).mutate().patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "default-rolling-update"}},
            {"op": "replace", "path": "/spec/strategy/rollingUpdate/maxUnavailable", "value": 0}
        ]),
    );
    // Without our marker a strategy alone never begins to be fixed.
    let mut scaled = yaml(B13);
    scaled["spec"]["replicas"] = json!(8);
    assert_eq!(world.update(&yaml(B13), &scaled).mutate().patch, None);
}

#[test]
fn b19_mirror_pods_pass_and_the_annotation_alone_is_no_proof() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "etcd-n1", "annotations": {"kubernetes.io/config.mirror": "h"}},
        "spec": {"containers": [{"name": "c", "image": "x:latest"}]}});
    let world = World::p0();
    let node = world.create(&pod).user("system:node:n1", &["system:nodes", "system:authenticated"]);
    assert!(node.validate().allowed);
    assert_eq!(node.mutate().patch, None);
    let answer = world.create(&pod).validate();
    assert!(!answer.allowed);
    assert!(answer.message.contains("[mutable-image-tag] /spec/containers/0/image"), "{}", answer.message);
}

#[test]
fn b20_null_members_are_added_anew() {
    let mut object = yaml(B02);
    object["metadata"]["annotations"] = Value::Null;
    object["spec"]["template"]["metadata"]["annotations"] = Value::Null;
    object["spec"]["template"]["spec"]["containers"][0]["lifecycle"] = Value::Null;
    let patch = World::p0().create(&object).mutate().patch();
    let digest = digest_in(&patch);
    same_operations(
        &patch,
        &json!([
            {"op": "add", "path": "/metadata/annotations",
             "value": {"plimsoll.dev/fixed": "config-checksum,missing-pre-stop/c"}},
            {"op": "add", "path": "/spec/template/metadata/annotations",
             "value": {"plimsoll.dev/config-checksum": digest}},
            {"op": "add", "path": "/spec/template/spec/containers/0/lifecycle",
             "value": {"preStop": {"sleep": {"seconds": 10}}}}
        ]),
    );
}

#[test]
fn b21_our_own_controllers_digest_passes_as_it_is() {
    let world = World::p0();
    let old = b02_result(&world);
    let mut new = old.clone();
    new["spec"]["template"]["metadata"]["annotations"]["plimsoll.dev/config-checksum"] = json!("a".repeat(64));
    let ours = "system:serviceaccount:plimsoll:plimsoll";
    assert_eq!(world.update(&old, &new).user(ours, &[]).mutate().patch, None);
    // Anybody else's write under our key is put back.
    assert!(world.update(&old, &new).mutate().patch.is_some());
    // And our account gets no free ride for other changes.
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:latest");
    assert!(!world.update(&old, &new).user(ours, &[]).validate().allowed);
}

//! Group C: rollout semantics.

use plimsoll::engine::facts::Reason;
use plimsoll::engine::finding::Action;
use serde_json::{Value, json};

use super::b::B13;
use super::world::{Answer, World, apply, container, same_operations, yaml};

const MAX_UNAVAILABLE: &str = "/spec/strategy/rollingUpdate/maxUnavailable";

/// B13's object, satisfied with P0 but for its strategy, with these replicas and bounds.
fn deployment(replicas: i64, max_surge: Value, max_unavailable: Value) -> Value {
    let mut object = yaml(B13);
    object["spec"]["replicas"] = json!(replicas);
    object["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": max_surge, "maxUnavailable": max_unavailable});
    object
}

/// A Deployment that satisfies P0.
fn safe() -> Value {
    deployment(2, json!(1), json!(0))
}

/// A StatefulSet that satisfies P0.
fn stateful_set(replicas: i64, update_strategy: Value) -> Value {
    let mut object = yaml(B13);
    object["kind"] = json!("StatefulSet");
    let spec = object["spec"].as_object_mut().unwrap();
    spec.remove("strategy");
    spec.insert("replicas".to_owned(), json!(replicas));
    spec.insert("updateStrategy".to_owned(), update_strategy);
    object
}

fn with_image(mut object: Value, image: &str) -> Value {
    container(&mut object).insert("image".to_owned(), json!(image));
    object
}

/// P0 without the fix of the default, and with every replica that is down at once worth a denial.
fn strict() -> World {
    World::p0()
        .rule("default-rolling-update", Action::Off, false, json!({}))
        .params("rollout-outage", json!({"maxUnavailablePercent": 0}))
}

#[test]
fn c01_a_deployments_unavailable_rounds_down_unless_both_come_to_zero() {
    let world = strict();
    let quarter = || json!("25%");
    for (replicas, surge, unavailable, down) in [
        (2, quarter(), quarter(), None),
        (3, quarter(), quarter(), None),
        (4, quarter(), quarter(), Some("1 of 4 ")),
        (5, quarter(), quarter(), Some("1 of 5 ")),
        (10, quarter(), quarter(), Some("2 of 10 ")),
        (10, json!(0), json!("5%"), Some("1 of 10 ")),
        (3, json!(0), quarter(), Some("1 of 3 ")),
        (4, json!(1), json!(0), None),
        (0, quarter(), quarter(), None),
    ] {
        let answer = world.create(&deployment(replicas, surge.clone(), unavailable.clone())).validate();
        match down {
            Some(down) => {
                assert!(answer.denied(), "{replicas} {surge} {unavailable}: {answer:?}");
                assert!(answer.message.contains(&format!("[rollout-outage] {MAX_UNAVAILABLE}: {down}")), "{answer:?}");
            }
            None => assert!(answer.is_silent(), "{replicas} {surge} {unavailable}: {answer:?}"),
        }
    }
    assert!(world.create(&deployment(1, quarter(), quarter())).validate().is_silent());
}

#[test]
fn c01_the_other_kinds_round_their_own_way() {
    let world = strict();
    let rolling = |bounds: Value| json!({"type": "RollingUpdate", "rollingUpdate": bounds});
    // A StatefulSet rounds down, to at least 1, and one at a time is the least it can do.
    let answer = world.create(&stateful_set(10, rolling(json!({"maxUnavailable": "25%"})))).validate();
    assert!(answer.message.contains("2 of 10 "), "{answer:?}");
    assert!(world.create(&stateful_set(3, rolling(json!({"maxUnavailable": "25%"})))).validate().is_silent());
    // A DaemonSet rounds up; how many nodes there are nobody knows.
    let mut daemon_set = stateful_set(1, rolling(json!({"maxUnavailable": "1%", "maxSurge": 0})));
    daemon_set["kind"] = json!("DaemonSet");
    daemon_set["spec"].as_object_mut().unwrap().remove("replicas");
    assert!(world.create(&daemon_set).validate().denied());
    daemon_set["spec"]["updateStrategy"] = rolling(json!({"maxUnavailable": 1, "maxSurge": 0}));
    assert!(world.create(&daemon_set).validate().is_silent());
}

#[test]
fn c02_an_only_replica_without_surge_goes_down_with_a_warning() {
    let world = World::p0();
    for unavailable in [json!("25%"), json!(1), json!("100%")] {
        let answer = world.create(&deployment(1, json!(0), unavailable)).validate();
        assert!(answer.allowed, "{answer:?}");
        assert!(answer.warns(&["[rollout-outage]", "each rollout takes the only replica down"]), "{answer:?}");
    }
    assert!(world.create(&deployment(1, json!(1), json!(0))).validate().is_silent());
}

#[test]
fn c02_two_or_more_that_may_all_be_down_are_denied() {
    let world = World::p0();
    for (replicas, surge, unavailable) in
        [(2, json!(0), json!("100%")), (2, json!(1), json!(2)), (5, json!(5), json!(7))]
    {
        let answer = world.create(&deployment(replicas, surge, unavailable)).validate();
        assert!(answer.denied(), "{answer:?}");
        assert!(
            answer.message.contains(&format!("{replicas} of {replicas} replicas may be down at once")),
            "{answer:?}"
        );
    }
    // Both come to 0 and the controller takes one: of 2 that is not all.
    assert!(world.create(&deployment(2, json!(0), json!("25%"))).validate().allowed);
}

#[test]
fn c03_never_both_zero() {
    let world = World::p0();
    for surge in [json!(0), json!("0%")] {
        let answer = world.create(&deployment(4, surge, json!("25%"))).mutate();
        assert_eq!(answer.patch, None);
    }
    // Nor by way of a tier.
    let tiers = json!({"tiers": [{"maxSurge": 1, "maxUnavailable": 0}]});
    let object = deployment(4, json!(0), json!("25%"));
    assert_eq!(World::p0().params("default-rolling-update", tiers).create(&object).mutate().patch, None);
}

#[test]
fn c04_what_is_no_int_or_percent_is_left_to_the_server() {
    let world = World::p0();
    for (surge, unavailable) in [
        (json!("1"), json!("25%")),
        (json!(0), json!("3")),
        (json!(-1), json!("25%")),
        (json!(0), json!(-3)),
        (json!(0), json!("150%")),
        (json!("x%"), json!("100%")),
        (json!(1.5), json!("100%")),
        (json!({"a": 1}), json!("100%")),
        (json!(true), json!("25%")),
    ] {
        let asked = world.create(&deployment(3, surge.clone(), unavailable.clone()));
        assert!(asked.mutate().is_silent(), "{surge} {unavailable}");
        assert!(asked.validate().is_silent(), "{surge} {unavailable}");
    }
    // A surge may exceed 100 %.
    let answer = world.create(&deployment(4, json!("200%"), json!("25%"))).mutate();
    same_operations(
        &answer.patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "default-rolling-update"}},
            {"op": "replace", "path": MAX_UNAVAILABLE, "value": 0}
        ]),
    );
}

#[test]
fn c05_all_replicas_down_at_once_is_denied_with_both_numbers() {
    let world = World::p0();
    let answer = world.create(&deployment(3, json!(0), json!("100%"))).validate();
    assert!(answer.denied() && answer.message.contains("3 of 3"), "{answer:?}");
    let answer = world.create(&deployment(3, json!(1), json!(5))).validate();
    assert!(answer.denied() && answer.message.contains("3 of 3"), "{answer:?}");
    assert!(world.create(&deployment(4, json!(1), json!("75%"))).validate().allowed);
}

#[test]
fn c06_recreate_never_gets_a_rolling_update() {
    let world = World::p0();
    let mut object = yaml(B13);
    object["spec"]["strategy"] = json!({"type": "Recreate"});
    assert_eq!(world.create(&object).mutate().patch, None);
    assert!(world.create(&object).validate().allowed);
    // A leftover is not repaired either.
    object["spec"]["strategy"] =
        json!({"type": "Recreate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}});
    assert_eq!(world.create(&object).mutate().patch, None);
    // Whoever changes to Recreate keeps it, though our value stood there.
    let old = world.mutated(&yaml(B13));
    let mut new = old.clone();
    new["spec"]["strategy"] = json!({"type": "Recreate"});
    assert!(!world.update(&old, &new).mutate().writes("/spec/strategy"));
}

#[test]
fn c07_a_daemon_sets_strategy_is_not_patched() {
    let mut object =
        stateful_set(1, json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}));
    object["kind"] = json!("DaemonSet");
    object["spec"].as_object_mut().unwrap().remove("replicas");
    let answer = World::p0().create(&object).mutate();
    assert!(!answer.writes("/spec/updateStrategy") && !answer.writes("/spec/strategy"), "{answer:?}");
}

/// The default strategy with this put into the pod's spec: no strategy operation, and the finding says why.
fn no_surge(world: &World, pod: Value, why: &str) {
    let mut object = yaml(B13);
    let spec = object["spec"]["template"]["spec"].as_object_mut().unwrap();
    spec.extend(pod.as_object().unwrap().clone());
    let answer = world.create(&object).mutate();
    assert!(!answer.writes("/spec/strategy"), "{answer:?}");
    let answer = world.create(&object).validate();
    assert!(answer.allowed && answer.warns(&["[default-rolling-update]", MAX_UNAVAILABLE, why]), "{why}: {answer:?}");
}

#[test]
fn c08_host_ports_leave_no_room_for_a_surge() {
    let world = World::p0();
    let with_ports = |ports: Value| {
        let mut containers = yaml(B13)["spec"]["template"]["spec"]["containers"].clone();
        containers[0]["ports"] = ports;
        containers
    };
    let host_port = with_ports(json!([{"containerPort": 80, "hostPort": 8080}]));
    no_surge(&world, json!({"containers": host_port}), "hostPort 8080");
    let port = with_ports(json!([{"containerPort": 80}]));
    no_surge(&world, json!({"hostNetwork": true, "containers": port}), "hostNetwork");
}

#[test]
fn c09_a_claim_leaves_no_room_for_a_surge() {
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    no_surge(&World::p0(), json!({"volumes": volumes}), "PersistentVolumeClaim \"data\"");
}

#[test]
fn c10_a_stateful_sets_max_unavailable_is_read_and_never_written() {
    let world = World::p0();
    let rolling = |bounds: Value| json!({"type": "RollingUpdate", "rollingUpdate": bounds});
    for strategy in [
        rolling(json!({"partition": 0})),
        rolling(json!({"partition": 0, "maxUnavailable": "25%"})),
        rolling(json!({"maxUnavailable": 1})),
        // The server refuses 0: nothing to judge.
        rolling(json!({"maxUnavailable": 0})),
    ] {
        let asked = world.create(&stateful_set(3, strategy.clone()));
        assert!(!asked.mutate().writes("/spec/updateStrategy"), "{strategy}");
        assert!(asked.validate().is_silent(), "{strategy}");
    }
    let answer = world.create(&stateful_set(3, rolling(json!({"maxUnavailable": 3})))).validate();
    assert!(answer.denied() && answer.message.contains("3 of 3"), "{answer:?}");
}

#[test]
fn c11_on_delete_and_partitions_are_deliberate() {
    let world = World::p0();
    for strategy in [
        json!({"type": "OnDelete"}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 3, "maxUnavailable": 3}}),
    ] {
        let asked = world.create(&stateful_set(3, strategy.clone()));
        assert_eq!(asked.mutate().patch, None, "{strategy}");
        assert!(asked.validate().allowed, "{strategy}");
    }
}

#[test]
fn c12_nothing_is_an_outage_of_no_replicas() {
    let world = World::p0();
    assert!(world.create(&deployment(0, json!(0), json!(1))).validate().is_silent());
    assert!(world.create(&deployment(0, json!(0), json!("100%"))).validate().is_silent());
    // Under a HorizontalPodAutoscaler replicas is absent, and the server has filled in 1.
    assert!(world.create(&deployment(1, json!(1), json!(1))).validate().allowed);
}

#[test]
fn c13_nothing_is_written_beside_a_short_progress_deadline() {
    let mut object = yaml(B13);
    object["spec"]["progressDeadlineSeconds"] = json!(20);
    let answer = World::p0().create(&object).mutate();
    assert!(!answer.writes("/spec/minReadySeconds") && !answer.writes("/spec/progressDeadlineSeconds"));
}

/// A template from before us: no preStop hook, an image that moves, no requests.
fn unsafe_template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "terminationGracePeriodSeconds": 30,
            "containers": [{
                "name": "c", "image": "reg.example/app:latest",
                "livenessProbe": {"tcpSocket": {"port": 8080}},
                "envFrom": [{"configMapRef": {"name": "cfg"}}],
            }],
        },
    })
}

/// The workload as it stands under P0, and as `rollout undo` to the unsafe template sends it: the template changed, the
/// annotations replaced, our marker gone.
fn rollback(world: &World) -> (Value, Value) {
    let old = world.mutated(&yaml(B13));
    let mut new = old.clone();
    new["spec"]["template"] = unsafe_template();
    new["metadata"].as_object_mut().unwrap().remove("annotations");
    (old, new)
}

/// A retained ReplicaSet's template has a label that the Deployment's has not.
fn retained(mut template: Value) -> Value {
    template["metadata"]["labels"]["pod-template-hash"] = json!("5d4f8c7b9");
    template
}

#[test]
fn c14_a_rollback_is_left_exactly_alone_and_only_warned_about() {
    let world = World::p0().revision(&retained(unsafe_template()));
    let (old, new) = rollback(&world);
    assert_eq!(world.update(&old, &new).mutate().patch, None);
    let answer = world.update(&old, &new).validate();
    assert!(answer.allowed, "{answer:?}");
    for rule in ["mutable-image-tag", "missing-requests", "missing-pre-stop", "missing-startup-probe"] {
        assert!(answer.warns(&[&format!("[{rule}] /spec/template/")]), "{rule}: {answer:?}");
    }
    assert_eq!(answer.audit["rollback"], "true", "{answer:?}");
}

#[test]
fn c14_no_revision_no_rollback() {
    for world in [World::p0(), World::p0().revisions_unknown(Reason::TimedOut)] {
        let (old, new) = rollback(&world);
        assert!(world.update(&old, &new).mutate().writes("/spec/template"));
        let answer = world.update(&old, &new).validate();
        assert!(answer.denied() && !answer.audit.contains_key("rollback"), "{answer:?}");
    }
    // Another template than the retained one is no rollback either.
    let mut other = unsafe_template();
    other["spec"]["containers"][0]["image"] = json!("reg.example/app:older");
    let world = World::p0().revision(&retained(other));
    let (old, new) = rollback(&world);
    assert!(world.update(&old, &new).validate().denied());
}

#[test]
fn c14_the_template_that_runs_is_no_rollback() {
    // The current ReplicaSet is retained too. Its template is what the author changes, not what he goes back to.
    let world = World::p0();
    let old = world.mutated(&yaml(B13));
    let world = World::p0().revision(&retained(old["spec"]["template"].clone()));
    let new = with_image(old.clone(), "reg.example/app:latest");
    assert!(world.update(&old, &new).validate().denied());
}

#[test]
fn c14_the_rest_of_a_rollback_is_judged_as_ever() {
    let world = World::p0().revision(&retained(unsafe_template()));
    let (old, mut new) = rollback(&world);
    new["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": "100%", "maxSurge": 0});
    let answer = world.update(&old, &new).validate();
    assert!(answer.denied(), "{answer:?}");
    assert!(
        answer.message.contains("[rollout-outage]") && !answer.message.contains("[mutable-image-tag]"),
        "{answer:?}"
    );
}

#[test]
fn c14_after_a_rollback_a_strategy_fix_counts_as_the_authors() {
    let world = World::p0().revision(&retained(unsafe_template()));
    let (old, undone) = rollback(&world);
    assert_eq!(undone["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
    let undone = world.mutated_update(&old, &undone);
    let next = with_image(undone.clone(), "reg.example/app:1.2.4");
    let answer = world.update(&undone, &next).mutate();
    assert!(!answer.writes("/spec/strategy"), "{answer:?}");
    let marker = "missing-pre-stop/c,missing-startup-probe/c";
    let stored = apply(&next, answer.patch.as_ref());
    assert_eq!(stored["metadata"]["annotations"]["plimsoll.dev/fixed"], format!("config-checksum,{marker}"));
}

#[test]
fn c14_every_kind_that_keeps_revisions_can_go_back() {
    let world = World::p0().revision(&unsafe_template());
    let old = stateful_set(3, json!({"type": "RollingUpdate"}));
    let mut new = old.clone();
    new["spec"]["template"] = unsafe_template();
    assert_eq!(world.update(&old, &new).mutate().patch, None);
    let answer = world.update(&old, &new).validate();
    assert!(answer.allowed && answer.audit["rollback"] == "true", "{answer:?}");
}

#[test]
fn c14_break_glass_turns_denials_into_warnings() {
    let world = World::p0();
    let mut new = with_image(safe(), "app:latest");
    container(&mut new).remove("resources");
    let asked = || world.update(&safe(), &new);
    let answer = asked().validate();
    assert!(answer.denied() && !answer.audit.contains_key("override"), "{answer:?}");
    let answer = asked().user("bob", &["platform-breakglass", "system:authenticated"]).validate();
    assert!(answer.allowed, "{answer:?}");
    assert!(answer.warns(&["[mutable-image-tag]"]) && answer.warns(&["[missing-requests]"]), "{answer:?}");
    assert_eq!(answer.audit["override"], "true");
    // A group whose name only begins alike opens nothing, nor does a user named so.
    for (user, groups) in [("bob", vec!["platform-breakglass-test"]), ("platform-breakglass", vec!["developers"])] {
        assert!(asked().user(user, &groups).validate().denied(), "{user} {groups:?}");
    }
    // Where nothing was denied nothing was overridden.
    let answer = world.update(&safe(), &safe()).user("bob", &["platform-breakglass"]).validate();
    assert!(answer.allowed && !answer.audit.contains_key("override"));
}

#[test]
fn c14_a_policy_that_only_warns_denies_nothing() {
    let world = World::p0().enforcement("warn");
    let answer = world.create(&with_image(safe(), "app:latest")).validate();
    assert!(answer.allowed && answer.warns(&["[mutable-image-tag]"]), "{answer:?}");
    assert!(!answer.audit.contains_key("override"), "{answer:?}");
}

#[test]
fn c15_an_old_violation_is_a_warning_a_new_one_a_denial() {
    let world = World::p0();
    let old = with_image(safe(), "app:latest");
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"x": "y"});
    let answer = world.update(&old, &labelled).validate();
    assert!(answer.allowed && answer.warns(&["[mutable-image-tag]"]), "{answer:?}");

    let old = with_image(safe(), "app:1");
    let answer = world.update(&old, &with_image(old.clone(), "app:latest")).validate();
    assert!(answer.denied() && answer.message.contains("[mutable-image-tag]"), "{answer:?}");
    // A new object has no old violations.
    assert!(world.create(&with_image(safe(), "app:latest")).validate().denied());
}

#[test]
fn c15_the_key_is_the_containers_name_not_its_place() {
    let world = World::p0();
    let old = with_image(safe(), "app:latest");
    let mut new = old.clone();
    let containers = new["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
    let mut proxy = containers[0].clone();
    proxy["name"] = json!("proxy");
    proxy["image"] = json!("reg.example/proxy:1");
    containers.insert(0, proxy.clone());
    assert!(world.update(&old, &new).validate().allowed, "the old container moved, nothing else");
    // The same violation in another container is a new one.
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("reg.example/proxy");
    let answer = world.update(&old, &new).validate();
    assert!(answer.denied() && answer.message.contains("container \"proxy\""), "{answer:?}");
    assert!(!answer.message.contains("container \"c\""), "{answer:?}");
}

#[test]
fn c15_one_violation_does_not_excuse_another_of_its_key() {
    let world = World::p0().rule("lifecycle-tcp-socket", Action::Deny, false, json!({}));
    let hooks = |hooks: Value| {
        let mut object = safe();
        container(&mut object).insert("lifecycle".to_owned(), hooks);
        object
    };
    let socket = json!({"tcpSocket": {"port": 80}});
    let old = hooks(json!({"preStop": socket}));
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"x": "y"});
    assert!(world.update(&old, &labelled).validate().allowed);
    let both = hooks(json!({"preStop": socket, "postStart": socket}));
    assert!(world.update(&old, &both).validate().denied());
    assert!(world.update(&both, &old).validate().allowed);
}

#[test]
fn c15_a_worse_number_of_the_same_violation_is_new() {
    let world = World::p0().params("rollout-outage", json!({"maxUnavailablePercent": 50}));
    let at = |percent: &str| deployment(5, json!(0), json!(percent));
    let answer = world.update(&at("60%"), &at("100%")).validate();
    assert!(answer.denied() && answer.message.contains("5 of 5"), "{answer:?}");
    for (old, new) in [("100%", "60%"), ("60%", "60%")] {
        let answer = world.update(&at(old), &at(new)).validate();
        assert!(answer.allowed && answer.warns(&["[rollout-outage]", "3 of 5"]), "{answer:?}");
    }
}

#[test]
fn c15_lowering_replicas_and_pausing_are_never_denied() {
    let world = World::p0();
    // 3 of 4 may be down; of 3 all may, which would be worse.
    let old = deployment(4, json!(0), json!(3));
    let mut lower = old.clone();
    lower["spec"]["replicas"] = json!(3);
    let answer = world.update(&old, &lower).validate();
    assert!(answer.allowed && answer.warns(&["[rollout-outage]", "3 of 3"]), "{answer:?}");
    let mut paused = lower.clone();
    paused["spec"]["paused"] = json!(true);
    assert!(world.update(&old, &paused).validate().allowed);
    // With any other change of the spec, or more replicas, the ratchet decides.
    let mut more = lower.clone();
    more["spec"]["minReadySeconds"] = json!(5);
    assert!(world.update(&old, &more).validate().denied());
    let two = deployment(2, json!(0), json!("100%"));
    assert!(world.update(&with_image(safe(), "app:1"), &with_image(two, "app:1")).validate().denied());
}

#[test]
fn c16_pods_are_judged_where_nobody_judged_their_workload() {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-1", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true}]},
        "spec": {"containers": [{"name": "c", "image": "x:latest"}]},
    });
    let world = World::p0();
    assert!(world.create(&pod).validate().is_silent());
    assert_eq!(world.metric("plimsoll_anomalies_total", &[("reason", "owned-pod")]), 1);
    pod["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    let answer = world.create(&pod).validate();
    assert!(answer.denied() && answer.message.contains("[mutable-image-tag] /spec/containers/0/image"), "{answer:?}");
}

/// A canary Rollout: no member is filled in by the server.
fn rollout(strategy: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
        "spec": {"replicas": 4, "strategy": strategy, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{
                "name": "c", "image": "reg.example/app:1.2.3",
                "resources": {"requests": {"cpu": 0.1, "memory": "16Mi"}},
                "lifecycle": {"preStop": {"sleep": {"seconds": 10}}},
            }]},
        }},
    })
}

#[test]
fn c17_an_absent_canary_value_is_the_controllers_default() {
    let world = World::p0();
    same_operations(
        &world.create(&rollout(json!({"canary": {}}))).mutate().patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "default-rolling-update"}},
            {"op": "add", "path": "/spec/strategy/canary/maxUnavailable", "value": 0}
        ]),
    );
    // Absent means absent: 25% in a Rollout was written by its author.
    let written = rollout(json!({"canary": {"maxUnavailable": "25%"}}));
    assert_eq!(world.create(&written).mutate().patch, None);
    let answer = world.create(&rollout(json!({"canary": {"maxUnavailable": "100%"}}))).validate();
    assert!(answer.denied() && answer.message.contains("4 of 4"), "{answer:?}");
}

#[test]
fn c17_other_rollouts_are_not_given_a_strategy() {
    let world = World::p0();
    for strategy in [json!({"blueGreen": {"activeService": "web"}}), json!({}), Value::Null] {
        let asked = world.create(&rollout(strategy.clone()));
        assert_eq!(asked.mutate().patch, None, "{strategy}");
        assert!(asked.validate().is_silent(), "{strategy}");
    }
    let by_reference = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
        "spec": {"replicas": 4, "strategy": {"canary": {}},
                 "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    });
    assert!(world.create(&by_reference).mutate().is_silent());
    assert!(world.create(&by_reference).validate().is_silent());
}

#[test]
fn c17_a_procedure_that_its_author_left_is_not_brought_back() {
    let world = World::p0();
    let old = world.mutated(&rollout(json!({"canary": {}})));
    assert_eq!(old["spec"]["strategy"]["canary"]["maxUnavailable"], 0);
    let mut new = old.clone();
    new["spec"]["strategy"] = json!({"blueGreen": {"activeService": "web"}});
    assert!(!world.update(&old, &new).mutate().writes("/spec/strategy"));
    let mut by_reference = old.clone();
    by_reference["spec"].as_object_mut().unwrap().remove("template");
    by_reference["spec"]["workloadRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    assert!(!world.update(&old, &by_reference).mutate().writes("/spec"));
    // What a PUT of the same procedure left out comes back.
    same_operations(
        &world.update(&old, &rollout(json!({"canary": {}}))).mutate().patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "default-rolling-update"}},
            {"op": "add", "path": "/spec/strategy/canary/maxUnavailable", "value": 0}
        ]),
    );
}

#[test]
fn c18_a_deployment_config_is_an_unknown_kind() {
    let object = json!({"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": {"name": "web"},
                        "spec": {"replicas": 2, "strategy": {"type": "Rolling", "rollingParams": {}}}});
    let world = World::p0();
    assert!(world.create(&object).mutate().is_silent());
    assert!(world.create(&object).validate().is_silent());
    assert_eq!(world.metric("plimsoll_anomalies_total", &[("reason", "unknown-kind")]), 2);
}

#[test]
fn c19_every_kind_has_its_template_in_its_place() {
    let world = World::p0();
    let pod = || {
        json!({"containers": [{"name": "c", "image": "x:latest",
                                        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]})
    };
    for (api_version, kind, pointer) in [
        ("apps/v1", "Deployment", "/spec/template"),
        ("apps/v1", "StatefulSet", "/spec/template"),
        ("apps/v1", "DaemonSet", "/spec/template"),
        ("apps/v1", "ReplicaSet", "/spec/template"),
        ("batch/v1", "Job", "/spec/template"),
        ("argoproj.io/v1alpha1", "Rollout", "/spec/template"),
        ("v1", "ReplicationController", "/spec/template"),
        ("batch/v1", "CronJob", "/spec/jobTemplate/spec/template"),
        ("v1", "Pod", ""),
    ] {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}});
        match pointer {
            "" => object["spec"] = pod(),
            "/spec/template" => object["spec"]["template"]["spec"] = pod(),
            _ => object["spec"]["jobTemplate"]["spec"]["template"]["spec"] = pod(),
        }
        let answer = world.create(&object).validate();
        let expected = format!("[mutable-image-tag] {pointer}/spec/containers/0/image: ");
        assert!(answer.denied() && answer.message.contains(&expected), "{kind}: {answer:?}");
    }
    let empty = json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "web"},
                       "spec": {"replicas": 1, "template": null}});
    assert!(world.create(&empty).validate().is_silent());
}

#[test]
fn c20_where_no_extra_pod_can_be_the_default_stays() {
    let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}});
    no_surge(&World::p0(), json!({"affinity": affinity}), "podAntiAffinity");
    let spread = json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                         "labelSelector": {"matchLabels": {"app": "web"}}}]);
    no_surge(&World::p0(), json!({"topologySpreadConstraints": spread}), "DoNotSchedule");
    for hard in ["pods", "requests.cpu", "limits.memory", "cpu", "memory"] {
        no_surge(&World::p0().quota("team", &[hard]), json!({}), "ResourceQuota \"team\"");
    }
    no_surge(&World::p0().quotas_unknown(Reason::Forbidden), json!({}), "look-up forbidden");
}

#[test]
fn c20_a_look_up_that_stops_the_fix_is_told_by_mutate_too() {
    for world in [World::p0().quota("team", &["pods"]), World::p0().quotas_unknown(Reason::TimedOut)] {
        let (mutate, validate) = (world.create(&yaml(B13)).mutate(), world.create(&yaml(B13)).validate());
        let warning = mutate.warnings.iter().find(|warning| warning.starts_with("[default-rolling-update]"));
        assert!(warning.is_some_and(|warning| validate.warnings.contains(warning)), "{mutate:?} {validate:?}");
    }
}

#[test]
fn c20_a_quota_on_other_things_and_soft_wishes_leave_room() {
    let mut soft = yaml(B13);
    soft["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}}]}});
    let world = World::p0().quota("team", &["services", "count/configmaps"]);
    let fixed = |answer: Answer| answer.writes(MAX_UNAVAILABLE);
    assert!(fixed(world.create(&soft).mutate()));
}

#[test]
fn c20_the_surge_is_kept() {
    let answer = World::p0().create(&deployment(19, json!("30%"), json!("25%"))).mutate();
    assert!(answer.writes(MAX_UNAVAILABLE) && !answer.writes("/spec/strategy/rollingUpdate/maxSurge"), "{answer:?}");
}

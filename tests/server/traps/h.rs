//! Group H: images and resources.

use plimsoll::engine::facts::Reason;
use plimsoll::engine::finding::Action;
use serde_json::{Value, json};

use super::b::B13;
use super::world::{World, container, yaml};

const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A workload that satisfies P0.
fn safe() -> Value {
    let mut object = yaml(B13);
    object["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": 0, "maxSurge": 1});
    object
}

fn with_image(image: &str) -> Value {
    let mut object = safe();
    container(&mut object).insert("image".to_owned(), json!(image));
    object
}

fn with_resources(resources: Value) -> Value {
    let mut object = safe();
    container(&mut object).insert("resources".to_owned(), resources);
    object
}

/// A Rollout: its quantities arrive as they were written.
fn rollout(resources: Value) -> Value {
    let mut object = with_resources(resources);
    object["apiVersion"] = json!("argoproj.io/v1alpha1");
    object["kind"] = json!("Rollout");
    object["spec"]["strategy"] = json!({"blueGreen": {"activeService": "web"}});
    object
}

#[test]
fn h01_what_is_a_tag_and_which_ones_move() {
    let world = World::p0();
    for image in ["app", "app:latest", "reg:5000/app", "reg:5000/app:latest"] {
        let answer = world.create(&with_image(image)).validate();
        assert!(answer.denied(), "{image}: {answer:?}");
        let expected = "[mutable-image-tag] /spec/template/spec/containers/0/image: ";
        assert!(answer.message.contains(expected), "{image}: {answer:?}");
    }
    let pinned = [format!("app@sha256:{HEX}"), format!("app:latest@sha256:{HEX}"), "reg:5000/app:1.2".to_owned()];
    for image in pinned.iter().map(String::as_str).chain([""]) {
        assert!(world.create(&with_image(image)).validate().is_silent(), "{image}");
    }
    let answer = world.create(&with_image("app:LATEST")).validate();
    assert!(answer.allowed && answer.warns(&["[mutable-image-tag]", "tags are case sensitive"]), "{answer:?}");
}

#[test]
fn h02_a_limit_is_a_request() {
    let world = World::p0();
    for resources in [
        json!({"limits": {"cpu": "1", "memory": "64Mi"}}),
        json!({"requests": {"cpu": "10m"}, "limits": {"memory": "64Mi"}}),
    ] {
        assert!(world.create(&with_resources(resources.clone())).validate().is_silent(), "{resources}");
    }
    let answer = world.create(&with_resources(json!({"limits": {"cpu": "1"}}))).validate();
    assert!(answer.denied() && answer.message.contains("container \"c\" requests no memory"), "{answer:?}");
}

#[test]
fn h02_what_a_limit_range_may_supply_is_a_warning() {
    let bare = with_resources(json!({}));
    assert!(World::p0().create(&bare).validate().denied());
    let worlds = [World::p0().limit_range(true), World::p0().limit_range_unknown(Reason::TimedOut)];
    for world in worlds {
        let answer = world.create(&bare).validate();
        assert!(answer.allowed, "{answer:?}");
        assert!(answer.warns(&["[missing-requests]", "requests no cpu and no memory"]), "{answer:?}");
    }
}

#[test]
fn h03_what_the_pod_requests_counts_for_its_containers() {
    let world = World::p0();
    let mut object = with_resources(json!({}));
    object["spec"]["template"]["spec"]["resources"] = json!({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}});
    assert!(world.create(&object).validate().is_silent());
    object["spec"]["template"]["spec"]["resources"] = json!({"requests": {"cpu": "1"}});
    let answer = world.create(&object).validate();
    assert!(answer.denied() && answer.message.contains("requests no memory"), "{answer:?}");
}

#[test]
fn h04_quantities_as_people_write_them() {
    let world = World::p0();
    for cpu in ["100m", "0.1", ".1", "1.", "1e3", "1E3", "1E", "1Ei", "+1", "0.0001", "9999999999999999999"] {
        let object = rollout(json!({"requests": {"cpu": cpu, "memory": "0.5Gi"}}));
        assert!(world.create(&object).validate().is_silent(), "{cpu}");
    }
    let numbers = rollout(json!({"requests": {"cpu": 0.5, "memory": 536_870_912}}));
    assert!(world.create(&numbers).validate().is_silent());
    // What is no quantity is the server's to refuse.
    let nonsense = rollout(json!({"requests": {"cpu": "fast", "memory": "1 GB"}}));
    assert!(world.create(&nonsense).validate().is_silent());
}

#[test]
fn h04_memory_in_thousandths_of_a_byte_is_a_mistake() {
    let world = World::p0().rule("implausible-quantity", Action::Warn, false, json!({}));
    for object in [
        rollout(json!({"requests": {"cpu": "1", "memory": "400m"}})),
        with_resources(json!({"requests": {"cpu": "1", "memory": "400m"}})),
    ] {
        let answer = world.create(&object).validate();
        assert!(answer.allowed && answer.warns(&["[implausible-quantity]", "400m", "0.4 bytes"]), "{answer:?}");
    }
}

#[test]
fn h05_h06_resources_are_judged_and_never_written() {
    let world = World::p0();
    for resources in [json!({}), json!({"limits": {"cpu": "50m"}}), json!({"requests": {"memory": "1Gi"}})] {
        let answer = world.create(&with_resources(resources.clone())).mutate();
        assert_eq!(answer.patch, None, "{resources}");
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                     "spec": safe()["spec"]["template"]["spec"]});
    assert_eq!(world.create(&pod).mutate().patch, None, "no resizePolicy either");
}

#[test]
fn h06_nobody_is_told_that_resources_cannot_be_changed() {
    let answer = World::p0().create(&with_resources(json!({}))).validate();
    assert!(answer.denied() && !answer.message.contains("immutable"), "{answer:?}");
}

#[test]
fn h07_live_pods_are_not_patched_whatever_changes() {
    let pod = |image: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "terminationGracePeriodSeconds": 30, "containers": [{"name": "c", "image": image,
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]}})
    };
    let world = World::p0();
    let asked = world.update(&pod("app:1"), &pod("app:2"));
    assert!(asked.mutate().is_silent() && asked.validate().is_silent());
    assert!(world.update(&pod("app:1"), &pod("app:latest")).validate().denied());
}

#[test]
fn h08_each_rule_says_which_containers_it_means() {
    let world = World::p0();
    let mut object = safe();
    let init = |container: Value| json!([container]);
    // Plain init containers need no requests, but their image counts.
    object["spec"]["template"]["spec"]["initContainers"] = init(json!({"name": "i", "image": "x:1"}));
    assert!(world.create(&object).validate().is_silent());
    object["spec"]["template"]["spec"]["initContainers"] = init(json!({"name": "i", "image": "x"}));
    let answer = world.create(&object).validate();
    assert!(answer.denied() && answer.message.contains("/spec/template/spec/initContainers/0/image"), "{answer:?}");
    // Native sidecars run as long as the pod.
    object["spec"]["template"]["spec"]["initContainers"] =
        init(json!({"name": "s", "image": "x:1", "restartPolicy": "Always"}));
    let answer = world.create(&object).validate();
    assert!(answer.denied() && answer.message.contains("container \"s\" requests no cpu"), "{answer:?}");
    let params = json!({"initContainers": true});
    object["spec"]["template"]["spec"]["initContainers"] = init(json!({"name": "i", "image": "x:1"}));
    assert!(World::p0().params("missing-requests", params).create(&object).validate().denied());
}

#[test]
fn h08_ephemeral_containers_on_demand() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "terminationGracePeriodSeconds": 30,
        "containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}],
        "ephemeralContainers": [{"name": "debug", "image": "busybox"}]}});
    assert!(World::p0().create(&pod).validate().is_silent());
    let world = World::p0().params("mutable-image-tag", json!({"ephemeral": true}));
    assert!(world.create(&pod).validate().denied());
}

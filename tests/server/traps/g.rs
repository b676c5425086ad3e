//! Group G: PodDisruptionBudgets.

use plimsoll::engine::finding::Action;
use serde_json::{Value, json};

use super::b::B13;
use super::world::{World, yaml};

fn budget(spec: Value) -> Value {
    let mut object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
                            "spec": {"selector": {"matchLabels": {"app": "web"}}}});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

#[test]
fn g01_percentages_round_up_so_that_one_pod_may_go() {
    let world = World::p0();
    for spec in [
        json!({"maxUnavailable": "30%"}),
        json!({"maxUnavailable": "1%"}),
        json!({"minAvailable": "50%"}),
        json!({"minAvailable": "99%"}),
    ] {
        let asked = world.create(&budget(spec.clone()));
        assert!(asked.validate().is_silent() && asked.mutate().is_silent(), "{spec}");
    }
}

#[test]
fn g02_a_budget_that_allows_nothing_is_denied() {
    let world = World::p0();
    for (spec, text) in [
        (json!({"minAvailable": "100%"}), "minAvailable 100%"),
        (json!({"minAvailable": "120%"}), "minAvailable 120%"),
        (json!({"maxUnavailable": 0}), "maxUnavailable 0"),
        (json!({"maxUnavailable": "0%"}), "maxUnavailable 0%"),
    ] {
        let answer = world.create(&budget(spec)).validate();
        assert!(answer.denied(), "{answer:?}");
        assert!(answer.message.contains(&format!("{text} blocks every voluntary eviction")), "{answer:?}");
    }
}

#[test]
fn g02_it_can_be_meant() {
    let blocking = budget(json!({"maxUnavailable": 0}));
    let warn = World::p0().rule("pdb-blocks-eviction", Action::Warn, false, json!({}));
    let answer = warn.create(&blocking).validate();
    assert!(answer.allowed && answer.warns(&["[pdb-blocks-eviction] /spec/maxUnavailable"]), "{answer:?}");
    assert!(World::p0().create(&blocking).namespace("kube-system").validate().is_silent());
}

#[test]
fn g03_a_number_is_compared_with_nothing() {
    let world = World::p0();
    for spec in [json!({"minAvailable": 1}), json!({"minAvailable": 100}), json!({"maxUnavailable": 1})] {
        assert!(world.create(&budget(spec.clone())).validate().is_silent(), "{spec}");
    }
}

#[test]
fn g04_a_budget_protects_no_rollout() {
    let world = World::p0();
    assert!(world.create(&budget(json!({"minAvailable": 2}))).validate().is_silent());
    let mut object = yaml(B13);
    object["spec"]["replicas"] = json!(3);
    object["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": "100%", "maxSurge": 0});
    let answer = world.create(&object).validate();
    assert!(answer.denied() && answer.message.contains("3 of 3"), "{answer:?}");
}

#[test]
fn g06_no_selector_is_made_up() {
    let world = World::p0();
    for selector in [json!({}), Value::Null] {
        let mut object = budget(json!({"maxUnavailable": 1}));
        object["spec"]["selector"] = selector;
        assert_eq!(world.create(&object).mutate().patch, None);
        assert!(world.create(&object).validate().allowed);
    }
    // `{}` is every pod of the namespace, absent is none.
    let mut all = budget(json!({"maxUnavailable": 0}));
    all["spec"]["selector"] = json!({});
    assert!(world.create(&all).validate().denied());
    all["spec"].as_object_mut().unwrap().remove("selector");
    assert!(world.create(&all).validate().allowed);
}

#[test]
fn g07_nothing_is_written_unless_asked_for() {
    assert_eq!(World::p0().create(&budget(json!({"maxUnavailable": 1}))).mutate().patch, None);
}

#[test]
fn g09_an_update_that_leaves_the_spec_alone_is_not_judged() {
    let world = World::p0();
    let old = budget(json!({"maxUnavailable": 0}));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"x": "y"});
    new["status"] = json!({"disruptionsAllowed": 0});
    assert!(world.update(&old, &new).validate().is_silent());
    assert!(world.update(&old, &new).mutate().is_silent());
    // Else the ratchet decides.
    let loose = budget(json!({"maxUnavailable": 1}));
    assert!(world.update(&loose, &old).validate().denied());
    new["spec"]["selector"] = json!({"matchLabels": {"app": "other"}});
    let answer = world.update(&old, &new).validate();
    assert!(answer.allowed && answer.warns(&["[pdb-blocks-eviction]"]), "{answer:?}");
}

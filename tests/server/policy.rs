//! What a policy can say beside actions and parameters: profiles, exceptions, enforcement, where fixes are written.

use plimsoll::engine::finding::Action;
use serde_json::{Value, json};

use crate::traps::b::B13;
use crate::traps::world::{World, same_operations, yaml};

/// B13's object with a tag that moves and nothing requested.
fn loose() -> Value {
    let mut object = yaml(B13);
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:latest");
    object
}

fn strict_profile(world: World) -> World {
    world
        .rule("mutable-image-tag", Action::Warn, false, json!({}))
        .spec(json!({"profiles": {"critical": {"rules": {"mutable-image-tag": {"action": "deny"}}}}}))
}

#[test]
fn a_namespaces_label_chooses_a_stricter_profile() {
    let plain = strict_profile(World::p0()).create(&loose()).validate().allowed;
    let labelled = strict_profile(World::p0()).namespace_label("plimsoll.dev/profile", "critical");
    let answer = labelled.create(&loose()).validate();
    assert!(plain && answer.denied(), "{answer:?}");
    assert!(answer.message.contains("[mutable-image-tag] /spec/template/spec/containers/0/image"));
}

#[test]
fn a_workloads_label_may_only_tighten() {
    let mut object = loose();
    object["metadata"]["labels"] = json!({"plimsoll.dev/profile": "critical"});
    assert!(strict_profile(World::p0()).create(&object).validate().denied());
    // A name that the policy does not know changes nothing.
    object["metadata"]["labels"] = json!({"plimsoll.dev/profile": "off"});
    assert!(World::p0().create(&object).validate().denied());
}

#[test]
fn what_is_not_known_of_the_namespace_tightens_nothing() {
    let world = strict_profile(World::p0()).namespace_labels_unknown();
    assert!(world.create(&loose()).validate().allowed);
}

fn excepted(expires: &str, names: &str) -> World {
    World::p0().spec(json!({"exceptions": [{
        "name": "legacy", "rules": ["mutable-image-tag"], "owner": "team-a", "reason": "registry moves",
        "match": {"namespaces": ["team-a"], "kinds": ["Deployment"], "names": [names]}, "expires": expires
    }]}))
}

#[test]
fn an_exception_bears_a_finding_until_its_day() {
    let answer = excepted("9999-12-31", "w*").create(&loose()).validate();
    assert!(answer.allowed && !answer.warns(&["mutable-image-tag"]), "{answer:?}");
    assert_eq!(answer.audit["audit"], "mutable-image-tag", "recorded all the same");
    assert!(excepted("9999-12-31", "other").create(&loose()).validate().denied());
    assert!(excepted("9999-12-31", "w*").create(&loose()).namespace("team-b").validate().denied());
}

#[test]
fn an_expired_exception_is_shown_and_not_honoured() {
    let answer = excepted("2026-01-31", "w*").create(&loose()).validate();
    assert!(answer.denied());
    assert!(
        answer.message.contains("the exception \"legacy\" of \"team-a\" expired on 2026-01-31"),
        "{}",
        answer.message
    );
}

#[test]
fn enforcement_warn_turns_every_deny_into_a_warning_and_tells_which() {
    let world = World::p0().enforcement("warn");
    let answer = world.create(&loose()).validate();
    assert!(answer.allowed && answer.warns(&["[mutable-image-tag]"]), "{answer:?}");
    let counted = |name, rule| world.metric(name, &[("rule", rule)]);
    assert_eq!(counted("plimsoll_unenforced_findings_total", "mutable-image-tag"), 1);
    // Warned of by the policy's own word, so never denied.
    assert_eq!(counted("plimsoll_findings_total", "default-rolling-update"), 1);
    assert_eq!(counted("plimsoll_unenforced_findings_total", "default-rolling-update"), 0);
    let unenforced = |rule: &str| {
        let records = world.records();
        let rules = records[0]["rules"].as_array().unwrap().clone();
        rules.iter().find(|entry| entry["rule"] == rule).map(|entry| entry["unenforced"].clone())
    };
    assert_eq!(unenforced("mutable-image-tag"), Some(json!(true)));
    assert_eq!(unenforced("default-rolling-update"), Some(Value::Null));
    assert_eq!(answer.audit["unenforced"], "mutable-image-tag");
}

#[test]
fn what_break_glass_would_let_pass_is_not_called_unenforced() {
    let world = World::p0().enforcement("warn");
    let answer = world.create(&loose()).user("bob", &["platform-breakglass"]).validate();
    assert!(answer.allowed && !answer.audit.contains_key("unenforced"), "{answer:?}");
    assert_eq!(world.metric("plimsoll_unenforced_findings_total", &[("rule", "mutable-image-tag")]), 0);
}

#[test]
fn a20_a_dry_run_gets_the_same_answer() {
    let world = World::p0();
    let (dry, real) = (world.create(&yaml(B13)).dry_run().mutate(), world.create(&yaml(B13)).mutate());
    assert_eq!((dry.patch, dry.warnings), (real.patch, real.warnings));
    assert!(world.create(&loose()).dry_run().validate().denied());
}

#[test]
fn unannounced_fixes_are_made_in_silence() {
    let answer = World::p0().spec(json!({"announceFixes": false})).create(&yaml(B13)).mutate();
    assert!(answer.patch.is_some() && answer.warnings.is_empty());
}

/// A Pod of B13's Deployment without hook and with a liveness probe, as its ReplicaSet's controller makes it.
fn pod(owner: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "web-5d4-", "labels": {"app": "web"}, "ownerReferences":
            [{"apiVersion": "apps/v1", "kind": owner, "name": "web-5d4", "uid": "u", "controller": true}]},
        "spec": {"terminationGracePeriodSeconds": 30, "restartPolicy": "Always", "containers": [
            {"name": "c", "image": "app:latest", "envFrom": [{"configMapRef": {"name": "cfg"}}],
             "livenessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 10, "failureThreshold": 3, "timeoutSeconds": 1}}]}
    })
}

fn at_pods() -> World {
    World::p0().spec(json!({"fixAt": "pod"}))
}

#[test]
fn fix_at_pod_fixes_the_pods_of_replica_sets_and_stateful_sets() {
    for owner in ["ReplicaSet", "StatefulSet"] {
        let world = at_pods();
        same_operations(
            &world.create(&pod(owner)).mutate().patch(),
            &json!([
                {"op": "add", "path": "/metadata/annotations",
                 "value": {"plimsoll.dev/fixed": "missing-pre-stop/c,missing-startup-probe/c"}},
                {"op": "add", "path": "/spec/containers/0/lifecycle", "value": {"preStop": {"sleep": {"seconds": 10}}}},
                {"op": "add", "path": "/spec/containers/0/startupProbe",
                 "value": {"tcpSocket": {"port": 80}, "periodSeconds": 5, "timeoutSeconds": 1, "failureThreshold": 24}}
            ]),
        );
        let fixed = world.mutated(&pod(owner));
        assert_eq!(world.create(&fixed).mutate().patch, None, "a second round changes nothing");
        // Nothing else of an owned Pod is judged: its image was its workload's to answer for.
        assert!(world.create(&pod(owner)).validate().is_silent());
    }
}

#[test]
fn fix_at_pod_leaves_other_pods_and_updates_alone() {
    for owner in ["DaemonSet", "Job", "ReplicationController"] {
        assert_eq!(at_pods().create(&pod(owner)).mutate().patch, None, "{owner}");
    }
    assert_eq!(at_pods().update(&pod("ReplicaSet"), &pod("ReplicaSet")).mutate().patch, None);
    assert_eq!(World::p0().create(&pod("ReplicaSet")).mutate().patch, None, "fixAt: template is the default");
}

#[test]
fn fix_at_pod_heeds_the_pods_own_opt_out() {
    let mut object = pod("ReplicaSet");
    object["metadata"]["annotations"] = json!({"plimsoll.dev/skip-fixes": "missing-pre-stop"});
    same_operations(
        &at_pods().create(&object).mutate().patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations/plimsoll.dev~1fixed", "value": "missing-startup-probe/c"},
            {"op": "add", "path": "/spec/containers/0/startupProbe",
             "value": {"tcpSocket": {"port": 80}, "periodSeconds": 5, "timeoutSeconds": 1, "failureThreshold": 24}}
        ]),
    );
}

#[test]
fn fix_at_pod_leaves_the_template_as_its_author_wrote_it() {
    let mut object = yaml(B13);
    object["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("lifecycle");
    let world = at_pods();
    // What is no pod's to carry is still written to the workload.
    same_operations(
        &world.create(&object).mutate().patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "default-rolling-update"}},
            {"op": "replace", "path": "/spec/strategy/rollingUpdate/maxUnavailable", "value": 0}
        ]),
    );
    let answer = world.create(&object).validate();
    assert!(answer.allowed && !answer.warns(&["missing-pre-stop"]), "its pods get the hook: {answer:?}");
}

const README: &str = include_str!("../../README.md");

#[test]
fn the_readmes_policy_is_one() {
    let start = README.find("apiVersion: plimsoll.dev/v1alpha1").expect("a policy in the README");
    let policy = README[start..].split("```").next().expect("its end");
    if let Err(error) = plimsoll::policy::Policy::parse(policy) {
        panic!("{error}");
    }
}

#[test]
fn f01_the_readme_says_that_a_webhook_alone_rolls_nothing() {
    let text = README.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("A webhook only sees writes of the workload: changing a ConfigMap alone rolls nothing."));
}

//! Group F: config checksum.

use plimsoll::engine::facts::Reason;
use serde_json::{Value, json};

use super::b::{B01, B02, B13};
use super::world::{Answer, World, container, digest_in, same_operations, yaml};

const DIGEST: &str = "/spec/template/metadata/annotations/plimsoll.dev~1config-checksum";
const KEY: &str = "plimsoll.dev/config-checksum";

/// A workload that satisfies P0 and reads no configuration.
fn plain() -> Value {
    let mut object = yaml(B13);
    object["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": 0, "maxSurge": 1});
    object
}

/// It with these members in the pod's spec and the first container.
fn reading(pod: Value, of_container: Value) -> Value {
    let mut object = plain();
    let spec = object["spec"]["template"]["spec"].as_object_mut().unwrap();
    spec.extend(pod.as_object().unwrap().clone());
    container(&mut object).extend(of_container.as_object().unwrap().clone());
    object
}

fn digest(world: &World, object: &Value) -> String {
    digest_in(&world.create(object).mutate().patch())
}

fn stored_digest(object: &Value) -> &str {
    object["spec"]["template"]["metadata"]["annotations"][KEY].as_str().expect("a digest")
}

fn writes_digest(answer: &Answer) -> bool {
    answer.patch.as_ref().is_some_and(|patch| patch.to_string().contains("config-checksum\":\""))
        || answer.writes(DIGEST)
}

fn with_image(object: &Value, image: &str) -> Value {
    let mut object = object.clone();
    container(&mut object).insert("image".to_owned(), json!(image));
    object
}

#[test]
fn f03_a_config_map_that_is_not_there_yet_is_no_denial() {
    let world = World::p0().config_absent("cfg");
    let absent = digest(&world, &yaml(B02));
    assert!(world.create(&yaml(B02)).validate().allowed);
    // The token for absence is fixed, and is not that of an empty ConfigMap.
    assert_eq!(digest(&World::p0().config_absent("cfg"), &yaml(B02)), absent);
    assert_ne!(digest(&World::p0().config_data("cfg", &[]), &yaml(B02)), absent);
    assert_ne!(digest(&World::p0(), &yaml(B02)), absent);
    // One of two may be there.
    let both =
        reading(json!({}), json!({"envFrom": [{"configMapRef": {"name": "cfg"}}, {"configMapRef": {"name": "late"}}]}));
    assert_ne!(digest(&World::p0(), &both), digest(&World::p0().config("late", "x"), &both));
}

#[test]
fn f04_a_new_image_renews_the_digest() {
    let old = World::p0().mutated(&yaml(B02));
    let changed = World::p0().config("cfg", "second");
    let patch = changed.update(&old, &with_image(&old, "reg.example/app:1.2.4")).mutate().patch();
    let expected = digest(&changed, &yaml(B02));
    assert_ne!(expected, stored_digest(&old));
    same_operations(&patch, &json!([{"op": "replace", "path": DIGEST, "value": expected}]));
}

#[test]
fn f04_more_replicas_keep_the_digest() {
    let old = World::p0().mutated(&yaml(B02));
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(5);
    let answer = World::p0().config("cfg", "second").update(&old, &new).mutate();
    assert_eq!(answer.patch, None);
    assert!(answer.warns(&["config changed since last rollout", "ConfigMap \"cfg\""]), "{answer:?}");
}

#[test]
fn f04_recompute_takes_any_apply_as_the_trigger() {
    let recompute = || World::p0().params("config-checksum", json!({"onUnchangedTemplate": "recompute"}));
    let old = recompute().mutated(&yaml(B02));
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(5);
    let changed = recompute().config("cfg", "second");
    let expected = digest(&changed, &yaml(B02));
    let patch = changed.update(&old, &new).mutate().patch();
    same_operations(&patch, &json!([{"op": "replace", "path": DIGEST, "value": expected}]));
    assert!(recompute().update(&old, &new).mutate().is_silent(), "nothing changed");
    // A digest begins with the author's next template all the same.
    let (before, mut scaled) = (yaml(B02), yaml(B02));
    scaled["spec"]["replicas"] = json!(5);
    assert_eq!(recompute().update(&before, &scaled).mutate().patch, None);
}

#[test]
fn f05_the_digest_stands_on_the_template_of_what_rolls() {
    let world = World::p0();
    let reads = json!({"envFrom": [{"configMapRef": {"name": "cfg"}}]});
    for (api_version, kind, strategy) in [
        ("apps/v1", "Deployment", json!({"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}})),
        ("apps/v1", "StatefulSet", json!({"updateStrategy": {"type": "RollingUpdate"}})),
        ("apps/v1", "DaemonSet", json!({"updateStrategy": {"type": "OnDelete"}})),
        ("argoproj.io/v1alpha1", "Rollout", json!({"strategy": {"blueGreen": {}}})),
    ] {
        let mut object = reading(json!({}), reads.clone());
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        object["spec"].as_object_mut().unwrap().remove("strategy");
        object["spec"].as_object_mut().unwrap().extend(strategy.as_object().unwrap().clone());
        let patch = world.create(&object).mutate().patch();
        let digest = digest_in(&patch);
        same_operations(
            &patch,
            &json!([
                {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "config-checksum"}},
                {"op": "add", "path": "/spec/template/metadata/annotations", "value": {KEY: digest}}
            ]),
        );
    }
}

#[test]
fn f05_what_reads_its_config_anew_needs_no_digest() {
    let world = World::p0();
    let template = reading(json!({"restartPolicy": "Never"}), json!({"envFrom": [{"configMapRef": {"name": "cfg"}}]}));
    let template = &template["spec"]["template"];
    for (api_version, kind, spec) in [
        ("batch/v1", "Job", json!({"template": template})),
        ("batch/v1", "CronJob", json!({"jobTemplate": {"spec": {"template": template}}})),
        ("v1", "ReplicationController", json!({"template": template})),
        ("v1", "Pod", template["spec"].clone()),
    ] {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
        assert_eq!(world.create(&object).mutate().patch, None, "{kind}");
        assert!(!world.create(&object).validate().warns(&["config-checksum"]), "{kind}");
    }
}

#[test]
fn f06_a_charts_own_checksum_stays_beside_ours() {
    let mut object = yaml(B01);
    object["spec"]["template"]["metadata"]["annotations"]["checksum/config"] = json!("abc");
    let patch = World::p0().create(&object).mutate().patch();
    let digest = digest_in(&patch);
    same_operations(
        &patch,
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "config-checksum"}},
            {"op": "add", "path": DIGEST, "value": digest}
        ]),
    );
}

#[test]
fn f06_under_the_charts_key_a_value_without_our_marker_is_the_authors() {
    let chart = || World::p0().params("config-checksum", json!({"annotation": "checksum/config"}));
    let world = chart();
    let mut object = yaml(B01);
    object["spec"]["template"]["metadata"]["annotations"]["checksum/config"] = json!("abc");
    let (mutate, validate) = (world.create(&object).mutate(), world.create(&object).validate());
    assert_eq!(mutate.patch, None);
    let warnings: Vec<&String> = mutate.warnings.iter().chain(&validate.warnings).collect();
    assert_eq!(
        warnings,
        [
            "[config-checksum] /spec/template/metadata/annotations/checksum~1config: checksum/config is the author's and is \
          left alone"
        ]
    );
    // What we wrote there ourselves is ours, the marker says so.
    let old = world.mutated(&yaml(B01));
    assert!(world.create(&old).mutate().is_silent());
    assert!(world.create(&old).validate().is_silent());
    let answer = chart().config("cfg", "second").update(&old, &with_image(&old, "reg.example/app:2")).mutate();
    assert!(answer.writes("/spec/template/metadata/annotations/checksum~1config"), "{answer:?}");
    // Until its author writes another value.
    let mut authors = with_image(&old, "reg.example/app:2");
    authors["spec"]["template"]["metadata"]["annotations"]["checksum/config"] = json!("abc");
    same_operations(
        &world.update(&old, &authors).mutate().patch(),
        &json!([{"op": "replace", "path": "/metadata/annotations/plimsoll.dev~1fixed", "value": ""}]),
    );
}

#[test]
fn f06_under_our_own_key_the_value_is_ours_whatever_the_marker_says() {
    let world = World::p0();
    let mut old = world.mutated(&yaml(B02));
    old["metadata"].as_object_mut().unwrap().remove("annotations");
    let changed = World::p0().config("cfg", "second");
    let new = with_image(&old, "reg.example/app:1.2.4");
    let expected = digest(&changed, &yaml(B02));
    same_operations(
        &changed.update(&old, &new).mutate().patch(),
        &json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "config-checksum"}},
            {"op": "replace", "path": DIGEST, "value": expected}
        ]),
    );
    // A value made up by somebody is replaced.
    let mut forged = yaml(B01);
    forged["spec"]["template"]["metadata"]["annotations"][KEY] = json!("zzz");
    let answer = world.create(&forged).mutate();
    assert!(answer.writes(DIGEST) && digest_in(&answer.patch()) == digest(&world, &yaml(B02)), "{answer:?}");
}

#[test]
fn f07_contents_that_join_to_the_same_text_differ() {
    let one = World::p0().config_data("cfg", &[("a", "1;b=2")]);
    let two = World::p0().config_data("cfg", &[("a", "1"), ("b", "2")]);
    assert_ne!(digest(&one, &yaml(B02)), digest(&two, &yaml(B02)));
    // The name counts too: two ConfigMaps that swap their content.
    let both =
        reading(json!({}), json!({"envFrom": [{"configMapRef": {"name": "a"}}, {"configMapRef": {"name": "b"}}]}));
    let (straight, swapped) =
        (World::p0().config("a", "1").config("b", "2"), World::p0().config("a", "2").config("b", "1"));
    assert_ne!(digest(&straight, &both), digest(&swapped, &both));
}

#[test]
fn f08_only_the_keys_that_are_used_count() {
    let by_key = |extra: Value| {
        reading(
            json!({"volumes": [{"name": "v", "configMap": {"name": "cfg", "items": [{"key": "a", "path": "a"}]}}, extra]}),
            json!({"env": [{"name": "B", "valueFrom": {"configMapKeyRef": {"name": "cfg", "key": "b"}}}]}),
        )
    };
    let keys = by_key(json!({"name": "e", "emptyDir": {}}));
    let world = |a: &str, b: &str, c: &str| World::p0().config_data("cfg", &[("a", a), ("b", b), ("c", c)]);
    let before = digest(&world("1", "2", "3"), &keys);
    assert_eq!(digest(&world("1", "2", "other"), &keys), before, "c is not used");
    assert_ne!(digest(&world("other", "2", "3"), &keys), before);
    assert_ne!(digest(&world("1", "other", "3"), &keys), before);
    // One use without keys is a use of all.
    let all = by_key(json!({"name": "all", "configMap": {"name": "cfg"}}));
    assert_ne!(digest(&world("1", "2", "3"), &all), digest(&world("1", "2", "other"), &all));
}

#[test]
fn f10_secrets_count_on_demand_and_do_not_tell_that_two_are_equal() {
    let reads = reading(json!({}), json!({"envFrom": [{"secretRef": {"name": "login"}}]}));
    assert_eq!(World::p0().secret("login", &[("password", "x")]).create(&reads).mutate().patch, None);
    let world = |password: &str| {
        World::p0().params("config-checksum", json!({"secrets": true})).secret("login", &[("password", password)])
    };
    let here = digest(&world("x"), &reads);
    // Another replica with the same key.
    assert_eq!(digest(&world("x"), &reads), here);
    assert_ne!(digest(&world("y"), &reads), here);
    let elsewhere = world("x").create(&reads).namespace("team-b").mutate().patch();
    assert_ne!(digest_in(&elsewhere), here);
}

#[test]
fn f11_every_way_to_read_a_config_map_is_found() {
    let from = |name: &str| json!([{"configMapRef": {"name": name}, "prefix": "P_"}]);
    let volume = |source: Value| json!({"volumes": [{"name": "v", "configMap": source}]});
    for (way, object) in [
        (
            "env",
            reading(
                json!({}),
                json!({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c1", "key": "value"}}}]}),
            ),
        ),
        ("envFrom", reading(json!({}), json!({"envFrom": from("c1")}))),
        ("volume", reading(volume(json!({"name": "c1"})), json!({}))),
        ("items", reading(volume(json!({"name": "c1", "items": [{"key": "value", "path": "p"}]})), json!({}))),
        (
            "projected",
            reading(
                json!({"volumes": [{"name": "v", "projected": {"sources": [
            {"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "c1"}}]}}]}),
                json!({}),
            ),
        ),
        ("init", reading(json!({"initContainers": [{"name": "i", "image": "x:1", "envFrom": from("c1")}]}), json!({}))),
        (
            "sidecar",
            reading(
                json!({"initContainers": [{"name": "s", "image": "x:1", "restartPolicy": "Always",
            "envFrom": from("c1")}]}),
                json!({}),
            ),
        ),
        ("optional", reading(volume(json!({"name": "c1", "optional": true})), json!({}))),
    ] {
        let (first, second) = (World::p0().config("c1", "first"), World::p0().config("c1", "second"));
        assert_ne!(digest(&first, &object), digest(&second, &object), "{way}");
        assert!(!first.create(&object).validate().denied() || way == "sidecar", "{way}");
    }
    // Twice the same reference is one.
    let once = reading(json!({}), json!({"envFrom": from("cfg")}));
    let twice = reading(volume(json!({"name": "cfg"})), json!({"envFrom": from("cfg")}));
    assert_eq!(digest(&World::p0(), &once), digest(&World::p0(), &twice));
}

#[test]
fn f11_what_only_looks_like_a_reference_is_none() {
    let secret = json!({"name": "login"});
    let volumes = json!([
        {"name": "kube-api-access-x7k2p", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "kube-root-ca.crt"}}, {"downwardAPI": {}}]}},
        {"name": "ca", "configMap": {"name": "kube-root-ca.crt"}},
        {"name": "empty", "projected": {"sources": null}},
        {"name": "csi", "csi": {"driver": "d", "nodePublishSecretRef": secret}},
        {"name": "cephfs", "cephfs": {"monitors": ["m"], "secretRef": secret}},
        {"name": "rbd", "rbd": {"monitors": ["m"], "image": "i", "secretRef": secret}},
        {"name": "iscsi", "iscsi": {"targetPortal": "p", "iqn": "i", "lun": 0, "secretRef": secret}},
    ]);
    let object =
        reading(json!({"volumes": volumes, "imagePullSecrets": [secret], "serviceAccountName": "web"}), json!({}));
    for secrets in [false, true] {
        let world = World::p0().params("config-checksum", json!({"secrets": secrets})).secret("login", &[("p", "x")]);
        assert!(world.create(&object).mutate().is_silent());
        assert!(world.create(&object).validate().is_silent());
    }
}

#[test]
fn f12_a_failed_look_up_keeps_the_old_digest() {
    let old = World::p0().mutated(&yaml(B02));
    for (reason, why) in [(Reason::Forbidden, "forbidden"), (Reason::TimedOut, "timed out"), (Reason::Failed, "failed")]
    {
        let world = World::p0().config_unknown("cfg", reason);
        // CREATE: no digest.
        let answer = world.create(&yaml(B02)).mutate();
        assert!(answer.allowed && answer.patch.is_none(), "{answer:?}");
        assert!(
            answer.warns(&["[config-checksum]", &format!("config look-up {why}"), "ConfigMap \"cfg\""]),
            "{answer:?}"
        );
        assert_eq!(world.metric("plimsoll_anomalies_total", &[("reason", "config-lookup")]), 1);
        assert!(world.create(&yaml(B02)).validate().allowed);
        // UPDATE: the old one, also where a PUT dropped it.
        let answer = world.update(&old, &with_image(&old, "reg.example/app:2")).mutate();
        assert!(answer.patch.is_none() && answer.warns(&[&format!("config look-up {why}")]), "{answer:?}");
        let answer = world.update(&old, &with_image(&yaml(B02), "reg.example/app:2")).mutate();
        same_operations(
            &answer.patch(),
            &json!([
                {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "config-checksum"}},
                {"op": "add", "path": "/spec/template/metadata/annotations", "value": {KEY: stored_digest(&old)}}
            ]),
        );
    }
}

#[test]
fn f12_one_of_many_that_fails_is_enough() {
    let both =
        reading(json!({}), json!({"envFrom": [{"configMapRef": {"name": "cfg"}}, {"configMapRef": {"name": "z"}}]}));
    let answer = World::p0().config_unknown("z", Reason::TimedOut).create(&both).mutate();
    assert!(!writes_digest(&answer) && answer.warns(&["config look-up timed out", "ConfigMap \"z\""]), "{answer:?}");
}

/// `c1` is mounted in one container, in another by `subPath` or not.
fn mounted(annotation: Option<&str>, sub_path: bool) -> Value {
    let mut object = reading(json!({"volumes": [{"name": "v", "configMap": {"name": "c1"}}]}), json!({}));
    if let Some(value) = annotation {
        object["spec"]["template"]["metadata"]["annotations"] = json!({"plimsoll.dev/hot-reload": value});
    }
    let containers = object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
    containers[0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/etc/c"}]);
    let mut second = containers[0].clone();
    second["name"] = json!("d");
    if sub_path {
        second["volumeMounts"] = json!([{"name": "v", "mountPath": "/etc/c/one", "subPath": "value"}]);
    }
    containers.push(second);
    object
}

#[test]
fn f13_what_an_application_reloads_itself_does_not_count_but_a_sub_path_does() {
    let changes = |object: &Value| {
        let digest =
            |content: &str| World::p0().config("c1", content).create(object).mutate().patch.map(|p| digest_in(&p));
        let (first, second) = (digest("first"), digest("second"));
        assert_eq!(first.is_some(), second.is_some());
        first != second
    };
    assert!(changes(&mounted(None, false)));
    assert!(!changes(&mounted(Some("true"), false)));
    assert!(World::p0().create(&mounted(Some("true"), false)).validate().is_silent());
    assert!(changes(&mounted(Some("true"), true)));
    assert!(changes(&mounted(Some("yes"), false)), "only true says it");
    // Environment never reaches a running process.
    let mut env = mounted(Some("true"), false);
    container(&mut env).insert("envFrom".to_owned(), json!([{"configMapRef": {"name": "c1"}}]));
    assert!(changes(&env));
}

#[test]
fn f15_validate_compares_no_digests() {
    let mut object = yaml(B01);
    object["spec"]["template"]["metadata"]["annotations"][KEY] = json!("zzz");
    assert!(World::p0().create(&object).validate().is_silent());
    assert!(World::p0().config_unknown("cfg", Reason::TimedOut).create(&object).validate().is_silent());
    // What `/mutate` would have written is missing: a warning at most.
    let answer = World::p0().create(&yaml(B01)).validate();
    assert!(answer.allowed && answer.warns(&["[config-checksum]", DIGEST]), "{answer:?}");
}

#[test]
fn f16_a_rollback_keeps_its_old_digest_and_names_what_changed_since() {
    let first = World::p0().mutated(&yaml(B02));
    let changed = World::p0().config("cfg", "second");
    let current = changed.mutated_update(&first, &with_image(&first, "reg.example/app:1.2.4"));
    assert_ne!(stored_digest(&first), stored_digest(&current));
    // `rollout undo` sends the first template, digest and all.
    let mut undone = current.clone();
    undone["spec"]["template"] = first["spec"]["template"].clone();
    undone["metadata"].as_object_mut().unwrap().remove("annotations");
    let world = World::p0().config("cfg", "second").revision(&first["spec"]["template"]);
    let answer = world.update(&current, &undone).mutate();
    assert_eq!(answer.patch, None);
    assert!(answer.warns(&["config changed since", "ConfigMap \"cfg\""]), "{answer:?}");
    // Where nothing changed since, nothing is said.
    let same = World::p0().revision(&first["spec"]["template"]).update(&current, &undone).mutate();
    assert!(same.is_silent(), "{same:?}");
}

#[test]
fn a_digest_goes_with_the_last_reference() {
    let world = World::p0();
    let old = world.mutated(&yaml(B02));
    // A PUT of a manifest that reads nothing any more: no digest, and no marker that claims one.
    assert_eq!(world.update(&old, &plain()).mutate().patch, None);
}

#[test]
fn a_dry_run_gets_the_same_patch_and_the_same_verdict() {
    let world = World::p0();
    let asked = || world.create(&yaml(B02));
    assert_eq!(asked().dry_run().mutate().patch, asked().mutate().patch);
    assert_eq!(asked().dry_run().validate().warnings, asked().validate().warnings);
}

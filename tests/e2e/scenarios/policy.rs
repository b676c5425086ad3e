//! The policy ConfigMap, while the server runs.

use serde_json::{Value, json};

use crate::case::{Case, RELEASE, SYSTEM};
use crate::kubectl::Output;
use crate::manifests::{config, digest, fixes_of_safe, safe, set};

fn latest(name: &str) -> Value {
    set(safe(name), "/spec/template/spec/containers/0/image", "reg.example/app:latest")
}

/// What is told of [`latest`] where nobody denies it.
const MUTABLE: &str = "Warning: [mutable-image-tag] /spec/template/spec/containers/0/image: container \"app\": image \
                       \"reg.example/app:latest\" can change under the same name, so replicas may run different code \
                       and a rollback may not roll back";

/// The Deployment `web` is stored, with all fixes and nothing else.
#[track_caller]
fn stored_with_fixes(case: &Case) {
    let stored = case.kubectl.get("deployment/web");
    assert_eq!(case.changes(&latest("web"), "deployment/web"), fixes_of_safe(&digest(&stored)));
    assert_eq!(stored["metadata"]["generation"], 1);
}

/// Replaces a piece of the policy's text as an administrator would with an editor.
fn edit(case: &Case, from: &str, to: &str) -> Output {
    let text = text(case);
    assert!(text.contains(from), "{from:?} is not in\n{text}");
    write(case, &json!({"policy.yaml": text.replacen(from, to, 1)}))
}

/// The policy as it is stored.
fn text(case: &Case) -> String {
    let map = case.plane.kubectl.in_namespace(SYSTEM).get(&format!("configmap/{RELEASE}-policy"));
    map["data"]["policy.yaml"].as_str().unwrap().to_owned()
}

fn write(case: &Case, data: &Value) -> Output {
    let patch = json!({"data": data}).to_string();
    let name = format!("{RELEASE}-policy");
    case.plane.kubectl.in_namespace(SYSTEM).run(&["patch", "configmap", &name, "--type=merge", "-p", &patch])
}

/// Takes away the webhook that refuses a broken policy: as if it was written while
/// nobody answered.
fn let_any_policy_in(case: &Case) {
    let kubectl = &case.plane.kubectl;
    let entries = kubectl.get(&format!("validatingwebhookconfiguration/{RELEASE}"))["webhooks"].clone();
    let index = entries.as_array().unwrap().iter().position(|entry| entry["name"] == "policy.validate.plimsoll.dev");
    let patch = json!([{"op": "remove", "path": format!("/webhooks/{}", index.unwrap())}]).to_string();
    kubectl.ok(&["patch", "validatingwebhookconfiguration", RELEASE, "--type=json", "-p", &patch]);
}

fn hash(case: &Case) -> String {
    let series = case.server.series("plimsoll_policy_info");
    series.iter().filter(|(_, value)| *value == 1.0).map(|(labels, _)| labels["hash"].clone()).collect()
}

pub fn a_changed_policy_is_followed_within_seconds() {
    let case = Case::new("policy");
    let before = hash(&case);
    let count = case.count();
    let denied = case.kubectl.run_with(&["create", "-f", "-"], &latest("web"));
    assert_eq!(denied.code, 1, "{denied:?}");
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment deny"]);

    let count = case.count();
    let edited = edit(&case, "enforcement: enforce", "enforcement: warn");
    assert_eq!((edited.code, edited.told()), (0, vec![]));
    assert_eq!(count.moved(), ["validate UPDATE ConfigMap allow"]);
    case.wait("the new policy", || {
        let now = hash(&case);
        if now == before { Err(now) } else { Ok(()) }
    });
    let count = case.count();
    let allowed = case.kubectl.run_with(&["create", "-f", "-"], &latest("web"));
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert_eq!(allowed.told().last(), Some(&MUTABLE), "a warning instead: {allowed:?}");
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment allow"]);
    stored_with_fixes(&case);
    case.rolled_out("web");
    assert_eq!(case.replica_sets("web").len(), 1);
}

pub fn a_broken_policy_changes_nothing() {
    let case = Case::new("policy-broken");
    let before = hash(&case);
    let failures = case.server.total("plimsoll_policy_reload_failures_total");
    let text = text(&case);

    // Whoever applies it is told.
    let count = case.count();
    let refused = edit(&case, "sleepSeconds: 10", "sleepSeconds: ten");
    assert_eq!(
        (refused.code, refused.told()),
        (
            1,
            vec![
                "Error from server (Forbidden): admission webhook \"policy.validate.plimsoll.dev\" denied the request: \
                 Plimsoll reads its policy from ConfigMap plimsoll-system/plimsoll-policy: it is no valid policy, and \
                 the one in force stays:",
                "line 31, column 23: spec.rules.missing-pre-stop.params.sleepSeconds: expected a whole number, found \
                 string \"ten\"",
            ]
        )
    );
    assert_eq!(count.moved(), ["validate UPDATE ConfigMap deny"]);
    assert_eq!(self::text(&case), text);

    // And if it comes in all the same, it changes nothing.
    let_any_policy_in(&case);
    case.wait("a broken policy to be stored", || {
        let output = edit(&case, "sleepSeconds: 10", "sleepSeconds: ten");
        if output.code == 0 { Ok(()) } else { Err(output.stderr) }
    });
    case.wait("the refusal of the new policy", || {
        let now = case.server.total("plimsoll_policy_reload_failures_total");
        if now > failures { Ok(()) } else { Err(now.to_string()) }
    });
    let path = "spec.rules.missing-pre-stop.params.sleepSeconds";
    assert!(case.server.process.log().contains(path), "{}", case.server.process.log_tail(10));
    assert_eq!(hash(&case), before);
    // Whoever wrote it can see it where they wrote it.
    let kubectl = case.plane.kubectl.in_namespace(SYSTEM);
    let column =
        "jsonpath={range .items[?(@.reason=='InvalidPolicy')]}{.regarding.kind}/{.regarding.name}: {.note}{end}";
    case.wait("an Event on the ConfigMap", || {
        let note = kubectl.try_ok(&["get", "events.events.k8s.io", "-o", column])?;
        let expected = format!("ConfigMap/{RELEASE}-policy: ");
        if note.contains(&expected) && note.contains(path) { Ok(()) } else { Err(note) }
    });

    let map = format!("{RELEASE}-policy");
    for broken in [json!({"policy.yaml": ""}), Value::Null] {
        let output = write(&case, &broken);
        assert_eq!(output.code, 0, "{output:?}");
    }
    kubectl.ok(&["delete", "configmap", &map]);
    let count = case.count();
    let denied = case.kubectl.run_with(&["create", "-f", "-"], &latest("web"));
    assert_eq!(denied.code, 1, "{denied:?}");
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment deny"]);
    assert_eq!(hash(&case), before);
    assert_eq!(case.server.admin_get("/readyz").unwrap().0, 200);

    // And a good one that comes back under the same name is followed.
    let good = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": map},
        "data": {"policy.yaml": text.replacen("enforcement: enforce", "enforcement: warn", 1)},
    });
    kubectl.ok_with(&["create", "-f", "-"], &good);
    case.wait("the repaired policy", || {
        let now = hash(&case);
        if now == before { Err(now) } else { Ok(()) }
    });
    let count = case.count();
    case.kubectl.ok_with(&["create", "-f", "-"], &latest("web"));
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment allow"]);
    stored_with_fixes(&case);
}

pub fn break_glass_turns_denials_into_warnings() {
    let case = Case::new("break-glass");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let create = ["create", "-f", "-", "--as=on-call", "--as-group=system:masters"];
    let count = case.count();
    let denied = case.kubectl.run_with(&create, &latest("web"));
    assert_eq!(denied.code, 1, "an administrator is not exempt: {denied:?}");
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment deny"]);

    let mut emergency = create.to_vec();
    emergency.push("--as-group=platform-breakglass");
    let count = case.count();
    let allowed = case.kubectl.run_with(&emergency, &latest("web"));
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert_eq!(allowed.told().last(), Some(&MUTABLE), "{allowed:?}");
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment allow"]);
    case.rolled_out("web");
    stored_with_fixes(&case);
    assert_eq!(case.replica_sets("web").len(), 1);
}

//! Faults that chance found, each by the smallest case that shows it.

use plimsoll::config::{Reference, Source};
use plimsoll::engine::facts::{Facts, Known, Reason, ServerVersion};
use plimsoll::engine::finding::Action;
use plimsoll::engine::request::Endpoint;
use plimsoll::engine::verdict::Verdict;
use plimsoll::engine::{evaluate, needs};
use plimsoll::policy::Policy;
use plimsoll::review::Review;
use serde_json::{Value as Json, json};

use super::apply::patched;

const P0: &str = include_str!("../p0.yaml");

/// The verdict under P0.
fn judge(endpoint: Endpoint, old: Option<&Json>, object: &Json) -> Verdict {
    judge_under(&Policy::parse(P0).unwrap(), endpoint, old, object)
}

/// The verdict on a Deployment or a Rollout, created or changed; server 1.37, no quota, ConfigMap `cfg` there.
fn judge_under(policy: &Policy, endpoint: Endpoint, old: Option<&Json>, object: &Json) -> Verdict {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let (group, kind, resource) = match object["kind"].as_str() {
        Some("Rollout") => ("argoproj.io", "Rollout", "rollouts"),
        _ => ("apps", "Deployment", "deployments"),
    };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": operation, "namespace": "team-a", "name": "web",
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": resource},
        "object": object, "oldObject": old}});
    let text = review.to_string();
    let request = Review::parse(text.as_bytes()).unwrap().into_request(None).unwrap();
    let mut facts = Facts {
        server_version: Known::Known(ServerVersion { major: 1, minor: 37 }),
        crd_sleep: Known::Known(true),
        quotas: Known::Absent,
        limit_range: Known::Absent,
        revisions: Known::Absent,
        ..Facts::unknown(Reason::NotAsked)
    };
    let cfg = Reference { source: Source::ConfigMap, name: "cfg".to_owned(), keys: None, optional: false };
    facts.digests.insert(cfg, Known::Known("0123456789abcdef".repeat(4)));
    // As a server does: what is not asked for is not known.
    let asked = needs(endpoint, policy, &request);
    if !asked.server_version {
        facts.server_version = Known::Unknown(Reason::NotAsked);
    }
    if !asked.quotas {
        facts.quotas = Known::Unknown(Reason::NotAsked);
    }
    if !asked.limit_range {
        facts.limit_range = Known::Unknown(Reason::NotAsked);
    }
    if asked.digests.is_empty() {
        facts.digests.clear();
    }
    evaluate(endpoint, policy, &request, &facts)
}

/// The object as `/mutate` leaves it under P0.
fn mutated(old: Option<&Json>, object: &Json) -> Json {
    mutated_under(&Policy::parse(P0).unwrap(), old, object)
}

fn mutated_under(policy: &Policy, old: Option<&Json>, object: &Json) -> Json {
    match judge_under(policy, Endpoint::Mutate, old, object).patch {
        Some(patch) => serde_json::from_str(&patched(&object.to_string(), &patch).unwrap()).unwrap(),
        None => object.clone(),
    }
}

/// A Deployment of one container that these members are added to.
fn deployment(container: Json) -> Json {
    let mut members = json!({"name": "c", "image": "reg.example/app:1.2.3",
                             "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}});
    members.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    json!({"metadata": {"name": "web"}, "spec": {"replicas": 2,
           "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
           "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [members]}}}})
}

fn marker(object: &Json) -> &Json {
    &object["metadata"]["annotations"]["plimsoll.dev/fixed"]
}

#[test]
fn b06_a_second_round_of_an_update_keeps_the_marker_of_the_first() {
    let old = deployment(json!({}));
    let mut new = deployment(json!({"envFrom": [{"configMapRef": {"name": "cfg"}}]}));
    new["spec"]["template"]["metadata"]["labels"]["version"] = json!("2");
    let first = mutated(Some(&old), &new);
    assert_eq!(*marker(&first), "config-checksum,missing-pre-stop/c");
    assert_eq!(judge(Endpoint::Mutate, Some(&old), &first).patch, None);
}

#[test]
fn b06_a_second_round_that_restores_the_old_template_keeps_the_marker() {
    // The author's own sleep goes, and ours comes in its place with the same value.
    let old = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 10}}}}));
    let first = mutated(Some(&old), &deployment(json!({})));
    assert_eq!(first["spec"]["template"], old["spec"]["template"]);
    assert_eq!(*marker(&first), "missing-pre-stop/c");
    assert_eq!(judge(Endpoint::Mutate, Some(&old), &first).patch, None);
}

#[test]
fn b06_a_marker_that_comes_with_an_update_is_believed_only_where_it_is_true() {
    let old = deployment(json!({}));
    let mut forged = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 15}}}}));
    forged["metadata"]["annotations"] = json!({"plimsoll.dev/fixed": "missing-pre-stop/c"});
    let stored = mutated(Some(&old), &forged);
    assert_eq!(*marker(&stored), "");
    assert_eq!(stored["spec"], forged["spec"]);
}

#[test]
fn a23_a_sleep_and_a_grace_at_the_ends_of_their_range_overflow_nothing() {
    let mut object = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": i64::MAX}}}}));
    for grace in [i64::MIN, -1, 0, i64::MAX] {
        object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(grace);
        let verdict = judge(Endpoint::Validate, None, &object);
        let measure = verdict.findings.iter().find_map(|judged| judged.finding.measure);
        assert_eq!(measure.is_some(), grace != i64::MAX, "{grace}: {verdict:?}");
    }
}

#[test]
fn d02_a_liveness_probe_that_cannot_fail_is_not_copied() {
    for command in [json!(["true"]), json!(["sh", "-c", "exit 0"])] {
        let object = deployment(json!({"livenessProbe": {"exec": {"command": command}}}));
        let stored = mutated(None, &object);
        assert_eq!(*marker(&stored), "missing-pre-stop/c", "{command}");
        assert!(stored["spec"]["template"]["spec"]["containers"][0]["startupProbe"].is_null(), "{command}");
    }
}

#[test]
fn b06_a_canary_left_empty_keeps_what_was_written_into_it() {
    let mut rollout = deployment(json!({}));
    rollout["kind"] = json!("Rollout");
    rollout["spec"]["replicas"] = json!(4);
    rollout["spec"]["strategy"] = json!({"canary": {}});
    let first = mutated(None, &rollout);
    assert_eq!(first["spec"]["strategy"], json!({"canary": {"maxUnavailable": 0}}));
    assert_eq!(*marker(&first), "default-rolling-update,missing-pre-stop/c");
    assert_eq!(judge(Endpoint::Mutate, None, &first).patch, None);
}

#[test]
fn b18_a_lifecycle_left_empty_is_no_change_of_the_template() {
    let author = deployment(json!({"lifecycle": {}}));
    let old = mutated(None, &author);
    assert_eq!(*marker(&old), "missing-pre-stop/c");
    let mut put = author;
    put["metadata"]["labels"] = json!({"touched": "yes"});
    let stored = mutated(Some(&old), &put);
    assert_eq!(stored["spec"]["template"], old["spec"]["template"]);
}

#[test]
fn b18_a_grace_period_that_a_put_leaves_out_is_the_default_that_nobody_wrote() {
    let author = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 40}}}}));
    let old = mutated(None, &author);
    assert_eq!(*marker(&old), "short-grace-period");
    let raised = &old["spec"]["template"]["spec"]["terminationGracePeriodSeconds"];
    assert!(raised.as_i64() > Some(40), "{raised}");
    assert_eq!(mutated(Some(&old), &author), old);
}

#[test]
fn b18_a_marker_entry_for_what_is_not_there_changes_no_template() {
    let mut old =
        deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}, "ports": [{"containerPort": 80}]}));
    old["metadata"]["annotations"] = json!({"plimsoll.dev/fixed": "short-grace-period,missing-startup-probe/c"});
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"touched": "yes"});
    assert_eq!(mutated(Some(&old), &new)["spec"], old["spec"]);
}

/// A policy of these rules alone.
fn policy(rules: &str) -> Policy {
    let text = format!(
        "apiVersion: plimsoll.dev/v1alpha1\nkind: Policy\nmetadata: {{name: t}}\nspec: {{extends: none, rules: {{{rules}}}}}\n"
    );
    Policy::parse(&text).unwrap()
}

#[test]
fn c15_to_pause_is_never_held_up_though_the_digest_is_renewed_with_it() {
    let recompute = "{action: warn, fix: true, params: {onUnchangedTemplate: recompute}}";
    let policy = policy(&format!("paused-rollout: deny, config-checksum: {recompute}"));
    let mut old = deployment(json!({"envFrom": [{"configMapRef": {"name": "cfg"}}]}));
    old["metadata"]["annotations"] = json!({"plimsoll.dev/fixed": "config-checksum"});
    old["spec"]["template"]["metadata"]["annotations"] = json!({"plimsoll.dev/config-checksum": "f".repeat(64)});
    let mut new = old.clone();
    new["spec"]["paused"] = json!(true);
    let stored = mutated_under(&policy, Some(&old), &new);
    assert_ne!(stored["spec"]["template"], old["spec"]["template"]);
    let verdict = judge_under(&policy, Endpoint::Validate, Some(&old), &stored);
    assert_eq!((verdict.denial, verdict.findings[0].finding.rule), (None, "paused-rollout"));
}

#[test]
fn i05_a_startup_probe_of_ours_is_not_denied_for_the_timeout_that_it_copies() {
    let policy = policy("tight-probe-timeout: deny, missing-startup-probe: {action: warn, fix: true}");
    let probe = json!({"httpGet": {"path": "/", "port": 80}, "timeoutSeconds": 20, "periodSeconds": 10});
    let old = deployment(json!({"livenessProbe": probe}));
    let mut new = old.clone();
    new["spec"]["template"]["metadata"]["labels"]["version"] = json!("2");
    let denied = |old: Option<&Json>, object: &Json| {
        let stored = mutated_under(&policy, old, object);
        let container = &stored["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["startupProbe"]["timeoutSeconds"], 20);
        let verdict = judge_under(&policy, Endpoint::Validate, old, &stored);
        let denied = verdict.findings.into_iter().filter(|judged| judged.action == Action::Deny);
        denied.map(|judged| judged.finding.pointer).collect::<Vec<_>>()
    };
    // What stood before is spared; new, the author's own probe is denied, and it alone.
    assert_eq!(denied(Some(&old), &new), [""; 0]);
    assert_eq!(denied(None, &new), ["/spec/template/spec/containers/0/livenessProbe/timeoutSeconds"]);
}

/// Pointers of what `/validate` denies of this object as it is, by rule.
fn denied(policy: &Policy, old: Option<&Json>, object: &Json) -> Vec<(&'static str, String)> {
    let verdict = judge_under(policy, Endpoint::Validate, old, object);
    let denied = verdict.findings.into_iter().filter(|judged| judged.action == Action::Deny);
    denied.map(|judged| (judged.finding.rule, judged.finding.pointer)).collect()
}

const GRACE: &str = "/spec/template/spec/terminationGracePeriodSeconds";

#[test]
fn i05_a_sleep_of_ours_is_not_denied_by_the_rule_on_long_ones() {
    let policy = policy(
        "missing-pre-stop: {action: warn, fix: true, params: {sleepSeconds: 20}}, \
         pre-stop-too-long: {action: deny, params: {maxSeconds: 10}}",
    );
    let stored = mutated_under(&policy, None, &deployment(json!({})));
    assert_eq!(*marker(&stored), "missing-pre-stop/c");
    assert_eq!(denied(&policy, None, &stored), []);
    let by_author = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 20}}}}));
    assert_eq!(denied(&policy, None, &by_author).len(), 1);
}

#[test]
fn j04_a_marker_forged_on_the_live_object_hides_no_denial() {
    let policy = Policy::parse(P0).unwrap();
    let mut old = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 20}}}}));
    old["spec"]["replicas"] = json!(0);
    old["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": "100%", "maxSurge": 0});
    old["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(60);
    old["metadata"]["annotations"] = json!({"plimsoll.dev/fixed": "default-rolling-update,missing-pre-stop/c"});
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(4);
    let outage = ("rollout-outage", "/spec/strategy/rollingUpdate/maxUnavailable".to_owned());
    assert_eq!(denied(&policy, Some(&old), &new), [outage]);
    let mut shorter = old.clone();
    shorter["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(3);
    assert_eq!(denied(&policy, Some(&old), &shorter), [("short-grace-period", GRACE.to_owned())]);
}

#[test]
fn b10_a_marker_on_what_some_controller_owns_hides_no_denial() {
    let policy = Policy::parse(P0).unwrap();
    let mut old = deployment(json!({}));
    old["metadata"] = json!({"name": "web", "annotations": {"plimsoll.dev/fixed": "short-grace-period"},
        "ownerReferences": [{"apiVersion": "x.io/v1", "kind": "Foo", "name": "f", "uid": "u", "controller": true}]});
    old["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(10);
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 20}}});
    assert_eq!(denied(&policy, Some(&old), &new), [("short-grace-period", GRACE.to_owned())]);
}

#[test]
fn c15_what_only_warns_by_its_nature_excuses_no_denial() {
    let policy = Policy::parse(P0).unwrap();
    let tag = |tag: &str| deployment(json!({"image": format!("reg.example/app:{tag}")}));
    let image = ("mutable-image-tag", "/spec/template/spec/containers/0/image".to_owned());
    assert_eq!(denied(&policy, None, &tag("Latest")), []);
    assert_eq!(denied(&policy, Some(&tag("Latest")), &tag("latest")), [image]);
    assert_eq!(denied(&policy, Some(&tag("latest")), &tag("latest")), []);
    let mut short = deployment(json!({}));
    short["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(3);
    let mut new = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 20}}}}));
    new["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(3);
    assert_eq!(denied(&policy, None, &short), []);
    assert_eq!(denied(&policy, Some(&short), &new), [("short-grace-period", GRACE.to_owned())]);
}

#[test]
fn c15_what_we_copied_excuses_no_second_violation_of_the_author() {
    let policy = policy("tight-probe-timeout: deny, missing-startup-probe: {action: warn, fix: true}");
    let probe = json!({"httpGet": {"path": "/", "port": 80}, "timeoutSeconds": 20, "periodSeconds": 10});
    let old = mutated_under(&policy, None, &deployment(json!({"livenessProbe": probe})));
    assert_eq!(*marker(&old), "missing-startup-probe/c");
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = probe;
    let pointers =
        |new: &Json| -> Vec<_> { denied(&policy, Some(&old), new).into_iter().map(|(_, pointer)| pointer).collect() };
    assert_eq!(pointers(&new), ["/spec/template/spec/containers/0/readinessProbe/timeoutSeconds"]);
    // Nor does it when it gives way to a probe of the author's own.
    let sane = json!({"httpGet": {"path": "/", "port": 80}, "timeoutSeconds": 2, "periodSeconds": 10});
    new["spec"]["template"]["spec"]["containers"][0]["startupProbe"] = sane;
    assert_eq!(pointers(&new), ["/spec/template/spec/containers/0/readinessProbe/timeoutSeconds"]);
}

#[test]
fn b06_what_is_renewed_on_an_unchanged_template_is_renewed_at_once() {
    let with = |on_unchanged: &str| {
        policy(&format!(
            "config-checksum: {{action: warn, fix: true, params: {{onUnchangedTemplate: {on_unchanged}}}}}, \
             missing-pre-stop: {{action: warn, fix: true, params: {{sleepSeconds: 5}}}}"
        ))
    };
    let reads = json!([{"configMapRef": {"name": "cfg"}}]);
    let mut old = deployment(json!({"envFrom": reads, "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}));
    old["metadata"]["annotations"] = json!({"plimsoll.dev/fixed": "config-checksum"});
    old["spec"]["template"]["metadata"]["annotations"] = json!({"plimsoll.dev/config-checksum": "f".repeat(64)});
    // The author's hook goes and ours comes in its place: nothing of the template changes but for the digest.
    let put = deployment(json!({"envFrom": reads}));
    let renewed = mutated_under(&with("recompute"), Some(&old), &put);
    assert_ne!(renewed["spec"]["template"], old["spec"]["template"]);
    assert_eq!(judge_under(&with("recompute"), Endpoint::Mutate, Some(&old), &renewed).patch, None);
    let kept = mutated_under(&with("keep"), Some(&old), &put);
    assert_eq!(kept["spec"]["template"], old["spec"]["template"]);
    let warnings = judge_under(&with("keep"), Endpoint::Mutate, Some(&old), &put).warnings;
    let says = "config changed since last rollout (ConfigMap \"cfg\"): running pods may hold old values";
    assert!(warnings.iter().any(|warning| warning.contains(says)), "{warnings:?}");
}

#[test]
fn b06_a_grace_of_ours_that_is_not_asked_for_any_more_stays_where_nothing_else_changed() {
    let of = |drain: u32, min: u32| {
        policy(&format!(
            "short-grace-period: {{action: warn, fix: true, params: {{drainSeconds: {drain}, minSeconds: {min}}}}}, \
             missing-pre-stop: {{action: warn, fix: true, params: {{sleepSeconds: 5}}}}"
        ))
    };
    // Under an earlier policy the grace was raised for the author's own sleep.
    let slept = json!({"preStop": {"sleep": {"seconds": 5}}});
    let old = mutated_under(&of(55, 0), None, &deployment(json!({"lifecycle": slept})));
    assert_eq!(old["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 60);
    // The author drops the hook, and ours comes in its place.
    let first = mutated_under(&of(5, 0), Some(&old), &deployment(json!({})));
    assert_eq!(first["spec"]["template"], old["spec"]["template"]);
    assert_eq!(judge_under(&of(5, 0), Endpoint::Mutate, Some(&old), &first).patch, None);
}

#[test]
fn b06_what_the_first_round_wrote_outside_the_template_stays_though_the_template_came_back() {
    let mut old = deployment(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 10}}}}));
    old["spec"]["replicas"] = json!(4);
    old["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
    let mut put = old.clone();
    put["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("lifecycle");
    let first = mutated(Some(&old), &put);
    assert_eq!(first["spec"]["template"], old["spec"]["template"]);
    assert_eq!(*marker(&first), "default-rolling-update,missing-pre-stop/c");
    assert_eq!(first["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
    assert_eq!(judge(Endpoint::Mutate, Some(&old), &first).patch, None);
}

#[test]
fn i05_a_hook_of_ours_is_not_denied_for_the_grace_that_the_author_shortens() {
    let policy = Policy::parse(P0).unwrap();
    let old = mutated(None, &deployment(json!({})));
    assert_eq!(*marker(&old), "missing-pre-stop/c");
    for grace in [5, 12] {
        let mut new = old.clone();
        new["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(grace);
        assert_eq!(denied(&policy, Some(&old), &new), [], "{grace}");
    }
}

#[test]
fn i05_what_we_wrote_when_there_was_room_is_not_held_against_the_author() {
    let policy = policy("stalled-rollout: deny, default-rolling-update: {action: warn, fix: true}");
    let mut author = deployment(json!({}));
    author["spec"]["replicas"] = json!(4);
    author["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
    let old = mutated_under(&policy, None, &author);
    assert_eq!(old["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 80}]);
    assert_eq!(denied(&policy, Some(&old), &new), []);
    let mut by_author = new.clone();
    by_author["metadata"]["annotations"] = json!({});
    assert_eq!(denied(&policy, None, &by_author).len(), 1);
    by_author["metadata"] = json!({"name": "web", "annotations": {"plimsoll.dev/fixed": "default-rolling-update"},
        "ownerReferences": [{"apiVersion": "x.io/v1", "kind": "Foo", "name": "f", "uid": "u", "controller": true}]});
    assert_eq!(denied(&policy, None, &by_author).len(), 1);
}

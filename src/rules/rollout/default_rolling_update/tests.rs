//! What the rule finds, writes and asks for.

use serde_json::json;

use super::*;
use crate::engine::context::Declined;
use crate::engine::document::Value;
use crate::engine::facts::{Facts, Known, Quota, Reason};
use crate::engine::kind;
use crate::engine::request::{Endpoint, Operation};
use crate::policy::Policy;

const DEFAULTED: &str = r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}"#;

/// No ResourceQuota in the namespace.
fn no_quota() -> Facts {
    Facts { quotas: Known::Absent, ..Facts::unknown(Reason::NotAsked) }
}

fn policy(params: serde_json::Value) -> Policy {
    Policy::of(&[("default-rolling-update", Action::Warn, true, params)]).unwrap()
}

fn with<T>(group: &str, kind: &str, spec: &str, facts: &Facts, policy: &Policy, see: impl Fn(&Context<'_>) -> T) -> T {
    let text = format!(r#"{{"metadata":{{"name":"web"}},"spec":{spec}}}"#);
    let object = Value::parse(&text).unwrap();
    let declined = Declined::default();
    let kind = kind::lookup(group, kind).unwrap();
    see(&Context::new(Endpoint::Mutate, Operation::Create, kind, &object, facts, policy, &declined))
}

fn check(group: &str, kind: &str, spec: &str, facts: &Facts, policy: &Policy) -> Vec<Finding> {
    with(group, kind, spec, facts, policy, |context| {
        let mut findings = Vec::new();
        let setting = policy.setting("default-rolling-update").unwrap();
        setting.rule.check(context, &setting.params, &mut findings);
        findings
    })
}

fn deployment(replicas: i64, strategy: &str, pod: &str) -> String {
    let template =
        format!(r#"{{"metadata":{{"labels":{{"app":"a"}}}},"spec":{{"containers":[{{"name":"c"}}]{pod}}}}}"#);
    format!(r#"{{"replicas":{replicas},"strategy":{strategy},"template":{template}}}"#)
}

fn findings(replicas: i64, strategy: &str, pod: &str) -> Vec<Finding> {
    check("apps", "Deployment", &deployment(replicas, strategy, pod), &no_quota(), &policy(json!({})))
}

fn writes(findings: &[Finding]) -> Vec<(String, String)> {
    let fixes = findings.iter().filter_map(|finding| finding.fix.as_ref());
    fixes.flat_map(|fix| &fix.writes).map(|(path, value)| (pointer(path), value.to_string())).collect()
}

fn written(path: &str, value: &str) -> (String, String) {
    (path.to_owned(), value.to_owned())
}

#[test]
fn b13_the_default_becomes_zero_and_the_surge_stays() {
    let found = findings(4, DEFAULTED, "");
    assert_eq!(writes(&found), [written("/spec/strategy/rollingUpdate/maxUnavailable", "0")]);
    assert_eq!(found[0].pointer, "/spec/strategy/rollingUpdate/maxUnavailable");
    assert_eq!(
        found[0].message,
        "1 of 4 replicas may be down during every rollout: maxUnavailable is the API default 25%"
    );
    let fix = found[0].fix.as_ref().unwrap();
    assert_eq!(fix.claim, "default-rolling-update");
    assert_eq!(fix.says, "set maxUnavailable to 0 (maxUnavailable was the API default 25%)");
    assert_eq!(found[0].mend.as_deref(), Some("spec:\n  strategy:\n    rollingUpdate:\n      maxUnavailable: 0\n"));
    assert_eq!(found[0].cap, None);
}

#[test]
fn b13_manifests_without_a_strategy_get_the_default_too() {
    let at = "/spec/strategy/rollingUpdate/maxUnavailable";
    assert_eq!(writes(&findings(4, "null", "")), [written(at, "0")]);
    assert_eq!(writes(&findings(4, r#"{"rollingUpdate":{"maxSurge":1}}"#, "")), [written(at, "0")]);
}

#[test]
fn b13_an_applied_default_is_left_alone() {
    let object = format!(
        r#"{{"metadata":{{"managedFields":[{{"operation":"Apply","fieldsV1":{{"f:spec":{{"f:strategy":{{"f:rollingUpdate":{{"f:maxUnavailable":{{}}}}}}}}}}}}]}},"spec":{}}}"#,
        deployment(4, DEFAULTED, "")
    );
    let (object, facts, policy) = (Value::parse(&object).unwrap(), no_quota(), policy(json!({})));
    let (kind, declined) = (kind::lookup("apps", "Deployment").unwrap(), Declined::default());
    let context = Context::new(Endpoint::Mutate, Operation::Create, kind, &object, &facts, &policy, &declined);
    assert!(!context.roll().unwrap().rolling.as_ref().unwrap().defaulted);
    let mut found = Vec::new();
    DefaultRollingUpdate::check(&context, &Params::default(), &mut found);
    assert_eq!(found, []);
}

#[test]
fn b14_explicit_values_are_left_alone() {
    assert_eq!(findings(4, r#"{"rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}"#, ""), []);
    assert_eq!(findings(4, r#"{"rollingUpdate":{"maxUnavailable":"30%","maxSurge":"25%"}}"#, ""), []);
}

#[test]
fn c03_never_beside_a_surge_of_zero() {
    assert_eq!(findings(4, r#"{"rollingUpdate":{"maxUnavailable":"25%","maxSurge":0}}"#, ""), []);
    assert_eq!(findings(4, r#"{"rollingUpdate":{"maxUnavailable":"25%","maxSurge":"0%"}}"#, ""), []);
}

#[test]
fn c04_invalid_values_are_left_to_the_server() {
    for pair in [
        r#"{"maxUnavailable":"25%","maxSurge":"1"}"#,
        r#"{"maxUnavailable":"1","maxSurge":1}"#,
        r#"{"maxUnavailable":"25%","maxSurge":-1}"#,
        r#""25%""#,
    ] {
        assert_eq!(findings(4, &format!(r#"{{"rollingUpdate":{pair}}}"#), ""), [], "{pair}");
    }
    assert_eq!(findings(4, r#""RollingUpdate""#, ""), []);
    assert_eq!(findings(-1, DEFAULTED, ""), []);
    assert_eq!(findings(3_000_000_000, DEFAULTED, ""), []);
}

#[test]
fn c06_recreate_gets_nothing() {
    assert_eq!(findings(4, r#"{"type":"Recreate"}"#, ""), []);
    assert_eq!(findings(4, r#"{"type":"Recreate","rollingUpdate":{"maxUnavailable":"25%"}}"#, ""), []);
    assert_eq!(findings(4, r#"{"type":"Surprise"}"#, ""), []);
}

#[test]
fn a23_no_containers_no_fix() {
    let spec = r#"{"replicas":1,"selector":null,"template":{"metadata":{},"spec":{"containers":null}}}"#;
    assert_eq!(check("apps", "Deployment", spec, &no_quota(), &policy(json!({}))), []);
}

#[test]
fn below_four_replicas_the_fix_is_made_but_nobody_is_warned() {
    for replicas in [0, 1, 3] {
        let found = findings(replicas, DEFAULTED, "");
        assert_eq!(writes(&found).len(), 1, "{replicas}");
        assert_eq!(found[0].cap, Some(Action::Audit), "{replicas}");
    }
    assert_eq!(
        findings(1, DEFAULTED, "")[0].message,
        "maxUnavailable is the API default 25%: it takes none of 1 replica down, but will when there are more"
    );
    assert_eq!(findings(1, DEFAULTED, r#","hostNetwork":true"#), []);
}

#[test]
fn c08_c09_c20_no_fix_where_the_object_leaves_no_room_and_the_finding_says_why() {
    let required = r#","affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"h","labelSelector":{}}]}}"#;
    for (pod, why) in [
        (required, "required podAntiAffinity"),
        (
            r#","topologySpreadConstraints":[{"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]"#,
            "\"zone\"",
        ),
        (r#","initContainers":[{"name":"s","restartPolicy":"Always","ports":[{"hostPort":9100}]}]"#, "hostPort 9100"),
        (r#","hostNetwork":true"#, "hostNetwork"),
        (r#","initContainers":[{"name":"s","resources":{"limits":{"nvidia.com/gpu":1}}}]"#, "\"nvidia.com/gpu\""),
        (r#","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}]"#, "PersistentVolumeClaim \"data\""),
    ] {
        let found = findings(4, DEFAULTED, pod);
        assert_eq!(writes(&found), [], "{pod}");
        assert_eq!(found.len(), 1, "{pod}");
        let message = &found[0].message;
        assert!(message.contains("1 of 4 replicas may be down") && message.contains(why), "{message}");
        assert!(!found[0].stopped_by_lookup && found[0].cap.is_none(), "{pod}");
    }
}

#[test]
fn c20_no_fix_in_a_namespace_with_a_quota_or_an_unknown_one() {
    let spec = deployment(4, DEFAULTED, "");
    let quota = Quota { name: "team".to_owned(), hard: vec!["pods".to_owned()], scopes: Vec::new() };
    let limited = Facts { quotas: Known::Known(vec![quota]), ..no_quota() };
    let found = check("apps", "Deployment", &spec, &limited, &policy(json!({})));
    assert_eq!(writes(&found), []);
    assert_eq!(
        found[0].message,
        "1 of 4 replicas may be down during every rollout: maxUnavailable stays 25%, because ResourceQuota \"team\" on \
         pods, cpu or memory may have no room for an extra pod"
    );
    assert!(found[0].stopped_by_lookup);

    let found = check("apps", "Deployment", &spec, &Facts::unknown(Reason::Forbidden), &policy(json!({})));
    assert_eq!(writes(&found), []);
    assert!(found[0].message.ends_with("(quotas: look-up forbidden)"), "{}", found[0].message);
    assert!(found[0].stopped_by_lookup);
    assert_eq!(found[0].cap, Some(Action::Warn));
}

#[test]
fn quotas_are_only_asked_for_where_they_decide() {
    let asks = |strategy: &str, pod: &str| {
        let (facts, policy) = (Facts::unknown(Reason::NotAsked), policy(json!({})));
        let spec = deployment(4, strategy, pod);
        with("apps", "Deployment", &spec, &facts, &policy, |context| {
            DefaultRollingUpdate::needs(context, &Params::default()).quotas
        })
    };
    assert!(asks(DEFAULTED, ""));
    assert!(!asks(DEFAULTED, r#","hostNetwork":true"#));
    assert!(!asks(r#"{"rollingUpdate":{"maxUnavailable":0}}"#, ""));
    assert!(!asks(r#"{"type":"Recreate"}"#, ""));
}

#[test]
fn c17_rollouts_are_written_at_the_canary_and_only_where_it_is_absent() {
    let rollout = |strategy: &str| {
        let spec = deployment(4, strategy, "");
        check("argoproj.io", "Rollout", &spec, &no_quota(), &policy(json!({})))
    };
    let found = rollout(r#"{"canary":{}}"#);
    assert_eq!(writes(&found), [written("/spec/strategy/canary/maxUnavailable", "0")]);
    assert_eq!(
        found[0].message,
        "1 of 4 replicas may be down during every rollout: maxUnavailable is absent, which means 25%"
    );
    for strategy in [
        r#"{"canary":{"maxUnavailable":"25%"}}"#,
        r#"{"canary":{"maxSurge":0}}"#,
        r#"{"canary":{"trafficRouting":{"nginx":{}}}}"#,
        r#"{"blueGreen":{"activeService":"web"}}"#,
        r#"{"canary":{},"blueGreen":{}}"#,
        "{}",
        "null",
    ] {
        assert_eq!(rollout(strategy), [], "{strategy}");
    }
    let by_reference = r#"{"replicas":4,"workloadRef":{"name":"web"},"strategy":{"canary":{}}}"#;
    assert_eq!(check("argoproj.io", "Rollout", by_reference, &no_quota(), &policy(json!({}))), []);
}

#[test]
fn b16_c07_stateful_sets_and_daemon_sets_are_not_its_business() {
    let spec =
        r#"{"replicas":4,"updateStrategy":{"type":"RollingUpdate"},"template":{"spec":{"containers":[{"name":"c"}]}}}"#;
    assert_eq!(check("apps", "StatefulSet", spec, &no_quota(), &policy(json!({}))), []);
    assert_eq!(check("apps", "DaemonSet", spec, &no_quota(), &policy(json!({}))), []);
}

#[test]
fn tiers_by_size_fields_left_out_are_left_alone_and_an_authors_surge_is_kept() {
    let tiers = json!({"tiers": [
        {"upToReplicas": 3},
        {"upToReplicas": 10, "maxSurge": 1, "maxUnavailable": 0},
        {"maxUnavailable": "10%"},
    ]});
    let written_at = |replicas: i64, strategy: &str| {
        let spec = deployment(replicas, strategy, "");
        writes(&check("apps", "Deployment", &spec, &no_quota(), &policy(tiers.clone())))
    };
    let (surge, unavailable) = ("/spec/strategy/rollingUpdate/maxSurge", "/spec/strategy/rollingUpdate/maxUnavailable");
    assert_eq!(written_at(3, DEFAULTED), []);
    assert_eq!(written_at(10, DEFAULTED), [written(surge, "1"), written(unavailable, "0")]);
    assert_eq!(written_at(10, r#"{"rollingUpdate":{"maxSurge":3}}"#), [written(unavailable, "0")]);
    assert_eq!(written_at(11, DEFAULTED), [written(unavailable, "\"10%\"")]);
}

#[test]
fn a_tier_that_takes_more_down_than_the_default_is_not_written() {
    let tiers = policy(json!({"tiers": [{"maxUnavailable": 2}]}));
    let at = |replicas: i64| {
        writes(&check("apps", "Deployment", &deployment(replicas, DEFAULTED, ""), &no_quota(), &tiers)).len()
    };
    assert_eq!((at(1), at(4), at(8), at(20)), (0, 0, 1, 1));
}

#[test]
fn tiers_that_make_no_sense_are_refused_with_their_place() {
    for (params, path) in [
        (json!({"tiers": []}), "tiers"),
        (json!({"tiers": [{"maxSurge": 0, "maxUnavailable": 0}]}), "tiers[0].maxSurge"),
        (json!({"tiers": [{"maxSurge": "0%", "maxUnavailable": "10%"}]}), "tiers[0].maxSurge"),
        (json!({"tiers": [{"maxUnavailable": "100%"}]}), "tiers[0].maxUnavailable"),
        (json!({"tiers": [{"maxUnavailable": "1"}]}), "tiers[0].maxUnavailable"),
        (json!({"tiers": [{"maxUnavailable": -1}]}), "tiers[0].maxUnavailable"),
        (json!({"tiers": [{"upToReplicas": 0}]}), "tiers[0].upToReplicas"),
        (json!({"tiers": [{"upToReplicas": 5}, {"upToReplicas": 5}]}), "tiers[1].upToReplicas"),
        (json!({"tiers": [{"maxUnavailable": 0}, {"upToReplicas": 5}]}), "tiers[1]"),
        (json!({"tiers": [{"maxUnavailable": 0}, {"maxUnavailable": 0}]}), "tiers[1]"),
    ] {
        let policy = Policy::of(&[("default-rolling-update", Action::Warn, true, params.clone())]);
        assert_eq!(policy.err().map(|error| error.path).as_deref(), Some(path), "{params}");
    }
}

#[test]
fn it_manages_what_it_writes() {
    let kinds = |params: &Params| -> Vec<(&str, String, Option<&str>)> {
        let managed = DefaultRollingUpdate::managed(params).into_iter();
        managed
            .filter_map(|managed| match managed.place {
                Place::Object(kind, path) => Some((kind, pointer(path), managed.default)),
                _ => None,
            })
            .collect()
    };
    let deployment = ("Deployment", "/spec/strategy/rollingUpdate/maxUnavailable".to_owned(), Some("\"25%\""));
    let rollout = ("Rollout", "/spec/strategy/canary/maxUnavailable".to_owned(), None);
    assert_eq!(kinds(&Params::default()), [deployment, rollout]);
    let surging = Params { tiers: vec![Tier { max_surge: Some(IntOrPercent::Int(1)), ..Tier::default() }] };
    assert_eq!(kinds(&surging).len(), 4);
}

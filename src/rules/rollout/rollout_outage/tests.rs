//! What the rule finds, per kind.

use serde_json::json;

use super::*;
use crate::engine::context::Declined;
use crate::engine::document::Value;
use crate::engine::facts::{Facts, Known, Reason};
use crate::engine::kind;
use crate::engine::request::{Endpoint, Operation};
use crate::policy::Policy;

fn check_with(kind: &str, spec: &str, policy: &Policy) -> Vec<Finding> {
    let text = format!(r#"{{"spec":{{"template":{{"spec":{{"containers":[{{"name":"c"}}]}}}},{spec}}}}}"#);
    let object = Value::parse(&text).unwrap();
    let (facts, declined) = (Facts { quotas: Known::Absent, ..Facts::unknown(Reason::NotAsked) }, Declined::default());
    let group = if kind == "Rollout" { "argoproj.io" } else { "apps" };
    let kind = kind::lookup(group, kind).unwrap();
    let context = Context::new(Endpoint::Validate, Operation::Create, kind, &object, &facts, policy, &declined);
    let mut findings = Vec::new();
    let setting = policy.setting("rollout-outage").unwrap();
    setting.rule.check(&context, &setting.params, &mut findings);
    findings
}

fn check(kind: &str, percent: u32, spec: &str) -> Vec<Finding> {
    let params = json!({"maxUnavailablePercent": percent});
    check_with(kind, spec, &Policy::of(&[("rollout-outage", Action::Deny, false, params)]).unwrap())
}

fn deployment(percent: u32, replicas: i64, surge: &str, unavailable: &str) -> Vec<Finding> {
    let pair = format!(r#"{{"maxSurge":{surge},"maxUnavailable":{unavailable}}}"#);
    check("Deployment", percent, &format!(r#""replicas":{replicas},"strategy":{{"rollingUpdate":{pair}}}"#))
}

fn messages(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.message.as_str()).collect()
}

#[test]
fn c05_all_replicas_at_once() {
    let found = deployment(100, 3, "0", "\"100%\"");
    assert_eq!(messages(&found), ["3 of 3 replicas may be down at once: maxUnavailable is 100%"]);
    assert_eq!((found[0].measure, found[0].cap), (Some(100), None));
    assert_eq!(found[0].pointer, "/spec/strategy/rollingUpdate/maxUnavailable");
    assert_eq!(
        found[0].mend.as_deref(),
        Some("spec:\n  strategy:\n    rollingUpdate:\n      maxSurge: 1\n      maxUnavailable: 0\n")
    );
    assert_eq!(
        messages(&deployment(100, 3, "\"25%\"", "5")),
        ["3 of 3 replicas may be down at once: maxUnavailable is 5"]
    );
    assert_eq!(deployment(100, 4, "\"25%\"", "\"75%\""), []);
}

#[test]
fn more_than_the_policys_percentage() {
    let found = deployment(50, 3, "1", "2");
    assert_eq!(
        messages(&found),
        ["2 of 3 replicas may be down at once, more than the allowed 50%: maxUnavailable is 2"]
    );
    assert_eq!(found[0].measure, Some(67));
    assert_eq!(deployment(50, 2, "0", "1"), []);
    assert_eq!(deployment(50, 10, "0", "\"50%\""), []);
    assert_eq!(deployment(50, 1000, "0", "501")[0].measure, Some(51));
    assert_eq!(deployment(0, 4, "1", "0"), []);
}

#[test]
fn c02_one_replica_and_no_surge_warns_at_most() {
    let found = deployment(100, 1, "0", "\"25%\"");
    assert_eq!(messages(&found), ["each rollout takes the only replica down: maxSurge is 0"]);
    assert_eq!((found[0].cap, found[0].measure), (Some(Action::Warn), Some(0)));
    assert_eq!(found[0].pointer, "/spec/strategy/rollingUpdate/maxSurge");
    assert_eq!(deployment(100, 1, "\"25%\"", "\"25%\""), []);
    let found = deployment(50, 1, "1", "1");
    assert_eq!(messages(&found), ["each rollout may take the only replica down: maxUnavailable is 1"]);
    assert_eq!(found[0].cap, Some(Action::Warn));
}

#[test]
fn c02_the_fencepost_counts() {
    assert_eq!(
        messages(&deployment(10, 3, "0", "\"25%\"")),
        [
            "1 of 3 replicas may be down at once, more than the allowed 10%: maxSurge 0 and maxUnavailable 25% both come \
          to 0, and the controller then takes one"
        ]
    );
}

#[test]
fn c12_no_replicas_no_outage() {
    assert_eq!(deployment(0, 0, "0", "1"), []);
}

#[test]
fn c03_c04_what_the_server_refuses_is_left_to_it() {
    assert_eq!(deployment(50, 3, "0", "0"), []);
    assert_eq!(deployment(50, 3, "0", "\"101%\""), []);
    assert_eq!(deployment(50, 3, "0", "\"3\""), []);
    assert_eq!(deployment(50, 3, "0", "3.0"), []);
    assert_eq!(
        check("DaemonSet", 50, r#""updateStrategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":"90%"}}"#),
        []
    );
    assert_eq!(check("StatefulSet", 50, r#""replicas":3,"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}"#), []);
}

#[test]
fn c06_c11_recreate_and_on_delete_are_not_its_business() {
    assert_eq!(check("Deployment", 50, r#""replicas":3,"strategy":{"type":"Recreate"}"#), []);
    assert_eq!(check("StatefulSet", 50, r#""replicas":3,"updateStrategy":{"type":"OnDelete"}"#), []);
    assert_eq!(check("DaemonSet", 50, r#""updateStrategy":{"type":"OnDelete"}"#), []);
}

#[test]
fn c10_c11_stateful_sets() {
    let set = |percent: u32, replicas: i64, rolling: &str| {
        let spec = format!(r#""replicas":{replicas},"updateStrategy":{{"rollingUpdate":{rolling}}}"#);
        check("StatefulSet", percent, &spec)
    };
    let found = set(50, 3, r#"{"maxUnavailable":"100%"}"#);
    assert_eq!(messages(&found), ["3 of 3 replicas may be down at once: maxUnavailable is 100%"]);
    assert_eq!(
        found[0].mend.as_deref(),
        Some("spec:\n  updateStrategy:\n    rollingUpdate:\n      maxUnavailable: 1\n")
    );
    // Rounded down, not up as the API's text says: 66 % of 3 is 1.
    assert_eq!(set(50, 3, r#"{"maxUnavailable":"66%"}"#), []);
    assert_eq!(set(10, 2, "null"), []);
    assert_eq!(set(50, 1, "null"), []);
    assert_eq!(set(50, 3, r#"{"maxUnavailable":"100%","partition":3}"#), []);
    assert_eq!(set(50, 3, r#"{"maxUnavailable":"100%","partition":2}"#), []);
    assert_eq!(set(50, 3, r#"{"maxUnavailable":3,"partition":1}"#)[0].measure, Some(67));
    assert_eq!(set(50, 3, r#"{"maxUnavailable":3,"partition":-1}"#), []);
}

#[test]
fn only_stateful_sets_know_a_partition() {
    let spec = r#""replicas":3,"strategy":{"rollingUpdate":{"maxUnavailable":3,"partition":3}}"#;
    assert_eq!(messages(&check("Deployment", 50, spec)), ["3 of 3 replicas may be down at once: maxUnavailable is 3"]);
}

#[test]
fn daemon_sets_by_percentage_only() {
    let set = |percent: u32, unavailable: &str| {
        let spec = format!(r#""updateStrategy":{{"rollingUpdate":{{"maxUnavailable":{unavailable}}}}}"#);
        check("DaemonSet", percent, &spec)
    };
    let found = set(50, "\"60%\"");
    assert_eq!(
        messages(&found),
        ["the pods of 60% of the nodes may be down at once, more than the allowed 50%: maxUnavailable is 60%"]
    );
    assert_eq!(found[0].measure, Some(60));
    assert_eq!(set(100, "\"100%\"").len(), 1);
    assert_eq!(set(50, "\"50%\""), []);
    assert_eq!(set(50, "100"), []);
    assert_eq!(check("DaemonSet", 0, r#""updateStrategy":{"type":"RollingUpdate"}"#), []);
}

#[test]
fn c17_canaries_as_deployments_but_not_where_old_pods_stay() {
    let rollout = |strategy: &str| check("Rollout", 50, &format!(r#""replicas":3,"strategy":{strategy}"#));
    let found = rollout(r#"{"canary":{"maxUnavailable":3}}"#);
    assert_eq!(messages(&found), ["3 of 3 replicas may be down at once: maxUnavailable is 3"]);
    assert_eq!(found[0].pointer, "/spec/strategy/canary/maxUnavailable");
    assert_eq!(
        found[0].mend.as_deref(),
        Some("spec:\n  strategy:\n    canary:\n      maxSurge: 25%\n      maxUnavailable: 0\n")
    );
    assert_eq!(rollout(r#"{"canary":{}}"#), []);
    assert_eq!(rollout(r#"{"canary":{"maxUnavailable":3,"trafficRouting":{"smi":{}}}}"#), []);
    assert_eq!(rollout(r#"{"blueGreen":{"maxUnavailable":3}}"#), []);
}

#[test]
fn it_judges_the_object_as_the_policys_fix_will_leave_it() {
    let strict = ("rollout-outage", Action::Deny, false, json!({"maxUnavailablePercent": 20}));
    let spec = r#""replicas":4,"strategy":null"#;
    let alone = Policy::of(std::slice::from_ref(&strict)).unwrap();
    assert_eq!(
        messages(&check_with("Deployment", spec, &alone)),
        ["1 of 4 replicas may be down at once, more than the allowed 20%: maxUnavailable is 25%"]
    );
    let fixed = Policy::of(&[strict, ("default-rolling-update", Action::Warn, true, json!({}))]).unwrap();
    assert_eq!(check_with("Deployment", spec, &fixed), []);
}

#[test]
fn the_percentage_is_one() {
    let refused = Policy::of(&[("rollout-outage", Action::Deny, false, json!({"maxUnavailablePercent": 101}))]);
    assert_eq!(refused.err().map(|error| error.path).as_deref(), Some("maxUnavailablePercent"));
}

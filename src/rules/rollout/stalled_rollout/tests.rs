//! What the rule finds, per trap.

use serde_json::json;

use super::*;
use crate::engine::context::Declined;
use crate::engine::document::Value;
use crate::engine::facts::{Facts, Known, Quota, Reason};
use crate::engine::kind;
use crate::engine::request::{Endpoint, Operation};
use crate::policy::Policy;

fn check_with(kind: &str, spec: &str, pod: &str, facts: &Facts) -> (Vec<Finding>, Needs) {
    let template = format!(
        r#""template":{{"metadata":{{"labels":{{"app":"a"}}}},"spec":{{"containers":[{{"name":"c"}}]{pod}}}}}"#
    );
    let text = format!(r#"{{"metadata":{{"name":"web"}},"spec":{{{spec},{template}}}}}"#);
    let object = Value::parse(&text).unwrap();
    let declined = Declined::default();
    let policy = Policy::of(&[("stalled-rollout", Action::Deny, false, json!({}))]).unwrap();
    let kind = kind::lookup(if kind == "Rollout" { "argoproj.io" } else { "apps" }, kind).unwrap();
    let context = Context::new(Endpoint::Validate, Operation::Create, kind, &object, facts, &policy, &declined);
    let mut findings = Vec::new();
    StalledRollout::check(&context, &Params {}, &mut findings);
    (findings, StalledRollout::needs(&context, &Params {}))
}

fn nothing_known() -> Facts {
    Facts::unknown(Reason::NotAsked)
}

const ZERO: &str = r#""replicas":3,"strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}"#;
const HOST_PORT: &str =
    r#","initContainers":[{"name":"s","restartPolicy":"Always","ports":[{"containerPort":1,"hostPort":80}]}]"#;
const HOST_NETWORK: &str = r#","hostNetwork":true"#;
const NETWORK_AND_PORT: &str =
    r#","hostNetwork":true,"initContainers":[{"name":"s","restartPolicy":"Always","ports":[{"containerPort":80}]}]"#;
const CLAIM: &str = r#","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}]"#;
const ANTI_AFFINITY: &str = r#","affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
    {"topologyKey":"h","labelSelector":{"matchLabels":{"app":"a"}}}]}}"#;
const SPREAD: &str = r#","topologySpreadConstraints":[
    {"topologyKey":"h","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"a"}}}]"#;
const DEVICE: &str = r#","initContainers":[{"name":"s","resources":{"limits":{"nvidia.com/gpu":1}}}]"#;

fn zero(pod: &str) -> Option<Option<Action>> {
    check_with("Deployment", ZERO, pod, &nothing_known()).0.first().map(|finding| finding.cap)
}

#[test]
fn c08_an_authors_zero_where_the_port_is_taken() {
    assert_eq!(zero(HOST_PORT), Some(None));
    assert_eq!(zero(NETWORK_AND_PORT), Some(None));
    assert_eq!(zero(HOST_NETWORK), None, "without a declared port the scheduler keeps no pod away");
    assert_eq!(zero(""), None);
}

#[test]
fn c08_a_zero_that_the_author_did_not_write_waits_for_nothing() {
    for strategy in ["", r#","strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}}"#] {
        let (found, needs) =
            check_with("Deployment", &format!(r#""replicas":3{strategy}"#), HOST_PORT, &nothing_known());
        assert_eq!((found, needs), (vec![], Needs::default()), "{strategy}");
    }
}

#[test]
fn c08_a_daemon_set_that_surges_onto_a_taken_port() {
    let surge = r#""updateStrategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}"#;
    let check = |spec, pod| check_with("DaemonSet", spec, pod, &nothing_known()).0;
    let found = check(surge, HOST_PORT);
    assert_eq!((found.len(), found[0].cap), (1, None));
    assert_eq!(found[0].pointer, "/spec/updateStrategy/rollingUpdate/maxSurge");
    assert_eq!(check(surge, NETWORK_AND_PORT).len(), 1);
    for pod in [HOST_NETWORK, ANTI_AFFINITY, CLAIM, ""] {
        assert_eq!(check(surge, pod), [], "{pod}");
    }
    assert_eq!(check(r#""updateStrategy":{"type":"RollingUpdate"}"#, HOST_PORT), []);
    let both = r#""updateStrategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}"#;
    assert_eq!(check(both, HOST_PORT), [], "the API server refuses it");
}

#[test]
fn c09_one_replica_on_a_claim_is_told_of_recreate_whatever_wrote_the_zero() {
    let check = |spec, mode: &str| {
        let claim = Claim { name: "data".to_owned(), access_modes: vec![mode.to_owned()] };
        let claims = if mode.is_empty() { Known::Known(vec![]) } else { Known::Known(vec![claim]) };
        check_with("Deployment", spec, CLAIM, &Facts { claims, ..nothing_known() }).0
    };
    for mode in ["ReadWriteOnce", "ReadWriteOncePod", ""] {
        let found = check(r#""replicas":1"#, mode);
        assert_eq!((found.len(), found[0].cap), (1, Some(Action::Warn)), "{mode}");
        let mend = found[0].mend.as_deref();
        assert_eq!(mend, Some("spec:\n  strategy:\n    type: Recreate\n    rollingUpdate: null"));
    }
    assert_eq!(check(r#""replicas":1"#, "ReadWriteMany"), []);
    assert_eq!(check(r#""replicas":0"#, "ReadWriteOnce"), []);
    assert_eq!(check(r#""replicas":3"#, "ReadWriteOnce"), [], "for shared-rwo-claim to say");
    assert_eq!(check(r#""replicas":1,"strategy":{"type":"Recreate"}"#, "ReadWriteOnce"), []);
    assert_eq!((check(ZERO, "ReadWriteOnce")[0].cap, check(ZERO, "")[0].cap), (None, Some(Action::Warn)));
    assert_eq!(check(ZERO, "ReadOnlyMany"), []);
}

#[test]
fn c09_claims_that_nobody_knows_warn_at_most_and_are_asked_for() {
    let (found, needs) = check_with("Deployment", r#""replicas":1"#, CLAIM, &nothing_known());
    assert_eq!((found[0].cap, needs), (Some(Action::Warn), Needs { claims: true, ..Needs::default() }));
    let on_one_node = format!(r#"{CLAIM},"nodeSelector":{{"kubernetes.io/hostname":"n1"}}"#);
    assert_eq!(check_with("Deployment", r#""replicas":1"#, &on_one_node, &nothing_known()).0, []);
}

#[test]
fn c20_anti_affinity_spread_and_quota() {
    assert_eq!(zero(ANTI_AFFINITY), Some(None));
    assert_eq!(zero(SPREAD), Some(Some(Action::Warn)), "the spread may leave room");
    assert_eq!(zero(DEVICE), Some(Some(Action::Warn)), "there may be free ones");
    let (found, needs) = check_with("Deployment", ZERO, "", &nothing_known());
    assert_eq!((found, needs), (vec![], Needs { quotas: true, ..Needs::default() }));
    let quota = |key: &str| {
        let quotas =
            Known::Known(vec![Quota { name: "team".to_owned(), hard: vec![key.to_owned()], scopes: Vec::new() }]);
        check_with("Deployment", ZERO, "", &Facts { quotas, ..nothing_known() }).0
    };
    assert_eq!(quota("pods")[0].cap, Some(Action::Warn));
    assert_eq!(quota("count/secrets"), []);
}

#[test]
fn c17_a_canary_as_a_deployment_other_rollouts_not() {
    let canary = r#""replicas":3,"strategy":{"canary":{"maxUnavailable":0}}"#;
    let check = |spec| check_with("Rollout", spec, HOST_PORT, &nothing_known()).0;
    assert_eq!(check(canary)[0].pointer, "/spec/strategy/canary/maxUnavailable");
    assert_eq!(check(r#""replicas":3,"strategy":{"canary":{}}"#), []);
    assert_eq!(check(r#""replicas":3,"strategy":{"blueGreen":{"maxUnavailable":0}}"#), []);
}

#[test]
fn c10_ordered_ready_with_more_than_one_unavailable() {
    let check = |policy: &str, unavailable: &str| {
        let update = format!(r#""updateStrategy":{{"rollingUpdate":{{"maxUnavailable":{unavailable}}}}}"#);
        check_with("StatefulSet", &format!(r#""replicas":5{policy},{update}"#), "", &nothing_known()).0
    };
    let found = check("", "3");
    assert_eq!((found.len(), found[0].cap, found[0].measure), (1, Some(Action::Warn), Some(3)));
    assert_eq!(check(r#","podManagementPolicy":"OrderedReady""#, "\"50%\"").len(), 1);
    assert_eq!(check("", "1"), [], "the default of servers that know the field");
    assert_eq!(check("", "\"20%\""), []);
    assert_eq!(check(r#","podManagementPolicy":"Parallel""#, "3"), []);
    assert_eq!(check(r#","podManagementPolicy":7"#, "3"), []);
    assert_eq!(check("", "0"), [], "the API server refuses it");
}

//! What stands beside an object in its namespace, and the namespace's labels: kept by watching.

use super::*;
use plimsoll::engine::neighbours::{Autoscaler, Budget, Claim, Selector, Service, Workload};

const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/horizontalpodautoscalers";
const SERVICES: &str = "/api/v1/services";
const CLAIMS: &str = "/api/v1/persistentvolumeclaims";
const DAEMON_SETS: &str = "/apis/apps/v1/daemonsets";
const DEPLOYMENTS: &str = "/apis/apps/v1/deployments";
const REPLICA_SETS: &str = "/apis/apps/v1/replicasets";
const ROLLOUTS: &str = "/apis/argoproj.io/v1alpha1/rollouts";
const STATEFUL_SETS: &str = "/apis/apps/v1/statefulsets";
const NAMESPACES: &str = "/api/v1/namespaces";

/// Every list but that of the namespaces.
const LISTS: [&str; 9] =
    [BUDGETS, AUTOSCALERS, SERVICES, CLAIMS, DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, ROLLOUTS, STATEFUL_SETS];

fn object(namespace: &str, name: &str, rest: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","resourceVersion":"5"}},{rest}}}"#)
}

fn workload(name: &str, spec: &str) -> String {
    let template = format!(r#"{{"metadata":{{"labels":{{"app":"{name}"}}}},"spec":{{"containers":[]}}}}"#);
    object("shop", name, &format!(r#""spec":{{"template":{template}{spec}}}"#))
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn everything() -> Needs {
    Needs { budgets: true, autoscalers: true, services: true, workloads: true, claims: true, ..Needs::default() }
}

fn is_known(facts: &Facts) -> bool {
    facts.budgets.known().is_some()
        && facts.autoscalers.known().is_some()
        && facts.services.known().is_some()
        && facts.workloads.known().is_some()
        && facts.claims.known().is_some()
}

/// A server with these lists; the others are empty, and no watch ever tells anything.
async fn serving(lists: &[(&str, String)]) -> FakeApi {
    let api = FakeApi::start(&[]).await;
    for path in LISTS {
        let items = lists.iter().filter(|(listed, _)| *listed == path).map(|(_, items)| items.as_str());
        api.set(path, list(&items.collect::<String>()));
        api.set(&format!("{path}?watch"), Answer::Watch(String::new()));
    }
    api
}

fn budget(name: &str) -> Budget {
    Budget {
        name: name.to_owned(),
        selector: Some(Selector::default()),
        min_available: Some("1".to_owned()),
        max_unavailable: None,
    }
}

fn budget_object(namespace: &str, name: &str) -> String {
    object(namespace, name, r#""spec":{"selector":{},"minAvailable":1}"#)
}

#[tokio::test]
async fn the_neighbours_of_a_namespace_are_what_was_listed() {
    let owned = r#"{"metadata":{"name":"web-1","namespace":"shop","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","controller":true}]},
        "spec":{"template":{"spec":{"containers":[]}}}}"#;
    let target = r#""scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}"#;
    let api = serving(&[
        (BUDGETS, [budget_object("shop", "b"), budget_object("shop", "a"), budget_object("other", "c")].join(",")),
        (AUTOSCALERS, object("shop", "h", &format!(r#""spec":{{{target},"maxReplicas":4}}"#))),
        (SERVICES, object("shop", "s", r#""spec":{"selector":{"app":"web"}}"#)),
        (CLAIMS, object("shop", "c", r#""spec":{"accessModes":["ReadWriteOnce"]}"#)),
        (STATEFUL_SETS, workload("db", r#","replicas":3"#)),
        (DEPLOYMENTS, workload("web", "")),
        (DAEMON_SETS, workload("agent", "")),
        (REPLICA_SETS, format!("{},{owned}", workload("bare", ""))),
        (ROLLOUTS, workload("canary", r#","replicas":2"#)),
    ])
    .await;
    let live = start(&api);
    let facts = gather_until(&live, everything(), is_known).await;
    assert_eq!(facts.budgets, Known::Known(vec![budget("a"), budget("b")]));
    let target = ("apps".to_owned(), "Deployment".to_owned(), "web".to_owned());
    let (target_group, target_kind, target_name) = target;
    let autoscaler = Autoscaler { name: "h".to_owned(), target_group, target_kind, target_name, min: 1, max: 4 };
    assert_eq!(facts.autoscalers, Known::Known(vec![autoscaler]));
    let selector = [("app".to_owned(), "web".to_owned())].into();
    assert_eq!(facts.services, Known::Known(vec![Service { name: "s".to_owned(), selector, ports: Vec::new() }]));
    let access_modes = vec!["ReadWriteOnce".to_owned()];
    assert_eq!(facts.claims, Known::Known(vec![Claim { name: "c".to_owned(), access_modes }]));
    let workloads = facts.workloads.known().unwrap();
    let short = |workload: &Workload| (workload.kind.clone(), workload.name.clone(), workload.replicas);
    let expected = [
        ("DaemonSet", "agent", None),
        ("Deployment", "web", Some(1)),
        ("ReplicaSet", "bare", Some(1)),
        ("Rollout", "canary", Some(2)),
        ("StatefulSet", "db", Some(3)),
    ];
    let expected = expected.map(|(kind, name, replicas)| (kind.to_owned(), name.to_owned(), replicas));
    assert_eq!(workloads.iter().map(short).collect::<Vec<_>>(), expected);
    assert_eq!(workloads[1].labels, [("app".to_owned(), "web".to_owned())].into());

    let elsewhere = live.gather("empty", everything(), Instant::now() + Duration::from_secs(120)).await;
    assert_eq!((elsewhere.budgets, elsewhere.workloads), (Known::Known(Vec::new()), Known::Known(Vec::new())));
    assert_eq!(api.seen("/namespaces/"), Vec::<String>::new(), "no review costs a read");
    let selector = "labelSelector=%21pod-template-hash%2C%21rollouts-pod-template-hash";
    assert!(api.seen(REPLICA_SETS).iter().all(|seen| seen.contains(selector)), "{:?}", api.seen(REPLICA_SETS));
}

#[tokio::test]
async fn a_watch_adds_changes_and_removes() {
    let api = serving(&[(BUDGETS, [budget_object("shop", "a"), budget_object("shop", "b")].join(","))]).await;
    let changed = budget_object("shop", "a").replace("\"minAvailable\":1", "\"minAvailable\":\"50%\"");
    let events = [
        event("MODIFIED", &changed),
        event("DELETED", &budget_object("shop", "b")),
        r#"{"type":"BOOKMARK","object":{"kind":"PodDisruptionBudget","apiVersion":"policy/v1","metadata":{"resourceVersion":"8"}}}"#.to_owned() + "\n",
        event("ADDED", &budget_object("shop", "c")),
    ];
    api.set(&format!("{BUDGETS}?watch"), Answer::Watch(events.concat()));
    let live = start(&api);
    let needs = Needs { budgets: true, ..Needs::default() };
    let last = |facts: &Facts| facts.budgets.known().is_some_and(|all| all.iter().any(|budget| budget.name == "c"));
    let facts = gather_until(&live, needs, last).await;
    let half = Budget { min_available: Some("50%".to_owned()), ..budget("a") };
    assert_eq!(facts.budgets, Known::Known(vec![half, budget("c")]));
}

#[tokio::test]
async fn lists_come_in_pages_and_count_when_the_last_one_is_there() {
    let api = serving(&[]).await;
    let page = |name: &str, rest: &str| {
        Answer::Json(format!(
            r#"{{"metadata":{{"resourceVersion":"9"{rest}}},"items":[{}]}}"#,
            budget_object("shop", name)
        ))
    };
    let last = Arc::new(Barrier::new(2));
    let Answer::Json(text) = page("b", "") else { unreachable!() };
    api.set(BUDGETS, page("a", r#","continue":"two""#));
    api.set(&format!("{BUDGETS}?continue=two"), Answer::Together(Arc::clone(&last), text));
    let live = start(&api);
    let needs = Needs { budgets: true, ..Needs::default() };
    assert_eq!(gather(&live, needs.clone()).await.budgets, Known::Unknown(Reason::TimedOut));
    last.wait().await;
    let facts = gather_until(&live, needs, |facts| facts.budgets.known().is_some()).await;
    assert_eq!(facts.budgets, Known::Known(vec![budget("a"), budget("b")]));
    let lists: Vec<_> = api.seen(BUDGETS).into_iter().filter(|seen| !seen.contains("watch=true")).collect();
    assert_eq!(lists.len(), 2);
    assert!(lists.iter().all(|seen| seen.contains("limit=100")), "{lists:?}");
}

#[tokio::test]
async fn what_is_late_forbidden_or_failed_is_unknown_and_holds_nothing_up() {
    let api = serving(&[]).await;
    api.set("/version", Answer::Json(r#"{"major":"1","minor":"37"}"#.to_owned()));
    api.set(BUDGETS, Answer::Code(403));
    api.set(AUTOSCALERS, Answer::Hang);
    api.set(SERVICES, Answer::Code(500));
    api.set(CLAIMS, Answer::Code(404));
    api.set(STATEFUL_SETS, Answer::Code(403));
    let live = start(&api);
    let settled = |facts: &Facts| {
        facts.budgets.unknown() == Some(Reason::Forbidden)
            && facts.services.unknown() == Some(Reason::Failed)
            && facts.claims.unknown() == Some(Reason::Failed)
            && facts.workloads.unknown() == Some(Reason::Forbidden)
    };
    let facts = gather_until(&live, everything(), settled).await;
    assert_eq!(facts.autoscalers, Known::Unknown(Reason::TimedOut));
    let version = Needs { server_version: true, ..Needs::default() };
    gather_until(&live, version, |facts| facts.server_version.known().is_some()).await;
    assert_eq!(live.ready(), Ok(()));
    // Nothing is waited for, and nothing read instead.
    let now = live.gather("shop", everything(), Instant::now()).await;
    assert_eq!(now.budgets, Known::Unknown(Reason::Forbidden));
    assert_eq!(api.seen("/namespaces/"), Vec::<String>::new());

    // The right to list is given.
    api.set(BUDGETS, list(&budget_object("shop", "a")));
    let facts = gather_until(&live, everything(), |facts| facts.budgets.known().is_some()).await;
    assert_eq!(facts.budgets, Known::Known(vec![budget("a")]));
}

#[tokio::test]
async fn c17_a_server_without_rollouts_has_none() {
    let api = serving(&[(DEPLOYMENTS, workload("web", ""))]).await;
    api.set(ROLLOUTS, Answer::Code(404));
    let live = start(&api);
    let facts = gather_until(&live, everything(), is_known).await;
    assert_eq!(facts.workloads.known().unwrap().len(), 1);
    assert_eq!(api.seen(ROLLOUTS).len(), 1, "not asked for again soon");
}

#[tokio::test]
async fn f02_a_watch_that_failed_does_not_count_until_all_is_listed_anew() {
    let expired = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}"#;
    let fail = Arc::new(Barrier::new(2));
    let api = serving(&[(DEPLOYMENTS, workload("web", ""))]).await;
    api.set(&format!("{DEPLOYMENTS}?watch"), Answer::Together(Arc::clone(&fail), format!("{expired}\n")));
    let live = start(&api);
    gather_until(&live, everything(), is_known).await;

    api.set(DEPLOYMENTS, Answer::Code(403));
    fail.wait().await;
    let unknown = |facts: &Facts| facts.workloads.unknown() == Some(Reason::Forbidden);
    let facts = gather_until(&live, everything(), unknown).await;
    assert_eq!(facts.budgets, Known::Known(Vec::new()), "the others go on");

    api.set(&format!("{DEPLOYMENTS}?watch"), Answer::Watch(String::new()));
    api.set(DEPLOYMENTS, list(&workload("api", "")));
    let facts = gather_until(&live, everything(), is_known).await;
    let names: Vec<_> = facts.workloads.known().unwrap().iter().map(|workload| workload.name.as_str()).collect();
    assert_eq!(names, ["api"], "what is gone is gone");
}

#[tokio::test]
async fn f02_a_watch_that_falls_silent_does_not_count() {
    let api = serving(&[(BUDGETS, budget_object("shop", "a"))]).await;
    let mut config = api.config();
    // Instead of a minute.
    config.read_timeout = Some(Duration::from_millis(200));
    let live = Live::start(config, Options::default()).unwrap();
    let needs = Needs { budgets: true, ..Needs::default() };
    gather_until(&live, needs.clone(), |facts| facts.budgets.known().is_some()).await;
    api.set(BUDGETS, Answer::Code(403));
    gather_until(&live, needs, |facts| facts.budgets == Known::Unknown(Reason::Forbidden)).await;
}

#[tokio::test]
async fn a23_a_strange_object_costs_no_other_its_place() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let strange = [
        "null".to_owned(),
        r#"{"metadata":7,"spec":[]}"#.to_owned(),
        object("shop", "deep", &format!(r#""spec":{{"template":{deep}}}"#)),
        object("shop", "odd", r#""spec":{"template":"x","replicas":"many"}"#),
        workload("web", ""),
    ];
    let api = serving(&[(ROLLOUTS, strange.join(","))]).await;
    let gone_deep = object("shop", "web", &format!(r#""spec":{{"template":{deep}}}"#));
    let live = start(&api);
    let facts = gather_until(&live, everything(), is_known).await;
    let names = |facts: &Facts| {
        let workloads = facts.workloads.known().cloned().unwrap_or_default();
        workloads.into_iter().map(|workload| workload.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&facts), ["odd", "web"]);

    let api = serving(&[(ROLLOUTS, workload("web", ""))]).await;
    let events = [event("MODIFIED", &gone_deep), event("ADDED", &workload("next", ""))];
    api.set(&format!("{ROLLOUTS}?watch"), Answer::Watch(events.concat()));
    gather_until(&start(&api), everything(), |facts| names(facts) == ["next"]).await;
}

fn namespace(name: &str, labels: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"5","labels":{labels}}}}}"#)
}

fn labels() -> Needs {
    Needs { namespace_labels: true, ..Needs::default() }
}

#[tokio::test]
async fn namespace_labels_are_watched_as_metadata_and_read_on_a_miss() {
    let api = FakeApi::start(&[
        (NAMESPACES, list(&[namespace("shop", r#"{"tier":"gold"}"#), namespace("bare", "null")].join(","))),
        ("/api/v1/namespaces?watch", Answer::Watch(String::new())),
        ("/api/v1/namespaces/young", Answer::Json(namespace("young", r#"{"tier":"new"}"#))),
        ("/api/v1/namespaces/shop", Answer::Code(500)),
    ])
    .await;
    let live = start(&api);
    let tier = |tier: &str| Known::Known([("tier".to_owned(), tier.to_owned())].into());
    let facts = gather_until(&live, labels(), |facts| facts.namespace_labels.known().is_some()).await;
    assert_eq!(facts.namespace_labels, tier("gold"));
    let later = || Instant::now() + Duration::from_secs(120);
    assert_eq!(live.gather("bare", labels(), later()).await.namespace_labels, Known::Known([].into()));
    assert_eq!(live.gather("young", labels(), later()).await.namespace_labels, tier("new"));
    assert_eq!(live.gather("gone", labels(), later()).await.namespace_labels, Known::Absent);
    let accepted = api.accepted(NAMESPACES).unwrap();
    assert!(accepted.contains("as=PartialObjectMetadataList"), "{accepted}");
}

#[tokio::test]
async fn namespace_labels_are_read_live_where_no_watch_is_up() {
    let path = "/api/v1/namespaces/shop";
    let api = FakeApi::start(&[
        (NAMESPACES, Answer::Code(403)),
        (path, Answer::Json(namespace("shop", r#"{"tier":"gold"}"#))),
    ])
    .await;
    let live = start(&api);
    let tier = Known::Known([("tier".to_owned(), "gold".to_owned())].into());
    assert_eq!(gather(&live, labels()).await.namespace_labels, tier);
    api.set(path, Answer::Code(403));
    assert_eq!(gather(&live, labels()).await.namespace_labels, Known::Unknown(Reason::Forbidden));
    api.set(path, Answer::Hang);
    let late = live.gather("shop", labels(), Instant::now() + Duration::from_millis(50)).await;
    assert_eq!(late.namespace_labels, Known::Unknown(Reason::TimedOut));
    let nonsense = live.gather("../shop", labels(), Instant::now() + Duration::from_secs(120)).await;
    assert_eq!(nonsense.namespace_labels, Known::Absent);
}

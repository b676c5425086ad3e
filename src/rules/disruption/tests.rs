//! What only the whole engine shows: patches, the marker, the ratchet.

use serde_json::{Value as Json, json};

use crate::engine::document::Value;
use crate::engine::facts::{Facts, Known, Needs, Reason};
use crate::engine::finding::Action;
use crate::engine::neighbours::{Budget, Selector, Workload};
use crate::engine::request::{Endpoint, Request};
use crate::engine::verdict::Verdict;
use crate::engine::{evaluate, needs};
use crate::policy::Policy;
use crate::review;

/// An AdmissionReview of a PodDisruptionBudget in the namespace `team-a`, as it is received.
struct Review(String);

impl Review {
    fn create(object: &Json) -> Self {
        Review::of("CREATE", object, &Json::Null)
    }

    fn update(old: &Json, object: &Json) -> Self {
        Review::of("UPDATE", object, old)
    }

    fn of(operation: &str, object: &Json, old: &Json) -> Self {
        let kind = json!({"group": "policy", "version": "v1", "kind": "PodDisruptionBudget"});
        let resource = json!({"group": "policy", "version": "v1", "resource": "poddisruptionbudgets"});
        let request = json!({"uid": "u", "operation": operation, "kind": kind, "resource": resource, "name": "web",
                             "namespace": "team-a", "object": object, "oldObject": old});
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        Review(review.to_string())
    }

    fn request(&self) -> Request<'_> {
        review::Review::parse(self.0.as_bytes()).unwrap().into_request(None).unwrap()
    }

    fn mutate(&self) -> Verdict {
        let facts = Facts::unknown(Reason::NotAsked);
        evaluate(Endpoint::Mutate, &fixing(), &self.request(), &facts)
    }

    /// The patch as JSON; `null` where there is none.
    fn patch(&self) -> Json {
        self.mutate().patch.map_or(Json::Null, |patch| serde_json::from_str(&patch).unwrap())
    }

    fn validate(&self, policy: &Policy, facts: &Facts) -> Verdict {
        evaluate(Endpoint::Validate, policy, &self.request(), facts)
    }
}

fn fixing() -> Policy {
    Policy::of(&[("pdb-unhealthy-policy", Action::Warn, true, json!({}))]).unwrap()
}

fn blocking() -> Policy {
    Policy::of(&[("pdb-blocks-eviction", Action::Deny, false, json!({}))]).unwrap()
}

fn budget(metadata: Json, spec: Json) -> Json {
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec})
}

fn bare() -> Json {
    budget(json!({"name": "web"}), json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}))
}

/// What [`bare`] becomes.
fn fixed() -> Json {
    let mut object = bare();
    object["metadata"]["annotations"] = json!({"plimsoll.dev/fixed": "pdb-unhealthy-policy"});
    object["spec"]["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
    object
}

fn without_policy(mut object: Json) -> Json {
    object["spec"].as_object_mut().unwrap().remove("unhealthyPodEvictionPolicy");
    object
}

#[test]
fn g07_the_fix_adds_always_allow_and_the_marker() {
    let verdict = Review::create(&bare()).mutate();
    let patch: Json = serde_json::from_str(verdict.patch.as_deref().unwrap()).unwrap();
    assert_eq!(
        patch,
        json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "pdb-unhealthy-policy"}},
            {"op": "add", "path": "/spec/unhealthyPodEvictionPolicy", "value": "AlwaysAllow"}
        ])
    );
    assert_eq!(
        verdict.warnings,
        ["[pdb-unhealthy-policy] fixed: set unhealthyPodEvictionPolicy to AlwaysAllow, so that pods that are not \
          ready never hold up a drain"]
    );
    assert!(Review::create(&fixed()).validate(&fixing(), &Facts::unknown(Reason::NotAsked)).findings.is_empty());
}

#[test]
fn g07_without_the_fix_there_is_a_warning() {
    let policy = Policy::of(&[("pdb-unhealthy-policy", Action::Warn, false, json!({}))]).unwrap();
    let facts = Facts::unknown(Reason::NotAsked);
    let review = Review::create(&bare());
    assert_eq!(evaluate(Endpoint::Mutate, &policy, &review.request(), &facts).patch, None);
    let verdict = review.validate(&policy, &facts);
    assert!(verdict.allowed() && verdict.warnings.len() == 1, "{verdict:?}");
}

#[test]
fn g07_what_the_author_chose_stays() {
    let mut chosen = bare();
    chosen["spec"]["unhealthyPodEvictionPolicy"] = json!("IfHealthyBudget");
    assert_eq!(Review::create(&chosen).patch(), Json::Null);
    // Over ours it is the author's from then on, and the marker lets it go.
    let mut over_ours = fixed();
    over_ours["spec"]["unhealthyPodEvictionPolicy"] = json!("IfHealthyBudget");
    assert_eq!(
        Review::update(&fixed(), &over_ours).patch(),
        json!([{"op": "replace", "path": "/metadata/annotations/plimsoll.dev~1fixed", "value": ""}])
    );
    let mut declined = bare();
    declined["metadata"]["annotations"] = json!({"plimsoll.dev/skip-fixes": "pdb-unhealthy-policy"});
    assert_eq!(Review::create(&declined).patch(), Json::Null);
}

#[test]
fn b06_a_budget_that_is_fixed_is_left_alone() {
    assert_eq!(Review::create(&fixed()).patch(), Json::Null);
    assert_eq!(Review::update(&fixed(), &fixed()).patch(), Json::Null);
}

#[test]
fn b18_an_update_that_leaves_the_spec_alone_gets_no_new_fix() {
    let mut labelled = bare();
    labelled["metadata"]["labels"] = json!({"team": "a"});
    assert_eq!(Review::update(&bare(), &labelled).patch(), Json::Null);
    // Taking away what the author had set is a change of the author's.
    let mut authors = bare();
    authors["spec"]["unhealthyPodEvictionPolicy"] = json!("IfHealthyBudget");
    assert_ne!(Review::update(&authors, &bare()).patch(), Json::Null);
    let mut grown = bare();
    grown["spec"]["maxUnavailable"] = json!(2);
    assert_ne!(Review::update(&bare(), &grown).patch(), Json::Null);
}

#[test]
fn b18_what_a_put_dropped_comes_back_where_the_marker_claims_it() {
    let restored = json!([
        {"op": "add", "path": "/metadata/annotations", "value": {"plimsoll.dev/fixed": "pdb-unhealthy-policy"}},
        {"op": "add", "path": "/spec/unhealthyPodEvictionPolicy", "value": "AlwaysAllow"}
    ]);
    let verdict = Review::update(&fixed(), &bare()).mutate();
    assert_eq!(serde_json::from_str::<Json>(verdict.patch.as_deref().unwrap()).unwrap(), restored);
    assert_eq!(verdict.warnings, [] as [&str; 0], "nothing of it is new");
    assert_eq!(
        Review::update(&fixed(), &without_policy(fixed())).patch(),
        json!([{"op": "add", "path": "/spec/unhealthyPodEvictionPolicy", "value": "AlwaysAllow"}])
    );
}

#[test]
fn g09_an_update_that_leaves_the_spec_alone_is_not_judged() {
    let blocks =
        budget(json!({"name": "web"}), json!({"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}));
    let mut labelled = blocks.clone();
    labelled["metadata"]["labels"] = json!({"team": "a"});
    let review = Review::update(&blocks, &labelled);
    let policy = Policy::of(&[
        ("pdb-blocks-eviction", Action::Deny, false, json!({})),
        ("pdb-selects-nothing", Action::Warn, false, json!({})),
        ("overlapping-pdb", Action::Warn, false, json!({})),
    ])
    .unwrap();
    let verdict = review.validate(&policy, &Facts::unknown(Reason::NotAsked));
    assert!(verdict.findings.is_empty() && verdict.warnings.is_empty(), "{verdict:?}");
    assert_eq!(needs(Endpoint::Validate, &policy, &review.request()), Needs::default());
    // As the status of a budget is written.
    let mut request = review.request();
    request.sub_resource = "status".to_owned();
    assert!(evaluate(Endpoint::Validate, &policy, &request, &Facts::unknown(Reason::NotAsked)).out_of_scope);
}

/// What is known of a namespace with one Deployment of this many replicas.
fn beside(replicas: i64) -> Facts {
    let text = json!({"metadata": {"name": "web"},
                      "spec": {"replicas": replicas, "template": {"metadata": {"labels": {"app": "web"}}}}})
    .to_string();
    let workload = Workload::read("apps", "Deployment", &Value::parse(&text).unwrap()).unwrap();
    Facts {
        workloads: Known::Known(vec![workload]),
        autoscalers: Known::Known(Vec::new()),
        budgets: Known::Known(Vec::<Budget>::new()),
        ..Facts::unknown(Reason::NotAsked)
    }
}

fn min_available(amount: Json) -> Json {
    budget(json!({"name": "web"}), json!({"minAvailable": amount, "selector": {"matchLabels": {"app": "web"}}}))
}

#[test]
fn g03_what_depends_on_the_workload_warns_and_never_denies() {
    let verdict = Review::create(&min_available(json!(2))).validate(&blocking(), &beside(2));
    assert!(verdict.allowed());
    assert_eq!(
        verdict.warnings,
        ["[pdb-blocks-eviction] /spec/minAvailable: minAvailable 2 allows no eviction with 2 replicas (Deployment \
          \"web\"): node drains and upgrades wait until there are more, or the budget is changed"]
    );
    let off = Review::create(&min_available(json!(1))).validate(&blocking(), &Facts::unknown(Reason::NotAsked));
    assert!(off.allowed() && off.warnings.is_empty());
}

#[test]
fn c15_a_budget_that_comes_to_block_always_is_new_although_it_blocked_by_number() {
    let update = |new: Json| Review::update(&min_available(json!(2)), &new).validate(&blocking(), &beside(2));
    assert!(!update(min_available(json!("100%"))).allowed());
    assert!(update(min_available(json!(3))).allowed());
}

#[test]
fn g05_a_budget_asks_for_others_and_a_stranger_kind_for_none() {
    let policy = Policy::of(&[("overlapping-pdb", Action::Warn, false, json!({}))]).unwrap();
    let asked = |object: &Json| needs(Endpoint::Validate, &policy, &Review::create(object).request());
    assert_eq!(asked(&bare()), Needs { budgets: true, workloads: true, ..Needs::default() });
    let nothing = budget(json!({"name": "web"}), json!({"maxUnavailable": 1}));
    assert_eq!(asked(&nothing), Needs::default());
}

#[test]
fn g05_selectors_that_say_the_same_in_other_words() {
    let same = |a: &str, b: &str| {
        let read = |text: &str| Selector::read(&Value::parse(text).unwrap()).unwrap();
        read(a).says_the_same_as(&read(b))
    };
    let labels = r#"{"matchLabels":{"app":"web","tier":"x"}}"#;
    assert!(same(labels, r#"{"matchLabels":{"tier":"x","app":"web"}}"#));
    let one = |values: &str| {
        format!(
            r#"{{"matchLabels":{{"tier":"x"}},"matchExpressions":[{{"key":"app","operator":"In","values":{values}}}]}}"#
        )
    };
    assert!(same(labels, &one(r#"["web"]"#)));
    assert!(same(&one(r#"["a","b"]"#), &one(r#"["b","a","a"]"#)));
    assert!(!same(labels, &one(r#"["web","api"]"#)));
    assert!(same("{}", r#"{"matchLabels":null,"matchExpressions":[]}"#));
    assert!(!same("{}", labels));
}

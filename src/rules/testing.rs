//! What the rules' unit tests share: one object, judged by one rule alone.

use serde_json::json;

use crate::config::Reference;
use crate::engine::context::{Context, Declined};
use crate::engine::document::Value;
use crate::engine::facts::{ConfigFacts, Facts, Known, Needs, Reason, ServerVersion};
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::KINDS;
use crate::engine::request::{Endpoint, Operation};
use crate::engine::rule::{AnyRule, Entry, Rule};
use crate::policy::Policy;

/// An object of some kind and the policy that judges it.
#[derive(Clone)]
pub struct Judge {
    /// Name of the kind.
    pub kind: &'static str,
    /// The rule's parameters.
    pub params: serde_json::Value,
    /// A neighbouring rule whose fix the policy turns on, and its parameters.
    pub fixes: Option<(&'static str, serde_json::Value)>,
    /// Fixes that the author declined.
    pub declined: &'static [&'static str],
    /// What is known beside the object.
    pub facts: Facts,
}

impl Default for Judge {
    fn default() -> Self {
        let server_version = Known::Known(ServerVersion::NEWEST);
        let facts = Facts { server_version, ..Facts::unknown(Reason::NotAsked) };
        Judge { kind: "Deployment", params: json!({}), fixes: None, declined: &[], facts }
    }
}

impl Judge {
    /// What the rule finds in this object.
    pub fn object<R: Rule>(&self, object: serde_json::Value) -> Vec<Finding> {
        self.judge::<R>(&object).0
    }

    /// What the rule finds in this object, and the facts that it asks for.
    pub fn judge<R: Rule>(&self, object: &serde_json::Value) -> (Vec<Finding>, Needs) {
        let text = object.to_string();
        let object = Value::parse(&text).unwrap();
        let mut rules = vec![(R::META.id, Action::Deny, false, self.params.clone())];
        rules.extend(self.fixes.clone().map(|(id, params)| (id, Action::Warn, true, params)));
        let policy = Policy::of(&rules).unwrap();
        let declined = Declined { all: false, rules: self.declined.iter().map(|rule| (*rule).to_owned()).collect() };
        let kind = KINDS.iter().find(|row| row.kind == self.kind).unwrap();
        let context =
            Context::new(Endpoint::Validate, Operation::Create, kind, &object, &self.facts, &policy, &declined);
        let (rule, params) = (Entry::<R>::new(), &policy.setting(R::META.id).unwrap().params);
        let mut findings = Vec::new();
        rule.check(&context, params, &mut findings);
        (findings, rule.needs(&context, params))
    }

    /// What the rule finds in this object where the same is told of every ConfigMap and Secret that it asks for, and
    /// which those are.
    pub fn told<R: Rule>(
        &self,
        object: &serde_json::Value,
        told: Known<ConfigFacts>,
    ) -> (Vec<Finding>, Vec<Reference>) {
        let references = self.judge::<R>(object).1.configs;
        let configs = references.iter().map(|reference| (reference.clone(), told.clone())).collect();
        let facts = Facts { configs, ..self.facts.clone() };
        let informed = Judge { facts, ..self.clone() };
        (informed.judge::<R>(object).0, references)
    }

    /// What the rule finds in an object with this pod spec.
    pub fn pod<R: Rule>(&self, spec: serde_json::Value) -> Vec<Finding> {
        let kind = KINDS.iter().find(|row| row.kind == self.kind).unwrap();
        let path = kind.template.unwrap();
        let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": spec});
        self.object::<R>(path.iter().rev().fold(template, |below, segment| json!({*segment: below})))
    }

    /// What the rule finds in a pod of one container of this name and these members.
    pub fn container<R: Rule>(&self, mut members: serde_json::Value) -> Vec<Finding> {
        members["name"] = json!("app");
        self.pod::<R>(json!({"containers": [members]}))
    }
}

/// What the rule finds in a Deployment of one container with these members.
pub fn container<R: Rule>(members: serde_json::Value) -> Vec<Finding> {
    Judge::default().container::<R>(members)
}

/// What the rule finds in a Deployment with this pod spec, under these parameters.
pub fn in_pod_spec<R: Rule>(spec: serde_json::Value, params: serde_json::Value) -> Vec<Finding> {
    Judge { params, ..Judge::default() }.pod::<R>(spec)
}

/// The path below `params` at which these parameters are refused.
pub fn refused<R: Rule>(params: serde_json::Value) -> String {
    Entry::<R>::new().parse_params(params).err().unwrap().path
}

/// The messages alone.
pub fn messages(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.message.as_str()).collect()
}

/// Asserts that nonsense where a pod spec, a container or one of its members should stand is passed over.
pub fn passes_over_nonsense<R: Rule>(members: &[&'static str]) {
    let nonsense =
        || [json!(null), json!(true), json!(-7), json!(2.5), json!("x"), json!([]), json!([null, 1]), json!({})];
    for kind in R::META.kinds {
        let judge = Judge { kind, ..Judge::default() };
        for wrong in nonsense() {
            assert_eq!(judge.object::<R>(wrong.clone()), [], "{kind} {wrong}");
            assert_eq!(judge.object::<R>(json!({"spec": wrong})), [], "{kind} {wrong}");
            assert_eq!(judge.pod::<R>(wrong.clone()), [], "{kind} {wrong}");
            assert_eq!(judge.pod::<R>(json!({"containers": wrong, "initContainers": wrong})), [], "{kind} {wrong}");
            assert_eq!(judge.pod::<R>(json!({"containers": [wrong]})), [], "{kind} {wrong}");
            for member in members {
                assert_eq!(judge.container::<R>(json!({*member: wrong})), [], "{kind} {member} {wrong}");
            }
        }
    }
}

//! Runs one rule on one object: what the rules' unit tests share.

use crate::engine::context::{Context, Declined};
use crate::engine::document::Value;
use crate::engine::facts::{Facts, Needs, Reason};
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::lookup;
use crate::engine::request::{Endpoint, Operation};
use crate::engine::rule::{AnyRule, Entry, Rule};
use crate::policy::Policy;

/// What `/validate` finds in this object of the kind, with these parameters and facts, and the facts it asks for.
pub fn judge<R: Rule>(
    (group, kind): (&str, &str),
    object: &serde_json::Value,
    params: serde_json::Value,
    facts: &Facts,
) -> (Vec<Finding>, Needs) {
    let text = object.to_string();
    let object = Value::parse(&text).unwrap();
    let policy = Policy::of(&[(R::META.id, Action::Deny, false, params)]).unwrap();
    let (kind, declined) = (lookup(group, kind).unwrap(), Declined::default());
    let context = Context::new(Endpoint::Validate, Operation::Create, kind, &object, facts, &policy, &declined);
    let (rule, params) = (Entry::<R>::new(), &policy.setting(R::META.id).unwrap().params);
    let mut findings = Vec::new();
    rule.check(&context, params, &mut findings);
    (findings, rule.needs(&context, params))
}

/// What `/validate` finds in a Deployment with this pod spec, where no fact is known.
pub fn in_pod_spec<R: Rule>(spec: serde_json::Value, params: serde_json::Value) -> Vec<Finding> {
    let object = serde_json::json!({"spec": {"template": {"spec": spec}}});
    judge::<R>(("apps", "Deployment"), &object, params, &Facts::unknown(Reason::NotAsked)).0
}

/// The path below `params` at which these parameters are refused.
pub fn refused<R: Rule>(params: serde_json::Value) -> String {
    Entry::<R>::new().parse_params(params).err().unwrap().path
}

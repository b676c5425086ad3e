//! Policies to judge by, compiled once.

use std::sync::OnceLock;

use plimsoll::engine::finding::Action;
use plimsoll::engine::rule::AnyRule;
use plimsoll::policy::{Enforcement, FixAt, Policy};
use plimsoll::rules::REGISTRY;

use super::entropy::{Entropy, bytes};

/// A policy and the name that a failure tells.
pub struct Named {
    /// Name.
    pub name: String,
    /// The policy.
    pub policy: Policy,
}

const P0: &str = include_str!("../../p0.yaml");

const PROFILES: &str = r#"
apiVersion: plimsoll.dev/v1alpha1
kind: Policy
metadata: {name: profiles}
spec:
  exempt: {namespaces: [kube-system]}
  breakGlass: {groups: [platform-breakglass]}
  rules:
    missing-pre-stop: {action: audit, fix: false, params: {sleepSeconds: 20}}
  profiles:
    critical:
      rules:
        missing-pre-stop: {action: deny, fix: true}
        missing-requests: {action: deny}
    strict:
      rules:
        short-grace-period: {action: deny, fix: true}
  exceptions:
  - name: legacy
    rules: [mutable-image-tag]
    match: {names: ["web*"]}
    owner: team
    reason: moves soon
    expires: 2026-11-30
  - name: other
    rules: [missing-requests]
    match: {kinds: [DaemonSet]}
    owner: team
    reason: node agents
    expires: 2027-11-30
"#;

/// The policies; the first is the plainest.
pub fn all() -> &'static [Named] {
    static ALL: OnceLock<Vec<Named>> = OnceLock::new();
    ALL.get_or_init(|| {
        let parsed = |text: &str| Policy::parse(text).unwrap();
        let named = |name: &str, policy| Named { name: name.to_owned(), policy };
        let mut all = vec![
            named("p0", parsed(P0)),
            named("baseline", Policy::baseline().unwrap()),
            named("everything", everything(None)),
            named("profiles", parsed(PROFILES)),
        ];
        let mut at_pod = everything(None);
        at_pod.fix_at = FixAt::Pod;
        all.push(named("everything at pods", at_pod));
        let mut lenient = everything(None);
        (lenient.enforcement, lenient.announce_fixes) = (Enforcement::Warn, false);
        all.push(named("everything warns", lenient));
        all.extend((0..26).map(|seed| named(&format!("everything, seed {seed}"), everything(Some(seed)))));
        all
    })
}

/// Every rule on and every fix turned on; with a seed, parameters and switches by chance.
fn everything(seed: Option<u64>) -> Policy {
    let bytes = seed.map(|seed| bytes(seed, 4096)).unwrap_or_default();
    let mut entropy = Entropy::new(&bytes);
    let rules: Vec<_> = REGISTRY
        .iter()
        .map(|rule| {
            let action = entropy.pick(&[Action::Deny, Action::Deny, Action::Deny, Action::Warn, Action::Audit]);
            let fix = rule.meta().fixable && !entropy.chance(20);
            let params = if seed.is_some() { params(*rule, &mut entropy) } else { params_of(*rule) };
            (rule.meta().id, action, fix, params)
        })
        .collect();
    Policy::of(&rules).unwrap()
}

/// The defaults; where a rule does nothing without its parameters, some that make it do something.
fn params_of(rule: &dyn AnyRule) -> serde_json::Value {
    match rule.meta().id {
        "registry-not-allowed" => serde_json::json!({"registries": ["reg.example", "reg.example:5000"]}),
        _ => rule.default_params(),
    }
}

/// Parameters near the defaults that the rule accepts.
fn params(rule: &dyn AnyRule, entropy: &mut Entropy<'_>) -> serde_json::Value {
    let mut params = params_of(rule);
    for _ in 0..2 {
        let mut other = params.clone();
        vary(&mut other, entropy);
        if rule.parse_params(other.clone()).is_ok() {
            params = other;
        }
    }
    params
}

fn vary(node: &mut serde_json::Value, entropy: &mut Entropy<'_>) {
    use serde_json::Value as Json;
    match node {
        Json::Bool(value) if entropy.chance(30) => *value = !*value,
        Json::Number(value) if entropy.chance(30) => {
            *value = entropy.pick(&[1, 0, 2, 5, 10, 20, 30, 60, 90, 100, 600, 3600]).into();
        }
        Json::String(value) if entropy.chance(25) => {
            let others = ["checksum/config", "plimsoll.dev/config-checksum", "recompute", "main", "reg.example", "50%"];
            *value = entropy.pick(&others).to_owned();
        }
        Json::Array(items) => items.iter_mut().for_each(|item| vary(item, entropy)),
        Json::Object(members) => members.values_mut().for_each(|value| vary(value, entropy)),
        _ => {}
    }
}

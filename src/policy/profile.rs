//! Profiles: stricter variants of a policy, chosen by labels.
//!
//! Workload authors can set the label, so a profile can only tighten: raise actions and turn fixes on. Parameters are
//! not a profile's: which of two numbers is the stricter one is not known for every rule.

use super::Policy;
use super::compile::{Catalogue, Plan, check_fix, refuse_newer};
use super::decode::Report;
use super::model::{Profile, ProfileExtends, Spec};
use super::path::{Path, shorten};
use super::rule_set::RuleSet;
use crate::engine::finding::Action;

/// More profiles are refused: each pair of them is compiled when the policy is loaded.
const MAX_PROFILES: usize = 16;

/// A profile's action and fix for each rule of the catalogue, in its order.
pub(super) struct Tightened {
    pub(super) name: String,
    pub(super) settings: Vec<(Action, bool)>,
}

/// The policy as it is under each pair of profiles, made when it is loaded so that a review only looks it up.
#[derive(Default)]
pub struct Profiles {
    names: Vec<String>,
    /// Pairs `(low, high)` with `low <= high`: (0,0), (0,1), (1,1), (0,2) …; a pair of one with itself is that profile.
    variants: Vec<Policy>,
}

impl Profiles {
    pub(super) fn new(policy: &Policy, plans: &[Plan], tightened: &[Tightened]) -> Self {
        let mut variants = Vec::new();
        for (high, one) in tightened.iter().enumerate() {
            for other in &tightened[..=high] {
                let pairs = one.settings.iter().zip(&other.settings);
                let settings = plans.iter().zip(pairs).filter_map(|(plan, ((action, fix), (other, also)))| {
                    plan.setting(*action.max(other), *fix || *also)
                });
                variants.push(policy.with_settings(settings.collect()));
            }
        }
        Profiles { names: tightened.iter().map(|profile| profile.name.clone()).collect(), variants }
    }

    /// The names that a label can say.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The policy under these profiles; `None` where neither is one of ours.
    pub(super) fn get(&self, one: Option<&str>, other: Option<&str>) -> Option<&Policy> {
        let position = |name: Option<&str>| self.names.iter().position(|known| Some(known.as_str()) == name);
        let (one, other) = match (position(one), position(other)) {
            (Some(one), Some(other)) => (one, other),
            (Some(one), None) | (None, Some(one)) => (one, one),
            (None, None) => return None,
        };
        let (low, high) = (one.min(other), one.max(other));
        self.variants.get(high * (high + 1) / 2 + low)
    }
}

/// Checks and compiles the profiles of a policy.
pub(super) fn compile(
    report: &mut Report<'_>,
    spec: &Spec,
    plans: &[Plan],
    rule_set: RuleSet,
    catalogue: Catalogue,
) -> Vec<Tightened> {
    let root = Path::of(&["spec", "profiles"]);
    if spec.profiles.len() > MAX_PROFILES {
        let message = format!("there are {} profiles, at most {MAX_PROFILES} are taken", spec.profiles.len());
        report.refuse_key(&root, message, "join those that are alike");
        return Vec::new();
    }
    let mut tightened = Vec::new();
    for (name, profile) in &spec.profiles {
        let path = root.key(name);
        if !is_label_value(name) {
            let message = format!("{:?} can be no label's value", shorten(name));
            let mend = "use up to 63 letters, digits, `-`, `_`, `.`, the first and last a letter or digit";
            report.refuse_key(&path, message, mend);
        }
        let rules = path.key("rules");
        for id in profile.rules.keys().filter(|id| catalogue.get(id).is_none()) {
            catalogue.refuse_unknown(report, &rules.key(id), id);
        }
        let settings = plans.iter().map(|plan| tighten(report, &rules, profile, plan, rule_set)).collect();
        tightened.push(Tightened { name: name.clone(), settings });
    }
    tightened
}

fn tighten(report: &mut Report<'_>, rules: &Path, profile: &Profile, plan: &Plan, rule_set: RuleSet) -> (Action, bool) {
    let meta = plan.rule.meta();
    let newer = RuleSet::is_newer(meta.since, rule_set);
    let (mut action, mut fix) = (plan.action, plan.fix);
    if profile.extends == Some(ProfileExtends::Critical) {
        let critical = if newer { meta.critical.min(Action::Warn) } else { meta.critical };
        action = action.max(critical);
        // Where the policy ran the rule, whether it fixes was said there.
        fix |= meta.baseline_fix && plan.action == Action::Off && !newer;
    }
    let Some(said) = profile.rules.get(meta.id) else { return (action, fix && action != Action::Off) };
    let path = rules.key(meta.id);
    if let Some(wanted) = said.action {
        let at = path.key("action");
        if wanted < plan.action {
            let message = format!("{} is laxer than {} without the profile", wanted.as_str(), plan.action.as_str());
            report.refuse(&at, message, "a label may only tighten: raise it, or lower it in spec.rules");
        } else if newer && wanted == Action::Deny {
            refuse_newer(report, &at, meta);
        }
        action = action.max(wanted);
    }
    match said.fix {
        Some(false) => {
            let mend = "a label may only tighten: turn it off in spec.rules, or by plimsoll.dev/skip-fixes";
            report.refuse(&path.key("fix"), "a profile turns no fix off", mend);
        }
        Some(true) => {
            check_fix(report, &path, meta, action);
            fix = meta.fixable;
        }
        None => {}
    }
    (action, fix && action != Action::Off)
}

/// As Kubernetes checks label values, except that the empty one names nothing.
fn is_label_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    bytes.len() <= 63 && edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
}

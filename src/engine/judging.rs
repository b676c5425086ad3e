//! `/validate`: what is left, what it does, and the message.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::author::{self, Places};
use super::case::Case;
use super::document::Value;
use super::facts::Facts;
use super::finding::{Action, Finding};
use super::fixing::{may_write, prove, warning};
use super::marker::Claims;
use super::message;
use super::pointer::{pointer, without_indices};
use super::request::Request;
use super::text::quoted;
use super::verdict::{Judged, Verdict};
use crate::policy::{Enforcement, FixAt, Setting};

/// The verdict of `/validate`: never a patch.
pub fn validate(case: &Case<'_>, request: &Request<'_>, facts: &Facts) -> Verdict {
    let mut verdict = Verdict { rollback: case.is_rollback(facts), ..Verdict::default() };
    let findings = case.findings(case.object, facts);
    if findings.is_empty() {
        return verdict;
    }
    // Only what is found again can be old: by rules that found something.
    let again = |rule: &str| findings.iter().any(|finding| finding.rule == rule);
    let old = case.old.map(|old| violations(&case.findings_of(again, old, facts))).unwrap_or_default();
    let calms_down = case.old.is_some_and(|old| only_scales_down_or_pauses(case, old));
    let breaks_glass = case.policy.breaks_glass(&request.user);
    let prefix = case.template_prefix();
    let name = request.display_name();

    let judge = Judge { case, facts, namespace: &request.namespace, name: &name, fixable: may_write(case) };
    let authors = OnceCell::new();
    let mut seen: BTreeMap<Key, usize> = BTreeMap::new();
    for mut finding in findings {
        let exception = judge.exception(&mut finding);
        let mut action = judge.action(&finding, exception.is_some());
        let key = key(&finding);
        // What only our own fixes brought about is not for whoever sent the object to mend (TRAPS I05).
        let authors = action != Action::Deny || authors.get_or_init(|| judge.authors()).denies(&key, &finding.pointer);
        let known = authors
            && old.get(&key).is_some_and(|before| {
                let as_many = seen.entry(key).or_default();
                *as_many += 1;
                finding.measure <= before.worst && *as_many <= before.count
            });
        let spared = known || calms_down || (verdict.rollback && finding.pointer.starts_with(&prefix));
        if spared || !authors {
            action = action.min(Action::Warn);
        }
        let unenforced = action == Action::Deny && case.policy.enforcement == Enforcement::Warn;
        if unenforced {
            action = Action::Warn;
        }
        if action == Action::Deny && breaks_glass {
            verdict.overridden = true;
            action = Action::Warn;
        }
        verdict.findings.push(Judged { finding, action, old: known, unenforced, exception });
    }
    // Rules run in the order of their ids and look at an object in its order: the sort is stable.
    verdict.findings.sort_by_key(|judged| judged.finding.rule);

    let mut shown: Vec<&Judged> = verdict.findings.iter().filter(|judged| judged.action == Action::Warn).collect();
    shown.sort_by_key(|judged| Reverse(said(case, judged.finding.rule)));
    verdict.warnings = shown.into_iter().map(|judged| warning(&judged.finding)).collect();
    verdict.denial = message::denial(request, &verdict.findings);
    verdict
}

/// What the policy says that findings of this rule do.
fn said(case: &Case<'_>, rule: &str) -> Action {
    case.policy.setting(rule).map_or(Action::Off, |setting| setting.action)
}

/// What a finding does by itself, whatever the old object had.
struct Judge<'j> {
    case: &'j Case<'j>,
    facts: &'j Facts,
    namespace: &'j str,
    name: &'j str,
    /// Whether `/mutate` writes to the object. Else naming some controller would turn every denial with a fix into a
    /// warning (TRAPS B10).
    fixable: bool,
}

impl Judge<'_> {
    fn action(&self, finding: &Finding, excepted: bool) -> Action {
        let case = self.case;
        let by_us = self.fixable || self.at_pods(finding.rule);
        let mended =
            by_us && finding.fix.is_some() && !case.declined.covers(finding.rule) && case.policy.fixes(finding.rule);
        let said = said(case, finding.rule);
        let mut action = finding.cap.map_or(said, |cap| said.min(cap));
        if excepted || (mended && self.at_pods(finding.rule)) {
            action = action.min(Action::Audit);
        }
        if mended { action.min(Action::Warn) } else { action }
    }

    /// Whether this rule's fix is written to the pods when they are made, so that the workload's author need not hear.
    fn at_pods(&self, rule: &str) -> bool {
        let policy = self.case.policy;
        policy.fix_at == FixAt::Pod && policy.setting(rule).is_some_and(Setting::fixes_pods)
    }

    /// The exception that bears this finding; one that expired is told in the finding and bears nothing.
    fn exception(&self, finding: &mut Finding) -> Option<String> {
        let (today, kind) = (self.facts.today.unwrap_or(NaiveDate::MIN), self.case.kind.kind);
        let (policy, namespace, name) = (self.case.policy, self.namespace, self.name);
        if let Some(exception) = policy.exception(finding.rule, namespace, kind, name, today) {
            return Some(exception.name.clone());
        }
        if let Some(expired) = policy.expired_exception(finding.rule, namespace, kind, name, today) {
            let (name, owner) = (quoted(&expired.name), quoted(&expired.owner));
            finding.message.push_str(&format!("; the exception {name} of {owner} expired on {}", expired.expires));
        }
        None
    }

    /// What is denied of the object without what our fixes wrote into it.
    fn authors(&self) -> Authors {
        let (_, claims) = prove(self.case, self.facts);
        if claims == Claims::default() {
            return Authors::All;
        }
        let places = Places::of(self.case.object, self.case.kind, self.case.policy);
        let ours = claims.iter().flat_map(|claim| places.claimed(claim)).map(|place| pointer(&place.path)).collect();
        let mut denials: BTreeMap<Key, Vec<String>> = BTreeMap::new();
        for mut finding in self.case.findings(&self.case.author(&claims), self.facts) {
            let excepted = self.exception(&mut finding).is_some();
            if self.action(&finding, excepted) == Action::Deny {
                denials.entry(key(&finding)).or_default().push(finding.pointer);
            }
        }
        Authors::Some { denials, ours }
    }
}

/// What would be denied had our fixes written nothing.
enum Authors {
    /// They wrote nothing.
    All,
    /// They did.
    Some {
        /// Pointers by key.
        denials: BTreeMap<Key, Vec<String>>,
        /// Pointers to all that our fixes wrote.
        ours: Vec<String>,
    },
}

impl Authors {
    fn denies(&self, key: &Key, pointer: &str) -> bool {
        let Authors::Some { denials, ours } = self else { return true };
        let below = |place: &String| {
            pointer.strip_prefix(place.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let denied = denials.get(key);
        // A value of ours may repeat what the author's own one is denied for: a startup probe that mirrors a liveness.
        denied.is_some_and(|pointers| pointers.iter().any(|known| known == pointer) || !ours.iter().any(below))
    }
}

/// The ratchet's key: the rule, and the container's name or the place without indices.
type Key = (&'static str, String);

fn key(finding: &Finding) -> Key {
    let place = match &finding.container {
        Some(container) => format!("/{container}"),
        None => without_indices(&finding.pointer),
    };
    (finding.rule, place)
}

/// What the old object has of one key.
struct Before {
    /// The worst measure.
    worst: Option<i64>,
    /// How many findings: one hook that fails does not excuse a second one of the same container.
    count: usize,
}

fn violations(findings: &[Finding]) -> BTreeMap<Key, Before> {
    let mut violations: BTreeMap<Key, Before> = BTreeMap::new();
    for finding in findings {
        let before = violations.entry(key(finding)).or_insert(Before { worst: finding.measure, count: 0 });
        before.worst = before.worst.max(finding.measure);
        before.count += 1;
    }
    violations
}

/// A change that only lowers `spec.replicas` or sets `spec.paused` is never held up (TRAPS C15), whatever our fixes
/// renewed or brought back with it.
fn only_scales_down_or_pauses(case: &Case<'_>, old: &Value<'_>) -> bool {
    let new = case.object;
    let count = |object: &Value<'_>| object.at(&["spec", "replicas"]).as_i64().unwrap_or(case.kind.absent_replicas);
    let paused = |object: &Value<'_>| object.at(&["spec", "paused"]).as_bool() == Some(true);
    let (fewer, pauses) = (count(new) < count(old), paused(new) && !paused(old));
    if !(fewer || pauses) || count(new) > count(old) || !(pauses || paused(new) == paused(old)) {
        return false;
    }
    let by_template = case.kind.template == Some(&["spec", "template"]);
    let bare = |object| author::without(object, case.kind, case.policy, case.held.iter());
    let (old, new) = (bare(old), bare(new));
    let holds = |a: &Value<'_>, b: &Value<'_>| {
        let besides = |name: &str| !matches!(name, "replicas" | "paused") && !(by_template && name == "template");
        a["spec"].members().filter(|(name, _)| besides(name)).all(|(name, value)| b["spec"].get(name) == value)
    };
    !(by_template && case.template_changed) && holds(&old, &new) && holds(&new, &old)
}

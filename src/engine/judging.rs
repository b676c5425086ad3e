//! `/validate`: what is left, what it does, and the message.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use chrono::NaiveDate;

use super::author::{self, Places};
use super::case::Case;
use super::document::Value;
use super::facts::Facts;
use super::finding::{Action, Finding};
use super::fixing::{can_be_claimed, claim_of, may_write, prove, warning};
use super::marker::Claims;
use super::message;
use super::pointer::without_indices;
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
    let name = request.display_name();
    let judge = Judge {
        case,
        facts,
        namespace: &request.namespace,
        name: &name,
        fixable: may_write(case),
        places: Places::of(case.object, case.kind, case.policy),
    };
    let mut judged: Vec<(Finding, Option<String>, Action)> = Vec::with_capacity(findings.len());
    for mut finding in findings {
        let exception = judge.exception(&mut finding);
        let action = judge.action(&finding, exception.is_some());
        judged.push((finding, exception, action));
    }
    let calms_down = case.old.is_some_and(|old| judge.only_scales_down_or_pauses(old));
    let breaks_glass = case.policy.breaks_glass(&request.user);
    let prefix = case.template_prefix();
    let authors = OnceCell::new();
    // What only our own fixes brought about is not for whoever sent the object to mend (TRAPS I05).
    let ours = |finding: &Finding, action: Action| {
        action == Action::Deny && !authors.get_or_init(|| judge.authors()).denies(finding)
    };
    let known = judge.known(&judged, &ours);
    for ((finding, exception, mut action), known) in judged.into_iter().zip(known) {
        let spared = known || calms_down || (verdict.rollback && finding.pointer.starts_with(&prefix));
        if spared || ours(&finding, action) {
            action = action.min(Action::Warn);
        }
        let enforced = case.policy.enforcement == Enforcement::Enforce;
        let unenforced = action == Action::Deny && !enforced && !breaks_glass;
        if action == Action::Deny && (breaks_glass || !enforced) {
            verdict.overridden |= enforced;
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
    /// Where fixes of this object stand.
    places: Places<'j>,
}

impl Judge<'_> {
    fn action(&self, finding: &Finding, excepted: bool) -> Action {
        let case = self.case;
        let by_us = self.fixable || self.at_pods(finding.rule);
        let written = |fix| !self.fixable || can_be_claimed(&self.places, fix);
        let mended = by_us
            && finding.fix.as_ref().is_some_and(written)
            && !case.declined.covers(finding.rule)
            && case.policy.fixes(finding.rule);
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

    /// Which of these the old object has too, no better. One at the same place first, then any of the same key: what was
    /// there before may move within a container, and excuses no second one.
    fn known(
        &self,
        judged: &[(Finding, Option<String>, Action)],
        not_theirs: &dyn Fn(&Finding, Action) -> bool,
    ) -> Vec<bool> {
        let mut known = vec![false; judged.len()];
        let Some(old) = self.case.old else { return known };
        // Only what is found again can be old: by rules that found something.
        let again: HashSet<&str> = judged.iter().map(|(finding, ..)| finding.rule).collect();
        let ours = Places::of(old, self.case.kind, self.case.policy).pointers(&Claims::of(old));
        let mut violations: BTreeMap<Key, Before> = BTreeMap::new();
        for finding in self.case.findings_of(|rule| again.contains(rule), old, self.facts) {
            let first = Before { worst: finding.measure, count: 0, places: BTreeMap::new() };
            let before = violations.entry(key(&finding)).or_insert(first);
            before.worst = before.worst.max(finding.measure);
            let place = before.places.entry(without_indices(&finding.pointer)).or_default();
            place.left += 1;
            // What a fix copied may stay where it is, and excuses nothing elsewhere.
            if !is_at_or_below(&finding.pointer, &ours) {
                place.counted += 1;
                before.count += 1;
            }
        }
        for anywhere in [false, true] {
            for ((finding, _, action), known) in judged.iter().zip(&mut known).filter(|(_, known)| !**known) {
                let Some(before) = violations.get_mut(&key(finding)) else { continue };
                if finding.measure > before.worst {
                    continue;
                }
                if anywhere {
                    *known = before.count > 0 && !not_theirs(finding, *action);
                    before.count -= usize::from(*known);
                } else if let Some(place) = before.places.get_mut(&without_indices(&finding.pointer))
                    && place.left > 0
                {
                    *known = true;
                    place.left -= 1;
                    if place.counted > 0 {
                        place.counted -= 1;
                        before.count -= 1;
                    }
                }
            }
        }
        known
    }

    /// What is denied of the object without what our fixes wrote into it.
    fn authors(&self) -> Authors {
        // Where `/mutate` writes nothing, it takes no false claim out of the marker either (TRAPS B10).
        if !self.fixable || self.case.claims == Claims::default() {
            return Authors::All;
        }
        // Nor is the old object's marker believed where it can be disproved, on the new object and on the old one: whoever
        // may annotate could have written it, unseen by us (B22).
        let implied = author::implied(self.case.object, self.case.kind, self.case.policy);
        let earlier =
            self.case.earlier().map(|earlier| prove(&earlier, self.facts, |it, _| earlier.held.contains(it)).1);
        let believed = |claim: &str, findings: &[Finding]| {
            let proven = || earlier.as_ref().is_some_and(|earlier| earlier.contains(claim));
            let unsure = || findings.iter().any(|it| it.stopped_by_lookup && claim_of(it) == claim);
            implied.contains(claim) || (self.case.held.contains(claim) && (proven() || unsure()))
        };
        let (findings, claims) = prove(self.case, self.facts, believed);
        if claims == Claims::default() {
            return Authors::All;
        }
        let mut denials: BTreeMap<Key, HashSet<String>> = BTreeMap::new();
        for mut finding in findings {
            let excepted = self.exception(&mut finding).is_some();
            if self.action(&finding, excepted) == Action::Deny {
                denials.entry(key(&finding)).or_default().insert(finding.pointer);
            }
        }
        Authors::Some { denials, ours: self.places.pointers(&claims) }
    }

    /// A change that only lowers `spec.replicas` or sets `spec.paused` is never held up (TRAPS C15), whatever our fixes
    /// renewed or brought back with it.
    fn only_scales_down_or_pauses(&self, old: &Value<'_>) -> bool {
        let (case, new) = (self.case, self.case.object);
        let count = |object: &Value<'_>| object.at(&["spec", "replicas"]).as_i64().unwrap_or(case.kind.absent_replicas);
        let paused = |object: &Value<'_>| object.at(&["spec", "paused"]).as_bool() == Some(true);
        let (fewer, pauses) = (count(new) < count(old), paused(new) && !paused(old));
        if !(fewer || pauses) || count(new) > count(old) || !(pauses || paused(new) == paused(old)) {
            return false;
        }
        let by_template = case.kind.template == Some(&["spec", "template"]) && self.fixable;
        let bare = |object| match self.fixable {
            true => author::without(object, case.kind, case.policy, case.held.iter()),
            false => Cow::Borrowed(object),
        };
        let (old, new) = (bare(old), bare(new));
        let holds = |a: &Value<'_>, b: &Value<'_>| {
            let besides = |name: &str| !(matches!(name, "replicas" | "paused") || by_template && name == "template");
            a["spec"].members().filter(|(name, _)| besides(name)).all(|(name, value)| b["spec"].get(name) == value)
        };
        !(by_template && case.template_changed) && holds(&old, &new) && holds(&new, &old)
    }
}

/// What would be denied had our fixes written nothing.
enum Authors {
    /// They wrote nothing.
    All,
    /// They did.
    Some {
        /// Pointers by key.
        denials: BTreeMap<Key, HashSet<String>>,
        /// Pointers to all that our fixes wrote.
        ours: HashSet<String>,
    },
}

impl Authors {
    fn denies(&self, finding: &Finding) -> bool {
        let Authors::Some { denials, ours } = self else { return true };
        let Some(pointers) = denials.get(&key(finding)) else { return false };
        let pointer = finding.pointer.as_str();
        // A value of ours may repeat what the author's own one is denied for: a startup probe that mirrors a liveness.
        pointers.contains(pointer) || !is_at_or_below(pointer, ours)
    }
}

/// Whether the pointer leads to one of these places, or below one.
fn is_at_or_below(pointer: &str, places: &HashSet<String>) -> bool {
    let mut above = pointer.match_indices('/').map(|(end, _)| &pointer[..end]);
    places.contains(pointer) || above.any(|place| places.contains(place))
}

/// The ratchet's key: the rule, the container's name or the place without indices, and whether it may be denied at all:
/// what only warns by its nature excuses no denial.
type Key = (&'static str, String, bool);

fn key(finding: &Finding) -> Key {
    let place = match &finding.container {
        Some(container) => format!("/{container}"),
        None => without_indices(&finding.pointer),
    };
    (finding.rule, place, finding.cap.is_none_or(|cap| cap == Action::Deny))
}

/// What the old object has of one key.
struct Before {
    /// The worst measure.
    worst: Option<i64>,
    /// How many findings no new one was matched with: one hook that fails does not excuse a second one of the same
    /// container.
    count: usize,
    /// Those at each place, indices left out.
    places: BTreeMap<String, AtPlace>,
}

/// Findings of the old object at one place that no new one was matched with.
#[derive(Default)]
struct AtPlace {
    /// All of them.
    left: usize,
    /// Those among them that count elsewhere, too: not of what our fixes wrote.
    counted: usize,
}

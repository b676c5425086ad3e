//! One request prepared for judgement: whose values are whose, and whether the author changed the pod template.

use std::borrow::Cow;

use super::author::{self, Places};
use super::context::{Context, Declined};
use super::document::Value;
use super::facts::{Facts, Known, Needs, Reason, RevisionOwner};
use super::finding::{Action, Finding};
use super::fixing::may_write;
use super::kind::Kind;
use super::marker::{Claims, SKIP_FIXES};
use super::ownership::author_set;
use super::request::{Endpoint, Operation, Request};
use super::rule::Meta;
use super::text::quoted;
use crate::policy::{FixAt, Policy, Setting};
use crate::rules;

/// One request prepared for judgement.
#[derive(Clone)]
pub struct Case<'r> {
    /// Which webhook asks.
    pub endpoint: Endpoint,
    /// The verb.
    pub operation: Operation,
    /// The policy in force.
    pub policy: &'r Policy,
    /// The row of its kind.
    pub kind: &'static Kind,
    /// The kind of the workload that the object is a subresource of.
    pub parent: Option<&'static Kind>,
    /// The object as received.
    pub object: &'r Value<'r>,
    /// The object before the change, on UPDATE.
    pub old: Option<&'r Value<'r>>,
    /// Which of our values may stand in the object: those that hold, and what else the request's own marker says, to be
    /// proven.
    pub claims: Claims,
    /// Those of them that hold: on UPDATE what the old object's marker claims and the author did not change since, and
    /// what stands under our own annotation keys.
    pub held: Claims,
    /// Whether the author's part of the template is new or changed; of the spec, where the kind has no template.
    pub template_changed: bool,
    /// Fixes that the author declines.
    pub declined: Declined,
}

impl<'r> Case<'r> {
    /// Prepares a request that is in scope.
    pub fn new(
        endpoint: Endpoint,
        policy: &'r Policy,
        request: &'r Request<'r>,
        kind: &'static Kind,
        object: &'r Value<'r>,
    ) -> Self {
        let old = request.old_object.as_ref().filter(|_| request.operation == Operation::Update);
        let mut case = Case {
            endpoint,
            operation: request.operation,
            policy,
            kind,
            parent: request.parent(),
            object,
            old,
            claims: Claims::default(),
            held: author::implied(object, kind, policy),
            template_changed: true,
            declined: declined(object),
        };
        if let Some(old) = old {
            let implied = author::implied(old, kind, policy);
            let mut held = Claims::of(old);
            held.extend(implied.clone());
            let places = (Places::of(old, kind, policy), Places::of(object, kind, policy));
            held.retain(|claim| implied.contains(claim) || still_ours(kind, &places, old, object, claim));
            let old_author = author::without(old, kind, policy, held.iter());
            let new_author = author::without(object, kind, policy, held.iter());
            case.template_changed = !author::same_template(&old_author, &new_author, kind);
            case.held.extend(held);
        }
        // A second round (TRAPS B06) brings back what this review wrote in the first, and only the request's own marker
        // knows of it.
        case.claims = Claims::of(object);
        case.claims.extend(case.held.clone());
        case
    }

    /// The old object as a request of its own, nothing before it: what its marker claims is to be proven.
    pub fn earlier(&self) -> Option<Case<'r>> {
        let old = self.old?;
        let held = author::implied(old, self.kind, self.policy);
        let mut claims = Claims::of(old);
        claims.extend(held.clone());
        Some(Case { object: old, old: None, claims, held, ..self.clone() })
    }

    /// The object that rules look at: the author's for `/mutate`, the one that stands for `/validate`.
    pub fn subject(&self) -> Cow<'r, Value<'r>> {
        match self.endpoint {
            Endpoint::Validate => Cow::Borrowed(self.object),
            Endpoint::Mutate => self.author(&self.claims),
        }
    }

    /// The object without what these claims stand for, as far as their fixes are turned on: what no fix will write
    /// again stays as if the author had set it.
    pub fn author(&self, claims: &Claims) -> Cow<'r, Value<'r>> {
        let fixed = claims.iter().filter(|claim| {
            let rule = claim.split_once('/').map_or(*claim, |(rule, _)| rule);
            self.policy.fixes(rule) && !self.declined.covers(rule)
        });
        author::without(self.object, self.kind, self.policy, fixed)
    }

    /// What the rules that this endpoint runs find in this object, by their ids.
    pub fn findings(&self, object: &Value<'_>, facts: &Facts) -> Vec<Finding> {
        self.findings_of(|_rule| true, object, facts)
    }

    /// What those of them find whose ids are asked for.
    pub fn findings_of(&self, asked: impl Fn(&str) -> bool, object: &Value<'_>, facts: &Facts) -> Vec<Finding> {
        let context = self.context(object, facts);
        let mut findings = Vec::new();
        for setting in self.rules().filter(|setting| asked(setting.rule.meta().id)) {
            setting.rule.check(&context, &setting.params, &mut findings);
        }
        // A Scale does not say by itself what it scales.
        if let Some(parent) = self.parent {
            let name = quoted(context.workload_name().unwrap_or_default());
            for finding in &mut findings {
                finding.message = format!("{} {name}: {}", parent.kind, finding.message);
            }
        }
        findings
    }

    /// The facts that judging will ask for.
    pub fn needs(&self) -> Needs {
        if self.endpoint == Endpoint::Mutate && !may_write(self) {
            return Needs::default();
        }
        let unknown = Facts::unknown(Reason::NotAsked);
        let subject = self.subject();
        let mut needs = Needs::default();
        let mut ask = |object: &Value<'_>, asked: &dyn Fn(&Meta) -> bool| {
            let context = self.context(object, &unknown);
            for setting in self.rules().filter(|setting| asked(setting.rule.meta())) {
                needs.merge(setting.rule.needs(&context, &setting.params));
            }
        };
        ask(&subject, &|_rule| true);
        // `/validate` proves what the marker claims as `/mutate` did, by what the fixes would write.
        if self.endpoint == Endpoint::Validate && self.claims != Claims::default() && may_write(self) {
            ask(&self.author(&self.claims), &|meta| meta.fixable);
            if let Some(earlier) = self.earlier() {
                ask(&earlier.author(&earlier.claims), &|meta| meta.fixable);
            }
        }
        // `/mutate` writes nothing at all to a rollback: neither what is found by facts, nor a marker.
        let would_write =
            self.endpoint == Endpoint::Mutate && (!needs.is_empty() || Claims::of(self.object) != self.held);
        if self.template_changed && (would_write || self.concerns_template(&unknown)) {
            needs.revisions = self.revision_owner();
        }
        needs
    }

    /// Whether the template equals a retained revision (TRAPS C14). The old object's own template does not count: the
    /// author changed it, or this is not asked.
    pub fn is_rollback(&self, facts: &Facts) -> bool {
        let (Some(path), Known::Known(revisions), true) =
            (self.kind.template, &facts.revisions, self.old.is_some() && self.template_changed)
        else {
            return false;
        };
        let bare = |template: &Value<'_>| {
            let mut template = template.to_static();
            let label = ["metadata", "labels", "pod-template-hash"];
            template.remove(&label, label.len());
            template.remove(&["metadata", "labels", "rollouts-pod-template-hash"], label.len());
            template
        };
        let template = bare(self.object.at(path));
        revisions
            .iter()
            .any(|revision| Value::parse(&revision.template).is_ok_and(|retained| bare(&retained) == template))
    }

    /// Pointer of the template, with a slash at its end.
    pub fn template_prefix(&self) -> String {
        self.kind.template.map(|path| super::pointer::pointer(path) + "/").unwrap_or_default()
    }

    /// For `/mutate` the rules whose fix is turned on and is written here, to the workload or to its pods; for
    /// `/validate` all that are not off.
    fn rules(&self) -> impl Iterator<Item = &'r Setting> + use<'_, 'r> {
        self.policy.settings.iter().filter(|setting| match self.endpoint {
            Endpoint::Mutate => {
                let at_pod = self.policy.fix_at == FixAt::Pod && setting.fixes_pods();
                let declined = self.declined.covers(setting.rule.meta().id);
                setting.fixes() && !declined && at_pod == self.kind.stands_for.is_some()
            }
            Endpoint::Validate => setting.action != Action::Off,
        })
    }

    fn context<'c>(&'c self, object: &'c Value<'c>, facts: &'c Facts) -> Context<'c> {
        let declined = &self.declined;
        Context::new(self.endpoint, self.operation, self.kind, object, facts, self.policy, declined)
            .of_parent(self.parent)
    }

    /// Whether anything that a rollback would spare this template is found when nothing is known; for `/mutate`, which
    /// then writes nothing, anything at all.
    fn concerns_template(&self, unknown: &Facts) -> bool {
        if self.old.is_none() {
            return false;
        }
        let (prefix, subject) = (self.template_prefix(), self.subject());
        let context = self.context(&subject, unknown);
        let mut findings = Vec::new();
        // The first one answers.
        self.rules().any(|setting| {
            setting.rule.check(&context, &setting.params, &mut findings);
            let spares = |finding: Finding| self.endpoint == Endpoint::Mutate || finding.pointer.starts_with(&prefix);
            findings.drain(..).any(spares)
        })
    }

    fn revision_owner(&self) -> Option<RevisionOwner> {
        let old = self.old?;
        let selector = old.at(&["spec", "selector", "matchLabels"]);
        Some(RevisionOwner {
            store: self.kind.revisions?,
            uid: old["metadata"]["uid"].as_str()?.to_owned(),
            match_labels: selector
                .members()
                .filter_map(|(key, value)| Some((key.to_owned(), value.as_str()?.to_owned())))
                .collect(),
        })
    }
}

/// Whether every value that a claim of the old object stands for is still ours in the new one: the same value, or
/// dropped by a PUT, or back at the API default that nobody applied.
fn still_ours(kind: &Kind, places: &(Places<'_>, Places<'_>), old: &Value<'_>, new: &Value<'_>, claim: &str) -> bool {
    let (in_old, in_new) = (places.0.claimed(claim), places.1.claimed(claim));
    let held = in_old.iter().any(|place| !old.at(&place.path).is_null());
    held && in_old.len() == in_new.len()
        && in_old.iter().zip(&in_new).all(|(before, after)| {
            let value = new.at(&after.path);
            let path: Vec<&str> = after.path.iter().map(String::as_str).collect();
            match value {
                value if author::holds(value, old.at(&before.path)) => true,
                Value::Null => dropped(kind, new, after),
                _ => !after.default.is_null() && !author_set(new, kind, &path, &after.default),
            }
        })
}

/// Whether a value that is absent was only left out. Outside the template, where the API server fills in a default or
/// what the value belongs to is gone, the author chose another procedure: `Recreate`, blue-green, a `workloadRef`
/// (TRAPS C06).
fn dropped(kind: &Kind, new: &Value<'_>, place: &author::Claimed) -> bool {
    match kind.template.filter(|_| place.in_template) {
        Some(template) => new.at(template).as_object().is_some(),
        None => place.default.is_null() && new.at(place.parent()).as_object().is_some(),
    }
}

/// Rules that an author declines and that we do not know, the most that are kept.
const MAX_UNKNOWN: usize = 16;

fn is_rule(id: &str) -> bool {
    rules::REGISTRY.iter().any(|rule| rule.meta().id == id)
}

fn declined(object: &Value<'_>) -> Declined {
    let text = object.at(&["metadata", "annotations", SKIP_FIXES]).as_str().unwrap_or_default();
    let mut declined = Declined::default();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        match entry {
            "all" => declined.all = true,
            rule if declined.rules.iter().any(|known| known == rule) => {}
            // A few unknown ones are enough to warn of; known ones are never lost among them.
            rule if declined.rules.len() < MAX_UNKNOWN || is_rule(rule) => declined.rules.push(rule.to_owned()),
            _ => {}
        }
    }
    declined
}

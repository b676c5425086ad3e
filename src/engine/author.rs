//! The author's object: the received one with what our fixes wrote taken out.
//!
//! Everything that must not depend on what we wrote earlier starts from it: whether the author changed the template
//! (TRAPS B18), and what a rule would write. That makes fixes idempotent (B06) without any rule thinking of it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use super::document::{Object, Value};
use super::kind::Kind;
use super::marker::{Claims, OWN_PREFIX};
use super::ownership::{Managed, Place};
use super::pod::{Container, Template};
use super::pointer::pointer;
use crate::policy::Policy;

/// A place in one object that a claim stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// Members from the root.
    pub path: Vec<String>,
    /// What the API server fills in where nobody sets it.
    pub default: Value<'static>,
    /// Whether it is part of the pod template.
    pub in_template: bool,
}

impl Claimed {
    /// Members from the root to what holds the value.
    pub fn parent(&self) -> &[String] {
        self.path.split_last().map_or(&[], |(_, parent)| parent)
    }
}

/// What marker entries stand for in one object.
pub struct Places<'o> {
    kind: &'o Kind,
    policy: &'o Policy,
    template: Option<Template<'o>>,
    /// Regular containers by name, `None` where several have it: made when the first entry names one, and once for
    /// however many entries.
    named: OnceCell<HashMap<&'o str, Option<Container<'o>>>>,
}

impl<'o> Places<'o> {
    /// Those of this object.
    pub fn of(object: &'o Value<'_>, kind: &'o Kind, policy: &'o Policy) -> Self {
        let template = kind.template.map(|path| Template { path, value: object.at(path) });
        Places { kind, policy, template, named: OnceCell::new() }
    }

    /// The places that an entry stands for; none for one that means nothing here (no such rule, no such container).
    pub fn claimed(&self, claim: &str) -> Vec<Claimed> {
        let (rule, container) = match claim.split_once('/') {
            Some((rule, container)) => (rule, Some(container)),
            None => (claim, None),
        };
        let Some(setting) = self.policy.setting(rule) else { return Vec::new() };
        setting.managed.iter().filter_map(|managed| self.place(managed, container)).collect()
    }

    /// Pointers to all places that these entries stand for.
    pub fn pointers(&self, claims: &Claims) -> HashSet<String> {
        claims.iter().flat_map(|claim| self.claimed(claim)).map(|place| pointer(&place.path)).collect()
    }

    fn place(&self, managed: &Managed, container: Option<&str>) -> Option<Claimed> {
        let (kind, template) = (self.kind, self.template);
        let (path, in_template) = match (&managed.place, container) {
            (Place::Container(below), Some(name)) => (self.container(name)?.path(below), true),
            (Place::PodSpec(below), None) => {
                let below: Vec<&str> = std::iter::once("spec").chain(below.iter().copied()).collect();
                (template?.path(&below), true)
            }
            (Place::TemplateAnnotation(key), None) => (template?.path(&["metadata", "annotations", key]), true),
            (Place::Object(of, path), None) if *of == kind.kind => {
                (path.iter().map(|segment| (*segment).to_owned()).collect(), false)
            }
            _ => return None,
        };
        let default = managed.default.filter(|_| kind.defaulted).and_then(|text| Value::parse(text).ok());
        Some(Claimed { path, default: default.unwrap_or(Value::Null), in_template })
    }

    fn container(&self, name: &str) -> Option<Container<'o>> {
        let named = self.named.get_or_init(|| {
            let mut named: HashMap<&str, Option<Container<'o>>> = HashMap::new();
            for container in self.template.iter().flat_map(Template::regular) {
                named.entry(container.name()).and_modify(|one| *one = None).or_insert(Some(container));
            }
            named
        });
        *named.get(name)?
    }
}

/// What the API server fills into a probe (`SetDefaults_Probe` in `pkg/apis/core/v1/defaults.go`).
const PROBE_DEFAULTS: [(&str, i64); 4] =
    [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)];

/// Whether `held` is what became of `written`: the same value, or with the API server's defaults besides, as a probe
/// of ours comes back (TRAPS B06, D01).
pub fn holds(held: &Value<'_>, written: &Value<'_>) -> bool {
    let default = |name: &str, value: &Value<'_>| {
        PROBE_DEFAULTS.iter().any(|(known, number)| *known == name && value.as_i64() == Some(*number))
    };
    held == written
        || held.as_object().is_some()
            && written.members().next().is_some()
            && written.members().all(|(name, value)| held.get(name) == value)
            && held.members().all(|(name, value)| !written.get(name).is_null() || default(name, value))
}

/// Claims that hold without a marker entry: what stands under our own annotation keys in the template.
pub fn implied(object: &Value<'_>, kind: &Kind, policy: &Policy) -> Claims {
    let mut claims = Claims::default();
    for setting in &policy.settings {
        for managed in &setting.managed {
            if let Place::TemplateAnnotation(key) = &managed.place
                && key.starts_with(OWN_PREFIX)
                && let Some(template) = kind.template
                && !object.at(template).at(&["metadata", "annotations", key]).is_null()
            {
                claims.insert(setting.rule.meta().id);
            }
        }
    }
    claims
}

/// The object without what these claims stand for: defaults where the API server would have filled them in.
pub fn without<'o, 'a>(
    object: &'o Value<'a>,
    kind: &Kind,
    policy: &Policy,
    claims: impl Iterator<Item = impl AsRef<str>>,
) -> Cow<'o, Value<'a>> {
    let mut author = Cow::Borrowed(object);
    let places = Places::of(object, kind, policy);
    for claim in claims {
        for place in places.claimed(claim.as_ref()) {
            let absent = object.at(&place.path).is_null();
            if place.default.is_null() {
                // In a template our fix may have made the parent, which goes with it, and so does one that the author left
                // empty: both say nothing. Elsewhere the parent is the author's choice of a procedure: `canary: {}`.
                let hollow =
                    || place.in_template && object.at(place.parent()).as_object().is_some_and(Object::is_empty);
                if absent && !hollow() {
                    continue;
                }
                let kept = place.path.len().saturating_sub(if place.in_template { 2 } else { 1 });
                author.to_mut().remove(&place.path, kept);
            } else if !absent || place.in_template && !object.at(place.parent()).is_null() {
                // Absent in a template says the same as the default: nothing there is another procedure.
                author.to_mut().set(&place.path, place.default);
            }
        }
    }
    author
}

/// Whether the two objects' pod templates are equal, a map of annotations that is empty counting as none; their specs
/// where the kind has no template.
pub fn same_template(a: &Value<'_>, b: &Value<'_>, kind: &Kind) -> bool {
    let path = kind.template.unwrap_or(&["spec"]);
    let (a, b) = (a.at(path), b.at(path));
    match (a.as_object(), b.as_object()) {
        // A pod's spec is nearly all of a template: compared once, and never copied.
        (Some(_), Some(_)) => a["spec"] == b["spec"] && tidy(a) == tidy(b),
        _ => a == b,
    }
}

/// All of a template but its `spec`.
fn tidy<'a>(template: &Value<'a>) -> Value<'a> {
    let rest = template.members().filter(|(name, _)| *name != "spec");
    let rest = rest.map(|(name, value)| (Cow::Owned(name.to_owned()), value.clone()));
    let mut template = Value::Object(rest.collect());
    for path in [&["metadata", "annotations"][..], &["metadata"]] {
        if template.at(path).as_object().is_some_and(|object| object.iter().all(|(_, value)| value.is_null())) {
            template.remove(path, path.len());
        }
    }
    template
}

//! The author's object: the received one with what our fixes wrote taken out.
//!
//! Everything that must not depend on what we wrote earlier starts from it: whether the author changed the template
//! (TRAPS B18), and what a rule would write. That makes fixes idempotent (B06) without any rule thinking of it.

use std::borrow::Cow;

use super::document::Value;
use super::kind::Kind;
use super::marker::{Claims, OWN_PREFIX};
use super::ownership::{Managed, Place};
use super::pod::Template;
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

/// The places that a marker entry stands for in this object; none for an entry that means nothing here (no such
/// rule, no such container).
pub fn places(object: &Value<'_>, kind: &Kind, policy: &Policy, claim: &str) -> Vec<Claimed> {
    let (rule, container) = match claim.split_once('/') {
        Some((rule, container)) => (rule, Some(container)),
        None => (claim, None),
    };
    let Some(setting) = policy.setting(rule) else { return Vec::new() };
    let template = kind.template.map(|path| Template { path, value: object.at(path) });
    setting.managed.iter().filter_map(|managed| place(template, kind, managed, container)).collect()
}

fn place(template: Option<Template<'_>>, kind: &Kind, managed: &Managed, container: Option<&str>) -> Option<Claimed> {
    let default = managed.default.filter(|_| kind.defaulted).and_then(|text| Value::parse(text).ok());
    let (path, in_template) = match (&managed.place, container) {
        (Place::Container(below), Some(name)) => {
            let mut named = template?.regular().filter(|container| container.name() == name);
            let container = named.next().filter(|_| named.next().is_none())?;
            (container.path(below), true)
        }
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
    Some(Claimed { path, default: default.unwrap_or(Value::Null), in_template })
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
    for claim in claims {
        for place in places(object, kind, policy, claim.as_ref()) {
            if object.at(&place.path).is_null() {
                continue;
            }
            if place.default.is_null() {
                // The parent that our fix may have made goes with it, its own parent stays.
                author.to_mut().remove(&place.path, place.path.len().saturating_sub(2));
            } else {
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
    a == b || tidy(a) == tidy(b)
}

fn tidy<'a>(template: &Value<'a>) -> Value<'a> {
    let mut template = template.clone();
    for path in [&["metadata", "annotations"][..], &["metadata"]] {
        if template.at(path).as_object().is_some_and(|object| object.iter().all(|(_, value)| value.is_null())) {
            template.remove(path, path.len());
        }
    }
    template
}

//! What is judged at all: everything else is let through before anything else is looked at.

use super::document::Value;
use super::kind::{self, Kind};
use super::marker::OWN_PREFIX;
use super::request::{Endpoint, Operation, Request};
use crate::policy::{FixAt, Policy};

/// Whether a request is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// It is, as an object of this kind.
    Judge(&'static Kind),
    /// It is let through untouched; some reasons are odd enough to be counted.
    Pass(Option<&'static str>),
}

/// Whether this request is judged.
pub fn scope(endpoint: Endpoint, policy: &Policy, request: &Request<'_>) -> Scope {
    if !matches!(request.operation, Operation::Create | Operation::Update) {
        return Scope::Pass(None);
    }
    let Some(kind) = request.known_kind().filter(|kind| kind.sub_resource == request.sub_resource) else {
        return Scope::Pass(request.sub_resource.is_empty().then_some("unknown-kind"));
    };
    // A Scale is judged where we know what it scales (TRAPS A15); no other subresource is looked at (A14).
    if !kind.sub_resource.is_empty() && !request.parent().is_some_and(|parent| parent.scales) {
        return Scope::Pass(None);
    }
    if policy.exempts(&request.namespace, &request.user) {
        return Scope::Pass(None);
    }
    let Some(object) = &request.object else { return Scope::Pass(Some("null-object")) };
    if request.operation == Operation::Update && request.old_object.is_none() {
        return Scope::Pass(Some("null-object"));
    }
    if is_going(object, request) {
        return Scope::Pass(None);
    }
    // What has no pod template is judged by its spec: a status or a label is nothing new (TRAPS G09).
    let same_spec = || request.old_object.as_ref().is_some_and(|old| old["spec"] == object["spec"]);
    if kind.template.is_none() && request.operation == Operation::Update && same_spec() {
        return Scope::Pass(None);
    }
    if kind.kind == "Pod" && is_mirror(object, request) {
        return Scope::Pass(None);
    }
    if let Some(row) = stand_in(endpoint, policy, request, object) {
        return Scope::Judge(row);
    }
    if built_in_controller(object, kind) {
        return Scope::Pass((kind.kind == "Pod").then_some("owned-pod"));
    }
    if request.own && only_our_annotations_differ(request) {
        return Scope::Pass(None);
    }
    Scope::Judge(kind)
}

/// Whether it is on its way out: it must pass, or its finalizers never go (TRAPS B11). On CREATE the mutating webhook
/// sees whatever an author writes there, and what is not yet cannot be going; on UPDATE the API server keeps it as it
/// was.
fn is_going(object: &Value<'_>, request: &Request<'_>) -> bool {
    let going = |object: &Value<'_>| !object["metadata"]["deletionTimestamp"].is_null();
    request.operation == Operation::Update && (going(object) || request.old_object.as_ref().is_some_and(going))
}

/// A static pod's mirror, made by a node: the annotation alone is no proof (TRAPS B19).
fn is_mirror(object: &Value<'_>, request: &Request<'_>) -> bool {
    !object.at(&["metadata", "annotations", "kubernetes.io/config.mirror"]).is_null()
        && request.user.groups.iter().any(|group| group == "system:nodes")
}

/// The owner that is marked as controller, as (group, kind).
fn controller<'a>(object: &'a Value<'_>) -> Option<(&'a str, &'a str)> {
    let owners = object["metadata"]["ownerReferences"].items();
    let owner = owners.iter().find(|owner| owner["controller"].as_bool() == Some(true))?;
    let version = owner["apiVersion"].as_str()?;
    let group = version.split_once('/').map_or("", |(group, _)| group);
    Some((group, owner["kind"].as_str()?))
}

/// The row for a Pod that is fixed in its workload's stead.
fn stand_in(endpoint: Endpoint, policy: &Policy, request: &Request<'_>, object: &Value<'_>) -> Option<&'static Kind> {
    let asked = endpoint == Endpoint::Mutate && request.operation == Operation::Create;
    let (group, kind) = controller(object).filter(|_| asked && policy.fix_at == FixAt::Pod && request.kind == "Pod")?;
    kind::stand_in(group, kind)
}

/// Whether a built-in controller made it from a template that was judged (TRAPS B10, C16).
pub fn built_in_controller(object: &Value<'_>, kind: &Kind) -> bool {
    controller(object).is_some_and(|owner| kind.built_in_owners.contains(&owner))
}

/// Whether any controller owns it, which would patch back what is written to it (TRAPS B10); not a Pod that is fixed in
/// its workload's stead, which nobody writes a second time.
pub fn is_fought_over(kind: &Kind, object: &Value<'_>) -> bool {
    kind.stands_for.is_none() && controller(object).is_some()
}

/// Whether the two objects are alike but for annotations under our own keys, on the workload and on its template
/// (TRAPS B21).
fn only_our_annotations_differ(request: &Request<'_>) -> bool {
    let (Some(object), Some(old)) = (&request.object, &request.old_object) else { return false };
    let Some(template) = request.known_kind().and_then(|kind| kind.template) else { return false };
    let without_ours = |object: &Value<'_>| {
        let mut object = object.to_static();
        let template: Vec<&str> = template.iter().copied().chain(["metadata", "annotations"]).collect();
        for path in [&["metadata", "annotations"][..], &template[..]] {
            let ours: Vec<String> = object
                .at(path)
                .members()
                .filter(|(key, _)| key.starts_with(OWN_PREFIX))
                .map(|(key, _)| key.to_owned())
                .collect();
            for key in ours {
                let place: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
                object.remove(&place, place.len() - 2);
            }
        }
        for bookkeeping in ["managedFields", "resourceVersion", "generation"] {
            object.remove(&["metadata", bookkeeping], 1);
        }
        object
    };
    without_ours(object) == without_ours(old)
}

#[cfg(test)]
mod tests;

//! What is judged at all: everything else is let through before anything else is looked at.

use super::document::Value;
use super::kind::Kind;
use super::marker::OWN_PREFIX;
use super::request::{Operation, Request};
use crate::policy::Policy;

/// Whether a request is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// It is, as an object of this kind.
    Judge(&'static Kind),
    /// It is let through untouched; some reasons are odd enough to be counted.
    Pass(Option<&'static str>),
}

/// Whether this request is judged.
pub fn scope(policy: &Policy, request: &Request<'_>) -> Scope {
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
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Scope::Pass(None);
    }
    if kind.kind == "Pod" && is_mirror(object, request) {
        return Scope::Pass(None);
    }
    if built_in_controller(object, kind) {
        return Scope::Pass((kind.kind == "Pod").then_some("owned-pod"));
    }
    if request.own && only_our_annotations_differ(request) {
        return Scope::Pass(None);
    }
    Scope::Judge(kind)
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

/// Whether a built-in controller made it from a template that was judged (TRAPS B10, C16).
fn built_in_controller(object: &Value<'_>, kind: &Kind) -> bool {
    controller(object).is_some_and(|owner| kind.built_in_owners.contains(&owner))
}

/// Whether any controller owns it: then a patch would be fought over (TRAPS B10).
pub fn is_controlled(object: &Value<'_>) -> bool {
    controller(object).is_some()
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
mod tests {
    use serde_json::json;

    use crate::engine::facts::{Facts, Known, Needs, Reason};
    use crate::engine::finding::Action;
    use crate::engine::kind;
    use crate::engine::neighbours::{Claim, Workload};
    use crate::engine::request::Endpoint;
    use crate::engine::verdict::Verdict;
    use crate::engine::{document::Value, evaluate, needs};
    use crate::policy::Policy;
    use crate::review::Review;

    /// A namespace in which the Deployment `web` mounts a ReadWriteOnce claim.
    fn facts() -> Facts {
        let pod = r#"{"containers":[{"ports":[{"containerPort":80}]}],
            "volumes":[{"persistentVolumeClaim":{"claimName":"data"}}]}"#;
        let text = format!(r#"{{"metadata":{{"name":"web"}},"spec":{{"template":{{"spec":{pod}}}}}}}"#);
        let workload = Workload::of(kind::lookup("apps", "Deployment").unwrap(), &Value::parse(&text).unwrap());
        let claim = Claim { name: "data".to_owned(), access_modes: vec!["ReadWriteOnce".to_owned()] };
        Facts {
            workloads: Known::Known(workload.into_iter().collect()),
            autoscalers: Known::Known(Vec::new()),
            claims: Known::Known(vec![claim]),
            ..Facts::unknown(Reason::NotAsked)
        }
    }

    /// An UPDATE of `<resource>/scale` by way of the envelope, `None`: the Scale leaves its number out.
    fn scale(endpoint: Endpoint, resource: &str, old: Option<i64>, new: Option<i64>) -> (Verdict, Needs) {
        let scale = |replicas: Option<i64>| {
            let spec = replicas.map_or(json!({}), |replicas| json!({"replicas": replicas}));
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": "shop"},
                "spec": spec, "status": {"replicas": 1}})
        };
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "operation": "UPDATE", "namespace": "shop", "name": "web",
            "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "resource": {"group": "apps", "version": "v1", "resource": resource}, "subResource": "scale",
            "object": scale(new), "oldObject": scale(old)}})
        .to_string();
        let rules = ["shared-rwo-claim", "single-replica"].map(|id| (id, Action::Deny, false, json!({})));
        let policy = Policy::of(&rules).unwrap();
        let request = Review::parse(body.as_bytes()).unwrap().into_request(None).unwrap();
        (evaluate(endpoint, &policy, &request, &facts()), needs(endpoint, &policy, &request))
    }

    fn validate(old: Option<i64>, new: Option<i64>) -> Verdict {
        scale(Endpoint::Validate, "deployments", old, new).0
    }

    #[test]
    fn a15_scaling_to_zero_is_allowed_without_a_word() {
        for zero in [Some(0), None] {
            let (verdict, needs) = scale(Endpoint::Validate, "deployments", Some(3), zero);
            assert!(verdict.allowed() && verdict.findings.is_empty() && verdict.patch.is_none(), "{verdict:?}");
            assert!(!verdict.out_of_scope && needs.is_empty());
        }
    }

    #[test]
    fn a15_scaling_up_is_judged_as_the_workload_that_it_scales() {
        let (verdict, needs) = scale(Endpoint::Validate, "deployments", Some(1), Some(2));
        assert_eq!(needs, Needs { workloads: true, claims: true, ..Needs::default() });
        let denial = verdict.denial.unwrap();
        let wanted = "Plimsoll found 1 violation in Deployment shop/web:\n[shared-rwo-claim] /spec/replicas: \
                      Deployment \"web\": 2 replicas share the PersistentVolumeClaim \"data\"";
        assert!(denial.starts_with(wanted), "{denial}");
    }

    #[test]
    fn a15_scaling_down_is_never_denied_nor_is_what_was_there() {
        for (old, new) in [(4, 2), (2, 2), (2, 1)] {
            let verdict = validate(Some(old), Some(new));
            assert!(verdict.allowed() && verdict.warnings.len() == 1, "{old} to {new}: {verdict:?}");
        }
        // From none to one, nobody is worse off than before, and a minimum of replicas only ever warns (C12).
        assert!(validate(None, Some(1)).allowed());
        assert!(!validate(Some(2), Some(3)).allowed(), "more replicas on the claim are worse");
    }

    #[test]
    fn a15_never_mutated_and_nothing_found_of_what_is_unknown() {
        let (verdict, needs) = scale(Endpoint::Mutate, "deployments", Some(1), Some(2));
        assert!(verdict.patch.is_none() && verdict.warnings.is_empty() && needs.is_empty());
        let (other, _) = scale(Endpoint::Validate, "statefulsets", Some(1), Some(2));
        assert!(other.findings.is_empty() && !other.out_of_scope, "there is no StatefulSet of that name");
        let (foreign, needs) = scale(Endpoint::Validate, "widgets", Some(1), Some(2));
        assert!(foreign.out_of_scope && needs.is_empty());
    }
}

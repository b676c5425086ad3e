//! What replica rules read of a workload: the same from the object under judgement as from one beside it.

use std::collections::BTreeSet;

use super::document::Value;
use super::kind::{Kind, Strategy};
use super::neighbours::{Workload, labels, ports};
use super::pod::Template;

impl Workload {
    /// Reads a workload of this kind, whoever controls it and whether or not it has a name yet (then `""`); `None` where
    /// the kind has no pod template.
    pub fn of(row: &Kind, object: &Value<'_>) -> Option<Workload> {
        let path = row.template?;
        let template = Template { path, value: object.at(path) };
        let recreates = object.at(&["spec", "strategy", "type"]).as_str() == Some("Recreate");
        Some(Workload {
            group: row.group.to_owned(),
            kind: row.kind.to_owned(),
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            replicas: row.scales.then(|| object.at(&["spec", "replicas"]).as_i64().unwrap_or(row.absent_replicas)),
            labels: labels(&template.metadata()["labels"]),
            ports: ports(&template),
            serving: template.serving(),
            recreates: recreates && row.strategy == Strategy::Deployment,
            shared_claims: shared_claims(object, &template),
            on_one_node: on_one_node(template.spec()),
        })
    }
}

/// The claims that the template names. A StatefulSet's `volumeClaimTemplates` replace a volume of the same name by a
/// claim of each pod's own.
fn shared_claims(object: &Value<'_>, template: &Template<'_>) -> Vec<String> {
    let own = object.at(&["spec", "volumeClaimTemplates"]).items();
    let own: BTreeSet<&str> = own.iter().filter_map(|claim| claim["metadata"]["name"].as_str()).collect();
    let replaced = |volume: &&Value<'_>| volume["name"].as_str().is_some_and(|name| own.contains(name));
    let shared = template.spec()["volumes"].items().iter().filter(|volume| !replaced(volume));
    let names = shared.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
    let mut known = BTreeSet::new();
    names.filter(|name| !name.is_empty() && known.insert(*name)).map(str::to_owned).collect()
}

/// Whether the pod spec may mean to keep all pods on one node: there they can share a ReadWriteOnce volume.
fn on_one_node(spec: &Value<'_>) -> bool {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    !spec["nodeName"].is_null()
        || !spec.at(&["nodeSelector", HOSTNAME]).is_null()
        || !spec.at(&["affinity", "podAffinity", required]).items().is_empty()
        || names_one_node(spec.at(&["affinity", "nodeAffinity", required, "nodeSelectorTerms"]))
}

/// The well-known label of a node's name.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Whether these terms, of which one must hold, are one that holds for one name of a node only.
fn names_one_node(terms: &Value<'_>) -> bool {
    let [term] = terms.items() else { return false };
    let one = |member: &str, key: &str| {
        term[member].items().iter().any(|expression| {
            expression["key"].as_str() == Some(key)
                && expression["operator"].as_str() == Some("In")
                && expression["values"].items().len() == 1
        })
    };
    one("matchExpressions", HOSTNAME) || one("matchFields", "metadata.name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kind::lookup;

    fn claims(kind: &str, spec: &str, pod: &str) -> Vec<String> {
        workload(kind, spec, pod).shared_claims
    }

    fn workload(kind: &str, spec: &str, pod: &str) -> Workload {
        let volumes = r#""volumes":[{"name":"tmp","emptyDir":{}},
            {"name":"data","persistentVolumeClaim":{"claimName":"data-0"}},
            {"name":"again","persistentVolumeClaim":{"claimName":"data-0"}},
            {"name":"more","persistentVolumeClaim":{"claimName":"more"}},
            {"name":"odd","persistentVolumeClaim":{"claimName":7}},{"name":"none","persistentVolumeClaim":null}]"#;
        let text = format!(r#"{{"spec":{{{spec}"template":{{"spec":{{{pod}{volumes}}}}}}}}}"#);
        Workload::of(lookup("apps", kind).unwrap(), &Value::parse(&text).unwrap()).unwrap()
    }

    #[test]
    fn claims_are_named_once_in_order() {
        assert_eq!(claims("Deployment", "", ""), ["data-0", "more"]);
        let templates = r#""volumeClaimTemplates":[{"metadata":{"name":"more"}}],"#;
        assert_eq!(claims("StatefulSet", templates, ""), ["data-0"]);
    }

    #[test]
    fn pods_on_one_node_share_what_they_like() {
        for pod in [
            r#""nodeName":"n1","#,
            r#""nodeSelector":{"kubernetes.io/hostname":"n1"},"#,
            r#""affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"h"}]}},"#,
            r#""affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                {"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["n1"]}]}]}}},"#,
            r#""affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                {"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}}},"#,
        ] {
            assert!(workload("Deployment", "", pod).on_one_node, "{pod}");
        }
        for pod in [
            r#""nodeSelector":{"disk":"ssd"},"#,
            r#""affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                {"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["n1","n2"]}]}]}}},"#,
            r#""affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                {"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["n1"]}]},
                {"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["n2"]}]}]}}},"#,
        ] {
            assert!(!workload("Deployment", "", pod).on_one_node, "{pod}");
        }
    }

    #[test]
    fn only_deployments_recreate() {
        let object = Value::parse(r#"{"spec":{"strategy":{"type":"Recreate"},"template":{"spec":{}}}}"#).unwrap();
        assert!(Workload::of(lookup("apps", "Deployment").unwrap(), &object).unwrap().recreates);
        assert!(!Workload::of(lookup("apps", "StatefulSet").unwrap(), &object).unwrap().recreates);
    }
}

#[cfg(test)]
mod scaled_tests {
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
    fn a15_scaling_down_is_never_denied() {
        for (old, new) in [(4, 2), (3, 2), (2, 1)] {
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

//! What replica rules read of a workload: the same from the object under judgement as from one beside it.

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
        })
    }
}

/// The claims that the template names. A StatefulSet's `volumeClaimTemplates` replace a volume of the same name by a
/// claim of each pod's own.
fn shared_claims(object: &Value<'_>, template: &Template<'_>) -> Vec<String> {
    let mut claims: Vec<String> = Vec::new();
    if on_one_node(template.spec()) {
        return claims;
    }
    let own = object.at(&["spec", "volumeClaimTemplates"]).items();
    let replaced = |volume: &Value<'_>| own.iter().any(|claim| claim["metadata"]["name"] == volume["name"]);
    for volume in template.spec()["volumes"].items().iter().filter(|volume| !replaced(volume)) {
        let name = volume["persistentVolumeClaim"]["claimName"].as_str().filter(|name| !name.is_empty());
        if let Some(name) = name.filter(|name| !claims.iter().any(|known| known == name)) {
            claims.push(name.to_owned());
        }
    }
    claims
}

/// Whether the pod spec may mean to keep all pods on one node: there they can share a ReadWriteOnce volume.
fn on_one_node(spec: &Value<'_>) -> bool {
    let required = ["affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    !spec["nodeName"].is_null()
        || !spec.at(&["nodeSelector", "kubernetes.io/hostname"]).is_null()
        || !spec.at(&required).items().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kind::lookup;

    fn claims(kind: &str, spec: &str, pod: &str) -> Vec<String> {
        let volumes = r#""volumes":[{"name":"tmp","emptyDir":{}},
            {"name":"data","persistentVolumeClaim":{"claimName":"data-0"}},
            {"name":"again","persistentVolumeClaim":{"claimName":"data-0"}},
            {"name":"more","persistentVolumeClaim":{"claimName":"more"}},
            {"name":"odd","persistentVolumeClaim":{"claimName":7}},{"name":"none","persistentVolumeClaim":null}]"#;
        let text = format!(r#"{{"spec":{{{spec}"template":{{"spec":{{{pod}{volumes}}}}}}}}}"#);
        Workload::of(lookup("apps", kind).unwrap(), &Value::parse(&text).unwrap()).unwrap().shared_claims
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
        ] {
            assert_eq!(claims("Deployment", "", pod), [""; 0], "{pod}");
        }
        assert_eq!(claims("Deployment", "", r#""nodeSelector":{"disk":"ssd"},"#), ["data-0", "more"]);
    }

    #[test]
    fn only_deployments_recreate() {
        let object = Value::parse(r#"{"spec":{"strategy":{"type":"Recreate"},"template":{"spec":{}}}}"#).unwrap();
        assert!(Workload::of(lookup("apps", "Deployment").unwrap(), &object).unwrap().recreates);
        assert!(!Workload::of(lookup("apps", "StatefulSet").unwrap(), &object).unwrap().recreates);
    }
}

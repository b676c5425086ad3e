//! What stands beside an object in its namespace, with only the members that rules read.
//!
//! One reader serves the live cluster, a folder of manifests and the CLI's run.

use std::collections::{BTreeMap, BTreeSet};

use super::document::Value;
use super::kind;
use super::pod::Template;
use super::service::{self, ServicePort};

/// Labels, or the `matchLabels` of a selector.
pub type Labels = BTreeMap<String, String>;

/// A label selector (meta/v1 LabelSelector). Empty selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// `matchLabels`: all must be there.
    pub labels: Labels,
    /// `matchExpressions`: all must hold.
    pub expressions: Vec<Requirement>,
}

/// One of `matchExpressions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How it is compared.
    pub operator: Operator,
    /// The values for `In` and `NotIn`.
    pub values: Vec<String>,
}

impl Requirement {
    /// Reads a requirement whose key stands in this member; `None` where it has none, or an operator that we do not know.
    pub fn read(value: &Value<'_>, key: &str) -> Option<Requirement> {
        let operator = match value["operator"].as_str()? {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return None,
        };
        let values = value["values"].items().iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Some(Requirement { key: value[key].as_str()?.to_owned(), operator, values })
    }

    /// That there is such a key.
    pub fn exists(key: &str) -> Requirement {
        Requirement { key: key.to_owned(), operator: Operator::Exists, values: Vec::new() }
    }
}

/// Operators of label selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// The label is there and one of the values.
    In,
    /// The label is not there, or none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

impl Selector {
    /// Reads a LabelSelector; `None` where it is null or no object, or holds an operator that we do not know: such a
    /// selector says nothing that could be relied on.
    pub fn read(value: &Value<'_>) -> Option<Selector> {
        value.as_object()?;
        let expressions = value["matchExpressions"].items().iter();
        let expressions: Option<Vec<_>> = expressions.map(|expression| Requirement::read(expression, "key")).collect();
        Some(Selector { labels: labels(&value["matchLabels"]), expressions: expressions? })
    }

    /// Whether it selects what carries these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|requirement| {
                let value = labels.get(&requirement.key);
                match requirement.operator {
                    Operator::In => value.is_some_and(|value| requirement.values.contains(value)),
                    Operator::NotIn => value.is_none_or(|value| !requirement.values.contains(value)),
                    Operator::Exists => value.is_some(),
                    Operator::DoesNotExist => value.is_none(),
                }
            })
    }

    /// Whether the two say the same, in whatever order and spelling: `matchLabels` is a short form of `In` with one
    /// value. Different selectors may still select the same pods.
    pub fn says_the_same_as(&self, other: &Selector) -> bool {
        let requirements = |selector: &Selector| {
            let labels = selector.labels.iter();
            let labels = labels.map(|(key, value)| (key.clone(), Operator::In, BTreeSet::from([value.clone()])));
            let expressions = selector.expressions.iter();
            let expressions = expressions.map(|requirement| {
                let values = requirement.values.iter().cloned().collect();
                (requirement.key.clone(), requirement.operator, values)
            });
            labels.chain(expressions).collect::<BTreeSet<_>>()
        };
        requirements(self) == requirements(other)
    }
}

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// `metadata.name`.
    pub name: String,
    /// `spec.selector`; `None` selects no pod (policy/v1), `{}` every one.
    pub selector: Option<Selector>,
    /// `spec.minAvailable` as text, `2` or `50%`.
    pub min_available: Option<String>,
    /// `spec.maxUnavailable` as text.
    pub max_unavailable: Option<String>,
}

/// A HorizontalPodAutoscaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autoscaler {
    /// `metadata.name`.
    pub name: String,
    /// API group of `spec.scaleTargetRef`.
    pub target_group: String,
    /// Kind of `spec.scaleTargetRef`.
    pub target_kind: String,
    /// Name of `spec.scaleTargetRef`.
    pub target_name: String,
    /// `spec.minReplicas`, replicas; absent means 1.
    pub min: i64,
    /// `spec.maxReplicas`, replicas.
    pub max: i64,
}

/// A Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// `metadata.name`.
    pub name: String,
    /// `spec.selector`; empty: it selects nothing, its endpoints are made by hand, or it is an `ExternalName`.
    pub selector: Labels,
    /// `spec.ports`.
    pub ports: Vec<ServicePort>,
}

impl Service {
    /// Whether it sends to pods with these labels.
    pub fn selects(&self, labels: &Labels) -> bool {
        !self.selector.is_empty() && self.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// A port that a container declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// `name`, where it has one.
    pub name: Option<String>,
    /// `containerPort`.
    pub number: i64,
    /// `protocol`; absent means TCP.
    pub protocol: String,
}

/// A workload: a Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController or Rollout, or a bare Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// `metadata.name`.
    pub name: String,
    /// `spec.replicas`; absent means 1; `None` for kinds that do not count.
    pub replicas: Option<i64>,
    /// Labels of its pods.
    pub labels: Labels,
    /// Ports of its regular containers and native sidecars.
    pub ports: Vec<Port>,
    /// Whether it serves: a regular container declares a port.
    pub serving: bool,
    /// Whether an update ends every pod before a new one starts (`strategy: {type: Recreate}`).
    pub recreates: bool,
    /// Names of the PersistentVolumeClaims that its pods share, in the order of its volumes.
    pub shared_claims: Vec<String>,
    /// Whether its pod template may mean to keep all pods on one node: there they can share a ReadWriteOnce volume.
    pub on_one_node: bool,
}

/// A PersistentVolumeClaim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// `metadata.name`.
    pub name: String,
    /// `spec.accessModes`.
    pub access_modes: Vec<String>,
}

/// All that stands in one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// PodDisruptionBudgets.
    pub budgets: Vec<Budget>,
    /// HorizontalPodAutoscalers.
    pub autoscalers: Vec<Autoscaler>,
    /// Services.
    pub services: Vec<Service>,
    /// Workloads that no other workload stands for.
    pub workloads: Vec<Workload>,
    /// PersistentVolumeClaims.
    pub claims: Vec<Claim>,
}

impl Neighbours {
    /// Adds one object by its `apiVersion` and `kind`; what is none of ours is left out.
    pub fn add(&mut self, object: &Value<'_>) {
        let group =
            object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group);
        let kind = object["kind"].as_str().unwrap_or_default();
        match (group, kind) {
            ("policy", "PodDisruptionBudget") => self.budgets.extend(Budget::read(object)),
            ("autoscaling", "HorizontalPodAutoscaler") => self.autoscalers.extend(Autoscaler::read(object)),
            ("", "Service") => self.services.extend(Service::read(object)),
            ("", "PersistentVolumeClaim") => self.claims.extend(Claim::read(object)),
            _ => self.workloads.extend(Workload::read(group, kind, object)),
        }
    }
}

impl Budget {
    /// Reads a PodDisruptionBudget; `None` where it has no name.
    pub fn read(object: &Value<'_>) -> Option<Budget> {
        let spec = &object["spec"];
        Some(Budget {
            name: name(object)?,
            selector: Selector::read(&spec["selector"]),
            min_available: amount(&spec["minAvailable"]),
            max_unavailable: amount(&spec["maxUnavailable"]),
        })
    }

    /// Whether it covers pods with these labels.
    pub fn selects(&self, labels: &Labels) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }
}

impl Autoscaler {
    /// Reads a HorizontalPodAutoscaler; `None` where a member is missing that the API requires.
    pub fn read(object: &Value<'_>) -> Option<Autoscaler> {
        let spec = &object["spec"];
        let target = &spec["scaleTargetRef"];
        let version = target["apiVersion"].as_str().unwrap_or_default();
        Some(Autoscaler {
            name: name(object)?,
            target_group: version.split_once('/').map_or("", |(group, _)| group).to_owned(),
            target_kind: target["kind"].as_str()?.to_owned(),
            target_name: target["name"].as_str()?.to_owned(),
            min: spec["minReplicas"].as_i64().unwrap_or(1),
            max: spec["maxReplicas"].as_i64()?,
        })
    }

    /// Whether it scales this workload.
    pub fn scales(&self, group: &str, kind: &str, name: &str) -> bool {
        self.target_group == group && self.target_kind == kind && self.target_name == name
    }
}

impl Service {
    /// Reads a Service; `None` where it has no name.
    pub fn read(object: &Value<'_>) -> Option<Service> {
        let spec = &object["spec"];
        Some(Service { name: name(object)?, selector: service::selector(spec), ports: service::ports(spec) })
    }
}

impl Claim {
    /// Reads a PersistentVolumeClaim; `None` where it has no name.
    pub fn read(object: &Value<'_>) -> Option<Claim> {
        let modes = object["spec"]["accessModes"].items();
        Some(Claim {
            name: name(object)?,
            access_modes: modes.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }

    /// The access mode that keeps the pods of this workload from sharing it, because it is for one node or one pod;
    /// `None` where another mode lets many nodes mount it, or no mode is known.
    pub fn keeps_apart(&self, workload: &Workload) -> Option<&str> {
        self.exclusive().filter(|mode| !workload.on_one_node || *mode == "ReadWriteOncePod")
    }

    fn exclusive(&self) -> Option<&str> {
        let mut modes = self.access_modes.iter();
        if modes.any(|mode| mode.ends_with("Many")) {
            return None;
        }
        ["ReadWriteOncePod", "ReadWriteOnce"].into_iter().find(|mode| self.access_modes.iter().any(|own| own == mode))
    }
}

impl Workload {
    /// Reads a workload; `None` where it has no name, no pod template, or a built-in controller that stands for it.
    /// What an operator controls stands for itself: its owner is no workload that could be read here.
    pub fn read(group: &str, kind: &str, object: &Value<'_>) -> Option<Workload> {
        let row = kind::lookup(group, kind).filter(|row| !super::scope::built_in_controller(object, row))?;
        Workload::of(row, object).filter(|workload| !workload.name.is_empty())
    }
}

/// The labels of a map of strings; members of another type are left out.
pub fn labels(value: &Value<'_>) -> Labels {
    value.members().filter_map(|(key, value)| Some((key.to_owned(), value.as_str()?.to_owned()))).collect()
}

/// The ports that regular containers and native sidecars declare.
pub fn ports(template: &Template<'_>) -> Vec<Port> {
    template
        .running()
        .flat_map(|container| container.value["ports"].items())
        .filter_map(|port| {
            Some(Port {
                name: port["name"].as_str().map(str::to_owned),
                number: port["containerPort"].as_i64()?,
                protocol: port["protocol"].as_str().unwrap_or("TCP").to_owned(),
            })
        })
        .collect()
}

fn name(object: &Value<'_>) -> Option<String> {
    object["metadata"]["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn amount(value: &Value<'_>) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|number| number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_as_the_api_reads_them() {
        let selector = |text: &str| Selector::read(&Value::parse(text).unwrap());
        let web: Labels = [("app".to_owned(), "web".to_owned())].into();
        assert!(selector("{}").unwrap().matches(&web), "empty selects everything");
        assert_eq!(selector("null"), None);
        for (text, matches) in [
            (r#"{"matchLabels":{"app":"web"}}"#, true),
            (r#"{"matchLabels":{"app":"web","tier":"x"}}"#, false),
            (r#"{"matchExpressions":[{"key":"app","operator":"In","values":["web","api"]}]}"#, true),
            (r#"{"matchExpressions":[{"key":"app","operator":"NotIn","values":["web"]}]}"#, false),
            (r#"{"matchExpressions":[{"key":"tier","operator":"NotIn","values":["x"]}]}"#, true),
            (r#"{"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]}"#, true),
            (r#"{"matchExpressions":[{"key":"tier","operator":"Exists"}]}"#, false),
        ] {
            assert_eq!(selector(text).unwrap().matches(&web), matches, "{text}");
        }
        assert_eq!(selector(r#"{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}"#), None);
    }

    #[test]
    fn objects_become_neighbours_by_kind() {
        let mut seen = Neighbours::default();
        for text in [
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"selector":{"app":"web"},
                "ports":[{"port":80,"targetPort":"http"}]}}"#,
            r#"{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"},"spec":{"minAvailable":1}}"#,
            r#"{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},
                "spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"maxReplicas":3}}"#,
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"metadata":
                {"labels":{"app":"web"}},"spec":{"containers":[{"ports":[{"containerPort":80,"name":"http"}]}]}}}}"#,
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","ownerReferences":[{"apiVersion":"apps/v1",
                "kind":"ReplicaSet","name":"r","controller":true}]},"spec":{}}"#,
            r#"{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db","ownerReferences":[{"apiVersion":
                "example.io/v1","kind":"Database","name":"db","controller":true}]},"spec":{"template":{}}}"#,
            r#"{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"]}}"#,
            r#"{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"name":"w"}}"#,
        ] {
            seen.add(&Value::parse(text).unwrap());
        }
        assert!(seen.services[0].selects(&seen.workloads[0].labels));
        assert!(seen.autoscalers[0].scales("apps", "Deployment", "web") && seen.autoscalers[0].min == 1);
        assert_eq!((seen.budgets[0].min_available.as_deref(), seen.budgets[0].selector.is_none()), (Some("1"), true));
        assert_eq!(seen.workloads.len(), 2, "a pod that a ReplicaSet owns stands for nothing of its own");
        assert_eq!(seen.workloads[1].kind, "StatefulSet", "nobody else stands for what an operator controls");
        assert!(seen.services[0].ports[0].is_declared_by(&seen.workloads[0].ports[0]));
        assert_eq!((seen.workloads[0].replicas, seen.workloads[0].ports[0].number), (Some(1), 80));
        assert_eq!(seen.claims[0].access_modes, ["ReadWriteOnce"]);
    }
}

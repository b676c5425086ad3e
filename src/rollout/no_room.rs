//! Why a surge pod cannot be counted on (TRAPS C08, C09, C20).

use std::fmt;

use crate::engine::document::Value;
use crate::engine::facts::{Known, Quota, Reason};
use crate::engine::neighbours::{Labels, Selector, labels};
use crate::engine::pod::{Class, Template};
use crate::engine::text::quoted;

/// Why a pod beyond the wanted number might find no place, so that a rollout that may take none down first would wait
/// for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRoom {
    /// Required pod anti-affinity: the old pods may hold every node.
    AntiAffinity,
    /// A topology spread constraint with `whenUnsatisfiable: DoNotSchedule`; its `topologyKey`.
    Spread(String),
    /// A container's `hostPort`: the old pod holds it until it is gone.
    HostPort(i64),
    /// `hostNetwork: true`: every port of the pod is the node's, declared or not.
    HostNetwork,
    /// A device that a container asks for, an extended resource: the old pods may hold every one; the resource's name.
    Device(String),
    /// A volume of a PersistentVolumeClaim, which one node may hold exclusively; the claim's name.
    Claim(String),
    /// A ResourceQuota of the namespace on pods, cpu or memory; its name.
    Quota(String),
    /// Nobody could tell whether there is such a quota.
    QuotaUnknown(Reason),
}

impl NoRoom {
    /// The first reason found: in the pod template, then in the namespace's quotas.
    pub fn find(template: &Template<'_>, quotas: &Known<Vec<Quota>>) -> Option<NoRoom> {
        Self::in_template(template).or_else(|| match quotas {
            Known::Known(quotas) => {
                quotas.iter().find(|quota| quota.limits(template)).map(|quota| NoRoom::Quota(quota.name.clone()))
            }
            Known::Absent => None,
            Known::Unknown(reason) => Some(NoRoom::QuotaUnknown(*reason)),
        })
    }

    fn in_template(template: &Template<'_>) -> Option<NoRoom> {
        let spec = template.spec();
        let labels = labels(&template.metadata()["labels"]);
        let required =
            spec.at(&["affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"]).items();
        if required.iter().any(|term| counts_old_pods(term, &labels)) {
            return Some(NoRoom::AntiAffinity);
        }
        let hard = |spread: &&Value<'_>| spread["whenUnsatisfiable"].as_str() == Some("DoNotSchedule");
        let mut spreads = spec["topologySpreadConstraints"].items().iter().filter(hard);
        if let Some(spread) = spreads.find(|spread| counts_old_pods(spread, &labels)) {
            return Some(NoRoom::Spread(spread["topologyKey"].as_str().unwrap_or_default().to_owned()));
        }
        if let Some(taken) = Self::on_host(template) {
            return Some(taken);
        }
        if let Some(device) = device(template) {
            return Some(NoRoom::Device(device));
        }
        let mut claims = spec["volumes"].items().iter().map(|volume| &volume["persistentVolumeClaim"]);
        let claim = claims.find(|claim| claim.as_object().is_some())?;
        Some(NoRoom::Claim(claim["claimName"].as_str().unwrap_or_default().to_owned()))
    }

    /// What the pod takes of its node's ports: no second pod can run on the node (TRAPS C08).
    pub fn on_host(template: &Template<'_>) -> Option<NoRoom> {
        // The scheduler counts the host ports of regular containers and native sidecars.
        let mut ports = template.running().flat_map(|container| container.value["ports"].items());
        if let Some(port) = ports.find_map(|port| port["hostPort"].as_i64().filter(|port| *port > 0)) {
            return Some(NoRoom::HostPort(port));
        }
        (template.spec()["hostNetwork"].as_bool() == Some(true)).then_some(NoRoom::HostNetwork)
    }

    /// Whether the answer came, or failed to come, from a look-up rather than from the object.
    pub fn is_lookup(&self) -> bool {
        matches!(self, NoRoom::Quota(_) | NoRoom::QuotaUnknown(_))
    }
}

/// Whether this term of pod anti-affinity, or topology spread constraint, holds a new pod against the old ones: its
/// selector matches the workload's own pods, and it does not tell revisions apart (`matchLabelKeys`, core/v1
/// PodAffinityTerm and TopologySpreadConstraint). One without selector matches no pod.
fn counts_old_pods(term: &Value<'_>, labels: &Labels) -> bool {
    let by_revision = |key: &Value<'_>| key.as_str().is_some_and(|key| REVISION_LABELS.contains(&key));
    selects_own_pods(term, labels) && !term["matchLabelKeys"].items().iter().any(by_revision)
}

/// Whether the selector of this term of pod (anti-)affinity, or topology spread constraint, matches pods with these
/// labels. An operator that is not known may match.
pub fn selects_own_pods(term: &Value<'_>, labels: &Labels) -> bool {
    let selector = &term["labelSelector"];
    selector.as_object().is_some() && Selector::read(selector).is_none_or(|selector| selector.matches(labels))
}

/// The labels by which controllers tell the pods of one revision from those of another.
const REVISION_LABELS: [&str; 3] = ["pod-template-hash", "controller-revision-hash", "rollouts-pod-template-hash"];

/// The first device that a container asks for: an extended resource is one whose name has a domain, and not a native
/// one (`IsExtendedResourceName` in k8s.io/kubernetes, pkg/apis/core/v1/helper). Its limit is its request.
fn device(template: &Template<'_>) -> Option<String> {
    let native = |name: &str| name.split_once('/').is_none_or(|(domain, _)| domain.ends_with("kubernetes.io"));
    template.containers().filter(|container| container.class != Class::Ephemeral).find_map(|container| {
        let limits = container.value["resources"]["limits"].members();
        let mut devices = limits.filter(|(name, amount)| !native(name) && !is_none(amount));
        devices.next().map(|(name, _)| name.to_owned())
    })
}

fn is_none(amount: &Value<'_>) -> bool {
    amount.is_null() || amount.as_str() == Some("0") || amount.as_i64() == Some(0)
}

/// A clause for after "because".
impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoom::AntiAffinity => f.write_str("required podAntiAffinity may leave no node for an extra pod"),
            NoRoom::Spread(key) => {
                let key = quoted(key);
                write!(f, "a DoNotSchedule spread on {key} may leave no node for an extra pod")
            }
            NoRoom::HostPort(port) => write!(f, "hostPort {port} is taken on a node until the old pod there is gone"),
            NoRoom::HostNetwork => {
                f.write_str("with hostNetwork the ports of a node are taken until the old pod there is gone")
            }
            NoRoom::Device(name) => {
                let name = quoted(name);
                write!(f, "the old pods may hold every {name} there is")
            }
            NoRoom::Claim(name) => {
                let name = quoted(name);
                write!(f, "the old pod's node may hold PersistentVolumeClaim {name} until that pod is gone")
            }
            NoRoom::Quota(name) => {
                let name = quoted(name);
                write!(f, "ResourceQuota {name} on pods, cpu or memory may have no room for an extra pod")
            }
            NoRoom::QuotaUnknown(reason) => {
                write!(f, "a ResourceQuota may have no room for an extra pod (quotas: {reason})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::document::Value;

    fn find(spec: &str, quotas: &Known<Vec<Quota>>) -> Option<NoRoom> {
        let text = format!(r#"{{"metadata":{{"labels":{{"app":"a"}}}},"spec":{spec}}}"#);
        let object = Value::parse(&text).unwrap();
        NoRoom::find(&Template { path: &[], value: &object }, quotas)
    }

    fn in_object(spec: &str) -> Option<NoRoom> {
        find(spec, &Known::Absent)
    }

    #[test]
    fn c20_required_anti_affinity_and_hard_spread() {
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let affinity = |when: &str, members: &str| {
            in_object(&format!(r#"{{"affinity":{{"podAntiAffinity":{{"{when}":[{{"topologyKey":"h"{members}}}]}}}}}}"#))
        };
        assert_eq!(affinity(required, OWN), Some(NoRoom::AntiAffinity));
        assert_eq!(affinity("preferredDuringSchedulingIgnoredDuringExecution", OWN), None);
        let spread = |when, members: &str| {
            in_object(&format!(
                r#"{{"topologySpreadConstraints":[{{"topologyKey":"zone","whenUnsatisfiable":"{when}"{members}}}]}}"#
            ))
        };
        assert_eq!(spread("DoNotSchedule", OWN), Some(NoRoom::Spread("zone".to_owned())));
        assert_eq!(spread("ScheduleAnyway", OWN), None);
        let by_revision = format!(r#"{OWN},"matchLabelKeys":["zone","pod-template-hash"]"#);
        for members in [
            "",
            r#","labelSelector":null"#,
            r#","labelSelector":{"matchLabels":{"app":"db"}}"#,
            r#","labelSelector":{"matchExpressions":[{"key":"app","operator":"NotIn","values":["a"]}]}"#,
            &by_revision,
        ] {
            assert_eq!(affinity(required, members), None, "keeps no old pod away: {members}");
            assert_eq!(spread("DoNotSchedule", members), None, "counts no old pod: {members}");
        }
        for members in [
            r#","labelSelector":{}"#,
            r#","labelSelector":{"matchExpressions":[{"key":"app","operator":"Surprise"}]}"#,
            &format!(r#"{OWN},"matchLabelKeys":["app"]"#),
        ] {
            assert_eq!(affinity(required, members), Some(NoRoom::AntiAffinity), "{members}");
        }
    }

    const OWN: &str = r#","labelSelector":{"matchLabels":{"app":"a"}}"#;

    #[test]
    fn c20_devices_are_extended_resources_and_more_than_none() {
        let limits = |limits: &str| {
            in_object(&format!(r#"{{"containers":[{{"name":"c"}},{{"name":"d","resources":{{"limits":{limits}}}}}]}}"#))
        };
        let gpu = Some(NoRoom::Device("nvidia.com/gpu".to_owned()));
        assert_eq!(limits(r#"{"cpu":"1","nvidia.com/gpu":1}"#), gpu);
        assert_eq!(limits(r#"{"nvidia.com/gpu":"1"}"#), gpu);
        for none in [
            r#"{"nvidia.com/gpu":0}"#,
            r#"{"nvidia.com/gpu":"0"}"#,
            r#"{"nvidia.com/gpu":null}"#,
            r#"{"cpu":"4","memory":"1Gi","hugepages-2Mi":"4Mi","ephemeral-storage":"1Gi"}"#,
            r#"{"kubernetes.io/batch-cpu":"1","node.kubernetes.io/x":1}"#,
            "[1]",
        ] {
            assert_eq!(limits(none), None, "{none}");
        }
        let init = r#"{"initContainers":[{"name":"i","resources":{"limits":{"amd.com/gpu":2}}}]}"#;
        assert_eq!(in_object(init), Some(NoRoom::Device("amd.com/gpu".to_owned())), "the pod's is the greatest of all");
    }

    #[test]
    fn c08_host_ports_and_host_network() {
        let ports =
            r#"{"containers":[{"name":"c","ports":[{"containerPort":80},{"containerPort":9,"hostPort":9100}]}]}"#;
        assert_eq!(in_object(ports), Some(NoRoom::HostPort(9100)));
        let sidecar = r#"{"initContainers":[{"name":"s","restartPolicy":"Always","ports":[{"hostPort":1}]}]}"#;
        assert_eq!(in_object(sidecar), Some(NoRoom::HostPort(1)));
        assert_eq!(in_object(r#"{"initContainers":[{"name":"i","ports":[{"hostPort":1}]}]}"#), None);
        assert_eq!(in_object(r#"{"containers":[{"name":"c","ports":[{"hostPort":0}]}]}"#), None);
        assert_eq!(in_object(r#"{"hostNetwork":true}"#), Some(NoRoom::HostNetwork));
        assert_eq!(in_object(r#"{"hostNetwork":false}"#), None);
    }

    #[test]
    fn c09_claims_but_not_ephemeral_volumes() {
        let claim =
            r#"{"volumes":[{"name":"a","emptyDir":{}},{"name":"d","persistentVolumeClaim":{"claimName":"data"}}]}"#;
        assert_eq!(in_object(claim), Some(NoRoom::Claim("data".to_owned())));
        assert_eq!(in_object(r#"{"volumes":[{"name":"e","ephemeral":{"volumeClaimTemplate":{}}}]}"#), None);
    }

    #[test]
    fn c20_a_quota_and_an_unknown_one_but_the_object_speaks_first() {
        let quota = |hard: &str| {
            Known::Known(vec![Quota { name: "q".to_owned(), hard: vec![hard.to_owned()], scopes: Vec::new() }])
        };
        assert_eq!(find("{}", &quota("pods")), Some(NoRoom::Quota("q".to_owned())));
        assert_eq!(find("{}", &quota("services")), None);
        let unknown = Known::Unknown(Reason::Forbidden);
        assert_eq!(find("{}", &unknown), Some(NoRoom::QuotaUnknown(Reason::Forbidden)));
        assert_eq!(find(r#"{"hostNetwork":true}"#, &unknown), Some(NoRoom::HostNetwork));
    }

    #[test]
    fn nonsense_is_no_reason() {
        let spec = r#"{"affinity":[],"topologySpreadConstraints":{},"containers":null,"volumes":[null,7,"x"],"hostNetwork":"yes"}"#;
        assert_eq!(in_object(spec), None);
    }
}

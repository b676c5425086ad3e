//! What a Service says of the pods that it sends to.

use super::document::Value;
use super::neighbours::{Labels, Port, labels};

/// Labels that controllers put on pods beside those of the template: a Service for one pod of a StatefulSet selects by
/// them, and Argo Rollouts writes one into its Services.
const ADDED_TO_PODS: &[&str] = &[
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/job-name",
    "controller-revision-hash",
    "controller-uid",
    "job-name",
    "pod-template-generation",
    "pod-template-hash",
    "rollouts-pod-template-hash",
    "statefulset.kubernetes.io/pod-name",
];

/// One of `spec.ports` of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    /// Its index in the list.
    pub index: usize,
    /// `targetPort`; absent means `port`.
    pub target: Target,
    /// `protocol`; absent means TCP.
    pub protocol: String,
}

/// Where a Service's port leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To the port that the pod's containers give this name.
    Name(String),
    /// To this number, declared or not.
    Number(i64),
}

impl ServicePort {
    /// Whether a container declares it. A name must have the protocol too (`FindPort` in `pkg/api/v1/pod/util.go`); a
    /// number is reached whatever the declaration says, so its protocol is not compared.
    pub fn is_declared_by(&self, port: &Port) -> bool {
        match &self.target {
            Target::Name(name) => port.name.as_ref() == Some(name) && port.protocol == self.protocol,
            Target::Number(number) => port.number == *number,
        }
    }
}

/// The selector of a Service's spec; empty where it selects nothing, as an `ExternalName` does whatever it says.
pub fn selector(spec: &Value<'_>) -> Labels {
    if spec["type"].as_str() == Some("ExternalName") { Labels::new() } else { labels(&spec["selector"]) }
}

/// The ports of a Service's spec; those of a wrong type are left out.
pub fn ports(spec: &Value<'_>) -> Vec<ServicePort> {
    let read = |(index, port): (usize, &Value<'_>)| {
        let target = match &port["targetPort"] {
            // What the API server fills in for 0 and for nothing.
            Value::Null => Target::Number(port["port"].as_i64()?),
            Value::String(name) => Target::Name(name.clone().into_owned()),
            number => match number.as_i64()? {
                0 => Target::Number(port["port"].as_i64()?),
                number => Target::Number(number),
            },
        };
        Some(ServicePort { index, target, protocol: port["protocol"].as_str().unwrap_or("TCP").to_owned() })
    };
    spec["ports"].items().iter().enumerate().filter_map(read).collect()
}

/// Whether pods made from a template with these labels may be selected. `None` where the template cannot tell: the
/// selector is empty, or names nothing but labels that controllers add.
pub fn may_select(selector: &Labels, labels: &Labels) -> Option<bool> {
    let mut told = selector.iter().filter(|(key, _)| !ADDED_TO_PODS.contains(&key.as_str())).peekable();
    told.peek()?;
    Some(told.all(|(key, value)| labels.get(key) == Some(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(labels: &[(&str, &str)]) -> Labels {
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_target_is_a_name_or_a_number_and_absent_means_the_port() {
        let spec = Value::parse(
            r#"{"ports":[{"port":80,"targetPort":"http"},{"port":81,"targetPort":8081},{"port":53,"protocol":"UDP"},
                {"port":82,"targetPort":0},{"targetPort":[]},7,null]}"#,
        )
        .unwrap();
        let read: Vec<_> = ports(&spec).into_iter().map(|port| (port.index, port.target, port.protocol)).collect();
        assert_eq!(
            read,
            [
                (0, Target::Name("http".to_owned()), "TCP".to_owned()),
                (1, Target::Number(8081), "TCP".to_owned()),
                (2, Target::Number(53), "UDP".to_owned()),
                (3, Target::Number(82), "TCP".to_owned()),
            ]
        );
    }

    #[test]
    fn a_name_needs_the_protocol_and_a_number_does_not() {
        let port = |name: Option<&str>| Port { name: name.map(str::to_owned), number: 53, protocol: "TCP".to_owned() };
        let udp = |target| ServicePort { index: 0, target, protocol: "UDP".to_owned() };
        assert!(!udp(Target::Name("dns".to_owned())).is_declared_by(&port(Some("dns"))));
        assert!(udp(Target::Number(53)).is_declared_by(&port(None)));
    }

    #[test]
    fn labels_that_controllers_add_are_left_out() {
        let web = map(&[("app", "web")]);
        let one_pod = map(&[("app", "web"), ("statefulset.kubernetes.io/pod-name", "web-0")]);
        assert_eq!(may_select(&one_pod, &web), Some(true));
        assert_eq!(may_select(&map(&[("app", "api")]), &web), Some(false));
        assert_eq!(may_select(&map(&[("pod-template-hash", "5d4")]), &web), None);
        assert_eq!(may_select(&Labels::new(), &web), None);
        let external = Value::parse(r#"{"type":"ExternalName","selector":{"app":"web"}}"#).unwrap();
        assert_eq!(selector(&external), Labels::new());
    }
}

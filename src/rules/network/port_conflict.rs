//! Two containers of a pod want the same port.
//!
//! ## What it does
//!
//! The containers of a pod share one network namespace. Reports
//!
//! * a port and protocol that two containers declare: only one of them can listen on it;
//! * a `hostPort` and protocol that lead to two different ports, at the same host IP or where one of them is for all
//!   (empty, `0.0.0.0`, `::`): only one of them is reached.
//!
//! Regular containers and native sidecars are compared. Plain init containers are not, for they end before the others
//! start; ephemeral ones are not. The same port declared twice within one container, with two names for instance, opens
//! nothing twice and is harmless. A port that containers use without declaring it is not seen, and two that
//! bind one port at different addresses of the pod look like a conflict: make an exception for them.
//!
//! ## Why it matters
//!
//! The container that comes second fails with "address already in use" and crashes in a loop, often only sometimes:
//! which one is second is a matter of milliseconds.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! containers:
//! - name: app
//!   ports: [{containerPort: 8080}]
//! - name: proxy
//!   ports: [{containerPort: 8080}]
//! ```
//!
//! Good:
//!
//! ```yaml
//! containers:
//! - name: app
//!   ports: [{containerPort: 8080}]
//! - name: proxy
//!   ports: [{containerPort: 8443}]
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! None are asked for.

use std::collections::BTreeSet;

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::{Container, Template};
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// The rule.
pub struct PortConflict;

/// [`PortConflict`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

/// Most ports of a pod that are compared with one another: no real pod has as many.
const MOST_COMPARED: usize = 500;

/// Largest port number.
const MAX_PORT: i64 = 65_535;

/// A port that a container declares.
struct Declared<'a> {
    container: Container<'a>,
    /// Index in `ports`.
    index: usize,
    number: i64,
    protocol: &'a str,
    host_port: Option<i64>,
    host_ip: &'a str,
}

impl Rule for PortConflict {
    const META: Meta = Meta {
        id: "port-conflict",
        category: Category::Network,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("port_conflict.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        // With hostNetwork a port of the host is the container's own: there is nothing to lead anywhere.
        let host_network = template.spec()["hostNetwork"].as_bool() == Some(true);
        let declared = declared(&template);
        let taken: BTreeSet<i64> = declared.iter().map(|port| port.number).collect();
        let taken_of_host: BTreeSet<i64> = declared.iter().filter_map(|port| port.host_port).collect();
        for (index, port) in declared.iter().enumerate() {
            let before = &declared[..index];
            let same_port = before.iter().find(|other| {
                // On the host's network a declared address is the one that the process listens on.
                let apart = host_network && !other.shares_host_ip(port);
                other.is_same_port(port) && !other.shares_container(port) && !apart
            });
            let message = match same_port {
                Some(other) => shared_port(port, other),
                None => match before.iter().find(|other| !host_network && other.takes_host_port_of(port)) {
                    Some(other) => shared_host_port(port, other),
                    None => continue,
                },
            };
            let name = port.container.name();
            // Counted per container, so that one conflict more is worse than those before.
            let is_earlier =
                |finding: &&Finding| finding.rule == Self::META.id && finding.container.as_deref() == Some(name);
            let earlier = findings.iter().filter(is_earlier).count();
            let (member, value, taken, hint) = if same_port.is_some() {
                ("containerPort", port.number, &taken, "or any other free one; the container must listen there")
            } else {
                ("hostPort", port.host_port.unwrap_or_default(), &taken_of_host, "or any other free one")
            };
            let finding = Finding::new(Self::META.id, port.pointer(member), message).container(name);
            let finding = finding.measure(i64::try_from(earlier).unwrap_or(i64::MAX).saturating_add(1));
            findings.push(match (value..=MAX_PORT).find(|free| !taken.contains(free)) {
                Some(free) => finding.mend(format!("{member}: {free}  # {hint}")),
                None => finding,
            });
        }
    }
}

fn shared_port(port: &Declared<'_>, other: &Declared<'_>) -> String {
    format!(
        "container {} declares port {}/{}, as container {} does: they share one network namespace, so only one of them \
         can listen on it",
        quoted(port.container.name()),
        port.number,
        port.protocol,
        quoted(other.container.name())
    )
}

fn shared_host_port(port: &Declared<'_>, other: &Declared<'_>) -> String {
    let host_port = port.host_port.unwrap_or_default();
    format!(
        "hostPort {host_port}/{} leads to port {} of container {} and to port {} of container {}: only one of them is \
         reached",
        port.protocol,
        other.number,
        quoted(other.container.name()),
        port.number,
        quoted(port.container.name())
    )
}

/// The ports of the containers that run together, in the document's order.
fn declared<'a>(template: &Template<'a>) -> Vec<Declared<'a>> {
    let read = |container: Container<'a>, (index, port): (usize, &'a Value<'a>)| {
        Some(Declared {
            container,
            index,
            number: port["containerPort"].as_i64()?,
            protocol: port["protocol"].as_str().unwrap_or("TCP"),
            host_port: port["hostPort"].as_i64().filter(|port| *port > 0),
            host_ip: port["hostIP"].as_str().unwrap_or_default(),
        })
    };
    template
        .running()
        .flat_map(|container| {
            let ports = container.value["ports"].items().iter().enumerate();
            ports.filter_map(move |port| read(container, port))
        })
        .take(MOST_COMPARED)
        .collect()
}

impl Declared<'_> {
    fn shares_container(&self, other: &Declared<'_>) -> bool {
        self.container.class == other.container.class && self.container.index == other.container.index
    }

    fn is_same_port(&self, other: &Declared<'_>) -> bool {
        (self.number, self.protocol) == (other.number, other.protocol)
    }

    /// Whether both claim a port of the host for different ports of the pod; two ways to the same port are harmless.
    fn takes_host_port_of(&self, other: &Declared<'_>) -> bool {
        self.host_port.is_some()
            && (self.host_port, self.protocol) == (other.host_port, other.protocol)
            && self.shares_host_ip(other)
            && self.number != other.number
    }

    /// Whether some address of the host is meant by both.
    fn shares_host_ip(&self, other: &Declared<'_>) -> bool {
        let every = |ip: &str| matches!(ip, "" | "0.0.0.0" | "::");
        self.host_ip == other.host_ip || every(self.host_ip) || every(other.host_ip)
    }

    fn pointer(&self, member: &str) -> String {
        self.container.pointer(&["ports", &self.index.to_string(), member])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::engine::context::Declined;
    use crate::engine::facts::{Facts, Reason};
    use crate::engine::kind::lookup;
    use crate::engine::request::{Endpoint, Operation};
    use crate::policy::Policy;

    fn check(containers: Json) -> Vec<Finding> {
        let text = json!({"spec": {"containers": containers}}).to_string();
        let object = Value::parse(&text).unwrap();
        let facts = Facts::unknown(Reason::NotAsked);
        let policy = Policy::of(&[]).unwrap();
        let declined = Declined::default();
        let kind = lookup("", "Pod").unwrap();
        let context = Context::new(Endpoint::Validate, Operation::Create, kind, &object, &facts, &policy, &declined);
        // What another rule found in the same container is not counted.
        let mut findings = vec![Finding::new("other", "/spec/containers/1", "").container("b")];
        PortConflict::check(&context, &Params {}, &mut findings);
        findings.split_off(1)
    }

    #[test]
    fn c15_one_conflict_more_measures_more() {
        let found = check(json!([
            {"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 443}]},
            {"name": "b", "ports": [{"containerPort": 80}, {"containerPort": 443}]},
            {"name": "c", "ports": [{"containerPort": 443}]},
        ]));
        let seen: Vec<_> = found.iter().map(|finding| (finding.container.as_deref(), finding.measure)).collect();
        assert_eq!(seen, [(Some("b"), Some(1)), (Some("b"), Some(2)), (Some("c"), Some(1))]);
    }

    #[test]
    fn the_mend_is_a_port_that_nobody_declares() {
        let found = check(json!([
            {"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81}]},
            {"name": "b", "ports": [{"containerPort": 80}]},
        ]));
        assert!(found[0].mend.as_ref().unwrap().starts_with("containerPort: 82 "), "{found:?}");
        let last = json!({"ports": [{"containerPort": 65535}]});
        assert_eq!(check(json!([last, last]))[0].mend, None);
    }
}

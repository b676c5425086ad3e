//! A Service sends to a port that no selected pod declares.
//!
//! ## What it does
//!
//! Compares the `targetPort`s of a Service with the ports that regular containers and native sidecars of the selected
//! workloads declare, whichever of the two objects is applied second. Workloads of which one declares the port are
//! enough.
//!
//! * A name that none of them gives to a port of the Service's protocol is reported: it leads nowhere.
//! * A number is legal without a declaration. It is reported on the Service only where every selected workload declares
//!   ports, and not one port of the Service is among them.
//!
//! It never denies: Service and workload change one after the other.
//!
//! ## Why it matters
//!
//! A named port that a pod does not have is left out of its endpoints: connections are refused though every pod is
//! ready. After a rename this sets in with the first new pod.
//!
//! ## Example
//!
//! Bad, beside a Deployment whose container declares `{name: http, containerPort: 8080}`:
//!
//! ```yaml
//! apiVersion: v1
//! kind: Service
//! metadata: {name: web}
//! spec:
//!   selector: {app: web}
//!   ports: [{port: 80, targetPort: web}]
//! ```
//!
//! Good:
//!
//! ```yaml
//! apiVersion: v1
//! kind: Service
//! metadata: {name: web}
//! spec:
//!   selector: {app: web}
//!   ports: [{port: 80, targetPort: http}]
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! Where the namespace's workloads or, for a workload, its Services are not known nothing is found.

use std::collections::BTreeSet;

use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::neighbours::{Labels, Port, Workload, labels, ports};
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::service::{self, ServicePort, Target, may_select};
use crate::engine::text::{listed, printable, quoted};

/// The rule.
pub struct ServicePortUnknown;

/// [`ServicePortUnknown`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

/// Most ports and workloads that a message names.
const NAMED: usize = 5;

impl Rule for ServicePortUnknown {
    const META: Meta = Meta {
        id: "service-port-unknown",
        category: Category::Network,
        since: "0.1",
        kinds: &["DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "Rollout", "Service", "StatefulSet"],
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("service_port_unknown.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        if context.kind.template.is_some() {
            let judged = context.template.is_some();
            return Needs { services: judged, workloads: judged, ..Needs::default() };
        }
        let spec = context.object.get("spec");
        let selects = may_select(&service::selector(spec), &Labels::new()).is_some();
        Needs { workloads: selects && !service::ports(spec).is_empty(), ..Needs::default() }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(workloads) = context.facts.workloads.list() else { return };
        if context.kind.template.is_some() {
            on_workload(context, workloads, findings);
        } else {
            on_service(context, workloads, findings);
        }
    }
}

fn on_service(context: &Context<'_>, workloads: &[Workload], findings: &mut Vec<Finding>) {
    let spec = context.object.get("spec");
    let (selector, targets) = (service::selector(spec), service::ports(spec));
    let mut selected: Vec<&Workload> =
        workloads.iter().filter(|workload| may_select(&selector, &workload.labels) == Some(true)).collect();
    if selected.is_empty() {
        return;
    }
    selected.sort_by_key(|workload| (&workload.kind, &workload.name));
    let declared = |target: &ServicePort| {
        selected.iter().flat_map(|workload| &workload.ports).any(|port| target.is_declared_by(port))
    };
    let all_declare = selected.iter().all(|workload| !workload.ports.is_empty());
    let judge_numbers = all_declare && !targets.iter().any(declared);
    let who = listed(selected.iter().map(|workload| format!("{} {}", workload.kind, quoted(&workload.name))), NAMED);
    let theirs: Vec<&Port> = selected.iter().flat_map(|workload| &workload.ports).collect();
    let has = declares(&theirs);
    for target in targets.iter().filter(|target| !declared(target)) {
        let message = match &target.target {
            Target::Name(name) => format!(
                "targetPort {}/{} is declared by no container of {who} ({has}): this port of the Service has no \
                 endpoints",
                quoted(name),
                printable(&target.protocol)
            ),
            Target::Number(number) if judge_numbers => format!(
                "targetPort {number} is no port of {who} ({has}): unless something listens there undeclared, \
                 connections are refused"
            ),
            Target::Number(_) => continue,
        };
        let pointer = format!("/spec/ports/{}/targetPort", target.index);
        let finding = Finding::new(ServicePortUnknown::META.id, pointer, message).at_most(Action::Warn);
        // With several ports of the Service the only one of the pods is likely meant by another of them.
        findings.push(match only_port(&theirs, &target.protocol).filter(|_| targets.len() == 1) {
            Some(Port { name: Some(name), .. }) => finding.mend(format!("targetPort: {}", quoted(name))),
            Some(port) => finding.mend(format!("targetPort: {}", port.number)),
            None => finding,
        });
    }
}

/// Only names: what a number may reach nobody can tell from here.
fn on_workload(context: &Context<'_>, workloads: &[Workload], findings: &mut Vec<Finding>) {
    let (Some(template), Some(services)) = (context.template, context.facts.services.list()) else { return };
    let (labels, declared_here) = (labels(&template.metadata()["labels"]), ports(&template));
    let own: Vec<&Port> = declared_here.iter().collect();
    let name = context.object["metadata"]["name"].as_str().unwrap_or_default();
    let judged = (context.kind.group, context.kind.kind, name);
    let mut selecting: Vec<_> =
        services.iter().filter(|service| may_select(&service.selector, &labels) == Some(true)).collect();
    selecting.sort_by(|a, b| a.name.cmp(&b.name));
    for service in selecting {
        let others = workloads.iter().filter(|other| {
            (other.group.as_str(), other.kind.as_str(), other.name.as_str()) != judged
                && may_select(&service.selector, &other.labels) == Some(true)
        });
        let declared: Vec<&Port> = own.iter().copied().chain(others.flat_map(|other| &other.ports)).collect();
        for target in &service.ports {
            let Target::Name(wanted) = &target.target else { continue };
            if declared.iter().any(|port| target.is_declared_by(port)) {
                continue;
            }
            let message = format!(
                "Service {} sends to port {}/{}, which no container declares ({}): that port of the Service has no \
                 endpoints",
                quoted(&service.name),
                quoted(wanted),
                printable(&target.protocol),
                declares(&own)
            );
            let pointer = template.pointer(&["spec", "containers"]);
            let finding = Finding::new(ServicePortUnknown::META.id, pointer, message).at_most(Action::Warn);
            findings.push(match only_port(&own, &target.protocol) {
                Some(port) => {
                    finding.mend(format!("ports:\n- name: {}\n  containerPort: {}", quoted(wanted), port.number))
                }
                None => finding,
            });
        }
    }
}

/// `they declare "http" 8080/TCP`.
fn declares(ports: &[&Port]) -> String {
    let ports: BTreeSet<String> = ports
        .iter()
        .map(|port| {
            let name = port.name.as_ref().map(|name| format!("{} ", quoted(name))).unwrap_or_default();
            format!("{name}{}/{}", port.number, printable(&port.protocol))
        })
        .collect();
    if ports.is_empty() { "they declare no port".to_owned() } else { format!("they declare {}", listed(ports, NAMED)) }
}

/// The port that must be meant where there is but one of this protocol.
fn only_port<'p>(ports: &[&'p Port], protocol: &str) -> Option<&'p Port> {
    let mut candidates = ports.iter().filter(|port| port.protocol == protocol);
    let first = candidates.next()?;
    candidates.all(|port| port == first).then_some(first)
}

//! A probe or hook asks a port name that its container does not declare.
//!
//! ## What it does
//!
//! Finds probes and lifecycle hooks of regular containers and native sidecars whose `port` is a name that none of the
//! same container's `ports` has. The API server takes any well-formed name; the kubelet looks it up in this container
//! alone, not in its neighbours. Numbers are not judged: a container may listen without declaring it.
//!
//! ## Why it matters
//!
//! The kubelet cannot ask. A readiness or startup probe then never succeeds, the new pods never become ready and the
//! rollout stalls. A liveness probe never fails, and nothing is ever restarted. A hook fails.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! ports: [{name: http, containerPort: 8080}]
//! readinessProbe: {httpGet: {path: /readyz, port: web}}
//! ```
//!
//! Good:
//!
//! ```yaml
//! ports: [{name: web, containerPort: 8080}]
//! readinessProbe: {httpGet: {path: /readyz, port: web}}
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::probe::{Probe, Role, undeclared_port};
use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::Container;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::{listed, quoted};

/// Parameters of `probe-port-unknown`: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The hooks below `lifecycle`, and what becomes of a container whose hook fails.
const HOOKS: [(&str, &str); 2] = [
    ("postStart", "the hook fails, and the container is killed and begins again"),
    ("preStop", "the hook fails, and the container gets SIGTERM at once"),
];

/// The most port names that a message shows.
const MAX_SHOWN: usize = 4;

/// The rule.
pub struct ProbePortUnknown;

impl Rule for ProbePortUnknown {
    const META: Meta = Meta {
        id: "probe-port-unknown",
        category: Category::Probes,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("probe_port_unknown.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for container in template.running() {
            for probe in Role::ALL.into_iter().filter_map(|role| Probe::of(&container, role)) {
                let Some(port) = undeclared_port(&container, probe.action) else { continue };
                let consequence = match probe.role {
                    Role::Liveness => "the kubelet cannot ask it, and never restarts the container",
                    Role::Readiness => "the pod never becomes ready, and a rollout stops at it",
                    Role::Startup => "the container never counts as started, and its pod never becomes ready",
                };
                let below = [probe.role.member(), probe.handler, "port"];
                findings.push(finding(&container, probe.role.member(), &below, port, consequence));
            }
            for (hook, consequence) in HOOKS {
                let action = container.value.get("lifecycle").get(hook).get("httpGet");
                let Some(port) = undeclared_port(&container, action) else { continue };
                let below = ["lifecycle", hook, "httpGet", "port"];
                findings.push(finding(&container, &format!("{hook} hook"), &below, port, consequence));
            }
        }
    }
}

fn finding(container: &Container<'_>, asker: &str, below: &[&str], port: &str, consequence: &str) -> Finding {
    let declared: Vec<&str> =
        container.value["ports"].items().iter().filter_map(|declared| declared["name"].as_str()).collect();
    let names = declared.iter().map(|name| quoted(name));
    let has = if declared.is_empty() { "no port name".to_owned() } else { listed(names, MAX_SHOWN) };
    let message = format!(
        "container {}: its {asker} asks port {}, but it declares {has}: {consequence}",
        quoted(container.name()),
        quoted(port)
    );
    let mend = match declared.as_slice() {
        [only] => format!("port: {}", quoted(only)),
        _ => format!("ports:\n- name: {}\n  containerPort: 8080  # an example", quoted(port)),
    };
    Finding::new(ProbePortUnknown::META.id, container.pointer(below), message).container(container.name()).mend(mend)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, container, messages, passes_over_nonsense};

    #[test]
    fn d07_each_probe_says_what_becomes_of_it() {
        let http = || json!({"httpGet": {"port": "web"}});
        let found = container::<ProbePortUnknown>(json!({"ports": [{"name": "http", "containerPort": 80}],
            "livenessProbe": http(), "readinessProbe": {"tcpSocket": {"port": "web"}}, "startupProbe": http()}));
        assert_eq!(
            messages(&found),
            [
                "container \"app\": its livenessProbe asks port \"web\", but it declares \"http\": the kubelet cannot ask \
                 it, and never restarts the container",
                "container \"app\": its readinessProbe asks port \"web\", but it declares \"http\": the pod never becomes \
                 ready, and a rollout stops at it",
                "container \"app\": its startupProbe asks port \"web\", but it declares \"http\": the container never \
                 counts as started, and its pod never becomes ready",
            ]
        );
        assert_eq!(found[1].pointer, "/spec/template/spec/containers/0/readinessProbe/tcpSocket/port");
        assert_eq!(found[1].mend.as_deref(), Some("port: \"http\""));
    }

    #[test]
    fn d07_hooks_too() {
        let lifecycle = json!({"preStop": {"httpGet": {"port": "admin"}}, "postStart": {"httpGet": {"port": "admin"}}});
        let found = container::<ProbePortUnknown>(json!({"lifecycle": lifecycle}));
        assert_eq!(
            messages(&found),
            [
                "container \"app\": its postStart hook asks port \"admin\", but it declares no port name: the hook fails, \
                 and the container is killed and begins again",
                "container \"app\": its preStop hook asks port \"admin\", but it declares no port name: the hook fails, \
                 and the container gets SIGTERM at once",
            ]
        );
        assert_eq!(found[1].pointer, "/spec/template/spec/containers/0/lifecycle/preStop/httpGet/port");
        let mend = "ports:\n- name: \"admin\"\n  containerPort: 8080  # an example";
        assert_eq!(found[1].mend.as_deref(), Some(mend));
    }

    #[test]
    fn d07_a_neighbours_port_does_not_count_and_numbers_are_not_judged() {
        let pod = |spec| Judge { kind: "CronJob", ..Judge::default() }.pod::<ProbePortUnknown>(spec);
        let other = json!({"name": "b", "ports": [{"name": "web", "containerPort": 80}]});
        let asks = |port: serde_json::Value| json!({"name": "a", "readinessProbe": {"httpGet": {"port": port}}});
        assert_eq!(pod(json!({"containers": [asks(json!("web")), other]})).len(), 1);
        assert_eq!(pod(json!({"containers": [asks(json!(8080))]})), []);
        assert_eq!(pod(json!({"containers": [asks(json!("8080"))]})), []);
        // Plain init containers may have no probes: that is the API server's to say (D05).
        assert_eq!(pod(json!({"containers": [{"name": "c"}], "initContainers": [asks(json!("web"))]})), []);
    }

    #[test]
    fn many_names_are_cut_short() {
        let ports: Vec<_> =
            (1..=6).map(|number| json!({"name": format!("p{number}"), "containerPort": number})).collect();
        let found =
            container::<ProbePortUnknown>(json!({"ports": ports, "livenessProbe": {"httpGet": {"port": "web"}}}));
        assert!(found[0].message.contains("but it declares \"p1\", \"p2\", \"p3\", \"p4\" and 2 more: the kubelet"));
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<ProbePortUnknown>(&[
            "startupProbe",
            "readinessProbe",
            "livenessProbe",
            "lifecycle",
            "ports",
        ]);
    }
}

//! A lifecycle hook that the API takes and no kubelet runs.
//!
//! ## What it does
//!
//! Finds `tcpSocket` as the handler of a `preStop` or `postStart` hook, in regular containers and native sidecars.
//!
//! ## Why it matters
//!
//! The field is there for compatibility only: nothing validates it, and the hook fails whenever it is run. A container
//! whose `postStart` hook fails is killed, and begins again, for ever; one whose `preStop` hook fails gets SIGTERM at
//! once.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! lifecycle: {preStop: {tcpSocket: {port: 8080}}}
//! ```
//!
//! Good:
//!
//! ```yaml
//! lifecycle: {preStop: {sleep: {seconds: 5}}}
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

use super::missing_pre_stop::MissingPreStop;
use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `lifecycle-tcp-socket`: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The rule.
pub struct LifecycleTcpSocket;

impl Rule for LifecycleTcpSocket {
    const META: Meta = Meta {
        id: "lifecycle-tcp-socket",
        category: Category::Termination,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("lifecycle_tcp_socket.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        // Plain init containers may have no hooks: the API server refuses them (TRAPS D05).
        for container in template.running() {
            for hook in ["postStart", "preStop"] {
                let action = &container.value["lifecycle"][hook]["tcpSocket"];
                if action.as_object().is_none() {
                    continue;
                }
                let (consequence, mend) = if hook == "postStart" {
                    let probe = "startupProbe:  # waits for a port; a postStart hook cannot\n  tcpSocket: {port: 8080}";
                    ("the container is killed and begins again", probe.to_owned())
                } else {
                    let seconds = context.policy.params::<MissingPreStop>().sleep_seconds;
                    let sleep = format!("lifecycle: {{preStop: {{sleep: {{seconds: {seconds}}}}}}}");
                    ("the container gets SIGTERM at once", sleep)
                };
                let message = format!(
                    "container {}: tcpSocket is not supported as a lifecycle handler: its {hook} hook fails each time, and \
                     {consequence}",
                    quoted(container.name())
                );
                let pointer = container.pointer(&["lifecycle", hook, "tcpSocket"]);
                findings.push(Finding::new(Self::META.id, pointer, message).container(container.name()).mend(mend));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, container, messages, passes_over_nonsense};

    #[test]
    fn e11_not_supported_as_a_lifecycle_handler() {
        let found = container::<LifecycleTcpSocket>(json!({"lifecycle": {"preStop": {"tcpSocket": {"port": 80}},
            "postStart": {"tcpSocket": {"port": 80}}}}));
        assert_eq!(
            messages(&found),
            [
                "container \"app\": tcpSocket is not supported as a lifecycle handler: its postStart hook fails each time, \
                 and the container is killed and begins again",
                "container \"app\": tcpSocket is not supported as a lifecycle handler: its preStop hook fails each time, \
                 and the container gets SIGTERM at once",
            ]
        );
        assert_eq!(found[1].pointer, "/spec/template/spec/containers/0/lifecycle/preStop/tcpSocket");
        assert_eq!(found[1].mend.as_deref(), Some("lifecycle: {preStop: {sleep: {seconds: 5}}}"));
        assert!(found[0].mend.as_deref().unwrap().starts_with("startupProbe:"));
        assert_eq!((found[1].cap, found[1].container.as_deref()), (None, Some("app")));
    }

    #[test]
    fn e11_probes_and_other_handlers_are_fine() {
        let lifecycle = json!({"preStop": {"tcpSocket": null, "httpGet": {"port": 80}}, "postStart": null});
        let probe = json!({"tcpSocket": {"port": 80}});
        assert_eq!(container::<LifecycleTcpSocket>(json!({"lifecycle": lifecycle, "livenessProbe": probe})), []);
    }

    #[test]
    fn e11_sidecars_and_jobs_are_judged_plain_init_containers_are_not() {
        let lifecycle = json!({"postStart": {"tcpSocket": {"port": 80}}});
        let init = json!([{"name": "i", "lifecycle": lifecycle},
            {"name": "s", "restartPolicy": "Always", "lifecycle": lifecycle}]);
        let spec = json!({"containers": [{"name": "a"}], "initContainers": init});
        let found = Judge { kind: "Job", ..Judge::default() }.pod::<LifecycleTcpSocket>(spec);
        assert_eq!(found.iter().filter_map(|finding| finding.container.as_deref()).collect::<Vec<_>>(), ["s"]);
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<LifecycleTcpSocket>(&["lifecycle"]);
    }
}

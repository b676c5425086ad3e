//! A probe runs a command that always succeeds.
//!
//! ## What it does
//!
//! Finds probes of regular containers and native sidecars whose `exec` is `true`, or a shell that does nothing but
//! `true`, `:` or `exit 0`.
//!
//! ## Why it matters
//!
//! Such a probe satisfies a checklist and nobody else. As a readiness probe it calls a pod ready before it answers, and
//! a rollout goes on over pods that do not work; as a liveness or startup probe it never acts. Each try starts a process
//! in the container all the same.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! readinessProbe: {exec: {command: [sh, -c, "exit 0"]}}
//! ```
//!
//! Good:
//!
//! ```yaml
//! readinessProbe: {httpGet: {path: /readyz, port: 8080}}
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

use super::probe::{Probe, Role, example_handler};
use crate::engine::context::Context;
use crate::engine::exec::Simple;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `probe-does-nothing`: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The rule.
pub struct ProbeDoesNothing;

impl Rule for ProbeDoesNothing {
    const META: Meta = Meta {
        id: "probe-does-nothing",
        category: Category::Probes,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("probe_does_nothing.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for container in template.running() {
            for probe in Role::ALL.into_iter().filter_map(|role| Probe::of(&container, role)) {
                let command = Simple::of(probe.action).filter(|_| probe.handler == "exec");
                let Some(command) = command.filter(Simple::does_nothing) else { continue };
                let (consequence, path) = match probe.role {
                    Role::Liveness => ("it never restarts anything", "/livez"),
                    Role::Readiness => ("the pod counts as ready before it answers", "/readyz"),
                    Role::Startup => ("it waits for nothing", "/livez"),
                };
                let member = probe.role.member();
                let message = format!(
                    "container {}: its {member} runs {} every {} s, which always succeeds: {consequence}",
                    quoted(container.name()),
                    quoted(&command.words.join(" ")),
                    probe.tolerance.period
                );
                let pointer = container.pointer(&[member, "exec", "command"]);
                findings.push(
                    Finding::new(Self::META.id, pointer, message)
                        .container(container.name())
                        .mend(format!("{member}:\n  {}", example_handler(&container, path))),
                );
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
    fn commands_that_always_succeed() {
        let exec = |command: serde_json::Value| json!({"exec": {"command": command}, "periodSeconds": 5});
        let found = container::<ProbeDoesNothing>(json!({"ports": [{"containerPort": 8080}],
            "readinessProbe": exec(json!(["/bin/true"])), "livenessProbe": exec(json!(["sh", "-c", ":"])),
            "startupProbe": exec(json!(["/bin/bash", "-c", "exit 0"]))}));
        assert_eq!(
            messages(&found),
            [
                "container \"app\": its livenessProbe runs \":\" every 5 s, which always succeeds: it never restarts \
                 anything",
                "container \"app\": its readinessProbe runs \"/bin/true\" every 5 s, which always succeeds: the pod counts \
                 as ready before it answers",
                "container \"app\": its startupProbe runs \"exit 0\" every 5 s, which always succeeds: it waits for nothing",
            ]
        );
        assert_eq!(found[1].pointer, "/spec/template/spec/containers/0/readinessProbe/exec/command");
        let mend = "readinessProbe:\n  httpGet: {path: /readyz, port: 8080}  # or tcpSocket, grpc, exec";
        assert_eq!(found[1].mend.as_deref(), Some(mend));
    }

    #[test]
    fn commands_that_may_fail() {
        for command in
            [json!(["cat", "/tmp/ready"]), json!(["sh", "-c", "pgrep app || exit 1"]), json!([":"]), json!([])]
        {
            assert_eq!(container::<ProbeDoesNothing>(json!({"livenessProbe": {"exec": {"command": command}}})), []);
        }
        let http = json!({"httpGet": {"port": 80, "command": ["true"]}});
        assert_eq!(container::<ProbeDoesNothing>(json!({"livenessProbe": http})), []);
    }

    #[test]
    fn d05_sidecars_are_judged_plain_init_containers_are_not() {
        let init = json!([{"name": "i", "startupProbe": {"exec": {"command": ["true"]}}},
            {"name": "s", "restartPolicy": "Always", "startupProbe": {"exec": {"command": ["true"]}}}]);
        let job = Judge { kind: "Job", ..Judge::default() };
        let found = job.pod::<ProbeDoesNothing>(json!({"containers": [{"name": "a"}], "initContainers": init}));
        assert_eq!(found.iter().filter_map(|finding| finding.container.as_deref()).collect::<Vec<_>>(), ["s"]);
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<ProbeDoesNothing>(&["startupProbe", "readinessProbe", "livenessProbe"]);
    }
}

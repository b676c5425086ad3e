//! The preStop hook sleeps by running a program that the image may lack.
//!
//! ## What it does
//!
//! Finds preStop hooks of regular containers that `exec` a `sleep`, or a shell that does nothing but sleep, where the
//! `sleep` action would do. Hooks that do more are not judged: the action cannot replace them. Native sidecars are left
//! to `sidecar-pre-stop`.
//!
//! ## Why it matters
//!
//! Distroless and scratch images have neither a shell nor `sleep`. The hook fails, which shows in an event that nobody
//! reads, and SIGTERM comes at once: every rollout cuts off requests that the sleep was to wait for. The `sleep` action
//! is the kubelet's own and works in any image, on Windows too.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! lifecycle: {preStop: {exec: {command: [/bin/sh, -c, "sleep 10"]}}}
//! ```
//!
//! Good:
//!
//! ```yaml
//! lifecycle: {preStop: {sleep: {seconds: 10}}}
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! Nothing is found where the server's version is unknown or older than 1.30, and where the kind's CRD drops the `sleep`
//! action or is unknown: there is nothing better to offer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::exec::Simple;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::LONG_RUNNING;
use crate::engine::plan::native_sleep;
use crate::engine::pod::Container;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `pre-stop-exec-sleep`: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The rule.
pub struct PreStopExecSleep;

impl Rule for PreStopExecSleep {
    const META: Meta = Meta {
        id: "pre-stop-exec-sleep",
        category: Category::Termination,
        since: "0.1",
        kinds: LONG_RUNNING,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("pre_stop_exec_sleep.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        let asks = context.template.is_some_and(|template| template.regular().any(|it| slept(&it).is_some()));
        Needs { server_version: asks, crd_sleep: asks && !context.kind.defaulted, ..Needs::default() }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        let termination = context.termination();
        // A grace period of nothing runs no hook, whatever it is.
        if termination.grace <= 0 {
            return;
        }
        for container in template.regular() {
            let Some((command, seconds)) = slept(&container) else { continue };
            if native_sleep(context).is_err() {
                return;
            }
            let message = format!(
                "container {}: its preStop hook sleeps by exec of {}: in an image without it (distroless, scratch) the \
                 hook fails, and SIGTERM comes at once, not after {seconds} s",
                quoted(container.name()),
                quoted(command.started)
            );
            // The API server refuses a native sleep above the grace period, and the process needs some of it.
            let allowed = seconds.min((termination.planned_grace - termination.drain).max(1));
            findings.push(
                Finding::new(Self::META.id, container.pointer(&["lifecycle", "preStop", "exec"]), message)
                    .container(container.name())
                    .mend(format!("lifecycle: {{preStop: {{sleep: {{seconds: {allowed}}}}}}}")),
            );
        }
    }
}

/// The command of a preStop hook that does nothing but sleep, and its seconds.
fn slept<'a>(container: &Container<'a>) -> Option<(Simple<'a>, i64)> {
    let hook = container.value.get("lifecycle").get("preStop");
    let alone = hook.members().all(|(member, value)| member == "exec" || Value::is_null(value));
    let command = Simple::of(hook.get("exec")).filter(|_| alone)?;
    let seconds = command.sleeps().filter(|seconds| *seconds > 0)?;
    Some((command, seconds))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::facts::{Facts, Known, Reason, ServerVersion};
    use crate::rules::testing::{Judge, container, messages, passes_over_nonsense};

    fn hook(command: serde_json::Value) -> serde_json::Value {
        json!({"lifecycle": {"preStop": {"exec": {"command": command}}}})
    }

    #[test]
    fn e01_an_exec_sleep_may_not_exist_in_the_image() {
        let found = container::<PreStopExecSleep>(hook(json!(["/bin/sh", "-c", "sleep 10"])));
        assert_eq!(
            messages(&found),
            ["container \"app\": its preStop hook sleeps by exec of \"/bin/sh\": in an image without it (distroless, \
              scratch) the hook fails, and SIGTERM comes at once, not after 10 s"]
        );
        assert_eq!(found[0].pointer, "/spec/template/spec/containers/0/lifecycle/preStop/exec");
        assert_eq!(found[0].mend.as_deref(), Some("lifecycle: {preStop: {sleep: {seconds: 10}}}"));
        let found = container::<PreStopExecSleep>(hook(json!(["sleep", "1.5"])));
        assert!(found[0].message.contains("by exec of \"sleep\"") && found[0].message.ends_with("not after 2 s"));
    }

    #[test]
    fn e01_hooks_that_do_more_or_are_native_are_fine() {
        for command in [json!(["sh", "-c", "sleep 5; nginx -s quit"]), json!(["/drain", "5"]), json!(["sleep", "0"])] {
            assert_eq!(container::<PreStopExecSleep>(hook(command)), []);
        }
        assert_eq!(container::<PreStopExecSleep>(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}})), []);
        let post_start = json!({"lifecycle": {"postStart": {"exec": {"command": ["sleep", "5"]}}}});
        assert_eq!(container::<PreStopExecSleep>(post_start), []);
        // Two handlers are the API server's to refuse (E04).
        let two = json!({"lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}, "sleep": {"seconds": 5}}}});
        assert_eq!(container::<PreStopExecSleep>(two), []);
    }

    #[test]
    fn e02_the_mend_leaves_time_to_drain() {
        let app = json!({"name": "app", "lifecycle": {"preStop": {"exec": {"command": ["sleep", "60"]}}}});
        let pod = |grace: i64| {
            let spec = json!({"terminationGracePeriodSeconds": grace, "containers": [app]});
            Judge::default().pod::<PreStopExecSleep>(spec)
        };
        assert_eq!(pod(45)[0].mend.as_deref(), Some("lifecycle: {preStop: {sleep: {seconds: 40}}}"));
        assert_eq!(pod(0), []);
    }

    #[test]
    fn e12_nothing_is_said_where_the_action_is_not_known() {
        let judge = |kind, server_version, crd_sleep| {
            let facts = Facts { server_version, crd_sleep, ..Facts::unknown(Reason::NotAsked) };
            Judge { kind, facts, ..Judge::default() }.container::<PreStopExecSleep>(hook(json!(["sleep", "5"]))).len()
        };
        let version = |minor| Known::Known(ServerVersion { major: 1, minor });
        let unknown = || Known::Unknown(Reason::TimedOut);
        assert_eq!(judge("Deployment", version(30), unknown()), 1);
        assert_eq!(judge("Deployment", version(29), unknown()), 0);
        assert_eq!(judge("Deployment", Known::Unknown(Reason::Failed), unknown()), 0);
        assert_eq!(judge("Rollout", version(37), Known::Known(true)), 1);
        assert_eq!(judge("Rollout", version(37), Known::Known(false)), 0);
        assert_eq!(judge("Rollout", version(37), unknown()), 0);
    }

    #[test]
    fn e08_e10_sidecars_and_what_ends_are_passed_over() {
        let mut sidecar = hook(json!(["sleep", "5"]));
        sidecar["name"] = json!("s");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({"containers": [{"name": "a"}], "initContainers": [sidecar]});
        assert_eq!(Judge::default().pod::<PreStopExecSleep>(spec), []);
        assert!(!PreStopExecSleep::META.kinds.contains(&"Job"));
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<PreStopExecSleep>(&["lifecycle"]);
    }
}

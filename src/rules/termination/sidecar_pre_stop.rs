//! A native sidecar sleeps before it stops, which nobody waits for.
//!
//! ## What it does
//!
//! Finds preStop hooks of native sidecars (init containers with `restartPolicy: Always`) that sleep longer than
//! `maxSeconds`: a `sleep` action, or an exec of nothing but a sleep. Says so where the sleep does not even fit the grace
//! period. Other hooks, such as a proxy's own drain, are not judged.
//!
//! ## Why it matters
//!
//! A sidecar's hook runs at the start of termination, together with the application's; SIGTERM comes to sidecars only
//! after the last regular container has ended, in reverse order. The kubelet sees to it that the sidecar outlives the
//! application: a sleep adds nothing, and one that is longer than the application takes to end only holds up the pod
//! and eats the grace period that all containers share.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! initContainers:
//! - name: proxy
//!   restartPolicy: Always
//!   lifecycle: {preStop: {sleep: {seconds: 20}}}
//! ```
//!
//! Good:
//!
//! ```yaml
//! initContainers:
//! - name: proxy
//!   restartPolicy: Always
//! ```
//!
//! ## Parameters
//!
//! `maxSeconds` (0 to 3600, default 0): the longest sleep that is let pass.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::plan::preset_seconds;
use crate::engine::pod::Class;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `sidecar-pre-stop`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// The longest sleep that is let pass, seconds, 0 to 3600.
    #[schemars(range(min = 0, max = 3600))]
    pub max_seconds: i64,
}

/// The rule.
pub struct SidecarPreStop;

impl Rule for SidecarPreStop {
    const META: Meta = Meta {
        id: "sidecar-pre-stop",
        category: Category::Termination,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("sidecar_pre_stop.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("maxSeconds", params.max_seconds, 0..=3600, "seconds")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        let grace = context.termination().planned_grace;
        for container in template.containers().filter(|container| container.class == Class::Sidecar) {
            let Some(seconds) = preset_seconds(&container).filter(|seconds| *seconds > params.max_seconds) else {
                continue;
            };
            let consequence = if seconds > grace {
                format!("it uses up the terminationGracePeriodSeconds of {grace} that all containers share")
            } else {
                format!("the pod takes {seconds} of its {grace} s of grace even where the application is done")
            };
            let message = format!(
                "native sidecar {}: its preStop hook sleeps {seconds} s, but it is stopped after the regular containers \
                 anyway: {consequence}",
                quoted(container.name())
            );
            findings.push(
                Finding::new(Self::META.id, container.pointer(&["lifecycle", "preStop"]), message)
                    .container(container.name())
                    .measure(seconds)
                    .mend("lifecycle: {}  # no preStop"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, messages, passes_over_nonsense, refused};

    fn pod(hook: serde_json::Value, params: serde_json::Value) -> Vec<Finding> {
        let init = json!([{"name": "i"}, {"name": "proxy", "restartPolicy": "Always", "lifecycle": {"preStop": hook}}]);
        let app = json!({"name": "app", "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}});
        Judge { params, ..Judge::default() }.pod::<SidecarPreStop>(json!({"containers": [app], "initContainers": init}))
    }

    #[test]
    fn e08_a_sleep_there_buys_nothing() {
        let found = pod(json!({"sleep": {"seconds": 20}}), json!({}));
        assert_eq!(
            messages(&found),
            [
                "native sidecar \"proxy\": its preStop hook sleeps 20 s, but it is stopped after the regular containers anyway: \
              the pod takes 20 of its 30 s of grace even where the application is done"
            ]
        );
        assert_eq!(found[0].pointer, "/spec/template/spec/initContainers/1/lifecycle/preStop");
        assert_eq!((found[0].measure, found[0].container.as_deref()), (Some(20), Some("proxy")));
        assert_eq!(pod(json!({"exec": {"command": ["sh", "-c", "sleep 1m"]}}), json!({}))[0].measure, Some(60));
    }

    #[test]
    fn e08_a_sleep_that_exceeds_the_grace() {
        let found = pod(json!({"exec": {"command": ["sleep", "40"]}}), json!({}));
        assert!(
            found[0].message.ends_with("it uses up the terminationGracePeriodSeconds of 30 that all containers share")
        );
    }

    #[test]
    fn e08_hooks_that_do_not_sleep_are_fine() {
        for hook in [
            json!({"exec": {"command": ["pilot-agent", "request", "POST", "drain"]}}),
            json!({"httpGet": {"path": "/shutdown", "port": 4191}}),
            json!({"sleep": {"seconds": 0}}),
            json!(null),
        ] {
            assert_eq!(pod(hook.clone(), json!({})), [], "{hook}");
        }
    }

    #[test]
    fn parameters_bound_it() {
        assert_eq!(pod(json!({"sleep": {"seconds": 5}}), json!({"maxSeconds": 5})), []);
        assert_eq!(refused::<SidecarPreStop>(json!({"maxSeconds": -1})), "maxSeconds");
        assert_eq!(refused::<SidecarPreStop>(json!({"maxSeconds": 3601})), "maxSeconds");
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<SidecarPreStop>(&["lifecycle"]);
    }
}

//! Pods are deleted without waiting for their processes.
//!
//! ## What it does
//!
//! Finds a `terminationGracePeriodSeconds` of 0. On a StatefulSet the policy's action holds; on any other kind the
//! finding warns at most, unless `warnOthers` is false. Negative numbers are the API server's to warn of.
//!
//! ## Why it matters
//!
//! A pod with a grace period of 0 is gone from the API as soon as it is deleted, while its processes still run: its
//! preStop hooks get no time, and SIGKILL follows within seconds. A StatefulSet's controller then starts a pod of the
//! same name and on the same volumes although the old one may still write: two at a time, which is what the kind exists
//! to prevent.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! spec:
//!   terminationGracePeriodSeconds: 0
//! ```
//!
//! Good:
//!
//! ```yaml
//! spec:
//!   terminationGracePeriodSeconds: 30
//! ```
//!
//! ## Parameters
//!
//! `warnOthers` (default true): whether kinds other than StatefulSets are warned about at most.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::{LONG_RUNNING, Strategy};
use crate::engine::plan::DEFAULT_GRACE;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// Parameters of `zero-grace`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// Whether kinds other than StatefulSets are warned about at most.
    pub warn_others: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { warn_others: true }
    }
}

/// The rule.
pub struct ZeroGrace;

impl Rule for ZeroGrace {
    const META: Meta = Meta {
        id: "zero-grace",
        category: Category::Termination,
        since: "0.1",
        kinds: LONG_RUNNING,
        baseline: Action::Deny,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("zero_grace.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        if template.spec()["terminationGracePeriodSeconds"].as_i64() != Some(0) {
            return;
        }
        // Pods of this strategy keep their names and volumes.
        let keeps_identity = context.kind.strategy == Strategy::StatefulSet;
        let consequence = if keeps_identity {
            "its successor may meanwhile write to the same volumes".to_owned()
        } else {
            match template.regular().find(|container| !container.value["lifecycle"]["preStop"].is_null()) {
                Some(hooked) => format!("the preStop hook of container {} gets no time", quoted(hooked.name())),
                None => "requests in flight are cut off".to_owned(),
            }
        };
        let message = format!(
            "terminationGracePeriodSeconds is 0: a deleted pod is gone from the API while it still runs, SIGKILL follows within \
             seconds, and {consequence}"
        );
        let finding =
            Finding::new(Self::META.id, template.pointer(&["spec", "terminationGracePeriodSeconds"]), message)
                .mend(format!("terminationGracePeriodSeconds: {DEFAULT_GRACE}"));
        findings.push(if params.warn_others && !keeps_identity { finding.at_most(Action::Warn) } else { finding });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, messages, passes_over_nonsense};

    fn judge(kind: &'static str, grace: serde_json::Value, lifecycle: serde_json::Value) -> Vec<Finding> {
        let app = json!({"name": "app", "lifecycle": lifecycle});
        let spec = json!({"terminationGracePeriodSeconds": grace, "containers": [app]});
        Judge { kind, ..Judge::default() }.pod::<ZeroGrace>(spec)
    }

    #[test]
    fn e03_a_stateful_set_may_be_denied() {
        let found = judge("StatefulSet", json!(0), json!(null));
        assert_eq!(
            messages(&found),
            [
                "terminationGracePeriodSeconds is 0: a deleted pod is gone from the API while it still runs, SIGKILL follows \
              within seconds, and its successor may meanwhile write to the same volumes"
            ]
        );
        assert_eq!((found[0].cap, found[0].measure), (None, None));
        assert_eq!(found[0].pointer, "/spec/template/spec/terminationGracePeriodSeconds");
        assert_eq!(found[0].mend.as_deref(), Some("terminationGracePeriodSeconds: 30"));
        assert_eq!(ZeroGrace::META.baseline, Action::Deny);
    }

    #[test]
    fn e03_other_kinds_are_warned_about() {
        let found = judge("Deployment", json!(0), json!({"preStop": {"sleep": {"seconds": 5}}}));
        assert!(found[0].message.ends_with("and the preStop hook of container \"app\" gets no time"));
        assert_eq!(found[0].cap, Some(Action::Warn));
        let found = judge("Pod", json!(0), json!(null));
        assert!(found[0].message.ends_with("and requests in flight are cut off"));
        assert_eq!(
            (found[0].cap, found[0].pointer.as_str()),
            (Some(Action::Warn), "/spec/terminationGracePeriodSeconds")
        );
        let strict = Judge { params: json!({"warnOthers": false}), ..Judge::default() };
        assert_eq!(strict.pod::<ZeroGrace>(json!({"terminationGracePeriodSeconds": 0}))[0].cap, None);
    }

    #[test]
    fn e03_any_other_grace_is_fine() {
        for grace in [json!(null), json!(1), json!(-1), json!(30), json!("0"), json!(0.0)] {
            assert_eq!(judge("StatefulSet", grace.clone(), json!(null)), [], "{grace}");
        }
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        passes_over_nonsense::<ZeroGrace>(&["lifecycle"]);
    }
}

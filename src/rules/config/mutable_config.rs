//! A ConfigMap can be edited in place under its pods.
//!
//! ## What it does
//! Looks up the ConfigMaps that the pod template of a Deployment, StatefulSet, DaemonSet or Rollout uses, and reports
//! those that are not `immutable: true`. One whose name ends in a content hash as kustomize makes it is fine: other
//! content goes by another name. One that does not exist is the business of `missing-config`.
//!
//! ## Why it matters
//! An edit in place is a rollout that nobody sees: pods take it up one by one as they restart, all at once if it is a
//! mounted file, and without a health check in between. `kubectl rollout undo` brings the old template back and not the
//! old content. An immutable ConfigMap with a name of its own per content makes each change a change of the template,
//! and spares the API server a watch per node.
//!
//! ## Example
//! Bad:
//! ```yaml
//! apiVersion: v1
//! kind: ConfigMap
//! metadata: {name: settings}
//! data: {LOG_LEVEL: info}
//! ```
//! Good:
//! ```yaml
//! apiVersion: v1
//! kind: ConfigMap
//! metadata: {name: settings-7h8gf2k4mt}
//! immutable: true
//! data: {LOG_LEVEL: info}
//! ```
//!
//! ## Parameters
//! * `secrets`: whether Secrets are looked up too, which Plimsoll must be allowed to; `false`.
//!
//! ## Unknown facts
//! What cannot be looked up (no permission, too late, more than 16 references, no cluster) is not reported.

use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::ROLLING;
use crate::engine::pod::Template;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::config::objects::{Object, objects};

/// The rule `mutable-config`.
pub struct MutableConfig;

/// Parameters of `mutable-config`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Whether Secrets are looked up too, which Plimsoll must be allowed to.
    pub secrets: bool,
}

impl Rule for MutableConfig {
    const META: Meta = Meta {
        id: "mutable-config",
        category: Category::Config,
        since: "0.1",
        kinds: ROLLING,
        baseline: Action::Off,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("mutable_config.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, params: &Params) -> Needs {
        let judged = context.template.into_iter().flat_map(|template| judged(template, params));
        Needs { configs: judged.map(|object| object.reference).collect(), ..Needs::default() }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for object in judged(template, params) {
            let Some(facts) = object.told(context.facts) else { continue };
            if !facts.immutable {
                findings.push(report(template, &object));
            }
        }
    }
}

fn judged<'a>(template: Template<'a>, params: &Params) -> impl Iterator<Item = Object<'a>> + use<'a> {
    objects(template, params.secrets).into_iter().filter(|object| !object.is_named_by_content())
}

fn report(template: Template<'_>, object: &Object<'_>) -> Finding {
    let how = if object.uses.iter().all(|used| used.volume.is_none()) {
        "pods take an edit up one by one as they restart"
    } else {
        "an edit reaches mounted files of all pods within minutes, without a rollout"
    };
    let message = format!("{} is not immutable: {how}, and a rollback does not undo it", object.reference.subject());
    // The name is the author's to choose; only that it is another one matters.
    let name = quoted(&format!("{}-2", object.reference.name));
    let mend = format!(
        "apiVersion: v1\nkind: {}\nmetadata:\n  name: {name}  # a new name for each content\nimmutable: true",
        object.reference.source
    );
    Finding::new(MutableConfig::META.id, object.pointer(template), message).mend(mend)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::facts::{ConfigFacts, Known, Reason};
    use crate::rules::testing::Judge;

    fn messages(spec: serde_json::Value, told: Known<ConfigFacts>) -> Vec<String> {
        let object = json!({"spec": {"template": {"spec": spec}}});
        let (findings, _) = Judge::default().told::<MutableConfig>(&object, told);
        findings.into_iter().map(|finding| finding.message).collect()
    }

    fn from(name: &str) -> serde_json::Value {
        json!({"containers": [{"name": "app", "envFrom": [{"configMapRef": {"name": name}}]}]})
    }

    #[test]
    fn f14_immutable_objects_and_names_by_content_are_fine() {
        let mutable = Known::Known(ConfigFacts::default());
        assert_eq!(
            messages(from("settings"), mutable.clone()),
            [
                "ConfigMap \"settings\" is not immutable: pods take an edit up one by one as they restart, and a rollback does \
              not undo it"
            ]
        );
        assert_eq!(messages(from("settings-7h8gf2k4mt"), mutable), [""; 0]);
        let immutable = Known::Known(ConfigFacts { immutable: true, ..ConfigFacts::default() });
        assert_eq!(messages(from("settings"), immutable), [""; 0]);
    }

    #[test]
    fn absent_and_unknown_objects_are_no_finding() {
        assert_eq!(messages(from("settings"), Known::Absent), [""; 0]);
        assert_eq!(messages(from("settings"), Known::Unknown(Reason::Failed)), [""; 0]);
    }

    #[test]
    fn f13_mounted_files_change_by_themselves() {
        let spec = json!({"volumes": [{"name": "v", "configMap": {"name": "settings"}}]});
        let found = messages(spec, Known::Known(ConfigFacts::default()));
        assert!(found[0].contains("an edit reaches mounted files of all pods within minutes"), "{found:?}");
    }
}

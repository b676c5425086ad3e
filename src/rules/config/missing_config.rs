//! A ConfigMap or Secret is not there, or lacks a key.
//!
//! ## What it does
//! Looks up the ConfigMaps that the pod template uses (environment, volumes, projected volumes; init containers and
//! sidecars too) and reports those that do not exist, and the keys that are used and not in them. What is
//! `optional: true` is not looked for, nor is `kube-root-ca.crt`, which the control plane provides. It never does more
//! than warn: files may be applied in any order.
//!
//! ## Why it matters
//! The kubelet starts no container whose environment or volume it cannot fill. A rollout then stands still at its first
//! new pod, on `CreateContainerConfigError` or `ContainerCreating`, until its progress deadline passes; where nothing ran
//! before, nothing runs.
//!
//! ## Example
//! Bad, where there is no ConfigMap `settings`:
//! ```yaml
//! envFrom:
//!   - configMapRef: {name: settings}
//! ```
//! Good, if the application can do without:
//! ```yaml
//! envFrom:
//!   - configMapRef: {name: settings, optional: true}
//! ```
//!
//! ## Parameters
//! * `secrets`: whether Secrets are looked up too, which Plimsoll must be allowed to; `false`.
//!
//! ## Unknown facts
//! What cannot be looked up (no permission, too late, more than 16 references, no cluster) is not reported.

use std::collections::BTreeSet;

use crate::config::Source;
use crate::config::references::Use;
use crate::engine::context::Context;
use crate::engine::facts::{ConfigFacts, Known, Needs};
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::Template;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::{listed, quoted};
use crate::rules::config::objects::{Object, name_pointer, objects};

/// Most keys that a message lists.
const MOST_LISTED: usize = 5;

/// The rule `missing-config`.
pub struct MissingConfig;

/// Parameters of `missing-config`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Whether Secrets are looked up too, which Plimsoll must be allowed to.
    pub secrets: bool,
}

impl Rule for MissingConfig {
    const META: Meta = Meta {
        id: "missing-config",
        category: Category::Config,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("missing_config.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, params: &Params) -> Needs {
        let required = context.template.into_iter().flat_map(|template| required(template, params));
        Needs { configs: required.map(|object| object.reference).collect(), ..Needs::default() }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for object in required(template, params) {
            match context.facts.config(&object.reference) {
                Known::Absent => findings.extend(absent(template, &object)),
                Known::Known(facts) => findings.extend(lacking(template, &object, facts)),
                Known::Unknown(_) => {}
            }
        }
    }
}

fn required<'a>(template: Template<'a>, params: &Params) -> impl Iterator<Item = Object<'a>> + use<'a> {
    objects(template, params.secrets).into_iter().filter(|object| !object.reference.optional)
}

fn absent(template: Template<'_>, object: &Object<'_>) -> Option<Finding> {
    let used = object.uses.iter().find(|used| !used.optional)?;
    let message = format!("{} does not exist: {}", object.reference.subject(), consequence(used, 1));
    let mut mend = format!(
        "apiVersion: v1\nkind: {}\nmetadata:\n  name: {}\n{}:",
        object.reference.source,
        quoted(&object.reference.name),
        data(object)
    );
    match &object.reference.keys {
        Some(keys) => keys.iter().take(MOST_LISTED).for_each(|key| mend.push_str(&format!("\n  {}: …", quoted(key)))),
        None => mend
            .push_str(" {}  # what the application reads; or, if it can do without, optional: true where it is used"),
    }
    Some(finding(name_pointer(template, used), message, mend))
}

fn lacking(template: Template<'_>, object: &Object<'_>, facts: &ConfigFacts) -> Option<Finding> {
    // A volume has files of `binaryData`, too; an environment variable is made of `data` alone.
    let lacks = |used: &Use<'_>, key: &str| {
        let has = |keys: &[String]| keys.iter().any(|one| one == key);
        has(&facts.missing_keys) || (used.volume.is_none() && has(&facts.binary_keys))
    };
    // Only what a use cannot do without: the look-up may have been asked for more.
    let wants = |used: &Use<'_>, key: &str| {
        !used.optional && used.keys.as_ref().is_some_and(|keys| keys.contains(key)) && lacks(used, key)
    };
    let named = facts.missing_keys.iter().chain(&facts.binary_keys).map(String::as_str);
    let missing: BTreeSet<&str> = named.filter(|key| object.uses.iter().any(|used| wants(used, key))).collect();
    let used = object.uses.iter().find(|used| missing.iter().any(|key| wants(used, key)))?;
    let names = listed(missing.iter().map(|key| quoted(key)), MOST_LISTED);
    let plural = if missing.len() == 1 { "key" } else { "keys" };
    // To say that a key is not there of an object that has it in the other member would be hard to believe.
    let whither =
        if missing.iter().any(|key| !facts.missing_keys.iter().any(|one| one == key)) { " in data" } else { "" };
    let subject = object.reference.subject();
    let message = format!("{subject} has no {plural} {names}{whither}: {}", consequence(used, missing.len()));
    let mut mend = format!("{}:  # of {}", data(object), object.reference.subject());
    missing.iter().take(MOST_LISTED).for_each(|key| mend.push_str(&format!("\n  {}: …", quoted(key))));
    Some(finding(name_pointer(template, used), message, mend))
}

fn finding(pointer: String, message: String, mend: String) -> Finding {
    Finding::new(MissingConfig::META.id, pointer, message).mend(mend).at_most(Action::Warn)
}

/// The member in which an author writes keys and values.
fn data(object: &Object<'_>) -> &'static str {
    match object.reference.source {
        Source::ConfigMap => "data",
        Source::Secret => "stringData",
    }
}

fn consequence(used: &Use<'_>, missing: usize) -> String {
    let until = if missing == 1 { "it is there" } else { "they are there" };
    match used.volume {
        Some(volume) => format!("new pods wait in ContainerCreating for volume {} until {until}", quoted(volume)),
        None => format!("new pods wait in CreateContainerConfigError until {until}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Reference;
    use crate::engine::facts::{ConfigFacts, Reason};
    use crate::rules::testing::Judge;

    /// What is found in a Pod with this spec, where the same is told of every reference; and what was asked for.
    fn run(
        spec: serde_json::Value,
        params: serde_json::Value,
        told: Known<ConfigFacts>,
    ) -> (Vec<Finding>, Vec<Reference>) {
        let pod = json!({"spec": spec});
        Judge { kind: "Pod", params, ..Judge::default() }.told::<MissingConfig>(&pod, told)
    }

    fn env(key: &str, optional: bool) -> serde_json::Value {
        let from = json!({"configMapKeyRef": {"name": "settings", "key": key, "optional": optional}});
        json!({"name": key.to_uppercase(), "valueFrom": from})
    }

    #[test]
    fn f03_what_is_absent_warns_at_most() {
        let spec = json!({"containers": [{"name": "app", "env": [env("a", true), env("b", false)]}]});
        let (findings, _) = run(spec, json!({}), Known::Absent);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].cap, Some(Action::Warn));
        assert_eq!(findings[0].pointer, "/spec/containers/0/env/1/valueFrom/configMapKeyRef/name");
        assert_eq!(
            findings[0].message,
            "ConfigMap \"settings\" does not exist: new pods wait in CreateContainerConfigError until it is there"
        );
        let mend = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"settings\"\ndata:\n  \"b\": …";
        assert_eq!(findings[0].mend.as_deref(), Some(mend));
    }

    #[test]
    fn f03_optional_and_unknown_objects_are_no_finding() {
        let optional = json!({"containers": [{"name": "app", "env": [env("a", true)]}]});
        assert_eq!(run(optional, json!({}), Known::Absent), (vec![], vec![]));
        let required = json!({"containers": [{"name": "app", "env": [env("a", false)]}]});
        for reason in [Reason::Forbidden, Reason::TimedOut, Reason::TooMany, Reason::NotAsked] {
            assert_eq!(run(required.clone(), json!({}), Known::Unknown(reason)).0, []);
        }
    }

    #[test]
    fn f03_a_missing_key_counts_only_where_a_use_cannot_do_without_it() {
        let lacks = |keys: &[&str]| {
            let missing_keys = keys.iter().map(|key| (*key).to_owned()).collect();
            Known::Known(ConfigFacts { missing_keys, ..ConfigFacts::default() })
        };
        let spec = json!({"containers": [{"name": "app", "env": [env("a", true), env("b", false), env("c", false)]}]});
        let (findings, asked) = run(spec.clone(), json!({}), lacks(&["a", "b", "c"]));
        assert_eq!(asked[0].keys, Some(["b".to_owned(), "c".to_owned()].into()));
        assert!(findings[0].message.starts_with("ConfigMap \"settings\" has no keys \"b\", \"c\": new pods wait"));
        assert_eq!(findings[0].pointer, "/spec/containers/0/env/1/valueFrom/configMapKeyRef/name");
        assert_eq!(findings[0].mend.as_deref(), Some("data:  # of ConfigMap \"settings\"\n  \"b\": …\n  \"c\": …"));
        assert_eq!(run(spec.clone(), json!({}), lacks(&["a"])).0, []);
        assert_eq!(run(spec, json!({}), lacks(&[])).0, []);
    }

    #[test]
    fn j02_secrets_are_looked_up_only_where_the_policy_says_so() {
        let volume = json!({"name": "tls", "secret": {"secretName": "tls"}});
        let spec = json!({"containers": [{"name": "app"}], "volumes": [volume]});
        assert_eq!(run(spec.clone(), json!({}), Known::Absent), (vec![], vec![]));
        let (findings, asked) = run(spec, json!({"secrets": true}), Known::Absent);
        assert_eq!(asked[0].source, Source::Secret);
        assert!(findings[0].message.ends_with("wait in ContainerCreating for volume \"tls\" until it is there"));
        assert!(findings[0].mend.as_deref().unwrap().contains("\nstringData: {}  # what the application reads"));
    }

    #[test]
    fn f11_the_root_certificates_are_the_control_planes_to_provide() {
        let volume = json!({"name": "ca", "configMap": {"name": "kube-root-ca.crt"}});
        assert_eq!(run(json!({"volumes": [volume]}), json!({}), Known::Absent), (vec![], vec![]));
    }
}

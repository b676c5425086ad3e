//! A ConfigMap changes and no pod restarts.
//!
//! ## What it does
//!
//! Finds Deployments, StatefulSets, DaemonSets and Rollouts whose containers read ConfigMaps (environment, volumes,
//! projected volumes; init containers and sidecars too) and whose pod template holds no digest over them. Where every
//! use of a ConfigMap names keys, only those keys count. A template annotation `plimsoll.dev/hot-reload: "true"` says
//! that the application reloads mounted files itself: what is only mounted, without `subPath`, then does not count.
//!
//! ## Why it matters
//!
//! Environment variables and `subPath` mounts never change in a running pod, mounted files change some minute later.
//! A pod that restarts for another reason then runs the new values beside pods with the old ones. With the digest in
//! the template, the next apply of the workload after a change of its configuration rolls it, and a rollback restores
//! what ran. A webhook only sees writes of the workload: changing a ConfigMap alone rolls nothing.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! template:
//!   spec:
//!     containers:
//!     - name: app
//!       envFrom: [{configMapRef: {name: settings}}]
//! ```
//!
//! Good:
//!
//! ```yaml
//! template:
//!   metadata:
//!     annotations:
//!       plimsoll.dev/config-checksum: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
//!   spec:
//!     containers:
//!     - name: app
//!       envFrom: [{configMapRef: {name: settings}}]
//! ```
//!
//! ## Fix safety
//!
//! Adds the annotation to the pod template when the workload is created or its author changes the template, never
//! otherwise: installing Plimsoll restarts nothing. The digest is made from live reads. A ConfigMap that does not
//! exist counts as absent; a look-up that fails keeps the old digest, or adds none. Under another annotation key a
//! value that we did not write is the author's and stays.
//!
//! ## Parameters
//!
//! `annotation` (default `plimsoll.dev/config-checksum`; no other key of ours and none of Kubernetes), `secrets` (default
//! false: Secrets count too, under an HMAC), `onUnchangedTemplate` (`keep`, the default, or, with the default annotation,
//! `recompute`: an apply that changes only other parts of the workload renews a digest that is there).
//!
//! ## Unknown facts
//!
//! Where one reference cannot be looked up, no new digest is written and a warning says why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Reference;
use crate::config::digest::combine;
use crate::config::references::references;
use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::facts::{Known, Needs, Reason};
use crate::engine::finding::{Action, Finding, Fix};
use crate::engine::kind::ROLLING;
use crate::engine::marker::OWN_PREFIX;
use crate::engine::ownership::{Managed, Place};
use crate::engine::pod::Template;
use crate::engine::request::Endpoint;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::{listed, quoted};

/// Template annotation by which an application says that it reloads mounted files itself.
const HOT_RELOAD: &str = "plimsoll.dev/hot-reload";

/// Most ConfigMaps and Secrets that a message names.
const MOST_LISTED: usize = 5;

/// Parameters of `config-checksum`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// Key of the template annotation that holds the digest.
    pub annotation: String,
    /// Whether Secrets count too.
    pub secrets: bool,
    /// What happens to a digest when the author's template did not change.
    pub on_unchanged_template: OnUnchangedTemplate,
}

/// What happens to a digest when the author's template did not change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnUnchangedTemplate {
    /// It stays, and a warning tells that the configuration changed.
    #[default]
    Keep,
    /// It is renewed, so that a server-side apply of the same manifest rolls the workload.
    Recompute,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            annotation: "plimsoll.dev/config-checksum".to_owned(),
            secrets: false,
            on_unchanged_template: OnUnchangedTemplate::Keep,
        }
    }
}

/// The rule.
pub struct ConfigChecksum;

impl ConfigChecksum {
    fn references(template: &Template<'_>, params: &Params) -> Vec<Reference> {
        let hot_reload = template.metadata()["annotations"].get(HOT_RELOAD).as_str() == Some("true");
        references(template.spec(), params.secrets, hot_reload)
    }
}

impl Rule for ConfigChecksum {
    const META: Meta = Meta {
        id: "config-checksum",
        category: Category::Config,
        since: "0.1",
        kinds: ROLLING,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: true,
        baseline_fix: true,
        source: include_str!("config_checksum.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        let (key, own) = (&params.annotation, Params::default().annotation);
        if *key != own && params.on_unchanged_template == OnUnchangedTemplate::Recompute {
            // A second round could not tell the digest of the first from an author's change (TRAPS B06).
            let message = format!("recompute needs the annotation {own}: under another key a digest may be anybody's");
            return Err(InvalidParam { path: "onUnchangedTemplate".to_owned(), message });
        }
        let message = if !is_annotation_key(key) {
            format!("{} is no annotation key: [prefix/]name, the name up to 63 characters", quoted(key))
        } else if is_reserved(key) && *key != own {
            format!("{} is reserved: take {own} or a key of your own", quoted(key))
        } else {
            return Ok(());
        };
        Err(InvalidParam { path: "annotation".to_owned(), message })
    }

    fn managed(params: &Params) -> Vec<Managed> {
        vec![Managed { place: Place::TemplateAnnotation(params.annotation.clone()), default: None }]
    }

    fn needs(context: &Context<'_>, params: &Params) -> Needs {
        // `/validate` never compares digests: the ConfigMap may change between the two calls (TRAPS F15).
        let Some(template) = context.template.filter(|_| context.endpoint == Endpoint::Mutate) else {
            return Needs::default();
        };
        let authors = !template.metadata()["annotations"].get(&params.annotation).is_null();
        let wanted = context.fixes(Self::META.id) && !authors;
        Needs { digests: if wanted { Self::references(&template, params) } else { Vec::new() }, ..Needs::default() }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        let references = Self::references(&template, params);
        if references.is_empty() {
            return;
        }
        let below = ["metadata", "annotations", params.annotation.as_str()];
        let pointer = template.pointer(&below);
        if !template.metadata()["annotations"].get(&params.annotation).is_null() {
            // Only a value under a key that is not our own can be another's (TRAPS F06).
            if context.endpoint == Endpoint::Validate && !context.is_ours(Self::META.id, &params.annotation) {
                let message = format!("{} is the author's and is left alone", params.annotation);
                findings.push(Finding::new(Self::META.id, pointer, message).at_most(Action::Warn));
            }
            return;
        }
        let list = |references: &[Reference]| listed(references.iter().map(Reference::subject), MOST_LISTED);
        let listed = list(&references);
        let message = format!("the pod template does not show which content of {listed} its pods run with");
        if context.endpoint == Endpoint::Validate || !context.fixes(Self::META.id) {
            let finding = Finding::new(Self::META.id, pointer, message);
            // Never ask for what only our own fix provides (TRAPS I05).
            let bound = if context.fixes(Self::META.id) { Action::Warn } else { Action::Deny };
            findings.push(finding.at_most(bound));
            return;
        }
        let digests: Vec<(Reference, Known<String>)> =
            references.iter().map(|reference| (reference.clone(), context.facts.digest(reference))).collect();
        // Often only the order of an apply; if nobody makes it, no pod starts (TRAPS F03).
        let absent = |(reference, digest): &(Reference, Known<String>)| {
            (!reference.optional && *digest == Known::Absent).then(|| reference.clone())
        };
        let absent: Vec<Reference> = digests.iter().filter_map(absent).collect();
        let absent = match absent[..] {
            [] => String::new(),
            _ => format!(" (not there yet: {})", list(&absent)),
        };
        findings.push(match combine(&digests) {
            Ok(digest) => Finding::new(Self::META.id, pointer, message).fix(Some(Fix {
                claim: Self::META.id.to_owned(),
                writes: vec![(template.path(&below), Value::from(digest))],
                says: format!("wrote the digest of {listed} into the pod template{absent}"),
                kept_says: Some(format!(
                    "config changed since last rollout ({listed}): running pods may hold old values"
                )),
                on_unchanged_template: params.on_unchanged_template == OnUnchangedTemplate::Recompute,
            })),
            Err((reference, reason)) => {
                let why = match reason {
                    Reason::TooMany => "it reads more ConfigMaps and Secrets than one review looks up".to_owned(),
                    reason => format!("config {reason}: {}", reference.subject()),
                };
                let message = format!("{why}; the digest of the pod template is not renewed");
                Finding { stopped_by_lookup: true, ..Finding::new(Self::META.id, pointer, message) }
            }
        });
    }
}

/// Whether a key belongs to us or, by its prefix, to Kubernetes ("Labels, annotations and taints": `kubernetes.io/` and
/// `k8s.io/` are reserved for core components): a digest there would overwrite what means something else.
fn is_reserved(key: &str) -> bool {
    let prefix = key.rsplit_once('/').map_or("", |(prefix, _)| prefix);
    let within = |domain: &str| prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    key.starts_with(OWN_PREFIX) || within("kubernetes.io") || within("k8s.io")
}

/// Whether this is an annotation key (apimachinery: qualified name).
fn is_annotation_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let word = |text: &str, max: usize, extra: &[u8]| {
        let bytes = text.as_bytes();
        bytes.len() <= max
            && edge(bytes.first())
            && edge(bytes.last())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || extra.contains(byte))
    };
    word(name, 63, b"-_.")
        && prefix.is_none_or(|prefix| word(prefix, 253, b"-.") && !prefix.bytes().any(|byte| byte.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i14_keys_that_mean_something_else_are_refused() {
        let refused = |annotation: &str| {
            let params = Params { annotation: annotation.to_owned(), ..Params::default() };
            ConfigChecksum::validate(&params).err().map(|error| error.message)
        };
        for key in ["plimsoll.dev/fixed", "plimsoll.dev/hot-reload", "kubectl.kubernetes.io/restartedAt", "k8s.io/x"] {
            let message = format!("\"{key}\" is reserved: take plimsoll.dev/config-checksum or a key of your own");
            assert_eq!(refused(key), Some(message));
        }
        for key in ["plimsoll.dev/config-checksum", "checksum/config", "notkubernetes.io/x"] {
            assert_eq!(refused(key), None, "{key}");
        }
    }

    #[test]
    fn b06_only_a_digest_under_our_own_key_is_recomputed() {
        let validated = |annotation: &str| {
            let on_unchanged_template = OnUnchangedTemplate::Recompute;
            let params = Params { annotation: annotation.to_owned(), on_unchanged_template, ..Params::default() };
            ConfigChecksum::validate(&params).map_err(|error| (error.path, error.message))
        };
        let message =
            "recompute needs the annotation plimsoll.dev/config-checksum: under another key a digest may be anybody's";
        assert_eq!(validated("checksum/config"), Err(("onUnchangedTemplate".to_owned(), message.to_owned())));
        assert_eq!(validated("plimsoll.dev/config-checksum"), Ok(()));
    }

    #[test]
    fn annotation_keys() {
        for key in ["checksum/config", "plimsoll.dev/config-checksum", "x"] {
            assert!(is_annotation_key(key), "{key}");
        }
        for key in ["", "/x", "a/b/c", "-x", "Upper/x", "a b", "x/"] {
            assert!(!is_annotation_key(key), "{key}");
        }
    }
}

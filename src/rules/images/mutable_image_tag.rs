//! An image is named by a tag that moves.
//!
//! ## What it does
//! Reports containers, init containers and sidecars whose image carries a tag of the parameter `tags`, by default
//! `latest`. An image without a tag is pulled as `latest`. An image with a digest is always fine, whatever its tag. A
//! tag that differs from one of `tags` by case only is a tag of its own, so it is reported as a warning at most. An
//! empty image is left to the API server.
//!
//! ## Why it matters
//! The image behind such a tag changes without any change of the workload. Pods that start at different times run
//! different code, a node that restarts becomes an unannounced rollout, and `kubectl rollout undo` goes back to the
//! same tag, hence not to the code that worked.
//!
//! ## Example
//! Bad:
//! ```yaml
//! containers:
//!   - name: app
//!     image: registry.example:5000/app        # no tag: latest
//! ```
//! Good:
//! ```yaml
//! containers:
//!   - name: app
//!     image: registry.example:5000/app:1.4.2
//! ```
//!
//! ## Parameters
//! * `tags`: the tags that move, as they are spelled; `[latest]`.
//! * `ephemeral`: whether ephemeral containers are judged too; `false`.
//!
//! ## Unknown facts
//! It needs none.

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::{Class, Container};
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::images::reference::ImageReference;

/// The rule `mutable-image-tag`.
pub struct MutableImageTag;

/// Parameters of `mutable-image-tag`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// The tags that move, as they are spelled.
    pub tags: Vec<String>,
    /// Whether ephemeral containers are judged too.
    pub ephemeral: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { tags: vec!["latest".to_owned()], ephemeral: false }
    }
}

impl Rule for MutableImageTag {
    const META: Meta = Meta {
        id: "mutable-image-tag",
        category: Category::Images,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Deny,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("mutable_image_tag.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        if params.tags.is_empty() {
            let message = "no tag at all; to judge no image, set the rule's action to off";
            return Err(InvalidParam { path: "tags".to_owned(), message: message.to_owned() });
        }
        match params.tags.iter().position(|tag| !is_tag(tag)) {
            Some(index) => Err(InvalidParam {
                path: format!("tags[{index}]"),
                message: format!(
                    "{} is no tag: up to 128 letters, digits, `_`, `.` and `-`, the first no `.` or `-`",
                    quoted(&params.tags[index])
                ),
            }),
            None => Ok(()),
        }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for container in template.containers() {
            if container.class == Class::Ephemeral && !params.ephemeral {
                continue;
            }
            findings.extend(judge(container, params));
        }
    }
}

/// Whether this can be a tag at all, by the grammar of the OCI distribution specification.
fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(word)
        && text.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

fn judge(container: Container<'_>, params: &Params) -> Option<Finding> {
    let text = container.value["image"].as_str()?;
    let image = ImageReference::parse(text)?;
    if image.digest.is_some() {
        return None;
    }
    let pulled = image.pulled_tag();
    let moves = params.tags.iter().any(|tag| tag == pulled);
    let similar = params.tags.iter().find(|tag| tag.eq_ignore_ascii_case(pulled));
    if !moves && similar.is_none() {
        return None;
    }
    let (subject, image_text) = (quoted(container.name()), quoted(text));
    let message = match similar {
        Some(tag) if !moves => format!(
            "container {subject}: the tag of image {image_text} is not {tag}, tags are case sensitive; \
             if it moves like {tag}, replicas may run different code"
        ),
        _ => format!(
            "container {subject}: image {image_text}{} can change under the same name, so replicas may run different \
             code and a rollback may not roll back",
            if image.tag.is_none() { " (no tag: latest)" } else { "" },
        ),
    };
    let pinned = quoted(&format!("{}@sha256:<digest>", image.name));
    let finding = Finding::new(MutableImageTag::META.id, container.pointer(&["image"]), message)
        .container(container.name())
        .mend(format!("image: {pinned}  # or a tag that is never pushed twice"));
    Some(if moves { finding } else { finding.at_most(Action::Warn) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::kind::KINDS;
    use crate::rules::testing::{Judge, refused};

    fn check(kind: &'static str, object: serde_json::Value, params: serde_json::Value) -> Vec<Finding> {
        Judge { kind, params, ..Judge::default() }.object::<MutableImageTag>(object)
    }

    /// What P0 does to a bare Pod with this image: `ok`, `warn` or `deny`.
    fn verdict(image: &str) -> &'static str {
        let pod = json!({"spec": {"containers": [{"name": "app", "image": image}]}});
        match check("Pod", pod, json!({})).as_slice() {
            [] => "ok",
            [finding] => finding.cap.unwrap_or(Action::Deny).as_str(),
            _ => "too many",
        }
    }

    #[test]
    fn h01_table() {
        let hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        assert_eq!(verdict("app"), "deny");
        assert_eq!(verdict("app:latest"), "deny");
        assert_eq!(verdict("reg:5000/app"), "deny");
        assert_eq!(verdict("reg:5000/app:latest"), "deny");
        assert_eq!(verdict("reg:5000/app:1.2"), "ok");
        assert_eq!(verdict(&format!("app@sha256:{hex}")), "ok");
        assert_eq!(verdict(&format!("app:latest@sha256:{hex}")), "ok");
        assert_eq!(verdict("app:LATEST"), "warn");
        assert_eq!(verdict(""), "ok");
    }

    #[test]
    fn h08_init_containers_and_sidecars_count_ephemeral_ones_on_demand() {
        let pod = json!({"spec": {
            "containers": [{"name": "app", "image": "app:1"}],
            "initContainers": [
                {"name": "init", "image": "init"},
                {"name": "proxy", "image": "proxy:latest", "restartPolicy": "Always"},
            ],
            "ephemeralContainers": [{"name": "debug", "image": "busybox"}],
        }});
        let names = |params| {
            let findings = check("Pod", pod.clone(), params);
            findings.iter().map(|finding| finding.container.clone().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(json!({})), ["init", "proxy"]);
        assert_eq!(names(json!({"ephemeral": true})), ["init", "proxy", "debug"]);
    }

    #[test]
    fn c19_every_kind_with_a_template_is_judged() {
        for kind in KINDS.iter().filter(|kind| kind.template.is_some()) {
            let path = [kind.template.unwrap(), &["spec"]].concat();
            let judge = Judge { kind: kind.kind, ..Judge::default() };
            let findings = judge.container::<MutableImageTag>(json!({"image": "app:latest"}));
            assert_eq!(findings.len(), 1, "{}", kind.kind);
            assert_eq!(findings[0].pointer, format!("/{}/containers/0/image", path.join("/")));
        }
    }

    #[test]
    fn c16_the_message_says_what_may_happen() {
        let pod = json!({"spec": {"containers": [{"name": "app", "image": "x:latest"}]}});
        let findings = check("Pod", pod, json!({}));
        assert_eq!(
            findings[0].message,
            "container \"app\": image \"x:latest\" can change under the same name, so replicas may run different code \
             and a rollback may not roll back"
        );
        assert_eq!(
            findings[0].mend.as_deref(),
            Some("image: \"x@sha256:<digest>\"  # or a tag that is never pushed twice")
        );
    }

    #[test]
    fn j05_names_from_the_object_cannot_forge_lines() {
        let pod = json!({"spec": {"containers": [{"name": "a\nb", "image": "x\u{1b}[31m:latest"}]}});
        let findings = check("Pod", pod, json!({}));
        assert!(findings[0].message.starts_with(r#"container "a\nb": image "x\u{1b}[31m:latest" can"#));
        assert!(!findings[0].mend.as_deref().unwrap().contains('\u{1b}'));
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        for spec in [
            json!(null),
            json!({"containers": null}),
            json!({"containers": "app"}),
            json!({"containers": [null, 1, "x", [], {}, {"name": 1, "image": 2}, {"image": null}]}),
            json!({"initContainers": {"image": "app"}}),
        ] {
            assert_eq!(check("Deployment", json!({"spec": {"template": {"spec": spec}}}), json!({})), []);
        }
    }

    #[test]
    fn other_tags_can_be_named_and_then_latest_is_none() {
        let judged = |image: &str| {
            let pod = json!({"spec": {"containers": [{"name": "app", "image": image}]}});
            check("Pod", pod, json!({"tags": ["main", "stable"]})).len()
        };
        assert_eq!([judged("app:main"), judged("app:stable"), judged("app:latest"), judged("app")], [1, 1, 0, 0]);
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        assert_eq!(refused::<MutableImageTag>(json!({"tags": []})), "tags");
        assert_eq!(refused::<MutableImageTag>(json!({"tags": ["latest", "a:b"]})), "tags[1]");
        assert_eq!(refused::<MutableImageTag>(json!({"tags": [1]})), "tags[0]");
        assert_eq!(refused::<MutableImageTag>(json!({"tag": ["latest"]})), "tag");
    }
}

//! An image is not named by its digest.
//!
//! ## What it does
//! Reports containers, init containers, sidecars and image volumes whose image has no digest (`@sha256:…`). An empty
//! image is left to the API server.
//!
//! ## Why it matters
//! A tag is a name that its owner can give to another image. Whoever may push to the repository decides what the next
//! pod runs, without any change of the workload that could be reviewed, and replicas of one revision may differ. With a
//! digest, what was tested is what runs, and a rollback is exact.
//!
//! ## Example
//! Bad:
//! ```yaml
//! containers:
//!   - name: app
//!     image: registry.example/app:1.4.2
//! ```
//! Good:
//! ```yaml
//! containers:
//!   - name: app
//!     image: registry.example/app:1.4.2@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! ```
//!
//! ## Parameters
//! * `ephemeral`: whether ephemeral containers are judged too; `false`.
//!
//! ## Unknown facts
//! It needs none.

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::images::named::{Named, named};
use crate::rules::images::reference::ImageReference;

/// The rule `unpinned-image`.
pub struct UnpinnedImage;

/// Parameters of `unpinned-image`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Whether ephemeral containers are judged too.
    pub ephemeral: bool,
}

impl Rule for UnpinnedImage {
    const META: Meta = Meta {
        id: "unpinned-image",
        category: Category::Images,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Off,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("unpinned_image.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        findings.extend(named(template, params.ephemeral).filter_map(|named| judge(&named)));
    }
}

fn judge(named: &Named<'_>) -> Option<Finding> {
    let image = ImageReference::parse(named.image)?;
    if image.digest.is_some() {
        return None;
    }
    let tag = image.pulled_tag();
    let message = format!(
        "{}: image {} has no digest: whoever may push the tag {} decides what the next pod runs",
        named.subject(),
        quoted(named.image),
        quoted(tag)
    );
    let pinned = format!("{}:{tag}@sha256:<digest>", image.name);
    Some(named.finding(UnpinnedImage::META.id, message, &pinned, "the digest that was tested"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::in_pod_spec;

    fn found(image: serde_json::Value) -> usize {
        in_pod_spec::<UnpinnedImage>(json!({"containers": [{"name": "app", "image": image}]}), json!({})).len()
    }

    #[test]
    fn h01_only_a_digest_pins() {
        let hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        for image in ["app", "app:latest", "app:1.2", "reg:5000/app", "reg:5000/app:1.2", "app:LATEST", "app:1@"] {
            assert_eq!(found(json!(image)), 1, "{image}");
        }
        for image in
            [format!("app@sha256:{hex}"), format!("app:latest@sha256:{hex}"), format!("reg:5000/app@sha256:{hex}")]
        {
            assert_eq!(found(json!(image)), 0, "{image}");
        }
        assert_eq!(found(json!("")), 0);
    }

    #[test]
    fn h01_the_message_names_the_tag_that_is_pulled() {
        let findings =
            in_pod_spec::<UnpinnedImage>(json!({"containers": [{"name": "app", "image": "r:5000/x"}]}), json!({}));
        assert_eq!(
            findings[0].message,
            "container \"app\": image \"r:5000/x\" has no digest: whoever may push the tag \"latest\" decides what the \
             next pod runs"
        );
        let mend = "image: \"r:5000/x:latest@sha256:<digest>\"  # the digest that was tested";
        assert_eq!(findings[0].mend.as_deref(), Some(mend));
    }

    #[test]
    fn h08_init_containers_sidecars_and_volumes_count_ephemeral_containers_on_demand() {
        let spec = json!({
            "containers": [{"name": "app", "image": "app:1"}],
            "initContainers": [
                {"name": "init", "image": "init:1"},
                {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"},
            ],
            "ephemeralContainers": [{"name": "debug", "image": "busybox"}],
            "volumes": [{"name": "none"}, {"name": "model", "image": {"reference": "model:1"}}],
        });
        let pointers = |params| {
            let findings = in_pod_spec::<UnpinnedImage>(spec.clone(), params);
            findings.into_iter().map(|finding| finding.pointer.replace("/spec/template/spec/", "")).collect::<Vec<_>>()
        };
        let default =
            ["containers/0/image", "initContainers/0/image", "initContainers/1/image", "volumes/1/image/reference"];
        assert_eq!(pointers(json!({})), default);
        assert!(pointers(json!({"ephemeral": true})).contains(&"ephemeralContainers/0/image".to_owned()));
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        for image in [json!(null), json!(1), json!({"reference": "x"}), json!(["x"])] {
            assert_eq!(found(image), 0);
        }
        let volumes = json!([null, "x", {"image": "x"}, {"image": {"reference": 1}}]);
        assert_eq!(in_pod_spec::<UnpinnedImage>(json!({"volumes": volumes}), json!({})), []);
    }
}

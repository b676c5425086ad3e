//! A ConfigMap is about to outgrow what the API server takes.
//!
//! ## What it does
//! Looks up the ConfigMaps that the pod template uses, and reports those whose keys and values (`data` and `binaryData`,
//! decoded) are together above `maxBytes`.
//!
//! ## Why it matters
//! The API server refuses a ConfigMap or Secret above 1 MiB (1048576 bytes), and `kubectl apply` one above a quarter of
//! that, because it keeps a copy in an annotation. Whoever makes the next addition finds out, likely in an incident.
//! Until then every node that runs one of its pods fetches all of it, all at once in a rollout.
//!
//! ## Example
//! Bad, where `geo-data` holds 900 KiB:
//! ```yaml
//! volumes:
//!   - name: data
//!     configMap: {name: geo-data}
//! ```
//! Good:
//! ```yaml
//! volumes:
//!   - name: data
//!     projected:
//!       sources:
//!         - configMap: {name: geo-data-a-m}
//!         - configMap: {name: geo-data-n-z}
//! ```
//!
//! ## Parameters
//! * `maxBytes`: the largest size that is not reported, bytes, 1024 to 1048576; `524288` (512 KiB).
//! * `secrets`: whether Secrets are looked up too, which Plimsoll must be allowed to; `false`.
//!
//! ## Unknown facts
//! What cannot be looked up (no permission, too late, more than 16 references, no cluster) is not reported.

use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::config::objects::objects;

/// What the API server takes, bytes (kubernetes: pkg/apis/core/types.go, MaxSecretSize, for ConfigMaps too).
const MOST_BYTES: u64 = 1_048_576;

/// The rule `oversized-config`.
pub struct OversizedConfig;

/// Parameters of `oversized-config`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// The largest size that is not reported, bytes, 1024 to 1048576.
    #[schemars(range(min = 1024, max = 1_048_576))]
    pub max_bytes: u64,
    /// Whether Secrets are looked up too, which Plimsoll must be allowed to.
    pub secrets: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { max_bytes: 524_288, secrets: false }
    }
}

impl Rule for OversizedConfig {
    const META: Meta = Meta {
        id: "oversized-config",
        category: Category::Config,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("oversized_config.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("maxBytes", params.max_bytes, 1024..=MOST_BYTES, "bytes")
    }

    fn needs(context: &Context<'_>, params: &Params) -> Needs {
        let judged = context.template.into_iter().flat_map(|template| objects(template, params.secrets));
        Needs { configs: judged.map(|object| object.reference).collect(), ..Needs::default() }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for object in objects(template, params.secrets) {
            let Some(facts) = object.told(context.facts) else { continue };
            if facts.bytes <= params.max_bytes {
                continue;
            }
            let message = format!(
                "{} holds {} of the {} KiB that the API server takes, above {} KiB: its growth ends there, and each node \
                 with one of its pods fetches all of it",
                object.reference.subject(),
                facts.bytes.div_ceil(1024),
                MOST_BYTES / 1024,
                params.max_bytes / 1024
            );
            let part = |part: u8| quoted(&format!("{}-{part}", object.reference.name));
            let mend = format!(
                "volumes:  # split it, or ship the data in the image\n- name: data\n  projected:\n    sources:\n    \
                 - configMap: {{name: {}}}\n    - configMap: {{name: {}}}",
                part(1),
                part(2)
            );
            let finding = Finding::new(Self::META.id, object.pointer(template), message);
            findings.push(finding.measure(i64::try_from(facts.bytes).unwrap_or(i64::MAX)).mend(mend));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::facts::{ConfigFacts, Known, Reason};
    use crate::rules::testing::{Judge, refused};

    fn findings(told: Known<ConfigFacts>) -> Vec<Finding> {
        let pod = json!({"spec": {"volumes": [{"name": "v", "configMap": {"name": "big", "optional": true}}]}});
        Judge { kind: "Pod", ..Judge::default() }.told::<OversizedConfig>(&pod, told).0
    }

    #[test]
    fn the_bound_itself_is_allowed() {
        let of = |bytes| findings(Known::Known(ConfigFacts { bytes, ..ConfigFacts::default() }));
        assert_eq!(of(524_288), []);
        let found = of(524_289);
        assert_eq!((found[0].measure, found[0].cap), (Some(524_289), None));
        assert_eq!(found[0].pointer, "/spec/volumes/0/configMap/name");
        assert_eq!(
            found[0].message,
            "ConfigMap \"big\" holds 513 of the 1024 KiB that the API server takes, above 512 KiB: its growth ends there, and \
             each node with one of its pods fetches all of it"
        );
    }

    #[test]
    fn c15_facts_serve_an_old_object_that_uses_other_keys() {
        let pod = |items| json!({"spec": {"volumes": [{"name": "v", "configMap": {"name": "big", "items": items}}]}});
        let mut judge = Judge { kind: "Pod", ..Judge::default() };
        let (_, needs) = judge.judge::<OversizedConfig>(&pod(json!([{"key": "new"}])));
        let told = ConfigFacts { bytes: 900_000, ..ConfigFacts::default() };
        let told = |reference| (reference, Known::Known(told.clone()));
        judge.facts.configs = needs.configs.into_iter().map(told).collect();
        let found = judge.object::<OversizedConfig>(pod(json!([{"key": "old"}])));
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn absent_and_unknown_objects_are_no_finding() {
        assert_eq!(findings(Known::Absent), []);
        assert_eq!(findings(Known::Unknown(Reason::TimedOut)), []);
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        assert_eq!(refused::<OversizedConfig>(json!({"maxBytes": 1023})), "maxBytes");
        assert_eq!(refused::<OversizedConfig>(json!({"maxBytes": 1_048_577})), "maxBytes");
    }
}

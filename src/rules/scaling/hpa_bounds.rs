//! An autoscaler has no room to scale.
//!
//! ## What it does
//!
//! Finds HorizontalPodAutoscalers whose `minReplicas` (absent: 1) equals `maxReplicas`, or is above it.
//!
//! ## Why it matters
//!
//! With equal bounds the autoscaler only holds a number: at peak load nothing is added, though everybody believes that
//! something is. A minimum above the maximum is refused by the API server.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! kind: HorizontalPodAutoscaler
//! spec: {minReplicas: 3, maxReplicas: 3}
//! ```
//!
//! Good:
//!
//! ```yaml
//! kind: HorizontalPodAutoscaler
//! spec: {minReplicas: 3, maxReplicas: 6}
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! None are asked for.

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::finding::{Action, Finding};
use crate::engine::rule::{Category, Meta, Rule};

/// The rule.
pub struct HpaBounds;

/// [`HpaBounds`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Rule for HpaBounds {
    const META: Meta = Meta {
        id: "hpa-bounds",
        category: Category::Scaling,
        since: "0.1",
        kinds: &["HorizontalPodAutoscaler"],
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("hpa_bounds.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let spec = context.object.get("spec");
        let min = match &spec["minReplicas"] {
            Value::Null => Some(1),
            value => value.as_i64().filter(|replicas| *replicas >= 0),
        };
        let (Some(min), Some(max)) = (min, spec["maxReplicas"].as_i64().filter(|replicas| *replicas > 0)) else {
            return;
        };
        let (message, mend) = match min - max {
            0 => (
                format!(
                    "minReplicas and maxReplicas are both {max}: the autoscaler holds that number and never scales"
                ),
                format!("spec:\n  maxReplicas: {}  # an example: what peak load needs", max.saturating_mul(2)),
            ),
            1.. => (
                format!("minReplicas {min} is above maxReplicas {max}: the API server refuses it"),
                format!("spec:\n  minReplicas: {max}\n  maxReplicas: {min}"),
            ),
            _ => return,
        };
        findings.push(Finding::new(Self::META.id, "/spec/maxReplicas", message).measure(min - max).mend(mend));
    }
}

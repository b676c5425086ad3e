//! A quantity can only be a mistaken unit.
//!
//! ## What it does
//! Reports requests and limits of memory and ephemeral storage that are above 0 and below `minBytes`, and of cpu from
//! `implausibleCores` on, of the pod and of each container, init container and sidecar. An explicit `0` is a statement,
//! and what is no quantity at all is left to the API server.
//!
//! ## Why it matters
//! `400m` of memory is not 400 megabytes but 0.4 bytes, and `cpu: 1000` is not one core in thousandths but a thousand
//! cores. The API server takes both. A request of next to nothing is none, so that the pod lands on a node that has no
//! room for it; no process starts within a limit of next to nothing; and a pod that asks for more cores than a node has
//! stays Pending, so that its rollout stands still.
//!
//! ## Example
//! Bad:
//! ```yaml
//! resources:
//!   requests: {cpu: 1000, memory: 400m}
//! ```
//! Good:
//! ```yaml
//! resources:
//!   requests: {cpu: 1000m, memory: 400Mi}
//! ```
//!
//! ## Parameters
//! * `minBytes`: less memory or ephemeral storage than this is reported, bytes, 1 to 1048576; `1024`.
//! * `implausibleCores`: this many cores and more are reported, 1 to 1000000; `1000`.
//!
//! ## Unknown facts
//! It needs none.

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::resources::stanza::{Stanza, requested, stanzas, written};

/// The rule `implausible-quantity`.
pub struct ImplausibleQuantity;

/// Parameters of `implausible-quantity`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Less memory or ephemeral storage than this is reported, bytes, 1 to 1048576.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub min_bytes: i64,
    /// This many cores and more are reported, 1 to 1000000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub implausible_cores: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { min_bytes: 1024, implausible_cores: 1000 }
    }
}

impl Rule for ImplausibleQuantity {
    const META: Meta = Meta {
        id: "implausible-quantity",
        category: Category::Resources,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("implausible_quantity.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("minBytes", params.min_bytes, 1..=1_048_576, "bytes")?;
        InvalidParam::unless_in("implausibleCores", params.implausible_cores, 1..=1_000_000, "cores")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for stanza in stanzas(template) {
            let mut found: Vec<Finding> = Vec::new();
            for list in ["requests", "limits"] {
                found.extend(cores(&stanza, list, params));
                found.extend(
                    ["memory", "ephemeral-storage"].iter().filter_map(|name| bytes(&stanza, list, name, params)),
                );
            }
            // For the ratchet a container is worse the more of its values are implausible, whichever they are.
            let measure = i64::try_from(found.len()).unwrap_or(i64::MAX);
            findings.extend(found.into_iter().map(|finding| finding.measure(measure)));
        }
    }
}

fn cores(stanza: &Stanza<'_>, list: &str, params: &Params) -> Option<Finding> {
    let milli = stanza.milli(list, "cpu").filter(|milli| *milli >= i128::from(params.implausible_cores) * 1000)?;
    let text = written(&stanza.resources[list]["cpu"]);
    let counts = requested(stanza.resources, "cpu").is_some_and(|(said, _)| said == list);
    let so = match (counts, list) {
        (true, "limits") => "which is its request too, and hardly any node has as many: its pods stay Pending",
        (true, _) => "which hardly any node has: its pods stay Pending",
        (false, _) => "as good as no limit",
    };
    let message = format!("{}: {list}.cpu {} is {} cores, {so}", stanza.subject(), quoted(&text), thousandths(milli));
    let finding = stanza.finding(ImplausibleQuantity::META.id, &[list, "cpu"], message);
    // A number comes back as the server writes it: of 2000 it makes 2k.
    let meant = (milli % 1000 == 0).then(|| (milli / 1000).to_string()).filter(|meant| is_number(meant));
    Some(match meant {
        Some(meant) => finding.mend(mend(list, "cpu", &format!("{meant}m"))),
        None => finding,
    })
}

fn bytes(stanza: &Stanza<'_>, list: &str, name: &str, params: &Params) -> Option<Finding> {
    let bound = i128::from(params.min_bytes) * 1000;
    let milli = stanza.milli(list, name).filter(|milli| *milli > 0 && *milli < bound)?;
    let text = written(&stanza.resources[list][name]);
    let digits = text.strip_suffix('m').unwrap_or(&text);
    let unit = if digits.len() < text.len() { " (m means thousandths)" } else { "" };
    let so = match (list, name) {
        ("requests", _) => "as good as no request",
        (_, "memory") => "in which no process starts",
        _ => "so the pod is evicted with the first line that it logs or writes",
    };
    let (subject, shown) = (stanza.subject(), quoted(&text));
    let message = format!("{subject}: {list}.{name} {shown} is {} bytes{unit}, {so}", thousandths(milli));
    let finding = stanza.finding(ImplausibleQuantity::META.id, &[list, name], message);
    Some(if is_number(digits) { finding.mend(mend(list, name, &format!("{digits}Mi"))) } else { finding })
}

/// Whether another unit behind this text makes the quantity that was probably meant.
fn is_number(text: &str) -> bool {
    (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn mend(list: &str, name: &str, quantity: &str) -> String {
    format!("resources:\n  {list}:\n    {name}: {quantity}")
}

/// Thousandths as a decimal number: `400` is `0.4`.
fn thousandths(milli: i128) -> String {
    let text = format!("{}.{:03}", milli / 1000, milli % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{in_pod_spec, refused};

    /// Checks a container with these resources.
    fn container(resources: serde_json::Value) -> Vec<Finding> {
        let spec = json!({"containers": [{"name": "app", "resources": resources}]});
        in_pod_spec::<ImplausibleQuantity>(spec, json!({}))
    }

    #[test]
    fn h04_memory_in_thousandths_of_a_byte() {
        let findings = container(json!({"requests": {"cpu": "1", "memory": "400m"}}));
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].cap, findings[0].measure), (None, Some(1)));
        assert_eq!(findings[0].pointer, "/spec/template/spec/containers/0/resources/requests/memory");
        assert_eq!(
            findings[0].message,
            "container \"app\": requests.memory \"400m\" is 0.4 bytes (m means thousandths), as good as no request"
        );
        assert_eq!(findings[0].mend.as_deref(), Some("resources:\n  requests:\n    memory: 400Mi"));
        let memory = |quantity| container(json!({"requests": {"memory": quantity}})).len();
        assert_eq!([memory(json!("128")), memory(json!(0.4)), memory(json!("1023"))], [1, 1, 1]);
        assert_eq!([memory(json!("1Ki")), memory(json!(1024)), memory(json!("0")), memory(json!("-1"))], [0; 4]);
        // The shape that 1.1Gi takes at the API server is no mistake.
        assert_eq!([memory(json!("1181116006400m")), memory(json!("128974848000m"))], [0, 0]);
    }

    #[test]
    fn h04_a_thousand_cores() {
        let cores = |quantity| container(json!({"requests": {"cpu": quantity}})).len();
        assert_eq!([cores(json!("1000")), cores(json!(1000)), cores(json!("1k")), cores(json!("1E"))], [1; 4]);
        assert_eq!([cores(json!("1000m")), cores(json!("999")), cores(json!("999.999"))], [0; 3]);
        let said = |resources| container(resources).swap_remove(0).message;
        assert!(said(json!({"limits": {"cpu": 2000}})).contains("is 2000 cores, which is its request too"));
        assert!(said(json!({"limits": {"cpu": 2000}, "requests": {"cpu": 1}})).contains("as good as no limit"));
    }

    #[test]
    fn more_implausible_values_are_worse() {
        let both = container(json!({"requests": {"cpu": "1000", "memory": "1m"}}));
        assert_eq!(both.iter().map(|finding| finding.measure).collect::<Vec<_>>(), [Some(2), Some(2)]);
    }

    #[test]
    fn h08_all_classes_that_can_have_resources_and_the_pod_are_judged() {
        let tiny = json!({"limits": {"memory": "1m"}});
        let spec = json!({
            "resources": tiny,
            "containers": [{"name": "app", "resources": tiny}],
            "initContainers": [{"name": "init", "resources": tiny}, {"name": "proxy", "restartPolicy": "Always", "resources": tiny}],
            "ephemeralContainers": [{"name": "debug", "resources": tiny}],
        });
        let findings = in_pod_spec::<ImplausibleQuantity>(spec, json!({}));
        let containers: Vec<_> = findings.iter().map(|finding| finding.container.as_deref()).collect();
        assert_eq!(containers, [None, Some("app"), Some("init"), Some("proxy")]);
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        for resources in
            [json!("x"), json!([]), json!({"requests": "x"}), json!({"limits": {"memory": ["1m"], "cpu": true}})]
        {
            assert_eq!(container(resources), []);
        }
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        assert_eq!(refused::<ImplausibleQuantity>(json!({"minBytes": 0})), "minBytes");
        assert_eq!(refused::<ImplausibleQuantity>(json!({"implausibleCores": 1_000_001})), "implausibleCores");
    }
}

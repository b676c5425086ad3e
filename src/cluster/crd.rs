//! Whether the Rollout CRD lets a preStop `sleep` through.

use crate::engine::document::Value;
use crate::engine::facts::Known;

/// `metadata.name` of the CustomResourceDefinition.
pub(super) const ROLLOUTS: &str = "rollouts.argoproj.io";

/// The version that is judged (`engine::kind`).
const VERSION: &str = "v1alpha1";

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// From the schema's root to the seconds of a sleep; `[]` stands for a list's `items`. A `sleep` whose `seconds` are
/// not listed would lose them.
const SLEEP_SECONDS: [&str; 9] =
    ["spec", "template", "spec", "containers", "[]", "lifecycle", "preStop", "sleep", "seconds"];

/// Whether the API server keeps `spec.template.spec.containers[].lifecycle.preStop.sleep` of a Rollout; absent where the
/// CRD does not serve the version.
///
/// Members that a structural schema does not list are dropped, save below a node that preserves unknown ones. A member
/// that is listed there is under the schema's rule again (`skipPrune` in k8s.io/apiextensions-apiserver,
/// pkg/apiserver/schema/pruning/algorithm.go), so only the last node counts that is listed on the way.
pub(super) fn keeps_sleep(crd: &Value<'_>) -> Known<bool> {
    let spec = &crd["spec"];
    let served =
        |version: &&Value<'_>| version["name"].as_str() == Some(VERSION) && version["served"].as_bool() == Some(true);
    let Some(version) = spec["versions"].items().iter().find(served) else { return Known::Absent };
    let preserves = |node: &Value<'_>, member| node[member].as_bool() == Some(true);
    let mut node = version.at(&["schema", "openAPIV3Schema"]);
    if node.is_null() || preserves(spec, "preserveUnknownFields") {
        return Known::Known(true);
    }
    for step in SLEEP_SECONDS {
        let child = if step == "[]" { &node["items"] } else { node.at(&["properties", step]) };
        if child.is_null() {
            return Known::Known(preserves(node, PRESERVE));
        }
        node = child;
    }
    Known::Known(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schema node below these members.
    fn below(path: &[&str], node: &str) -> String {
        path.iter().rev().fold(node.to_owned(), |node, step| match *step {
            "[]" => format!(r#"{{"items":{node}}}"#),
            name => format!(r#"{{"properties":{{"{name}":{node}}}}}"#),
        })
    }

    fn crd(schema: &str) -> String {
        format!(
            r#"{{"spec":{{"versions":[{{"name":"v1","served":true}},
            {{"name":"v1alpha1","served":true,"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#
        )
    }

    fn pre_stop(node: &str) -> String {
        crd(&below(&["spec", "template", "spec", "containers", "[]", "lifecycle", "preStop"], node))
    }

    fn keeps(text: &str) -> Known<bool> {
        keeps_sleep(&Value::parse(text).unwrap())
    }

    const LISTED: &str = r#"{"properties":{"exec":{},"sleep":{"properties":{"seconds":{"type":"integer"}}}}}"#;
    const UNLISTED: &str = r#"{"properties":{"exec":{},"httpGet":{}}}"#;

    #[test]
    fn b12_a_sleep_is_kept_where_it_is_listed_or_what_is_not_listed_is_preserved() {
        assert_eq!(keeps(&pre_stop(LISTED)), Known::Known(true));
        assert_eq!(keeps(&pre_stop(UNLISTED)), Known::Known(false));
        let preserving = r#"{"x-kubernetes-preserve-unknown-fields":true,"properties":{"exec":{}}}"#;
        assert_eq!(keeps(&pre_stop(preserving)), Known::Known(true));
        assert_eq!(keeps(&pre_stop(r#"{"properties":{"sleep":{}}}"#)), Known::Known(false), "the seconds are dropped");
        let open = r#"{"properties":{"sleep":{"x-kubernetes-preserve-unknown-fields":true}}}"#;
        assert_eq!(keeps(&pre_stop(open)), Known::Known(true));
        let template = r#"{"x-kubernetes-preserve-unknown-fields":true}"#;
        assert_eq!(keeps(&crd(&below(&["spec", "template"], template))), Known::Known(true));

        let listed = below(&["spec", "containers", "[]", "lifecycle", "preStop"], UNLISTED);
        let above = listed.replacen('{', r#"{"x-kubernetes-preserve-unknown-fields":true,"#, 1);
        let listed_below = crd(&below(&["spec", "template"], &above));
        assert_eq!(keeps(&listed_below), Known::Known(false), "what is listed below is pruned again");
    }

    #[test]
    fn b12_without_a_schema_everything_is_kept_and_what_is_not_served_is_absent() {
        let version = |rest: &str| format!(r#"{{"spec":{{"versions":[{{"name":"v1alpha1",{rest}}}]}}}}"#);
        assert_eq!(keeps(&version(r#""served":true"#)), Known::Known(true));
        assert_eq!(keeps(&version(r#""served":false"#)), Known::Absent);
        assert_eq!(keeps("{}"), Known::Absent);
        let old = pre_stop(UNLISTED).replacen(r#"{"spec":{"#, r#"{"spec":{"preserveUnknownFields":true,"#, 1);
        assert_eq!(keeps(&old), Known::Known(true), "converted from v1beta1");
    }
}

//! Who set a value: the author, the API server's defaults, or we.

use super::document::Value;
use super::kind::Kind;

/// A place that a rule's fix writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Managed {
    /// Where it is.
    pub place: Place,
    /// What the API server fills in where nobody sets it, as JSON text; `None`: nothing. Kinds that are not defaulted
    /// never have one.
    pub default: Option<&'static str>,
}

/// Where a managed place is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Below the regular container that the marker entry names.
    Container(&'static [&'static str]),
    /// Below the template's `spec`.
    PodSpec(&'static [&'static str]),
    /// An annotation of the template.
    TemplateAnnotation(String),
    /// From the object's root, for the kind (its name) it is given for.
    Object(&'static str, &'static [&'static str]),
}

/// Whether the author set the value at this path (members from the root; list elements by index are not supported).
///
/// For kinds that the API server defaults, a value equal to the default counts as not set unless an `Apply` entry of
/// `metadata.managedFields` or `last-applied-configuration` names the field (TRAPS B13); `Update` entries prove
/// nothing, they own defaulted fields too. Elsewhere what is present was set.
pub fn author_set(object: &Value<'_>, kind: &Kind, path: &[&str], default: &Value<'_>) -> bool {
    let value = object.at(path);
    if value.is_null() {
        return false;
    }
    if !kind.defaulted || value != default {
        return true;
    }
    applied(object, path)
}

/// Whether somebody's manifest names the field: by server-side apply, or by `kubectl apply`, which leaves what it sent
/// in an annotation. What came through a subresource (`scale`) is no manifest, and text that is not what it should be
/// proves nothing.
pub fn applied(object: &Value<'_>, path: &[&str]) -> bool {
    let metadata = object.get("metadata");
    in_managed_fields(&metadata["managedFields"], path)
        || in_last_applied(&metadata["annotations"]["kubectl.kubernetes.io/last-applied-configuration"], path)
}

fn in_managed_fields(entries: &Value<'_>, path: &[&str]) -> bool {
    match entries {
        // Most objects have no `Apply` entry, and their `Update` entries need not be parsed to know it.
        Value::Raw(text) => text.contains("\"Apply\"") && Value::parse(text).is_ok_and(|all| any_applies(&all, path)),
        parsed => any_applies(parsed, path),
    }
}

fn any_applies(entries: &Value<'_>, path: &[&str]) -> bool {
    let manifest = |entry: &&Value<'_>| {
        entry["operation"].as_str() == Some("Apply") && entry["subresource"].as_str().unwrap_or_default().is_empty()
    };
    entries.items().iter().filter(manifest).any(|entry| {
        let fields = path
            .iter()
            .try_fold(&entry["fieldsV1"], |fields, segment| fields.as_object()?.get(format!("f:{segment}").as_str()));
        fields.is_some()
    })
}

fn in_last_applied(annotation: &Value<'_>, path: &[&str]) -> bool {
    let (Some(text), Some(last)) = (annotation.as_str(), path.last()) else { return false };
    text.contains(last) && Value::parse(text).is_ok_and(|object| !object.at(path).is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kind;

    const PATH: [&str; 4] = ["spec", "strategy", "rollingUpdate", "maxUnavailable"];
    const FIELDS: &str = r#"{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxUnavailable":{}}}}}"#;

    /// A Deployment with `maxUnavailable: 25%` and this metadata: whether the author set it.
    fn set(metadata: &str) -> bool {
        let text = format!(
            r#"{{"metadata":{metadata},"spec":{{"strategy":{{"rollingUpdate":{{"maxUnavailable":"25%"}}}}}}}}"#
        );
        author_set(&Value::parse(&text).unwrap(), deployment(), &PATH, &Value::from("25%"))
    }

    fn deployment() -> &'static Kind {
        kind::lookup("apps", "Deployment").unwrap()
    }

    fn managed(operation: &str, fields: &str) -> String {
        format!(
            r#"{{"managedFields":[{{"manager":"m","operation":"{operation}","fieldsType":"FieldsV1","fieldsV1":{fields}}}]}}"#
        )
    }

    fn last_applied(text: &str) -> String {
        let text = serde_json::Value::from(text);
        format!(r#"{{"annotations":{{"kubectl.kubernetes.io/last-applied-configuration":{text}}}}}"#)
    }

    #[test]
    fn b13_a_default_that_nobody_applied_is_not_the_authors() {
        assert!(!set("{}"));
        assert!(!set(&managed("Apply", r#"{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxSurge":{}}}}}"#)));
        assert!(!set(&managed("Apply", r#"{"f:spec":{"f:strategy":{"f:type":{}}}}"#)));
        assert!(!set(&managed("Apply", r#"{"f:spec":{"f:strategy":{"f:rollingUpdate":{}}}}"#)));
        assert!(!set(&last_applied(r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1}}}}"#)));
        assert!(!set(&last_applied(r#"{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":null}}}}"#)));
    }

    #[test]
    fn b13_an_applied_default_is_the_authors() {
        assert!(set(&managed("Apply", FIELDS)));
        assert!(set(&last_applied(r#"{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":"25%"}}}}"#)));
    }

    #[test]
    fn b13_update_entries_prove_nothing() {
        assert!(!set(&managed("Update", FIELDS)));
        let both = format!(
            r#"{{"managedFields":[{{"operation":"Update","fieldsV1":{FIELDS}}},{{"operation":"Apply","fieldsV1":{{"f:spec":{{"f:replicas":{{}}}}}}}}]}}"#
        );
        assert!(!set(&both));
    }

    #[test]
    fn b13_an_apply_to_a_subresource_is_no_manifest() {
        let entry = |more: &str| {
            let text = format!(
                r#"{{"metadata":{{"managedFields":[{{"operation":"Apply",{more}"fieldsV1":{{"f:spec":{{"f:replicas":{{}}}}}}}}]}}}}"#
            );
            applied(&Value::parse(&text).unwrap(), &["spec", "replicas"])
        };
        assert!(entry("") && entry(r#""subresource":"","#) && !entry(r#""subresource":"scale","#));
    }

    #[test]
    fn b14_another_value_is_the_authors_whoever_wrote_it() {
        let text = r#"{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":1}}}}"#;
        assert!(author_set(&Value::parse(text).unwrap(), deployment(), &PATH, &Value::from("25%")));
    }

    #[test]
    fn nobody_sets_what_is_absent_and_crds_have_no_defaults() {
        let empty = Value::parse("{}").unwrap();
        assert!(!author_set(&empty, deployment(), &PATH, &Value::from("25%")));
        let rollout = kind::lookup("argoproj.io", "Rollout").unwrap();
        let canary = Value::parse(r#"{"spec":{"strategy":{"canary":{"maxUnavailable":"25%"}}}}"#).unwrap();
        assert!(author_set(&canary, rollout, &["spec", "strategy", "canary", "maxUnavailable"], &Value::from("25%")));
    }

    #[test]
    fn nonsense_proves_nothing() {
        for metadata in [
            "null",
            "[]",
            r#"{"managedFields":"Apply"}"#,
            r#"{"managedFields":{"operation":"Apply"}}"#,
            r#"{"managedFields":["Apply",null,7,{"operation":"Apply"},{"operation":"Apply","fieldsV1":"f:spec"}]}"#,
            r#"{"managedFields":[{"operation":"Apply","fieldsV1":{"f:spec":["f:strategy"]}}]}"#,
            r#"{"annotations":["Apply"]}"#,
            r#"{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":{"spec":1}}}"#,
        ] {
            assert!(!set(metadata), "{metadata}");
        }
        for text in ["", "maxUnavailable", "{\"maxUnavailable\":", "[\"maxUnavailable\"]", "\u{0}maxUnavailable"] {
            assert!(!set(&last_applied(text)), "{text}");
        }
        let deep = format!("{}\"maxUnavailable\"{}", "[".repeat(500), "]".repeat(500));
        assert!(!set(&last_applied(&deep)));
    }
}

//! The few members of cluster objects that facts are made of. Everything else is skipped, so that a newer API server's
//! members never fail.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::config::Source;
use crate::config::digest::{Content, InvalidBase64};
use crate::engine::document::Value;
use crate::engine::facts::{Quota, Revision};
use crate::engine::neighbours::{Labels, Requirement, labels};

/// Go reads a `null` string as an empty one.
type Texts = Option<BTreeMap<String, Option<String>>>;

/// A ConfigMap or a Secret.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigObject {
    data: Texts,
    binary_data: Texts,
    string_data: Texts,
    immutable: Option<bool>,
}

/// What a ConfigMap or a Secret says to those who may ask.
pub(super) struct Config {
    pub(super) content: Content,
    pub(super) immutable: bool,
}

impl ConfigObject {
    /// Its content, as an object of this kind.
    pub(super) fn config(self, source: Source) -> Result<Config, InvalidBase64> {
        let texts = |texts: Texts| {
            let texts = texts.unwrap_or_default().into_iter();
            texts.map(|(key, value)| (key, value.unwrap_or_default())).collect()
        };
        let content = match source {
            Source::ConfigMap => Content::config_map(texts(self.data), texts(self.binary_data)),
            Source::Secret => Content::secret(texts(self.data), texts(self.string_data)),
        }?;
        Ok(Config { content, immutable: self.immutable == Some(true) })
    }
}

/// `metadata`, as far as it is used.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
}

#[derive(Deserialize)]
struct OwnerReference {
    #[serde(default)]
    uid: String,
    controller: Option<bool>,
}

impl Metadata {
    /// `uid` of the controller that owns the object; `None` where no controller does.
    pub(super) fn controller(&self) -> Option<&str> {
        let owners = self.owner_references.as_deref().unwrap_or_default();
        owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
    }
}

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct List<T> {
    #[serde(default = "Option::default")]
    metadata: Option<ListMetadata>,
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue")]
    rest: Option<String>,
}

impl<T> List<T> {
    /// Its items; `None` where the server has more of them than one page.
    pub(super) fn complete(self) -> Option<Vec<T>> {
        let rest = self.metadata.and_then(|metadata| metadata.rest).unwrap_or_default();
        rest.is_empty().then(|| self.items.unwrap_or_default())
    }
}

/// What a surge pod must know of a ResourceQuota; `None` where it has no name.
pub(super) fn quota(object: &Value<'_>) -> Option<Quota> {
    let name = object["metadata"]["name"].as_str()?.to_owned();
    let mut hard: Vec<String> = object["spec"]["hard"].members().map(|(key, _)| key.to_owned()).collect();
    hard.sort();
    let scopes = object["spec"]["scopes"].items().iter().filter_map(Value::as_str).map(Requirement::exists);
    let selected = object["spec"]["scopeSelector"]["matchExpressions"].items();
    // One that cannot be read may count the pod.
    let selected = selected.iter().filter_map(|expression| Requirement::read(expression, "scopeName"));
    Some(Quota { name, hard, scopes: scopes.chain(selected).collect() })
}

/// Whether a LimitRange gives containers a cpu or memory request or limit that they did not ask for. The API server
/// makes defaults of `max` and `min` too where none are given (`SetDefaults_LimitRangeItem` in k8s.io/kubernetes,
/// pkg/apis/core/v1/defaults.go).
pub(super) fn sets_defaults(object: &Value<'_>) -> bool {
    let limits = object["spec"]["limits"].items().iter();
    limits.filter(|limit| limit["type"].as_str() == Some("Container")).any(|limit| {
        let amounts = ["default", "defaultRequest", "max", "min"].map(|member| &limit[member]);
        amounts.iter().any(|amounts| amounts.members().any(|(name, _)| matches!(name, "cpu" | "memory")))
    })
}

/// `metadata.labels` of any object.
pub(super) fn metadata_labels(object: &Value<'_>) -> Labels {
    labels(&object["metadata"]["labels"])
}

/// A ReplicaSet (`spec.template`) or a ControllerRevision (`data.spec.template`). Other controllers keep data of other
/// shapes in ControllerRevisions, so both members stay text until the owner is known.
#[derive(Deserialize)]
pub(super) struct RevisionObject<'a> {
    #[serde(default)]
    pub(super) metadata: Metadata,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

impl RevisionObject<'_> {
    /// The revision; `None` where it holds no template.
    pub(super) fn revision(self) -> Option<Revision> {
        let template = match (member(self.spec, "template"), member(self.data, "spec")) {
            (Some(template), _) => template.get().to_owned(),
            (None, spec) => {
                // Controllers store a patch that replaces the template; the directive is no part of it.
                let mut template = Value::parse(member(spec, "template")?.get()).ok()?;
                template.remove(&["$patch"], 0);
                template.to_string()
            }
        };
        Some(Revision { name: self.metadata.name, template })
    }
}

/// The text of one member; `None` where it is absent or `null`, or this is no object.
fn member<'a>(object: Option<&'a RawValue>, name: &str) -> Option<&'a RawValue> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(object?.get()).ok()?;
    members.remove(name).filter(|value| value.get() != "null")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::neighbours::Operator;

    fn sets_defaults(limits: &str) -> bool {
        let text = format!(r#"{{"spec":{{"limits":[{limits}]}}}}"#);
        super::sets_defaults(&Value::parse(&text).unwrap())
    }

    #[test]
    fn h02_a_limit_range_counts_where_it_gives_containers_requests_or_limits() {
        assert!(sets_defaults(r#"{"type":"Container","default":{"cpu":"1"}}"#));
        assert!(sets_defaults(r#"{"type":"Container","defaultRequest":{"memory":"1Gi"}}"#));
        assert!(sets_defaults(r#"{"type":"Pod","max":{"cpu":"1"}},{"type":"Container","max":{"cpu":1}}"#));
        assert!(!sets_defaults(r#"{"type":"Pod","max":{"cpu":"1"}}"#));
        assert!(!sets_defaults(r#"{"type":"Container","default":{"ephemeral-storage":"1Gi"},"max":null}"#));
        assert!(!super::sets_defaults(&Value::parse("{}").unwrap()));
    }

    #[test]
    fn c20_both_ways_to_scope_a_quota_are_read() {
        let text = r#"{"metadata":{"name":"q"},"spec":{"hard":{"pods":"4","cpu":"1"},"scopes":["BestEffort",7],
            "scopeSelector":{"matchExpressions":[
                {"scopeName":"PriorityClass","operator":"In","values":["high"]},{"scopeName":"X","operator":"?"}]}}}"#;
        let quota = quota(&Value::parse(text).unwrap()).unwrap();
        assert_eq!(quota.hard, ["cpu", "pods"]);
        let class =
            Requirement { key: "PriorityClass".to_owned(), operator: Operator::In, values: vec!["high".to_owned()] };
        assert_eq!(quota.scopes, [Requirement::exists("BestEffort"), class]);
    }

    #[test]
    fn c14_templates_of_both_stores_as_they_were_written() {
        let replica_set = r#"{"metadata":{"name":"a-1"},"spec":{"template":{"spec":{"x": 1.50}}}}"#;
        let revision = serde_json::from_str::<RevisionObject<'_>>(replica_set).unwrap().revision().unwrap();
        assert_eq!((revision.name.as_str(), revision.template.as_str()), ("a-1", r#"{"spec":{"x": 1.50}}"#));

        let stored = r#"{"metadata":{"name":"a-1"},"data":{"spec":{"template":{"$patch":"replace","spec":{"x":1}}}}}"#;
        let revision = serde_json::from_str::<RevisionObject<'_>>(stored).unwrap().revision().unwrap();
        assert_eq!(revision.template, r#"{"spec":{"x":1}}"#);

        for other in [r#"{"spec":null,"data":null}"#, r#"{"data":"x"}"#, r#"{"data":{"spec":[1]}}"#, r#"{"spec":{}}"#] {
            assert_eq!(serde_json::from_str::<RevisionObject<'_>>(other).unwrap().revision(), None, "{other}");
        }
    }

    #[test]
    fn only_a_controller_owns_and_a_further_page_is_no_complete_list() {
        let owned = r#"{"ownerReferences":[{"uid":"u1"},{"uid":"u2","controller":true}],"newer":1}"#;
        assert_eq!(serde_json::from_str::<Metadata>(owned).unwrap().controller(), Some("u2"));
        assert_eq!(serde_json::from_str::<Metadata>(r#"{"ownerReferences":null}"#).unwrap().controller(), None);

        let page = |text| {
            let list: List<&RawValue> = serde_json::from_str(text).unwrap();
            list.complete().map(|items| items.len())
        };
        assert_eq!(page(r#"{"metadata":{"continue":""},"items":[{"spec":{"hard":{"pods":"4"}}}]}"#), Some(1));
        assert_eq!(page(r#"{"metadata":{"continue":"token"},"items":[]}"#), None);
        assert_eq!(page(r#"{"items":null}"#), Some(0));
    }
}

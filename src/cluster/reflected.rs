//! What is watched, and how an object becomes what is kept of it: its text is parsed, read by the one reader that every
//! source shares, and dropped.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::object;
use crate::engine::document::Value;
use crate::engine::facts::Quota;
use crate::engine::neighbours::{Autoscaler, Budget, Claim, Labels, Service, Workload};

/// A kind that is watched in all namespaces.
pub(super) trait Kind: Clone + fmt::Debug + Send + Sync + 'static {
    /// What is kept of one object.
    type Kept: Clone + fmt::Debug + Send + Sync + 'static;
    /// API group, `""` for core.
    const GROUP: &'static str;
    /// API version.
    const VERSION: &'static str;
    /// `kind` as in a manifest.
    const KIND: &'static str;
    /// Resource, plural.
    const PLURAL: &'static str;
    /// Only these are listed and watched, a label selector; empty: all.
    const LABELS: &'static str = "";
    /// Whether only `metadata` is asked for.
    const METADATA_ONLY: bool = false;
    /// Whether an API server may well not serve it; then there are none.
    const MAY_BE_MISSING: bool = false;

    /// What is kept of this object; `None`: nothing, as if it were not there.
    fn read(object: &Value<'_>) -> Option<Self::Kept>;
}

/// One kind a line: what is kept, where it is served, how it is read, and what differs from the rule.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident($kept:ty) = $group:literal $version:literal $kind:literal $plural:literal,
        $read:expr $(, $constant:ident: $type:ty = $value:expr)*;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub(super) struct $name;
        impl Kind for $name {
            type Kept = $kept;
            const GROUP: &'static str = $group;
            const VERSION: &'static str = $version;
            const KIND: &'static str = $kind;
            const PLURAL: &'static str = $plural;
            $(const $constant: $type = $value;)*
            fn read(object: &Value<'_>) -> Option<$kept> {
                $read(object)
            }
        }
    )*};
}

kinds! {
    Quotas(Quota) = "" "v1" "ResourceQuota" "resourcequotas", object::quota;
    /// Kept: whether it sets container defaults.
    LimitRanges(bool) = "" "v1" "LimitRange" "limitranges", |range| Some(object::sets_defaults(range));
    Namespaces(Labels) = "" "v1" "Namespace" "namespaces", |namespace| Some(object::metadata_labels(namespace)),
        METADATA_ONLY: bool = true;
    Budgets(Budget) = "policy" "v1" "PodDisruptionBudget" "poddisruptionbudgets", Budget::read;
    Autoscalers(Autoscaler) = "autoscaling" "v2" "HorizontalPodAutoscaler" "horizontalpodautoscalers", Autoscaler::read;
    Services(Service) = "" "v1" "Service" "services", Service::read;
    Claims(Claim) = "" "v1" "PersistentVolumeClaim" "persistentvolumeclaims", Claim::read;
    DaemonSets(Workload) = "apps" "v1" "DaemonSet" "daemonsets", |object| Workload::read("apps", "DaemonSet", object);
    Deployments(Workload) = "apps" "v1" "Deployment" "deployments", |object| Workload::read("apps", "Deployment", object);
    /// The revisions of Deployments and Rollouts, ten times as many as these, are left out by the label that their
    /// controllers always set. So is, wrongly, a ReplicaSet that outlived its Deployment (`--cascade=orphan`).
    ReplicaSets(Workload) = "apps" "v1" "ReplicaSet" "replicasets", |object| Workload::read("apps", "ReplicaSet", object),
        LABELS: &'static str = "!pod-template-hash,!rollouts-pod-template-hash";
    Rollouts(Workload) = "argoproj.io" "v1alpha1" "Rollout" "rollouts",
        |object| Workload::read("argoproj.io", "Rollout", object), MAY_BE_MISSING: bool = true;
    StatefulSets(Workload) = "apps" "v1" "StatefulSet" "statefulsets",
        |object| Workload::read("apps", "StatefulSet", object);
}

/// An object of a list or a watch: where it stands, and what is kept of it.
#[derive(Debug, Clone)]
pub(super) struct Reflected<K: Kind> {
    /// Name, namespace and resource version; nothing else is filled in.
    metadata: ObjectMeta,
    pub(super) kept: Option<K::Kept>,
}

impl<K: Kind> Reflected<K> {
    /// Namespace, `""` for what is in none.
    pub(super) fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Never fails: one strange object must not cost the facts of all others.
    fn read(text: &str) -> Self {
        match Value::parse(text) {
            Ok(object) => {
                let member = |name| object["metadata"][name].as_str().map(str::to_owned);
                let metadata = ObjectMeta {
                    name: member("name"),
                    namespace: member("namespace"),
                    resource_version: member("resourceVersion"),
                    ..ObjectMeta::default()
                };
                Reflected { metadata, kept: K::read(&object) }
            }
            // Nested too deeply for a document, as custom resources can be. Without its resource version the watch
            // would have to start anew.
            Err(_) => Reflected { metadata: Place::read(text), kept: None },
        }
    }
}

/// Where an object stands.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

impl Place {
    fn read(text: &str) -> ObjectMeta {
        #[derive(Deserialize)]
        struct Placed {
            metadata: Place,
        }
        let Ok(Placed { metadata: Place { name, namespace, resource_version } }) = serde_json::from_str(text) else {
            return ObjectMeta::default();
        };
        ObjectMeta { name, namespace, resource_version, ..ObjectMeta::default() }
    }
}

impl<'de, K: Kind> Deserialize<'de> for Reflected<K> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Reflected::read(text.get()))
    }
}

impl<K: Kind> kube::Resource for Reflected<K> {
    type DynamicType = ();
    type Scope = kube::core::DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::KIND.into()
    }
    fn group((): &()) -> Cow<'_, str> {
        K::GROUP.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        K::VERSION.into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        K::PLURAL.into()
    }
    fn metadata_api() -> bool {
        K::METADATA_ONLY
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::api::{ObjectList, WatchEvent};
    use proptest::prelude::*;

    use super::*;

    /// Objects of the members that readers look for, and of anything else.
    fn json() -> impl Strategy<Value = String> {
        let name = prop::sample::select(vec![
            "metadata",
            "name",
            "namespace",
            "resourceVersion",
            "labels",
            "ownerReferences",
            "controller",
            "spec",
            "selector",
            "matchLabels",
            "matchExpressions",
            "operator",
            "values",
            "minAvailable",
            "hard",
            "limits",
            "type",
            "max",
            "scaleTargetRef",
            "apiVersion",
            "kind",
            "minReplicas",
            "maxReplicas",
            "accessModes",
            "replicas",
            "template",
            "containers",
            "initContainers",
            "restartPolicy",
            "ports",
            "containerPort",
            "managedFields",
        ]);
        let leaf = prop::sample::select(vec![
            "null",
            "true",
            "0",
            "-1",
            "1.5",
            "1e400",
            "99999999999999999999",
            r#""""#,
            r#""Always""#,
            r#""In""#,
            r#""Container""#,
            r#""apps/v1""#,
            r#""\u0000""#,
            r#""\ud800""#,
            "[]",
            "{}",
        ]);
        leaf.prop_map(str::to_owned).prop_recursive(8, 64, 6, move |inner| {
            let members = prop::collection::vec((name.clone(), inner.clone()), 0..6);
            prop_oneof![
                1 => prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
                4 => members.prop_map(|members| {
                    let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        })
    }

    /// As an item of a list and as the object of a watch.
    fn take<K: Kind>(text: &str) {
        let list = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{text}]}}"#);
        assert_eq!(serde_json::from_str::<ObjectList<Reflected<K>>>(&list).unwrap().items.len(), 1, "{text}");
        let event = format!(r#"{{"type":"ADDED","object":{text}}}"#);
        assert!(serde_json::from_str::<WatchEvent<Reflected<K>>>(&event).is_ok(), "{text}");
    }

    proptest! {
        #[test]
        fn whatever_an_object_holds_it_is_read_or_left_out(text in json()) {
            take::<Quotas>(&text);
            take::<LimitRanges>(&text);
            take::<Namespaces>(&text);
            take::<Budgets>(&text);
            take::<Autoscalers>(&text);
            take::<Services>(&text);
            take::<Claims>(&text);
            take::<DaemonSets>(&text);
            take::<Deployments>(&text);
            take::<ReplicaSets>(&text);
            take::<Rollouts>(&text);
            take::<StatefulSets>(&text);
        }
    }

    #[test]
    fn an_object_that_is_nested_too_deeply_keeps_its_place_in_the_watch() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let text = format!(
            r#"{{"spec":{deep},"metadata":{{"name":"r","namespace":"shop","resourceVersion":"7","labels":{{"a":{deep}}}}}}}"#
        );
        let rollout: Reflected<Rollouts> = serde_json::from_str(&text).unwrap();
        assert_eq!((rollout.namespace(), rollout.name(), rollout.kept.is_some()), ("shop", "r", false));
        assert_eq!(rollout.metadata.resource_version.as_deref(), Some("7"));
    }
}

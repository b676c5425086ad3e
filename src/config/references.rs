//! Which ConfigMaps and Secrets a pod spec reads (TRAPS F11, F13).

use std::collections::{BTreeMap, BTreeSet};

use super::{Reference, Source};
use crate::engine::document::Value;

/// Published by the control plane into every namespace; its rotation is no change of anybody's configuration.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Name prefix of the volume that admission adds for the service account's token.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// The ConfigMaps, and with `secrets` the Secrets, that this pod spec reads: one reference per object, sorted.
///
/// Read are `env`, `envFrom` and volumes (`configMap`, `secret`, `projected`) of regular containers, init containers and
/// sidecars. Not read are ephemeral containers (they are no part of a template), image pull secrets, service-account
/// tokens with the root CA beside them, and the credentials of storage drivers: the kubelet uses those, not the
/// program.
///
/// With `hot_reload` the program follows its files by itself: a volume only counts where it is mounted with a `subPath`,
/// which the kubelet never updates (TRAPS F13).
///
/// Names come as the author wrote them. One that cannot be an object's name stays in the list, because its pods will
/// wait for it; whoever looks references up must not make a URL of it (TRAPS J03).
pub fn references(spec: &Value<'_>, secrets: bool, hot_reload: bool) -> Vec<Reference> {
    let mut uses = Uses { secrets, ..Uses::default() };
    let mut frozen = BTreeSet::new();
    for container in ["containers", "initContainers"].into_iter().flat_map(|list| spec[list].items()) {
        for from in container["env"].items().iter().map(|variable| &variable["valueFrom"]) {
            uses.add(Source::ConfigMap, &from["configMapKeyRef"], "name", Keys::One);
            uses.add(Source::Secret, &from["secretKeyRef"], "name", Keys::One);
        }
        for from in container["envFrom"].items() {
            uses.add(Source::ConfigMap, &from["configMapRef"], "name", Keys::All);
            uses.add(Source::Secret, &from["secretRef"], "name", Keys::All);
        }
        for mount in container["volumeMounts"].items() {
            let frozen_path = ["subPath", "subPathExpr"].iter().any(|field| !text(&mount[*field]).is_empty());
            if frozen_path {
                frozen.insert(text(&mount["name"]));
            }
        }
    }
    for volume in spec["volumes"].items() {
        let name = text(&volume["name"]);
        if name.starts_with(TOKEN_VOLUME) || (hot_reload && !frozen.contains(name)) {
            continue;
        }
        uses.add(Source::ConfigMap, &volume["configMap"], "name", Keys::Items);
        uses.add(Source::Secret, &volume["secret"], "secretName", Keys::Items);
        for source in volume.at(&["projected", "sources"]).items() {
            uses.add(Source::ConfigMap, &source["configMap"], "name", Keys::Items);
            uses.add(Source::Secret, &source["secret"], "name", Keys::Items);
        }
    }
    uses.into_references()
}

/// Where one use says which keys it wants.
enum Keys {
    /// It takes the whole object.
    All,
    /// In `key`.
    One,
    /// In `items[].key`; no items means the whole object.
    Items,
}

impl Keys {
    /// The keys that this use names; `None`: the whole object, also where a key is missing or no string, because then
    /// it is unclear what is meant.
    fn of(&self, value: &Value<'_>) -> Option<BTreeSet<String>> {
        let key = |value: &Value<'_>| value["key"].as_str().map(str::to_owned);
        match self {
            Keys::All => None,
            Keys::One => Some(BTreeSet::from([key(value)?])),
            Keys::Items => {
                let keys = value["items"].items().iter().map(key).collect::<Option<BTreeSet<_>>>()?;
                (!keys.is_empty()).then_some(keys)
            }
        }
    }
}

/// The uses so far, merged per object.
#[derive(Default)]
struct Uses {
    secrets: bool,
    merged: BTreeMap<(Source, String), Merged>,
}

struct Merged {
    keys: Option<BTreeSet<String>>,
    optional: bool,
}

impl Uses {
    fn add(&mut self, source: Source, value: &Value<'_>, name: &str, keys: Keys) {
        let name = text(&value[name]);
        let counts = match source {
            Source::ConfigMap => name != ROOT_CA,
            Source::Secret => self.secrets,
        };
        if name.is_empty() || !counts {
            return;
        }
        let keys = keys.of(value);
        let optional = value["optional"].as_bool() == Some(true);
        self.merged
            .entry((source, name.to_owned()))
            .and_modify(|merged| {
                merged.optional &= optional;
                merged.keys = match (merged.keys.take(), &keys) {
                    (Some(before), Some(more)) => Some(before.union(more).cloned().collect()),
                    _ => None,
                };
            })
            .or_insert(Merged { keys, optional });
    }

    fn into_references(self) -> Vec<Reference> {
        let merged = self.merged.into_iter();
        merged.map(|((source, name), Merged { keys, optional })| Reference { source, name, keys, optional }).collect()
    }
}

fn text<'v>(value: &'v Value<'_>) -> &'v str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// `ConfigMap/name`, the keys in brackets where keys are named, `?` where optional.
    fn found(spec: &serde_json::Value, secrets: bool, hot_reload: bool) -> Vec<String> {
        let text = spec.to_string();
        let show = |reference: Reference| {
            let keys = reference.keys.map(|keys| format!("{:?}", Vec::from_iter(keys))).unwrap_or_default();
            let optional = if reference.optional { "?" } else { "" };
            format!("{}/{}{keys}{optional}", reference.source, reference.name)
        };
        references(&Value::parse(&text).unwrap(), secrets, hot_reload).into_iter().map(show).collect()
    }

    #[test]
    fn f11_every_way_to_read_an_object_is_found_once() {
        let spec = json!({
            "containers": [{
                "env": [
                    {"name": "A", "value": "x"},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "env-key", "key": "b"}}},
                    {"name": "C", "valueFrom": {"secretKeyRef": {"name": "env-secret", "key": "c"}}},
                    {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "envFrom": [{"prefix": "P_", "configMapRef": {"name": "env-all"}}, {"secretRef": {"name": "from-secret"}}],
            }],
            "initContainers": [
                {"envFrom": [{"configMapRef": {"name": "init"}}]},
                {"restartPolicy": "Always", "envFrom": [{"configMapRef": {"name": "sidecar"}}]},
            ],
            "volumes": [
                {"name": "v1", "configMap": {"name": "volume"}},
                {"name": "v2", "secret": {"secretName": "volume-secret"}},
                {"name": "v3", "projected": {"sources": [
                    {"configMap": {"name": "projected"}},
                    {"secret": {"name": "projected-secret"}},
                    {"configMap": {"name": "env-all"}},
                ]}},
            ],
        });
        let config_maps = [
            "ConfigMap/env-all",
            "ConfigMap/env-key[\"b\"]",
            "ConfigMap/init",
            "ConfigMap/projected",
            "ConfigMap/sidecar",
            "ConfigMap/volume",
        ];
        let secrets =
            ["Secret/env-secret[\"c\"]", "Secret/from-secret", "Secret/projected-secret", "Secret/volume-secret"];
        assert_eq!(found(&spec, false, false), config_maps);
        assert_eq!(found(&spec, true, false), [&config_maps[..], &secrets[..]].concat());
    }

    #[test]
    fn f11_what_is_no_configuration_of_the_program_is_left_out() {
        let spec = json!({
            "imagePullSecrets": [{"name": "pull"}],
            "ephemeralContainers": [{"envFrom": [{"configMapRef": {"name": "debug"}}]}],
            "volumes": [
                {"name": "kube-api-access-x7x2k", "projected": {"sources": [
                    {"serviceAccountToken": {"path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt"}},
                    {"configMap": {"name": "openshift-service-ca.crt"}},
                ]}},
                {"name": "mine", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}},
                {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
                {"name": "csi", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
                {"name": "ceph", "cephfs": {"secretRef": {"name": "ceph"}}},
                {"name": "rbd", "rbd": {"secretRef": {"name": "rbd"}}},
                {"name": "iscsi", "iscsi": {"secretRef": {"name": "iscsi"}}},
                {"name": "null", "projected": {"sources": null}},
                {"name": "nameless", "configMap": {}},
            ],
        });
        assert_eq!(found(&spec, true, false), Vec::<String>::new());
    }

    #[test]
    fn f11_keys_count_only_where_every_use_names_keys_and_optional_where_every_use_is() {
        let spec = json!({
            "containers": [{"env": [
                {"valueFrom": {"configMapKeyRef": {"name": "keys", "key": "b", "optional": true}}},
                {"valueFrom": {"configMapKeyRef": {"name": "whole", "key": "b", "optional": true}}},
            ]}],
            "volumes": [
                {"name": "a", "configMap": {"name": "keys", "optional": true, "items": [{"key": "a", "path": "p"}]}},
                {"name": "b", "configMap": {"name": "whole", "items": []}},
                {"name": "c", "configMap": {"name": "vague", "items": [{"key": "a"}, {"path": "p"}]}},
            ],
        });
        assert_eq!(found(&spec, false, false), ["ConfigMap/keys[\"a\", \"b\"]?", "ConfigMap/vague", "ConfigMap/whole"]);
    }

    #[test]
    fn f13_hot_reload_leaves_volumes_out_unless_a_sub_path_freezes_them() {
        let spec = json!({
            "containers": [
                {"volumeMounts": [{"name": "v1", "mountPath": "/a"}, {"name": "v2", "mountPath": "/b"}]},
                {"volumeMounts": [{"name": "v1", "mountPath": "/a", "subPath": "file"}]},
            ],
            "initContainers": [
                {"restartPolicy": "Always", "volumeMounts": [{"name": "v4", "subPathExpr": "$(A)"}]},
                {"env": [{"valueFrom": {"configMapKeyRef": {"name": "c3", "key": "k"}}}]},
            ],
            "volumes": [
                {"name": "v1", "configMap": {"name": "c1"}},
                {"name": "v2", "configMap": {"name": "c2"}},
                {"name": "v3", "configMap": {"name": "c3"}},
                {"name": "v4", "projected": {"sources": [{"configMap": {"name": "c4"}}]}},
            ],
        });
        assert_eq!(found(&spec, false, true), ["ConfigMap/c1", "ConfigMap/c3[\"k\"]", "ConfigMap/c4"]);
        assert_eq!(found(&spec, false, false), ["ConfigMap/c1", "ConfigMap/c2", "ConfigMap/c3", "ConfigMap/c4"]);
    }

    /// JSON in which the members that matter turn up often, with values of every type.
    fn nonsense() -> impl Strategy<Value = serde_json::Value> {
        let member = prop::sample::select(vec![
            "containers",
            "initContainers",
            "env",
            "valueFrom",
            "configMapKeyRef",
            "secretKeyRef",
            "envFrom",
            "configMapRef",
            "secretRef",
            "volumeMounts",
            "subPath",
            "volumes",
            "configMap",
            "secret",
            "secretName",
            "projected",
            "sources",
            "items",
            "key",
            "name",
            "optional",
        ]);
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            ".{0,8}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(8, 128, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                prop::collection::vec((member.clone(), inner), 0..6).prop_map(|members| {
                    members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect::<serde_json::Map<_, _>>()
                        .into()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn a23_nonsense_never_panics_and_the_answer_is_sorted_and_free_of_doubles(
            spec in nonsense(), secrets: bool, hot_reload: bool
        ) {
            let text = spec.to_string();
            let references = references(&Value::parse(&text).unwrap(), secrets, hot_reload);
            let objects: Vec<_> = references.iter().map(|reference| (reference.source, &reference.name)).collect();
            prop_assert!(objects.is_sorted_by(|a, b| a < b));
        }
    }
}

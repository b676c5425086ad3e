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
    let secrets = ["Secret/env-secret[\"c\"]", "Secret/from-secret", "Secret/projected-secret", "Secret/volume-secret"];
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
fn f11_each_use_tells_its_place_its_keys_and_its_volume() {
    let spec = r#"{
        "containers": [{"env": [{"value": "x"}, {"valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}}]}],
        "initContainers": [{"envFrom": [{"secretRef": {"name": "b", "optional": true}}]}],
        "volumes": [
            {"name": "one", "secret": {"secretName": "c", "items": [{"key": "k", "path": "p"}]}},
            {"name": "two", "projected": {"sources": [{"downwardAPI": {}}, {"configMap": {"name": "d"}}]}}
        ]
    }"#;
    let spec = Value::parse(spec).unwrap();
    let show = |used: &Use<'_>| {
        let keys = used.keys.iter().flatten().copied().collect::<Vec<_>>().join(",");
        let (source, name, volume) = (used.source, used.name, used.volume.unwrap_or("-"));
        format!("{} {source}/{name}[{keys}] {volume} {}", used.path().join("/"), used.optional)
    };
    assert_eq!(
        uses(&spec).iter().map(show).collect::<Vec<_>>(),
        [
            "spec/containers/0/env/1/valueFrom/configMapKeyRef ConfigMap/a[k] - false",
            "spec/initContainers/0/envFrom/0/secretRef Secret/b[] - true",
            "spec/volumes/0/secret Secret/c[k] one false",
            "spec/volumes/1/projected/sources/1/configMap ConfigMap/d[] two false",
        ]
    );
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

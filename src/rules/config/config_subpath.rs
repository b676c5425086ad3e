//! A file of a ConfigMap or Secret is mounted so that it never changes.
//!
//! ## What it does
//! Reports `subPath` and `subPathExpr` mounts of ConfigMap, Secret and projected volumes with such sources, in containers
//! and native sidecars of workloads whose pods keep running. Nothing is reported where the pod template carries a digest
//! of its configuration, since a change then rolls the pods at the next apply: an annotation `checksum/…` as charts
//! have it, or that of `config-checksum` (for Secrets only where that rule counts them). Names that end in a content
//! hash as kustomize makes it are fine too: other content goes by another name.
//!
//! ## Why it matters
//! The kubelet renews the files of a mounted volume some minute after a change, but never one that is mounted by
//! `subPath`: a container goes on with the file that it started with. A renewed certificate expires in the pod, a
//! changed setting never arrives, and a pod that restarts for another reason runs with other files than its neighbours.
//!
//! ## Example
//! Bad:
//! ```yaml
//! volumeMounts:
//!   - {name: config, mountPath: /etc/app/app.yaml, subPath: app.yaml}
//! ```
//! Good:
//! ```yaml
//! volumeMounts:
//!   - {name: config, mountPath: /etc/app/config}
//! ```
//!
//! ## Parameters
//! None.
//!
//! ## Unknown facts
//! It needs none.

use std::collections::BTreeMap;

use crate::config::Source;
use crate::config::references::sub_path;
use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::LONG_RUNNING;
use crate::engine::pod::{Container, Template};
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;
use crate::rules::config::config_checksum::{self, ConfigChecksum};
use crate::rules::config::objects::{Object, objects};

/// Prefix of the annotations in which charts keep a hash of their configuration.
const CHART_CHECKSUM: &str = "checksum/";

/// The rule `config-subpath`.
pub struct ConfigSubpath;

/// Parameters of `config-subpath`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {}

impl Rule for ConfigSubpath {
    const META: Meta = Meta {
        id: "config-subpath",
        category: Category::Config,
        since: "0.1",
        kinds: LONG_RUNNING,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("config_subpath.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        // Plain init containers run once, at the start, with the files of that moment.
        let frozen = template.running().flat_map(|container| {
            let mounts = container.value.get("volumeMounts").items().iter().enumerate();
            mounts.filter_map(move |(index, mount)| Some((container, index, mount, sub_path(mount)?)))
        });
        let mut frozen = frozen.peekable();
        if frozen.peek().is_none() {
            // Most pods have no such mount: they never pay for these lists.
            return;
        }
        // The digest that our own fix adds mends these: never denied for the lack of that (TRAPS I05).
        let params = context.policy.params::<ConfigChecksum>();
        let fixed = context.fixes(ConfigChecksum::META.id) && ConfigChecksum::META.is_for(context.kind);
        let mended = |object: &Object<'_>| fixed && is_digested(object, &params);
        let mut objects = judge(context, template);
        // Of several in one volume, one that stays as it is.
        objects.sort_by_key(mended);
        let mut by_volume: BTreeMap<&str, &Object<'_>> = BTreeMap::new();
        for object in &objects {
            for volume in object.uses.iter().filter_map(|used| used.volume) {
                by_volume.entry(volume).or_insert(object);
            }
        }
        for (container, index, mount, (member, picked)) in frozen {
            let volume = mount.get("name").as_str().unwrap_or_default();
            let Some(object) = by_volume.get(volume) else { continue };
            let place = mount.get("mountPath").as_str().unwrap_or_default();
            let finding = report(container, index, object, volume, place, (member, picked));
            findings.push(if mended(object) { finding.at_most(Action::Warn) } else { finding });
        }
    }
}

/// The objects whose changes no rollout brings to the pods.
fn judge<'a>(context: &Context<'_>, template: Template<'a>) -> Vec<Object<'a>> {
    let params = context.policy.params::<ConfigChecksum>();
    let annotations = template.metadata().get("annotations");
    let written = |key: &str| key == params.annotation && context.is_ours(ConfigChecksum::META.id, key);
    let charts = annotations
        .members()
        .any(|(key, value)| key.starts_with(CHART_CHECKSUM) && value.as_str().is_some() && !written(key));
    let ours = annotations.get(&params.annotation).as_str().is_some();
    let rolls = |object: &Object<'_>| charts || (ours && is_digested(object, &params)) || object.is_named_by_content();
    objects(template, true).into_iter().filter(|object| !rolls(object)).collect()
}

/// Whether our own digest counts this object.
fn is_digested(object: &Object<'_>, params: &config_checksum::Params) -> bool {
    params.secrets || object.reference.source == Source::ConfigMap
}

fn report(
    container: Container<'_>,
    index: usize,
    object: &Object<'_>,
    volume: &str,
    place: &str,
    (member, picked): (&'static str, &str),
) -> Finding {
    let message = format!(
        "container {} mounts {} of {} at {} by {member}: a running container keeps the file that it started with, \
         whatever becomes of the {}",
        quoted(container.name()),
        quoted(picked),
        object.reference.subject(),
        quoted(place),
        object.reference.source
    );
    let mend = format!(
        "volumeMounts:\n- name: {}\n  mountPath: /config  # a folder of its own without subPath, to which the application \
         is pointed",
        quoted(volume)
    );
    Finding::new(ConfigSubpath::META.id, container.pointer(&["volumeMounts", &index.to_string(), member]), message)
        .container(container.name())
        .mend(mend)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{Judge, in_pod_spec};

    fn mount(volume: &str, sub_path: serde_json::Value) -> serde_json::Value {
        json!({"name": volume, "mountPath": "/etc/app/app.yaml", "subPath": sub_path})
    }

    fn found(annotations: serde_json::Value, volume: serde_json::Value) -> Vec<Finding> {
        let container = json!({"name": "app", "volumeMounts": [mount("v", json!("app.yaml"))]});
        let spec = json!({"containers": [container], "volumes": [volume]});
        let object = json!({"spec": {"template": {"metadata": {"annotations": annotations}, "spec": spec}}});
        Judge { kind: "DaemonSet", ..Judge::default() }.object::<ConfigSubpath>(object)
    }

    #[test]
    fn f13_files_by_sub_path_never_change() {
        let findings = found(json!({}), json!({"name": "v", "configMap": {"name": "settings"}}));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].pointer, "/spec/template/spec/containers/0/volumeMounts/0/subPath");
        assert_eq!(
            findings[0].message,
            "container \"app\" mounts \"app.yaml\" of ConfigMap \"settings\" at \"/etc/app/app.yaml\" by subPath: a running \
             container keeps the file that it started with, whatever becomes of the ConfigMap"
        );
        assert_eq!(found(json!({}), json!({"name": "v", "secret": {"secretName": "tls"}})).len(), 1);
        let projected =
            json!({"name": "v", "projected": {"sources": [{"downwardAPI": {}}, {"secret": {"name": "tls"}}]}});
        assert_eq!(found(json!({}), projected).len(), 1);
    }

    #[test]
    fn f13_other_volumes_may_be_mounted_in_part() {
        for volume in [
            json!({"name": "v", "emptyDir": {}}),
            json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}}),
            json!({"name": "other", "configMap": {"name": "settings"}}),
            json!({"name": "v", "configMap": {}}),
        ] {
            assert_eq!(found(json!({}), volume.clone()), [], "{volume}");
        }
    }

    #[test]
    fn f06_a_digest_in_the_template_rolls_the_pods() {
        let map = || json!({"name": "v", "configMap": {"name": "settings"}});
        let secret = || json!({"name": "v", "secret": {"secretName": "tls"}});
        let ours = json!({"plimsoll.dev/config-checksum": "0123"});
        let charts = json!({"checksum/config": "0123"});
        assert_eq!(found(ours.clone(), map()), []);
        assert_eq!(found(ours, secret()).len(), 1, "config-checksum leaves Secrets out by default");
        assert_eq!((found(charts.clone(), map()), found(charts, secret())), (vec![], vec![]));
        assert_eq!(found(json!({"other": "0123"}), map()).len(), 1);
    }

    #[test]
    fn f14_a_name_by_content_rolls_the_pods() {
        assert_eq!(found(json!({}), json!({"name": "v", "configMap": {"name": "settings-7h8gf2k4mt"}})), []);
    }

    #[test]
    fn only_containers_that_keep_running_are_judged() {
        let container = |name| json!({"name": name, "volumeMounts": [mount("v", json!("x"))]});
        let mut sidecar = container("proxy");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({
            "initContainers": [container("init"), sidecar],
            "volumes": [{"name": "v", "configMap": {"name": "settings"}}],
        });
        let findings = in_pod_spec::<ConfigSubpath>(spec, json!({}));
        assert_eq!(findings.iter().map(|finding| finding.container.as_deref()).collect::<Vec<_>>(), [Some("proxy")]);
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        for part in [json!(null), json!(""), json!(1), json!(["x"])] {
            let container = json!({"name": "app", "volumeMounts": [null, 1, mount("v", part)]});
            let spec = json!({"containers": [container], "volumes": [{"name": "v", "configMap": {"name": "c"}}]});
            assert_eq!(in_pod_spec::<ConfigSubpath>(spec, json!({})), []);
        }
    }
}

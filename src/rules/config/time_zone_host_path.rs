//! A container takes its time zone from a file of the node.
//!
//! ## What it does
//! Reports containers, init containers and sidecars that mount a zone file of the node (`hostPath`): `/etc/localtime`,
//! `/etc/timezone`, or one zone below `/usr/share/zoneinfo`. Mounting that folder as a whole is not reported: it brings
//! the zones themselves, which the environment cannot.
//!
//! ## Why it matters
//! Each node may be set to another zone, so replicas write other times into the same log and run jobs at other hours.
//! Pod Security's `baseline` and `restricted` levels refuse hostPath volumes, and a node image without the file stops
//! the pod from starting, typically in the middle of a node rollout. The variable `TZ` says the same thing alike everywhere.
//!
//! ## Example
//! Bad:
//! ```yaml
//! volumes:
//!   - name: tz
//!     hostPath: {path: /etc/localtime}
//! ```
//! Good:
//! ```yaml
//! env:
//!   - {name: TZ, value: Europe/Berlin}
//! ```
//!
//! ## Parameters
//! None.
//!
//! ## Unknown facts
//! It needs none. Whether the image has the zones that `TZ` names (package `tzdata`) cannot be seen.

use std::collections::BTreeMap;

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::{Class, Container};
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// Files of a node that say which zone it is set to.
const ZONE_OF_THE_NODE: [&str; 2] = ["/etc/localtime", "/etc/timezone"];

/// Where the zones are.
const ZONES: &str = "/usr/share/zoneinfo/";

/// The rule `time-zone-host-path`.
pub struct TimeZoneHostPath;

/// Parameters of `time-zone-host-path`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {}

impl Rule for TimeZoneHostPath {
    const META: Meta = Meta {
        id: "time-zone-host-path",
        category: Category::Config,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("time_zone_host_path.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        let mut volumes: Volumes<'_> = BTreeMap::new();
        for volume in template.spec().get("volumes").items() {
            if let Some(name) = volume["name"].as_str() {
                volumes.entry(name).or_insert(volume["hostPath"]["path"].as_str());
            }
        }
        if volumes.values().all(Option::is_none) {
            return;
        }
        let containers = template.containers().filter(|container| container.class != Class::Ephemeral);
        findings.extend(containers.filter_map(|container| judge(container, &volumes)));
    }
}

/// The path of the node that a volume of this name brings in, if it does.
type Volumes<'v> = BTreeMap<&'v str, Option<&'v str>>;

/// One finding a container, at its first such mount.
fn judge(container: Container<'_>, volumes: &Volumes<'_>) -> Option<Finding> {
    let mounts = container.value.get("volumeMounts").items().iter().enumerate();
    let files: Vec<(usize, String)> =
        mounts.filter_map(|(index, mount)| Some((index, zone_file(mount, volumes)?))).collect();
    let (index, _) = files.first()?;
    let shown: Vec<String> = files.iter().map(|(_, file)| quoted(file)).collect();
    let variables = container.value.get("env").items();
    let has_variable = variables.iter().any(|variable| variable["name"].as_str() == Some("TZ"));
    let zone = files.iter().find_map(|(_, file)| file.strip_prefix(ZONES));
    let so = match (has_variable, zone) {
        (true, _) => "TZ decides already, and the mount only ties the pod to files that a node may lack",
        (false, Some(_)) => {
            "a node without that file does not start the pod, and Pod Security baseline refuses hostPath"
        }
        (false, None) => {
            "its times are those of whichever zone the node is set to, and Pod Security baseline refuses hostPath"
        }
    };
    let message = format!("container {} mounts {} of the node: {so}", quoted(container.name()), shown.join(" and "));
    let finding =
        Finding::new(TimeZoneHostPath::META.id, container.pointer(&["volumeMounts", &index.to_string()]), message)
            .container(container.name());
    if has_variable {
        return Some(finding);
    }
    let value = zone.map_or_else(|| "Etc/UTC  # or the zone that is meant".to_owned(), quoted);
    Some(finding.mend(format!("env:\n- name: TZ\n  value: {value}")))
}

/// The node's zone file that this mount brings in, if it does.
fn zone_file(mount: &Value<'_>, volumes: &Volumes<'_>) -> Option<String> {
    let path = (*volumes.get(mount["name"].as_str()?)?)?.trim_end_matches('/');
    let file = match mount["subPath"].as_str() {
        Some(below) if !below.is_empty() => format!("{path}/{below}"),
        _ => path.to_owned(),
    };
    let zone = file.strip_prefix(ZONES).is_some_and(|zone| !zone.is_empty());
    (zone || ZONE_OF_THE_NODE.contains(&file.as_str())).then_some(file)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::in_pod_spec;

    fn found(path: serde_json::Value, mount: serde_json::Value, env: serde_json::Value) -> Vec<Finding> {
        let container = json!({"name": "app", "env": env, "volumeMounts": [{"name": "x", "mountPath": "/x"}, mount]});
        let volumes = json!([{"name": "x", "emptyDir": {}}, {"name": "tz", "hostPath": {"path": path}}]);
        in_pod_spec::<TimeZoneHostPath>(json!({"containers": [container], "volumes": volumes}), json!({}))
    }

    fn at(path: &str) -> Vec<Finding> {
        found(json!(path), json!({"name": "tz", "mountPath": "/etc/localtime"}), json!(null))
    }

    #[test]
    fn zone_files_are_told_from_other_files() {
        for path in ["/etc/localtime", "/etc/timezone", "/usr/share/zoneinfo/Europe/Berlin", "/usr/share/zoneinfo/UTC"]
        {
            assert_eq!(at(path).len(), 1, "{path}");
        }
        for path in
            ["/usr/share/zoneinfo", "/usr/share/zoneinfo/", "/etc", "/etc/localtime.d", "/var/run/docker.sock", ""]
        {
            assert_eq!(at(path), [], "{path}");
        }
        let part = json!({"name": "tz", "mountPath": "/etc/localtime", "subPath": "Asia/Tokyo"});
        assert_eq!(found(json!("/usr/share/zoneinfo"), part, json!(null)).len(), 1);
        assert_eq!(found(json!("/etc/localtime"), json!(null), json!(null)), [], "not mounted");
    }

    #[test]
    fn the_mend_names_the_zone_where_the_file_does() {
        let findings = at("/etc/localtime");
        assert_eq!(findings[0].pointer, "/spec/template/spec/containers/0/volumeMounts/1");
        assert_eq!(
            findings[0].message,
            "container \"app\" mounts \"/etc/localtime\" of the node: its times are those of whichever zone the node is set \
             to, and Pod Security baseline refuses hostPath"
        );
        let mend = "env:\n- name: TZ\n  value: Etc/UTC  # or the zone that is meant";
        assert_eq!(findings[0].mend.as_deref(), Some(mend));
        let findings = at("/usr/share/zoneinfo/Europe/Berlin");
        assert_eq!(findings[0].mend.as_deref(), Some("env:\n- name: TZ\n  value: \"Europe/Berlin\""));
    }

    #[test]
    fn where_the_variable_is_set_the_mount_is_needless() {
        let mount = json!({"name": "tz", "mountPath": "/etc/localtime"});
        let findings = found(json!("/etc/localtime"), mount, json!([{"name": "TZ", "value": "UTC"}]));
        assert!(
            findings[0]
                .message
                .ends_with("TZ decides already, and the mount only ties the pod to files that a node may lack")
        );
        assert_eq!(findings[0].mend, None);
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        for spec in [
            json!({"volumes": [null, {"hostPath": "x"}, {"name": 1, "hostPath": {"path": 2}}]}),
            json!({"volumes": [{"hostPath": {"path": "/etc/localtime"}}], "containers": [null, {"volumeMounts": [null, {}]}]}),
            json!({"volumes": "x"}),
        ] {
            assert_eq!(in_pod_spec::<TimeZoneHostPath>(spec, json!({})), []);
        }
    }
}

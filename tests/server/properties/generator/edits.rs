//! What an author does to an object that stands: the second half of an UPDATE.

use plimsoll::engine::document::Value;

use super::entropy::Entropy;
use super::json::{Json, json, put, text};
use super::pod::NAMES;
use super::workload::marker;

/// Where the kind keeps its pod template.
pub fn template_path(kind: &str) -> &'static [&'static str] {
    match kind {
        "Pod" => &[],
        "CronJob" => &["spec", "jobTemplate", "spec", "template"],
        _ => &["spec", "template"],
    }
}

/// Edits the object; whether its pod template stays as it was.
pub fn edit(object: &mut Json, kind: &str, entropy: &mut Entropy<'_>) -> bool {
    let mut kept = true;
    for _ in 0..1 + entropy.below(3) {
        if entropy.chance(55) {
            beside_template(object, entropy);
        } else {
            kept = false;
            in_template(object, kind, entropy);
        }
    }
    kept
}

/// Sets a member of an object that is one; leaves anything else alone.
fn set(object: &mut Json, path: &[&str], value: Json) {
    if matches!(object.at(&path[..1]), Value::Object(_) | Value::Null) && object.as_object().is_some() {
        object.set(path, value);
    }
}

fn beside_template(object: &mut Json, entropy: &mut Entropy<'_>) {
    match entropy.below(9) {
        0 => set(object, &["metadata", "labels", "touched"], text("yes")),
        1 => set(object, &["metadata", "annotations", "touched"], text("yes")),
        2 => set(object, &["spec", "replicas"], Value::from(entropy.pick(&[3, 1, 0, 7]))),
        3 => set(object, &["spec", "paused"], Value::Bool(entropy.chance(50))),
        4 => set(object, &["metadata", "annotations", "plimsoll.dev/skip-fixes"], text("all")),
        5 => object.remove(&["metadata", "annotations", "plimsoll.dev/fixed"], 2),
        6 => set(object, &["metadata", "annotations", "plimsoll.dev/fixed"], text(&marker(entropy))),
        7 => set(object, &["metadata", "labels", "plimsoll.dev/profile"], text("critical")),
        _ => {
            let strategy = entropy.pick(&[
                r#"{"type":"Recreate"}"#,
                r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}"#,
                r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1}}"#,
                r#"{"canary":{"maxUnavailable":1}}"#,
                "null",
            ]);
            set(object, &["spec", "strategy"], json(strategy));
        }
    }
}

fn in_template(object: &mut Json, kind: &str, entropy: &mut Entropy<'_>) {
    let path = template_path(kind);
    let mut template = object.at(path).clone();
    if template.as_object().is_none() {
        return;
    }
    match entropy.below(8) {
        0 => put(&mut template, "metadata.labels.version", text("2")),
        1 => put(&mut template, "metadata.annotations.restartedAt", text("today")),
        2 => {
            let grace = entropy.pick(&["30", "60", "5", "null", "0", "15"]);
            put(&mut template, "spec.terminationGracePeriodSeconds", json(grace));
        }
        3 => template.remove(&["metadata", "annotations"], 2),
        4 => template.set(&["metadata", "annotations", "plimsoll.dev/config-checksum"], text("by-hand")),
        _ => containers(&mut template, entropy),
    }
    object.set(path, template);
}

fn containers(template: &mut Json, entropy: &mut Entropy<'_>) {
    let Value::Array(mut containers) = template.at(&["spec", "containers"]).clone() else { return };
    match entropy.below(10) {
        0 => containers.reverse(),
        1 => containers.insert(0, json(r#"{"name":"mesh","image":"mesh:1","ports":[{"containerPort":15001}]}"#)),
        2 => drop(containers.pop()),
        _ => {
            let Some(container) = containers.first_mut().filter(|container| container.as_object().is_some()) else {
                return;
            };
            match entropy.below(8) {
                0 => put(container, "image", text("reg.example/app:1.2.4")),
                1 => put(container, "image", text("app:latest")),
                2 => put(container, "lifecycle.preStop", json(r#"{"sleep":{"seconds":3}}"#)),
                3 => container.remove(&["lifecycle"], 1),
                4 => container.remove(&["startupProbe"], 1),
                5 => put(container, "startupProbe.failureThreshold", Value::from(7)),
                6 => put(container, "envFrom", json(r#"[{"configMapRef":{"name":"more"}}]"#)),
                _ => put(container, "name", text(entropy.pick(NAMES))),
            }
        }
    }
    put(template, "spec.containers", Value::Array(containers));
}

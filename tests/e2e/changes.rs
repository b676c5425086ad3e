//! What became of an object, field by field.

use serde_json::{Map, Value};

/// One field that differs.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    Added(String, Value),
    Changed(String, Value, Value),
    Removed(String, Value),
}

/// A field that is there now: pointer and value.
pub fn added(pointer: &str, value: impl Into<Value>) -> Change {
    Change::Added(pointer.to_owned(), value.into())
}

/// A field with another value: pointer, before, after.
pub fn changed(pointer: &str, from: impl Into<Value>, to: impl Into<Value>) -> Change {
    Change::Changed(pointer.to_owned(), from.into(), to.into())
}

/// Annotations that kubectl and the Deployment controller write: not the sender's, and
/// not ours.
const OTHERS: [&str; 2] = ["kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"];

/// What differs between two objects as they are stored, in the order of the pointers.
/// Left out is what no sender says and the API server sets: identity, times,
/// `managedFields`, `status`.
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare("", &said(before), &said(after), &mut found);
    found.sort_by(|a, b| pointer(a).cmp(pointer(b)));
    found
}

/// The object without what the API server sets. The two annotation maps are always
/// there, so that the first annotation shows as itself and not as a new map.
fn said(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(top) = object.as_object_mut() {
        top.remove("status");
        let metadata = map_at(top, "metadata");
        for key in ["namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
            metadata.remove(key);
        }
        let annotations = map_at(metadata, "annotations");
        for key in OTHERS {
            annotations.remove(key);
        }
        if let Some(template) = object.pointer_mut("/spec/template/metadata") {
            // The API server writes it as null where nobody set it.
            if let Some(template) = template.as_object_mut() {
                template.remove("creationTimestamp");
                map_at(template, "annotations");
            }
        }
    }
    object
}

fn map_at<'a>(parent: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let child = parent.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    child.as_object_mut().expect("made one")
}

fn compare(at: &str, before: &Value, after: &Value, found: &mut Vec<Change>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, old_value) in old {
                let at = format!("{at}/{}", escape(key));
                match new.get(key) {
                    Some(new_value) => compare(&at, old_value, new_value, found),
                    None => found.push(Change::Removed(at, old_value.clone())),
                }
            }
            for (key, new_value) in new {
                if !old.contains_key(key) {
                    let at = format!("{at}/{}", escape(key));
                    found.push(Change::Added(at, new_value.clone()));
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old_value, new_value)) in old.iter().zip(new).enumerate() {
                compare(&format!("{at}/{index}"), old_value, new_value, found);
            }
        }
        _ if before == after => {}
        _ => found.push(Change::Changed(at.to_owned(), before.clone(), after.clone())),
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn pointer(change: &Change) -> &str {
    match change {
        Change::Added(at, _) | Change::Changed(at, _, _) | Change::Removed(at, _) => at,
    }
}

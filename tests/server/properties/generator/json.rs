//! Building and walking JSON trees.

use plimsoll::engine::document::{Number, Object, Value};

use super::entropy::Entropy;

/// A tree that borrows nothing.
pub type Json = Value<'static>;

/// A tree from its text.
pub fn json(text: &str) -> Json {
    Value::parse(text).unwrap().to_static()
}

/// An empty object.
pub fn map() -> Json {
    Value::Object(Object::default())
}

/// A string.
pub fn text(text: &str) -> Json {
    Value::from(text)
}

/// Sets the member at this path, its names separated by dots.
pub fn put(object: &mut Json, path: &str, value: Json) {
    object.set(&path.split('.').collect::<Vec<_>>(), value);
}

/// What no field expects.
fn nonsense(entropy: &mut Entropy<'_>) -> Json {
    match entropy.below(12) {
        0 => Value::Null,
        1 => Value::Array(Vec::new()),
        2 => map(),
        3 => text(""),
        4 => Value::from(-1),
        5 => Value::Bool(true),
        6 => Value::Number(Number::Float(3.0)),
        7 => Value::Number(Number::Big(u64::MAX)),
        8 => Value::from(i64::MAX),
        9 => Value::Array(vec![Value::Null, map(), text("x")]),
        10 => json(r#"{"name":"app","":null,"a~/b":{"c":[[]]}}"#),
        _ => text("\u{1b}[31m\n\u{202e}'\"\\ é"),
    }
}

/// Removes one member or element, or puts nonsense in its place. The deeper, the rarer.
pub fn damage(node: &mut Json, entropy: &mut Entropy<'_>) {
    let count = match node {
        Value::Object(object) => object.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    if count == 0 || entropy.chance(12) {
        *node = nonsense(entropy);
        return;
    }
    let index = entropy.below(count);
    let removes = entropy.chance(15);
    match node {
        Value::Object(object) => {
            let names: Vec<String> = object.iter().map(|(name, _)| name.to_owned()).collect();
            let name = &names[index];
            if removes {
                object.remove(name);
                return;
            }
            let mut child = object.get(name).cloned().unwrap_or(Value::Null);
            damage(&mut child, entropy);
            object.insert(name.clone(), child);
        }
        Value::Array(items) if removes => drop(items.remove(index)),
        Value::Array(items) => damage(&mut items[index], entropy),
        _ => {}
    }
}

/// Member names that the engine looks for, and a few that nobody does.
const VOCABULARY: &[&str] = &[
    "metadata",
    "spec",
    "template",
    "containers",
    "initContainers",
    "name",
    "annotations",
    "labels",
    "replicas",
    "strategy",
    "rollingUpdate",
    "maxUnavailable",
    "lifecycle",
    "preStop",
    "sleep",
    "seconds",
    "livenessProbe",
    "httpGet",
    "port",
    "ports",
    "env",
    "volumes",
    "configMap",
    "selector",
    "matchLabels",
    "plimsoll.dev/fixed",
    "ownerReferences",
    "managedFields",
    "resources",
    "requests",
    "image",
    "restartPolicy",
    "type",
    "status",
    "",
    "x",
];

/// Any tree at all, with names that mean something.
pub fn wild(entropy: &mut Entropy<'_>, depth: usize) -> Json {
    match if depth == 0 { 0 } else { entropy.below(4) } {
        0 => nonsense(entropy),
        1 => {
            let length = entropy.below(4);
            Value::Array((0..length).map(|_| wild(entropy, depth - 1)).collect())
        }
        _ => {
            let mut object = Object::default();
            for _ in 0..1 + entropy.below(5) {
                object.insert(entropy.pick(VOCABULARY), wild(entropy, depth - 1));
            }
            Value::Object(object)
        }
    }
}

/// The same tree with the members of every object in another order.
pub fn shuffled(node: &Json, entropy: &mut Entropy<'_>) -> Json {
    match node {
        Value::Array(items) => Value::Array(items.iter().map(|item| shuffled(item, entropy)).collect()),
        Value::Object(object) => {
            let mut members: Vec<_> =
                object.iter().map(|(name, value)| (name.to_owned().into(), shuffled(value, entropy))).collect();
            for last in (1..members.len()).rev() {
                members.swap(last, entropy.below(last + 1));
            }
            Value::Object(members.into_iter().collect())
        }
        other => other.clone(),
    }
}

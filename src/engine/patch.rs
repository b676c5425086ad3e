//! The patch: only `add` and `replace`, and it applies by construction.
//!
//! A patch that does not apply is fatal to the request even where the webhook fails open (TRAPS B04). So operations come
//! only from this builder: it resolves every place against the received document and its own earlier operations,
//! creates each missing or null ancestor with one operation that carries the final value (B02, B20), and never replaces
//! a whole map or list that exists (B03).

use std::borrow::Cow;
use std::collections::HashMap;

use super::document::{Object, Value, quote};
use super::pointer::pointer;

/// A patch under construction.
pub struct Patch<'a> {
    document: &'a Value<'a>,
    operations: Vec<Operation>,
    /// Index of the operation at each path.
    at: HashMap<Vec<String>, usize>,
}

struct Operation {
    replace: bool,
    path: Vec<String>,
    value: Value<'static>,
}

/// A place that leads through a scalar or past the end of a list: the object is not what the rule took it for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer} does not resolve")]
pub struct Unresolved {
    /// The place.
    pub pointer: String,
}

impl<'a> Patch<'a> {
    /// An empty patch of this document.
    pub fn new(document: &'a Value<'a>) -> Self {
        Patch { document, operations: Vec::new(), at: HashMap::new() }
    }

    /// Makes the value at this place equal to `value`; nothing where it is already.
    ///
    /// # Errors
    /// [`Unresolved`]; the caller drops the whole patch.
    pub fn write(&mut self, path: &[String], value: Value<'static>) -> Result<(), Unresolved> {
        let unresolved = || Unresolved { pointer: pointer(path) };
        let earlier = (0..=path.len()).find_map(|depth| self.at.get(&path[..depth]));
        if let Some(earlier) = earlier.and_then(|index| self.operations.get_mut(*index)) {
            earlier.value.set(&path[earlier.path.len()..], value);
            return Ok(());
        }
        let mut node = self.document;
        for (depth, segment) in path.iter().enumerate() {
            let child = match node {
                Value::Object(object) => object.get(segment).unwrap_or(&Value::Null),
                Value::Array(items) => {
                    segment.parse::<usize>().ok().and_then(|index| items.get(index)).ok_or_else(unresolved)?
                }
                _ => return Err(unresolved()),
            };
            let rest = &path[depth + 1..];
            if child.is_null() {
                // A null element of a list is nobody's to fill in.
                if matches!(node, Value::Array(_)) {
                    return Err(unresolved());
                }
                let path = path[..=depth].to_vec();
                self.push(Operation { replace: false, path, value: nested(rest, value) });
                return Ok(());
            }
            node = child;
        }
        if *node != value {
            self.push(Operation { replace: true, path: path.to_vec(), value });
        }
        Ok(())
    }

    fn push(&mut self, operation: Operation) {
        self.at.insert(operation.path.clone(), self.operations.len());
        self.operations.push(operation);
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The JSON Patch (RFC 6902).
    pub fn to_json(&self) -> String {
        let mut out = String::from("[");
        for (index, operation) in self.operations.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let verb = if operation.replace { "replace" } else { "add" };
            let path = quote(&pointer(&operation.path));
            out.push_str(&format!(r#"{separator}{{"op":"{verb}","path":{path},"value":{}}}"#, operation.value));
        }
        out.push(']');
        out
    }
}

/// The value below these members, each the only one of its parent.
fn nested(path: &[String], value: Value<'static>) -> Value<'static> {
    path.iter().rev().fold(value, |value, segment| {
        let mut object = Object::default();
        object.insert(Cow::Owned(segment.clone()), value);
        Value::Object(object)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(document: &str, writes: &[(&[&str], &str)]) -> Result<String, Unresolved> {
        let document = Value::parse(document).unwrap();
        let mut patch = Patch::new(&document);
        for (path, value) in writes {
            let path: Vec<String> = path.iter().map(|segment| (*segment).to_owned()).collect();
            patch.write(&path, Value::parse(value).unwrap().to_static())?;
        }
        Ok(patch.to_json())
    }

    #[test]
    fn b01_adds_beside_existing_keys_and_escapes() {
        let patch =
            patched(r#"{"metadata":{"annotations":{"team":"a"}}}"#, &[(&["metadata", "annotations", "x/y~z"], "1")]);
        assert_eq!(patch.unwrap(), r#"[{"op":"add","path":"/metadata/annotations/x~1y~0z","value":1}]"#);
    }

    #[test]
    fn b02_one_operation_creates_all_missing_ancestors_and_carries_later_writes() {
        let patch = patched(
            r#"{"metadata":{}}"#,
            &[(&["metadata", "annotations", "a"], "1"), (&["metadata", "annotations", "b"], "2")],
        );
        assert_eq!(patch.unwrap(), r#"[{"op":"add","path":"/metadata/annotations","value":{"a":1,"b":2}}]"#);
    }

    #[test]
    fn b20_a_null_parent_is_added_anew() {
        let patch = patched(r#"{"c":[{"lifecycle":null}]}"#, &[(&["c", "0", "lifecycle", "preStop"], "{}")]);
        assert_eq!(patch.unwrap(), r#"[{"op":"add","path":"/c/0/lifecycle","value":{"preStop":{}}}]"#);
    }

    #[test]
    fn a_value_that_is_there_is_replaced_and_an_equal_one_left() {
        assert_eq!(patched(r#"{"a":1}"#, &[(&["a"], "2")]).unwrap(), r#"[{"op":"replace","path":"/a","value":2}]"#);
        assert_eq!(patched(r#"{"a":1}"#, &[(&["a"], "1")]).unwrap(), "[]");
    }

    #[test]
    fn b04_what_does_not_resolve_is_an_error() {
        for (document, path) in [
            (r#"{"a":"text"}"#, ["a", "b"]),
            (r#"{"a":[]}"#, ["a", "0"]),
            (r#"{"a":[null]}"#, ["a", "0"]),
            (r#"{"a":[{}]}"#, ["a", "x"]),
        ] {
            let error = patched(document, &[(&path, "1")]);
            assert_eq!(error.unwrap_err().pointer, format!("/{}/{}", path[0], path[1]), "{document}");
        }
    }
}

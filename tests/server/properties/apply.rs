//! A JSON Patch applied twice: by the `json-patch` crate, which knows nothing of us, and by hand in a way that keeps
//! the order of members, so that the result can be compared with the object text for text.

use plimsoll::engine::document::Value;
use plimsoll::engine::pointer::pointer;

/// One operation of a patch, an `add` or a `replace`: [`operations`] refuses anything else.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The place, unescaped.
    pub path: Vec<String>,
    /// The value.
    pub value: Value<'static>,
}

/// Reads a patch.
pub fn operations(patch: &str) -> Result<Vec<Operation>, String> {
    let patch = Value::parse(patch).map_err(|error| format!("the patch is not JSON: {error}"))?;
    let read = |operation: &Value<'_>| {
        let (verb, path) = (operation["op"].as_str()?, operation["path"].as_str()?);
        let segments = path.strip_prefix('/')?.split('/').map(|segment| segment.replace("~1", "/").replace("~0", "~"));
        let path: Vec<String> = segments.collect();
        matches!(verb, "add" | "replace").then(|| Operation { path, value: operation["value"].to_static() })
    };
    patch.items().iter().map(|operation| read(operation).ok_or(format!("not add or replace: {operation}"))).collect()
}

/// The object with the patch applied, members in their order; both ways must agree.
pub fn patched(object: &str, patch: &str) -> Result<String, String> {
    let mut by_crate: serde_json::Value = serde_json::from_str(object).map_err(|error| error.to_string())?;
    let foreign: json_patch::Patch = serde_json::from_str(patch).map_err(|error| error.to_string())?;
    json_patch::patch(&mut by_crate, &foreign).map_err(|error| format!("it does not apply: {error}"))?;

    let mut by_hand = Value::parse(object).map_err(|error| error.to_string())?.to_static();
    for operation in operations(patch)? {
        by_hand.set(&operation.path, operation.value.clone());
        if *by_hand.at(&operation.path) != operation.value {
            return Err(format!("it does not write {}", pointer(&operation.path)));
        }
    }
    let text = by_hand.to_string();
    let reread: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if reread != by_crate {
        return Err(format!("by hand it becomes\n{text}\nand by the crate\n{by_crate}"));
    }
    Ok(text)
}

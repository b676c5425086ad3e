//! What came back, and what it is compared with.

use serde_json::{Map, Value};

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// `response.allowed`.
    pub allowed: bool,
    /// `response.status.code`.
    pub code: Option<u64>,
    /// `response.status.message`, empty where there is none.
    pub message: String,
    /// `response.warnings`.
    pub warnings: Vec<String>,
    /// The decoded patch.
    pub patch: Option<Value>,
    /// `response.auditAnnotations`.
    pub audit: Map<String, Value>,
}

impl Answer {
    /// The patch, which must be there.
    pub fn patch(&self) -> Value {
        self.patch.clone().unwrap_or_else(|| panic!("no patch: {self:?}"))
    }

    /// Whether some warning holds all of these texts.
    pub fn warns(&self, texts: &[&str]) -> bool {
        self.warnings.iter().any(|warning| texts.iter().all(|text| warning.contains(text)))
    }

    /// Whether the patch writes at or below this pointer.
    pub fn writes(&self, pointer: &str) -> bool {
        let operations = self.patch.as_ref().and_then(Value::as_array).into_iter().flatten();
        let paths = operations.filter_map(|operation| operation["path"].as_str());
        paths.into_iter().any(|path| path == pointer || path.starts_with(&format!("{pointer}/")))
    }

    /// Allowed, nothing changed, nothing said.
    pub fn is_silent(&self) -> bool {
        self.status == 200 && self.allowed && self.patch.is_none() && self.warnings.is_empty()
    }

    /// Denied the way the API server takes for a denial.
    pub fn denied(&self) -> bool {
        self.status == 200 && !self.allowed && self.code == Some(403) && !self.message.is_empty()
    }
}

/// Asserts that the patch has exactly these operations; the order of independent ones is free, and what makes a parent
/// comes first.
pub fn same_operations(patch: &Value, expected: &Value) {
    let sorted = |patch: &Value| {
        let mut operations = patch.as_array().expect("a list of operations").clone();
        operations.sort_by_key(|operation| operation["path"].to_string());
        Value::Array(operations)
    };
    let (got, wanted) = (sorted(patch), sorted(expected));
    if got != wanted {
        let (got, wanted) = (format!("{got:#}"), format!("{wanted:#}"));
        let diff = similar::TextDiff::from_lines(&wanted, &got);
        panic!("\n{}", diff.unified_diff().header("expected", "patch").context_radius(50));
    }
    let paths: Vec<&str> = patch.as_array().into_iter().flatten().filter_map(|it| it["path"].as_str()).collect();
    for (index, path) in paths.iter().enumerate() {
        let child = paths[..index].iter().find(|earlier| earlier.starts_with(&format!("{path}/")));
        assert_eq!(child, None, "comes before its parent {path}");
    }
}

/// The one digest in the patch: 64 hex digits.
pub fn digest_in(patch: &Value) -> String {
    let mut digests = Vec::new();
    collect_digests(patch, &mut digests);
    assert_eq!(digests.len(), 1, "one digest: {patch:#}");
    digests.remove(0)
}

fn collect_digests(value: &Value, digests: &mut Vec<String>) {
    let hex = |text: &str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match value {
        Value::String(text) if hex(text) => digests.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_digests(item, digests)),
        Value::Object(members) => members.values().for_each(|member| collect_digests(member, digests)),
        _ => {}
    }
}

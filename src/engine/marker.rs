//! The marker: the annotation on the workload's metadata that says which values are ours.

use std::collections::BTreeSet;
use std::fmt;

use super::document::Value;

/// `metadata.annotations` key of the marker.
pub const MARKER: &str = "plimsoll.dev/fixed";

/// `metadata.annotations` key by which an author declines fixes: `all`, or rule ids separated by commas.
pub const SKIP_FIXES: &str = "plimsoll.dev/skip-fixes";

/// Prefix of our own annotation keys: a value under one of them is ours whatever the marker says (TRAPS F06).
pub const OWN_PREFIX: &str = "plimsoll.dev/";

/// Entries of a marker that are read: more than a fix for each container of the largest object that is judged. What we
/// write ends there too.
const MAX_ENTRIES: usize = 4096;

/// Entries of the marker, `rule` or `rule/container`, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims(BTreeSet<String>);

impl Claims {
    /// Reads the marker of this object; none where it has none.
    pub fn of(object: &Value<'_>) -> Self {
        let marker = object.at(&["metadata", "annotations", MARKER]);
        let entries = marker.as_str().unwrap_or_default().split(',').map(str::trim);
        Claims(entries.filter(|entry| !entry.is_empty()).take(MAX_ENTRIES).map(str::to_owned).collect())
    }

    /// Whether this entry reads back as it was written.
    pub fn can_hold(claim: &str) -> bool {
        !claim.is_empty() && !claim.contains(',') && claim.trim() == claim
    }

    /// Adds an entry.
    pub fn insert(&mut self, claim: &str) {
        self.0.insert(claim.to_owned());
    }

    /// Adds the entries of another.
    pub fn extend(&mut self, other: Claims) {
        self.0.extend(other.0);
    }

    /// Whether this entry is there.
    pub fn contains(&self, claim: &str) -> bool {
        self.0.contains(claim)
    }

    /// Keeps what the predicate likes.
    pub fn retain(&mut self, keep: impl FnMut(&String) -> bool) {
        self.0.retain(keep);
    }

    /// Entries in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// The annotation's value.
impl fmt::Display for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, claim) in self.0.iter().enumerate() {
            write!(f, "{}{claim}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_a_sorted_set() {
        let object = Value::parse(r#"{"metadata":{"annotations":{"plimsoll.dev/fixed":"b/x, a,,b/x"}}}"#).unwrap();
        assert_eq!(Claims::of(&object).to_string(), "a,b/x");
        assert_eq!(Claims::of(&Value::Null), Claims::default());
    }
}

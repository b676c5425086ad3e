//! A path into a policy: `spec.exceptions[0].rules[1]`.

use std::fmt;

use crate::engine::text::is_obeyed;

/// The longest key that is shown whole: keys come from the file and may be anything.
const SHOWN: usize = 80;

/// One step from a node to a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Key(String),
    Index(usize),
}

/// Steps from the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Path(pub(super) Vec<Segment>);

impl Path {
    pub(super) fn of(keys: &[&str]) -> Self {
        Path(keys.iter().map(|key| Segment::Key((*key).to_owned())).collect())
    }

    pub(super) fn key(&self, key: &str) -> Self {
        let mut path = self.clone();
        path.0.push(Segment::Key(key.to_owned()));
        path
    }

    pub(super) fn index(&self, index: usize) -> Self {
        let mut path = self.clone();
        path.0.push(Segment::Index(index));
        path
    }

    /// Adds what [`crate::engine::rule::InvalidParam`] says: `tiers[0].maxSurge`.
    pub(super) fn join(&self, text: &str) -> Self {
        let mut path = self.clone();
        for part in text.split('.').filter(|part| !part.is_empty()) {
            let (key, indices) = part.find('[').map_or((part, ""), |at| part.split_at(at));
            if !key.is_empty() {
                path = path.key(key);
            }
            for index in indices.split(['[', ']']).filter_map(|index| index.parse().ok()) {
                path = path.index(index);
            }
        }
        path
    }
}

impl From<&serde_path_to_error::Path> for Path {
    fn from(path: &serde_path_to_error::Path) -> Self {
        use serde_path_to_error::Segment as Serde;
        let segments = path.iter().filter_map(|segment| match segment {
            Serde::Seq { index } => Some(Segment::Index(*index)),
            Serde::Map { key } => Some(Segment::Key(key.clone())),
            Serde::Enum { .. } | Serde::Unknown => None,
        });
        Path(segments.collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) => {
                    if position > 0 {
                        f.write_str(".")?;
                    }
                    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/');
                    match key.len() <= SHOWN && !key.is_empty() && key.bytes().all(plain) {
                        true => f.write_str(key)?,
                        false => write!(f, "{:?}", shorten(key))?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// A text from the file, cut to what a message can hold and safe to print.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", plain(&text[..end])),
        None => plain(text),
    }
}

/// A text without control characters and their like: messages go to logs and terminals.
pub(super) fn plain(text: &str) -> String {
    text.replace(is_obeyed, "\u{fffd}")
}

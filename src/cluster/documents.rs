//! The documents of a file of manifests, with their places.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::manifests::Error;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Counted from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

/// Documents with the line that they start in.
pub(super) type Documents = Vec<(u64, Value)>;

pub(super) fn yaml_documents(path: &Path, text: &[u8]) -> Result<Documents, Error> {
    let options = serde_saphyr::options! { with_snippet: false };
    let documents: Vec<serde_saphyr::Spanned<Value>> = serde_saphyr::from_slice_multiple_with_options(text, options)
        .map_err(|error| {
            let line = error.location().map_or(1, |location| location.line());
            let place = Place { path: path.to_owned(), line };
            Error::Syntax { place, message: error.to_string().lines().next().unwrap_or_default().to_owned() }
        })?;
    Ok(documents.into_iter().map(|document| (document.referenced.line(), document.value)).collect())
}

pub(super) fn json_documents(path: &Path, text: &[u8]) -> Result<Documents, Error> {
    let mut documents = Vec::new();
    let mut stream = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let mut start = 0;
    while let Some(value) = stream.next() {
        let value = value.map_err(|error| {
            let place = Place { path: path.to_owned(), line: error.line() as u64 };
            Error::Syntax { place, message: error.to_string() }
        })?;
        let white = text[start..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let line = 1 + text[..start + white].iter().filter(|byte| **byte == b'\n').count() as u64;
        documents.push((line, value));
        start = stream.byte_offset();
    }
    Ok(documents)
}

//! From the tree to the model, telling every fault and not only the first.
//!
//! serde stops at its first error. So what it complains about is discarded from the tree and it reads again, until
//! nothing is left to complain about: names and types are said once, in [`super::model`], and no second list of keys
//! has to be kept in step with it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::de::DeserializeOwned;

use super::error::{Place, Problem};
use super::node::{Content, Node};
use super::path::{Path, Segment, plain, shorten};

/// More problems than this are not told; the rest shows after the first are mended.
const MAX_PROBLEMS: usize = 50;

/// Nodes read in all rounds together, so that a review of a policy has an end: more than a policy of 5,000 values takes
/// to tell of fifty wrong ones; of a larger one fewer are told at a time.
const MAX_NODES_READ: usize = 250_000;

/// The tree and what is wrong with it so far.
pub(super) struct Report<'t> {
    pub(super) tree: &'t Node,
    problems: Vec<Problem>,
}

impl<'t> Report<'t> {
    pub(super) fn new(tree: &'t Node) -> Self {
        Report { tree, problems: Vec::new() }
    }

    /// Whether no more problems are taken.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    /// Complains about the value at this path, or, where there is none, about its absence.
    pub(super) fn refuse(&mut self, path: &Path, message: impl Into<String>, mend: impl Into<String>) {
        if self.is_full() {
            return;
        }
        let found = self.tree.find(path);
        self.push(found.value, &found.path, message.into(), mend.into());
    }

    /// Complains about the key at this path.
    pub(super) fn refuse_key(&mut self, path: &Path, message: impl Into<String>, mend: impl Into<String>) {
        if self.is_full() {
            return;
        }
        let found = self.tree.find(path);
        self.push(found.key, &found.path, message.into(), mend.into());
    }

    fn push(&mut self, place: Option<Place>, path: &Path, message: String, mend: String) {
        if self.is_full() {
            return;
        }
        let problem = Problem { place, path: path.to_string(), message, mend };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// What was found, in the order of the text.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.place);
        self.problems
    }

    /// Complains about doubled keys and keys without a value, whatever they mean, and discards them.
    pub(super) fn check_members(&mut self) {
        self.members_below(self.tree, &mut Path::default());
    }

    /// `path` is where the node stands, lengthened and shortened on the way: a copy of it for each member would take
    /// time by the square where keys are long.
    fn members_below(&mut self, node: &Node, path: &mut Path) {
        match &node.content {
            Content::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.0.push(Segment::Index(index));
                    self.member(item, item.place, path);
                    path.0.pop();
                }
            }
            Content::Map(members) => {
                let mut first: HashMap<&str, Option<Place>> = HashMap::new();
                for member in members {
                    path.0.push(Segment::Key(member.key.clone()));
                    match first.entry(&member.key) {
                        Entry::Occupied(first) => {
                            let before = first.get().map(|place| format!(" (first in line {})", place.line));
                            let message = format!("the key is there twice{}", before.unwrap_or_default());
                            self.push(member.place, path, message, "keep one of them".to_owned());
                            member.node.discard();
                        }
                        Entry::Vacant(first) => {
                            first.insert(member.place);
                            self.member(&member.node, member.place, path);
                        }
                    }
                    path.0.pop();
                }
            }
            _ => {}
        }
    }

    fn member(&mut self, node: &Node, place: Option<Place>, path: &mut Path) {
        match node.content {
            Content::Null => {
                self.push(place, path, "there is no value".to_owned(), "write one or leave the key out".to_owned());
                node.discard();
            }
            _ => self.members_below(node, path),
        }
    }

    /// Reads the tree as far as it can be read; `None` where nothing is left to go on with.
    pub(super) fn decode<T: DeserializeOwned>(&mut self) -> Option<T> {
        // Each round reads the whole tree.
        let rounds = (MAX_NODES_READ / self.tree.size()).clamp(1, MAX_PROBLEMS);
        for _ in 0..rounds {
            let error = match serde_path_to_error::deserialize::<_, T>(self.tree.to_json()) {
                Ok(value) => return Some(value),
                Err(error) => error,
            };
            let mut path = Path::from(error.path());
            let complaint = Complaint::read(&error.inner().to_string());
            // The node to go on without: the one complained about, or the one that lacks a member.
            let discard = match &complaint {
                Complaint::Missing(member) => {
                    let container = self.tree.find(&path).node;
                    let discarded = container.and_then(|node| node.member(member)).is_some();
                    if !discarded {
                        self.refuse(&path.key(member), "it is missing", format!("write `{member}: …`"));
                    }
                    container
                }
                Complaint::UnknownKey { key, known } => {
                    if path.0.last() != Some(&Segment::Key(key.clone())) {
                        path = path.key(key);
                    }
                    self.refuse_key(&path, "there is no such key", suggest(key, known, "known here"));
                    self.tree.find(&path).node
                }
                Complaint::UnknownWord { word, known } => {
                    let message = format!("`{}` is not known here", shorten(word));
                    self.refuse(&path, message, suggest(word, known, "allowed"));
                    self.tree.find(&path).node
                }
                Complaint::Other { message, mend } => {
                    self.refuse(&path, message.clone(), *mend);
                    self.tree.find(&path).node
                }
            };
            match discard {
                // Without the root there is nothing left; a node discarded before was no progress.
                Some(node) if !std::ptr::eq(node, self.tree) && !node.is_discarded() => node.discard(),
                _ => return None,
            }
        }
        None
    }
}

/// serde's message, taken apart.
pub(super) enum Complaint {
    Missing(String),
    UnknownKey { key: String, known: Vec<String> },
    UnknownWord { word: String, known: Vec<String> },
    Other { message: String, mend: &'static str },
}

impl Complaint {
    /// Reads a message of [`serde::de::Error`]'s provided constructors; any other text is passed on.
    pub(super) fn read(message: &str) -> Self {
        let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_owned);
        let other = |message: String, mend| Complaint::Other { message, mend };
        if message.starts_with("missing field `") {
            return Complaint::Missing(quoted.next().unwrap_or_default());
        }
        if message.starts_with("unknown field `") {
            return Complaint::UnknownKey { key: quoted.next().unwrap_or_default(), known: quoted.collect() };
        }
        if message.starts_with("unknown variant `") {
            return Complaint::UnknownWord { word: quoted.next().unwrap_or_default(), known: quoted.collect() };
        }
        let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
        match wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) {
            Some((found, expected)) => {
                let mend = match (expected, found) {
                    ("string or map", "boolean `false`") => {
                        "an unquoted `off` became `false` on its way: write \"off\""
                    }
                    ("a string", _) if found.starts_with(['i', 'f', 'b']) => "put it in quotes",
                    ("a boolean", _) => "write true or false",
                    _ => "",
                };
                other(format!("expected {}, found {}", kind(expected), shorten(found)), mend)
            }
            None => other(plain(message), ""),
        }
    }

    /// As one message and what to do.
    pub(super) fn told(&self) -> (String, String) {
        match self {
            Complaint::Missing(member) => (format!("`{member}` is missing"), format!("write `{member}: …`")),
            Complaint::UnknownKey { key, known } => {
                ("there is no such key".to_owned(), suggest(key, known, "known here"))
            }
            Complaint::UnknownWord { word, known } => {
                (format!("`{}` is not known here", shorten(word)), suggest(word, known, "allowed"))
            }
            Complaint::Other { message, mend } => (message.clone(), (*mend).to_owned()),
        }
    }
}

/// Rust's name of a type in words.
fn kind(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "string or map" => "a word",
        _ if expected.starts_with("struct ") => "a map",
        _ => expected,
    }
}

/// What may have been meant, else all that could be.
pub(super) fn suggest<S: AsRef<str>>(said: &str, known: &[S], label: &str) -> String {
    let near = known.iter().map(|known| (distance(said, known.as_ref()), known.as_ref()));
    let near = near.filter(|(distance, known)| *distance <= 2.max(known.len() / 4)).min();
    match near {
        Some((_, known)) => format!("did you mean `{known}`?"),
        None if known.is_empty() => "leave it out".to_owned(),
        None => {
            let known = known.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
            format!("{label}: {known}")
        }
    }
}

/// Single-character edits from one word to the other, letters' case aside; words longer than any key are far apart.
fn distance(one: &str, other: &str) -> usize {
    const LONGEST: usize = 64;
    if one.len() > LONGEST || other.len() > LONGEST {
        return usize::MAX;
    }
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, candidate) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *candidate);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

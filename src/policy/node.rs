//! The policy's text as a tree that knows where each value stands.

use std::cell::Cell;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Location, Spanned};

use super::error::{Place, Problem};
use super::path::{Path, Segment, plain};

/// One value.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Option<Place>,
    pub(super) content: Content,
    /// Already complained about: read no further, so that the rest can be.
    discarded: Cell<bool>,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Content {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    String(String),
    List(Vec<Node>),
    Map(Vec<Member>),
}

/// A key and its value; a key may occur twice.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) place: Option<Place>,
    pub(super) node: Node,
}

/// Where a path leads.
pub(super) struct Found<'t> {
    /// The path with the indices of the text, nodes that were discarded counted too.
    pub(super) path: Path,
    /// Where its key stands, or, in a list, the element; the nearest parent's where it is missing.
    pub(super) key: Option<Place>,
    /// Where its value stands; the nearest parent's where it is missing.
    pub(super) value: Option<Place>,
    /// The node, if it is there.
    pub(super) node: Option<&'t Node>,
}

impl Node {
    /// Reads YAML, and so JSON.
    pub(super) fn parse(text: &str) -> Result<Node, Problem> {
        // Policies are a few levels deep and need few aliases: tight limits cost nothing and stop alias bombs.
        // Strict booleans: `action: off` is the word, not `false`.
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: 32, max_nodes: 50_000, max_documents: 2, max_aliases: 1000, max_anchors: 1000 },
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 20_000, max_replay_stack_depth: 8 },
            duplicate_keys: DuplicateKeyPolicy::PassThrough,
            emit_comments: false,
            strict_booleans: true,
            reject_unsupported_tags: true,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let place = error.location().and_then(place);
            let mut message = error.without_snippet().render_with_formatter(&serde_saphyr::UserMessageFormatter);
            // The place is told once, by us.
            if let Some(Place { line, column }) = place {
                for said in [format!(" at line {line}, column {column}"), format!("line {line} column {column}: ")] {
                    message = message.replace(&said, "");
                }
            }
            let mend = "the text must be one YAML or JSON document".to_owned();
            Problem { place, path: String::new(), message: format!("cannot be read: {}", plain(&message)), mend }
        })
    }

    /// Reads on without this node.
    pub(super) fn discard(&self) {
        self.discarded.set(true);
    }

    pub(super) fn is_discarded(&self) -> bool {
        self.discarded.get()
    }

    /// How many nodes there are, this one among them.
    pub(super) fn size(&self) -> usize {
        match &self.content {
            Content::List(items) => 1 + items.iter().map(Node::size).sum::<usize>(),
            Content::Map(members) => 1 + members.iter().map(|member| member.node.size()).sum::<usize>(),
            _ => 1,
        }
    }

    /// The value without what was discarded.
    pub(super) fn to_json(&self) -> serde_json::Value {
        match &self.content {
            Content::Null => serde_json::Value::Null,
            Content::Bool(value) => (*value).into(),
            Content::Number(number) => number.clone().into(),
            Content::String(text) => text.as_str().into(),
            Content::List(items) => items.iter().filter(|node| !node.is_discarded()).map(Node::to_json).collect(),
            Content::Map(members) => {
                let kept = members.iter().filter(|member| !member.node.is_discarded());
                kept.map(|member| (member.key.clone(), member.node.to_json())).collect()
            }
        }
    }

    /// The member of this name, one that was discarded too.
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        match &self.content {
            Content::Map(members) => members.iter().find(|member| member.key == key),
            _ => None,
        }
    }

    /// Follows a path of [`Node::to_json`]'s value as far as it leads.
    pub(super) fn find(&self, path: &Path) -> Found<'_> {
        let mut found = Found { path: Path::default(), key: self.place, value: self.place, node: Some(self) };
        for segment in &path.0 {
            let step = found.node.and_then(|node| match (&node.content, segment) {
                (Content::Map(members), Segment::Key(key)) => {
                    let mut named = members.iter().filter(|member| member.key == *key);
                    let kept = named.clone().find(|member| !member.node.is_discarded());
                    kept.or_else(|| named.next()).map(|member| (segment.clone(), member.place, &member.node))
                }
                (Content::List(items), Segment::Index(index)) => {
                    let mut kept = items.iter().enumerate().filter(|(_, node)| !node.is_discarded());
                    kept.nth(*index).map(|(index, node)| (Segment::Index(index), node.place, node))
                }
                _ => None,
            });
            match step {
                Some((segment, key, node)) => {
                    found.path.0.push(segment);
                    (found.key, found.value, found.node) = (key, node.place, Some(node));
                }
                None => {
                    found.path.0.push(segment.clone());
                    found.node = None;
                }
            }
        }
        found
    }
}

fn place(location: Location) -> Option<Place> {
    let known = location.line() > 0;
    known.then(|| Place { line: location.line(), column: location.column() })
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Node { place: place(spanned.referenced), content: spanned.value, discarded: Cell::new(false) })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map, a list, a string, a number, true or false")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Content, E> {
        serde_json::Number::from_f64(value).map(Content::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = items.next_element()? {
            list.push(node);
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            members.push(Member { place: place(key.referenced), key: key.value, node: map.next_value()? });
        }
        Ok(Content::Map(members))
    }
}

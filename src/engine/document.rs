//! The received JSON as a borrowed, read-only document.
//!
//! Objects are looked at, never decoded into typed structs: a typed round trip deletes fields newer than our schema
//! (TRAPS B05), and a tree of owned strings costs several times as much. Strings borrow from the body where they hold
//! no escape; `metadata.managedFields` stays raw text until something asks for it. `null`, absent and (for lists and
//! maps) empty read the same, because API servers send unset required lists as `null` (TRAPS A23).

mod parse;

use std::borrow::Cow;
use std::fmt;
use std::ops::Index;

use serde::de::DeserializeSeed;

/// One JSON value, borrowed from the text it was parsed from where that is possible.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// `null`; also what an absent member reads as.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, see [`Number`].
    Number(Number),
    /// A string.
    String(Cow<'a, str>),
    /// A list.
    Array(Vec<Value<'a>>),
    /// A map, members in the order received.
    Object(Object<'a>),
    /// Text of a member that nobody needed yet (`managedFields`).
    Raw(Cow<'a, str>),
}

/// A JSON number. Integers keep all their digits; what does not fit 64 bits, and what is written with a fraction or an
/// exponent, is a float and never counts as an integer (TRAPS A25).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// An integer that fits `i64`, as every Kubernetes integer does.
    Int(i64),
    /// A larger non-negative integer.
    Big(u64),
    /// Anything else, for instance `3.0`.
    Float(f64),
}

/// The members of a JSON object.
#[derive(Debug, Clone, Default)]
pub struct Object<'a> {
    /// In the order received; more than [`FEW`] of them sorted by name and each name once, so that no look-up and no
    /// comparison takes time by the square of what somebody sends.
    members: Vec<(Cow<'a, str>, Value<'a>)>,
}

/// Up to here members are looked at one by one: more than any type of the API has fields. Maps that are longer
/// come sorted by name from an API server, as Go writes them.
const FEW: usize = 64;

/// What an absent member reads as.
static NULL: Value<'static> = Value::Null;

impl<'a> Object<'a> {
    /// The member of this name; of doubled members the last, as Go reads them.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.position(key).map(|index| &self.members[index].1)
    }

    fn position(&self, key: &str) -> Option<usize> {
        if self.members.len() <= FEW {
            return self.members.iter().rposition(|(name, _)| name == key);
        }
        self.members.binary_search_by(|(name, _)| name.as_ref().cmp(key)).ok()
    }

    /// Keeps what is said of `members`.
    fn settle(&mut self) {
        if self.members.len() > FEW {
            // The sort is stable: turned round, the last of doubled ones comes first and is the one that stays.
            self.members.reverse();
            self.members.sort_by(|(a, _), (b, _)| a.cmp(b));
            self.members.dedup_by(|(later, _), (first, _)| later == first);
        }
    }

    /// Members in the order received, doubled ones included; more than a few in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        self.members.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Value<'a>> {
        self.position(key).map(|index| &mut self.members[index].1)
    }

    /// Sets the member, replacing every one of that name.
    pub fn insert(&mut self, key: impl Into<Cow<'a, str>>, value: Value<'a>) {
        let key = key.into();
        if let Some(slot) = self.get_mut(&key) {
            *slot = value;
        } else if self.members.len() > FEW {
            let place = self.members.partition_point(|(name, _)| *name < key);
            self.members.insert(place, (key, value));
        } else {
            self.members.push((key, value));
            self.settle();
        }
    }

    /// Whether both hold the same, whatever the order; a `null` member is as an absent one. Where the names stand in the
    /// same order, doubled ones are compared one by one.
    fn same_as(&self, other: &Object<'_>) -> bool {
        let in_step =
            self.len() == other.len() && self.iter().zip(other.iter()).all(|((name, _), (other, _))| name == other);
        if in_step {
            return self.iter().zip(other.iter()).all(|((_, value), (_, other))| value == other);
        }
        // Every value is compared once at most: comparing a doubled member for each time that it stands there would
        // double the work at every level of nesting.
        self.effective() == other.effective()
    }

    /// The members that count, sorted by name.
    fn effective(&self) -> Vec<(&str, &Value<'a>)> {
        let mut members: Vec<_> = self.iter().collect();
        members.reverse();
        members.sort_by_key(|(name, _)| *name);
        members.dedup_by_key(|(name, _)| *name);
        members.retain(|(_, value)| !value.is_null());
        members
    }

    /// Removes every member of that name.
    pub fn remove(&mut self, key: &str) {
        self.members.retain(|(name, _)| name != key);
    }
}

impl<'a> FromIterator<(Cow<'a, str>, Value<'a>)> for Object<'a> {
    fn from_iter<I: IntoIterator<Item = (Cow<'a, str>, Value<'a>)>>(members: I) -> Self {
        let mut object = Object { members: members.into_iter().collect() };
        object.settle();
        object
    }
}

impl<'a> Value<'a> {
    /// Parses one JSON text.
    ///
    /// # Errors
    /// Text that is not JSON, or nested deeper than 128 levels (TRAPS A24).
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let value = parse::Seed { raw: false }.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }

    /// The member of this name; `null` where it is absent or this is no object.
    pub fn get(&self, key: &str) -> &Value<'a> {
        match self {
            Value::Object(object) => object.get(key).unwrap_or(null()),
            _ => null(),
        }
    }

    /// The value below these members, `null` where one is absent. List elements go by their decimal index.
    pub fn at<S: AsRef<str>>(&self, path: &[S]) -> &Value<'a> {
        path.iter().fold(self, |value, segment| match value {
            Value::Array(items) => {
                segment.as_ref().parse::<usize>().ok().and_then(|index| items.get(index)).unwrap_or(null())
            }
            _ => value.get(segment.as_ref()),
        })
    }

    /// Whether this is `null` (or was absent).
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if it is one; `3.0` is not (TRAPS A25).
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Number(Number::Int(number)) => Some(*number),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The elements; none where this is no list.
    pub fn items(&self) -> &[Value<'a>] {
        match self {
            Value::Array(items) => items,
            _ => &[],
        }
    }

    /// The members, if this is an object.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Members in order; none where this is no object.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        self.as_object().into_iter().flat_map(Object::iter)
    }

    /// Sets the value below these members, making objects where none is. Does nothing where the way leads through a
    /// scalar or past the end of a list.
    pub fn set<S: AsRef<str>>(&mut self, path: &[S], value: Value<'a>) {
        let Some((last, parents)) = path.split_last() else {
            *self = value;
            return;
        };
        let mut node = self;
        for segment in parents {
            if node.is_null() {
                *node = Value::Object(Object::default());
            }
            node = match node {
                Value::Object(object) => {
                    let key = segment.as_ref();
                    if object.get(key).is_none() {
                        object.insert(key.to_owned(), Value::Null);
                    }
                    match object.get_mut(key) {
                        Some(child) => child,
                        None => return,
                    }
                }
                Value::Array(items) => match segment.as_ref().parse::<usize>().ok().and_then(|i| items.get_mut(i)) {
                    Some(child) => child,
                    None => return,
                },
                _ => return,
            };
        }
        if node.is_null() {
            *node = Value::Object(Object::default());
        }
        match node {
            Value::Object(object) => object.insert(last.as_ref().to_owned(), value),
            Value::Array(items) => {
                if let Some(slot) = last.as_ref().parse::<usize>().ok().and_then(|i| items.get_mut(i)) {
                    *slot = value;
                }
            }
            _ => {}
        }
    }

    /// Removes the member at this path, and then every parent below `keep` levels that became empty.
    pub fn remove<S: AsRef<str>>(&mut self, path: &[S], keep: usize) {
        let Some((first, rest)) = path.split_first() else { return };
        let child = match self {
            Value::Object(object) => {
                if rest.is_empty() {
                    object.remove(first.as_ref());
                    return;
                }
                object.get_mut(first.as_ref())
            }
            Value::Array(items) => first.as_ref().parse::<usize>().ok().and_then(|i| items.get_mut(i)),
            _ => None,
        };
        let Some(child) = child else { return };
        child.remove(rest, keep.saturating_sub(1));
        let emptied = matches!(child, Value::Object(object) if object.is_empty());
        if let (Value::Object(object), 0, true) = (self, keep, emptied) {
            object.remove(first.as_ref());
        }
    }

    /// A copy that borrows nothing.
    pub fn to_static(&self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(*value),
            Value::Number(number) => Value::Number(*number),
            Value::String(text) => Value::String(Cow::Owned(text.clone().into_owned())),
            Value::Raw(text) => Value::Raw(Cow::Owned(text.clone().into_owned())),
            Value::Array(items) => Value::Array(items.iter().map(Value::to_static).collect()),
            Value::Object(object) => Value::Object(
                object.iter().map(|(name, value)| (Cow::Owned(name.to_owned()), value.to_static())).collect(),
            ),
        }
    }
}

fn null<'s, 'a>() -> &'s Value<'a> {
    // `Value` is covariant: the static null serves every lifetime.
    &NULL
}

impl<'a> Index<&str> for Value<'a> {
    type Output = Value<'a>;
    fn index(&self, key: &str) -> &Value<'a> {
        self.get(key)
    }
}

/// Equal as JSON: members in any order, a `null` member the same as an absent one.
impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Number(a), Value::Number(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Raw(a), Value::Raw(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Object(a), Value::Object(b)) => a.same_as(b),
            _ => false,
        }
    }
}

impl From<&str> for Value<'static> {
    fn from(text: &str) -> Self {
        Value::String(Cow::Owned(text.to_owned()))
    }
}

impl From<String> for Value<'static> {
    fn from(text: String) -> Self {
        Value::String(Cow::Owned(text))
    }
}

impl From<i64> for Value<'static> {
    fn from(number: i64) -> Self {
        Value::Number(Number::Int(number))
    }
}

/// An object of these members, in this order.
pub fn object<'a, const N: usize>(members: [(&'static str, Value<'a>); N]) -> Value<'a> {
    Value::Object(members.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect())
}

/// Compact JSON, members in their order.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::String(text) => f.write_str(&quote(text)),
            Value::Raw(text) => f.write_str(text),
            Value::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Value::Object(object) => {
                f.write_str("{")?;
                for (index, (name, value)) in object.iter().enumerate() {
                    write!(f, "{}{}:{value}", if index == 0 { "" } else { "," }, quote(name))?;
                }
                f.write_str("}")
            }
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int(number) => write!(f, "{number}"),
            Number::Big(number) => write!(f, "{number}"),
            // Debug keeps a fraction or an exponent, so that a float stays one.
            Number::Float(number) => write!(f, "{number:?}"),
        }
    }
}

/// The text as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;

//! From JSON text to the document.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Number, Object, Value};

/// The member that stays raw text: it is as large as the object and only asked for when a fix would replace a default.
const RAW_MEMBER: &str = "managedFields";

/// Parses a value; `raw` keeps its text instead.
pub(super) struct Seed {
    pub(super) raw: bool,
}

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Value<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        if self.raw {
            let raw: &'de RawValue = serde::Deserialize::deserialize(deserializer)?;
            return Ok(if raw.get() == "null" { Value::Null } else { Value::Raw(Cow::Borrowed(raw.get())) });
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value<'de>, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value<'de>, E> {
        Ok(Value::Number(Number::Int(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value<'de>, E> {
        Ok(Value::Number(i64::try_from(number).map_or(Number::Big(number), Number::Int)))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value<'de>, E> {
        if number.is_finite() {
            Ok(Value::Number(Number::Float(number)))
        } else {
            Err(E::custom("number out of range"))
        }
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Seed { raw: false })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(Key(name)) = map.next_key()? {
            let raw = name == RAW_MEMBER;
            let value = map.next_value_seed(Seed { raw })?;
            members.push((name, value));
        }
        let mut object = Object { members };
        object.settle();
        Ok(Value::Object(object))
    }
}

/// A member's name, borrowed where it holds no escape (serde's own `Cow<str>` always copies).
struct Key<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

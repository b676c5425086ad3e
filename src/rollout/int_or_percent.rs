//! `IntOrString` as `maxSurge` and `maxUnavailable` use it (TRAPS C04).

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

use crate::engine::document::Value;

/// A number of pods, or a share of them. What is neither (`"1"`, `-1`, `1.0`) is not a value of this type: it is left
/// for the API server to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntOrPercent {
    /// A number of pods, never negative.
    Int(i32),
    /// Percent of the pods; for `maxSurge` it may be above 100.
    Percent(u32),
}

impl IntOrPercent {
    /// Reads a whole number ≥ 0 or a string of digits and `%`; `None` for all else, so also for what is absent.
    pub fn parse(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse_percent(text),
            value => value.as_i64().and_then(Self::from_i64),
        }
    }

    fn parse_percent(text: &str) -> Option<Self> {
        let digits = text.strip_suffix('%')?;
        // `str::parse` alone would take "+25".
        let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        valid.then(|| digits.parse().ok()).flatten().map(IntOrPercent::Percent)
    }

    fn from_i64(number: i64) -> Option<Self> {
        i32::try_from(number).ok().filter(|number| *number >= 0).map(IntOrPercent::Int)
    }

    /// Whether it is literally zero, `0` or `0%`.
    pub fn is_zero(self) -> bool {
        matches!(self, IntOrPercent::Int(0) | IntOrPercent::Percent(0))
    }

    /// The percentage, if it is one.
    pub fn percent(self) -> Option<u32> {
        match self {
            IntOrPercent::Percent(percent) => Some(percent),
            IntOrPercent::Int(_) => None,
        }
    }

    /// Number of pods out of `total`, a broken pod counted whole.
    pub fn round_up(self, total: i64) -> i64 {
        self.scaled(total, 99)
    }

    /// Number of pods out of `total`, a broken pod not counted.
    pub fn round_down(self, total: i64) -> i64 {
        self.scaled(total, 0)
    }

    fn scaled(self, total: i64, carry: i64) -> i64 {
        match self {
            IntOrPercent::Int(number) => i64::from(number),
            IntOrPercent::Percent(percent) => i64::from(percent).saturating_mul(total).saturating_add(carry) / 100,
        }
    }

    /// The value as it stands in a manifest.
    pub fn to_value(self) -> Value<'static> {
        match self {
            IntOrPercent::Int(number) => Value::from(i64::from(number)),
            percent => Value::from(percent.to_string()),
        }
    }
}

/// As in YAML: `1`, `25%`.
impl fmt::Display for IntOrPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntOrPercent::Int(number) => write!(f, "{number}"),
            IntOrPercent::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Serialize for IntOrPercent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            IntOrPercent::Int(number) => serializer.serialize_i32(*number),
            percent => serializer.collect_str(percent),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrPercent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = IntOrPercent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 0 or a percentage such as \"25%\"")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<IntOrPercent, E> {
                let unexpected = serde::de::Unexpected::Signed(number);
                IntOrPercent::from_i64(number).ok_or_else(|| E::invalid_value(unexpected, &self))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<IntOrPercent, E> {
                let unexpected = serde::de::Unexpected::Unsigned(number);
                let small = i64::try_from(number).ok().and_then(IntOrPercent::from_i64);
                small.ok_or_else(|| E::invalid_value(unexpected, &self))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<IntOrPercent, E> {
                let unexpected = serde::de::Unexpected::Str(text);
                IntOrPercent::parse_percent(text).ok_or_else(|| E::invalid_value(unexpected, &self))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for IntOrPercent {
    fn schema_name() -> Cow<'static, str> {
        "IntOrPercent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of pods, or a percentage of them such as \"25%\".",
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": i32::MAX},
                {"type": "string", "pattern": "^[0-9]+%$"},
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Option<IntOrPercent> {
        IntOrPercent::parse(&Value::parse(json).unwrap())
    }

    #[test]
    fn c04_a_number_or_digits_and_percent() {
        assert_eq!(parse("1"), Some(IntOrPercent::Int(1)));
        assert_eq!(parse("0"), Some(IntOrPercent::Int(0)));
        assert_eq!(parse("\"25%\""), Some(IntOrPercent::Percent(25)));
        assert_eq!(parse("\"250%\""), Some(IntOrPercent::Percent(250)));
        assert_eq!(parse("\"0%\""), Some(IntOrPercent::Percent(0)));
    }

    #[test]
    fn c04_everything_else_is_invalid() {
        for json in [
            "\"1\"",
            "-1",
            "\"-1%\"",
            "\"+1%\"",
            "\"%\"",
            "\"\"",
            "\"25 %\"",
            "\"2.5%\"",
            "1.0",
            "2147483648",
            "\"99999999999%\"",
            "\"²%\"",
            "null",
            "true",
            "[]",
            "{}",
        ] {
            assert_eq!(parse(json), None, "{json}");
        }
    }

    #[test]
    fn rounding_up_and_down() {
        assert_eq!(IntOrPercent::Percent(25).round_up(5), 2);
        assert_eq!(IntOrPercent::Percent(25).round_down(5), 1);
        assert_eq!(IntOrPercent::Percent(25).round_up(4), 1);
        assert_eq!(IntOrPercent::Percent(1).round_up(1), 1);
        assert_eq!(IntOrPercent::Percent(0).round_up(7), 0);
        assert_eq!(IntOrPercent::Int(3).round_up(1), 3);
        assert_eq!(IntOrPercent::Percent(u32::MAX).round_up(i64::MAX), i64::MAX / 100);
    }

    #[test]
    fn policies_spell_it_as_manifests_do() {
        let read = |json: &str| serde_json::from_str::<IntOrPercent>(json);
        assert_eq!(read("0").unwrap(), IntOrPercent::Int(0));
        assert_eq!(read("\"10%\"").unwrap(), IntOrPercent::Percent(10));
        assert_eq!(serde_json::to_string(&IntOrPercent::Percent(10)).unwrap(), "\"10%\"");
        assert_eq!(serde_json::to_string(&IntOrPercent::Int(2)).unwrap(), "2");
        for json in ["-1", "\"1\"", "1.5", "3000000000"] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains("a whole number from 0 or a percentage such as \"25%\""), "{json}: {error}");
        }
    }
}

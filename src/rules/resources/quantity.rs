//! Quantities (`100m`, `0.5Gi`, `1e3`) as exact decimal numbers, by the grammar of `k8s.io/apimachinery/pkg/api/resource`
//! (TRAPS H04). No floating point takes part: 0.1 is a tenth.

use crate::engine::document::Value;

/// 2^63 − 1, the largest quantity, in thousandths.
const CAP: i128 = i64::MAX as i128 * 1000;

/// Digits of [`CAP`]: a number with more of them is larger.
const CAP_DIGITS: i64 = 22;

/// A quantity, compared by value: `1000m` equals `1`. What is finer than a thousandth is rounded up (away from zero),
/// what is larger than 2^63 − 1 is cut to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    milli: i128,
}

/// What a suffix multiplies by: 1024^`binary` · 10^`decimal`.
struct Scale {
    binary: u32,
    decimal: i64,
}

impl Quantity {
    /// Reads the text of a quantity; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'+' => (false, &text[1..]),
            b'-' => (true, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let scale = Scale::parse(suffix)?;
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
        for _ in 0..scale.binary {
            multiply_by_1024(&mut digits);
        }
        // The number is `digits` as an integer times ten to this power, in thousandths.
        let exponent = scale.decimal.saturating_add(3).saturating_sub(i64::try_from(fraction.len()).ok()?);
        let milli = scaled(&digits, exponent);
        Some(Quantity { milli: if negative { -milli } else { milli } })
    }

    /// Reads a quantity as an object holds it: a string, or a number (custom resources). `None` for anything else.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::String(text) => Quantity::parse(text),
            // The shortest text that reads as the same number: what the author wrote.
            Value::Number(number) => Quantity::parse(&number.to_string()),
            _ => None,
        }
    }

    /// The value in thousandths.
    pub fn milli(self) -> i128 {
        self.milli
    }
}

impl Scale {
    fn parse(suffix: &str) -> Option<Self> {
        let binary = |binary| Some(Scale { binary, decimal: 0 });
        let decimal = |decimal| Some(Scale { binary: 0, decimal });
        match suffix {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(1),
            "Mi" => binary(2),
            "Gi" => binary(3),
            "Ti" => binary(4),
            "Pi" => binary(5),
            "Ei" => binary(6),
            _ => decimal(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
        }
    }
}

/// The leading decimal digits, and what follows.
fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Multiplies a number, its decimal digits from the highest on.
fn multiply_by_1024(digits: &mut Vec<u8>) {
    let mut carry = 0_u32;
    for digit in digits.iter_mut().rev() {
        let product = u32::from(*digit) * 1024 + carry;
        *digit = (product % 10) as u8;
        carry = product / 10;
    }
    while carry > 0 {
        digits.insert(0, (carry % 10) as u8);
        carry /= 10;
    }
}

/// `digits` · 10^`exponent`, rounded up to a whole number and cut to [`CAP`].
fn scaled(digits: &[u8], exponent: i64) -> i128 {
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let digits = &digits[zeros..];
    if digits.is_empty() {
        return 0;
    }
    let whole = i64::try_from(digits.len()).unwrap_or(i64::MAX).saturating_add(exponent);
    if whole > CAP_DIGITS {
        return CAP;
    }
    let whole = usize::try_from(whole).unwrap_or(0);
    let kept = whole.min(digits.len());
    let padding = std::iter::repeat_n(&0, whole - kept);
    let number = digits[..kept].iter().chain(padding).fold(0_i128, |number, digit| number * 10 + i128::from(*digit));
    let inexact = digits[kept..].iter().any(|digit| *digit != 0);
    (number + i128::from(inexact)).min(CAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milli(text: &str) -> Option<i128> {
        Quantity::parse(text).map(Quantity::milli)
    }

    #[test]
    fn h04_the_grammar() {
        assert_eq!(milli("100m"), Some(100));
        assert_eq!(milli("0.1"), Some(100));
        assert_eq!(milli(".1"), Some(100));
        assert_eq!(milli("1."), Some(1_000));
        assert_eq!(milli("1e3"), Some(1_000_000));
        assert_eq!(milli("1E3"), Some(1_000_000));
        assert_eq!(milli("1E"), Some(1_000_000_000_000_000_000_000));
        assert_eq!(milli("1Ei"), Some(1_152_921_504_606_846_976_000));
        assert_eq!(milli("0.5Gi"), Some(536_870_912_000));
        assert_eq!(milli("+1"), Some(1_000));
        assert_eq!(milli("-1"), Some(-1_000));
        assert_eq!(milli("0"), Some(0));
        assert_eq!(milli("00012.50"), Some(12_500));
        assert_eq!(milli("1e-3"), Some(1));
        assert_eq!(milli("1e+3"), Some(1_000_000));
        assert_eq!(milli("0.000"), Some(0));
    }

    #[test]
    fn h04_every_suffix() {
        assert_eq!(milli("5000000n"), Some(5));
        assert_eq!(milli("5000u"), Some(5));
        assert_eq!(milli("2k"), Some(2_000_000));
        assert_eq!(milli("2M"), Some(2_000_000_000));
        assert_eq!(milli("2G"), Some(2_000_000_000_000));
        assert_eq!(milli("2T"), Some(2_000_000_000_000_000));
        assert_eq!(milli("2P"), Some(2_000_000_000_000_000_000));
        assert_eq!(milli("1Ki"), Some(1_024_000));
        assert_eq!(milli("1Mi"), Some(1_048_576_000));
        assert_eq!(milli("1Ti"), Some(1_099_511_627_776_000));
        assert_eq!(milli("1Pi"), Some(1_125_899_906_842_624_000));
    }

    #[test]
    fn h04_equal_by_value() {
        assert_eq!(Quantity::parse("1000m"), Quantity::parse("1"));
        assert_eq!(Quantity::parse("0.5Gi"), Quantity::parse("512Mi"));
        assert_eq!(Quantity::parse("1024Ki"), Quantity::parse("1Mi"));
        assert!(Quantity::parse("1M") < Quantity::parse("1Mi"));
        assert!(Quantity::parse("999m") < Quantity::parse("1"));
    }

    #[test]
    fn h04_finer_than_milli_rounds_up() {
        assert_eq!(milli("0.0001"), Some(1));
        assert_eq!(milli("1n"), Some(1));
        assert_eq!(milli("0.1m"), Some(1));
        assert_eq!(milli("1.0001"), Some(1_001));
        assert_eq!(milli("1.0010"), Some(1_001));
        assert_eq!(milli("-0.0001"), Some(-1));
        assert_eq!(milli("1e-999999999999"), Some(1));
        // 1.1 Gi is 1,181,116,006.4 bytes exactly.
        assert_eq!(milli("1.1Gi"), Some(1_181_116_006_400));
        // 2^60 times the last digit counts although it is the thirtieth: exact beyond any machine word.
        assert_eq!(milli("0.000000000000000000000000000001Ei"), Some(1));
        assert_eq!(milli("1.000000000000000000000000000001Ki"), Some(1_024_001));
    }

    #[test]
    fn h04_capped_at_the_largest_int64() {
        let cap = Some(9_223_372_036_854_775_807_000);
        assert_eq!(milli("9223372036854775807"), cap);
        assert_eq!(milli("9223372036854775808"), cap);
        assert_eq!(milli("9223372036854775806"), Some(9_223_372_036_854_775_806_000));
        assert_eq!(milli("10E"), cap);
        assert_eq!(milli("8Ei"), cap);
        assert_eq!(milli("7Ei"), Some(8_070_450_532_247_928_832_000));
        assert_eq!(milli("1e9223372036854775807"), cap);
        assert_eq!(milli("0e9223372036854775807"), Some(0));
        assert_eq!(milli(&"9".repeat(10_000)), cap);
        assert_eq!(milli("-9223372036854775808"), Some(-9_223_372_036_854_775_807_000));
    }

    #[test]
    fn h04_what_is_no_quantity() {
        // Among them `1e`, an exponent without digits, though `1E` is exa.
        for text in [
            "",
            "+",
            "-",
            ".",
            "m",
            "Ki",
            "e3",
            "1 ",
            " 1",
            "1K",
            "1ki",
            "1mi",
            "1Mib",
            "1MB",
            "1e",
            "1e3m",
            "1e1.5",
            "1ee3",
            "1.2.3",
            "1,5",
            "--1",
            "0x10",
            "1_000",
            "١",
            "1é",
            "NaN",
            "1e99999999999999999999",
        ] {
            assert_eq!(milli(text), None, "{text:?}");
        }
    }

    #[test]
    fn h04_json_numbers_are_accepted() {
        let read = |json: &str| Quantity::read(&Value::parse(json).unwrap()).map(Quantity::milli);
        assert_eq!(read("2"), Some(2_000));
        assert_eq!(read("0.1"), Some(100));
        assert_eq!(read("1e3"), Some(1_000_000));
        assert_eq!(read("1e-7"), Some(1));
        assert_eq!(read("18446744073709551615"), Some(9_223_372_036_854_775_807_000));
        assert_eq!(read(r#""250m""#), Some(250));
        assert_eq!(read("null"), None);
        assert_eq!(read("true"), None);
        assert_eq!(read(r#"["1"]"#), None);
    }
}

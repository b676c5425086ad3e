//! Strings from objects, made fit for messages and logs.

/// The most characters of one string that a message shows (TRAPS J05).
const MAX_SHOWN: usize = 256;

/// The text in double quotes, escaped as Rust's `{:?}` does, so that no object can forge a line or send control codes;
/// at most 256 characters of it, the cut shown as `…`.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    let mut shown = 0;
    for character in text.chars() {
        // `char`'s escaping also escapes the single quote, which means nothing within double ones.
        let escaped = if character == '\'' { "'".to_owned() } else { character.escape_debug().to_string() };
        let length = escaped.chars().count();
        if shown + length > MAX_SHOWN {
            out.push('…');
            break;
        }
        shown += length;
        out.push_str(&escaped);
    }
    out.push('"');
    out
}

/// The first `most` of these, separated by commas, and how many there are beside them: `a, b and 3 more`.
pub fn listed(items: impl IntoIterator<Item = String>, most: usize) -> String {
    let mut items = items.into_iter();
    let mut text = items.by_ref().take(most).collect::<Vec<_>>().join(", ");
    let more = items.count();
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// Whether a terminal or a viewer of logs obeys the character instead of showing it: control characters (those of C1
/// too, of which U+009B begins a terminal's command), line and paragraph separators, and what turns the direction of
/// writing, so that text reads as other text.
pub fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with every [character that is obeyed](is_obeyed) replaced by a space, cut to 256 characters: for names within
/// a sentence.
pub fn printable(text: &str) -> String {
    let mut out: String =
        text.chars().take(MAX_SHOWN).map(|character| if is_obeyed(character) { ' ' } else { character }).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j05_control_characters_and_quotes_are_escaped() {
        assert_eq!(quoted("app"), r#""app""#);
        assert_eq!(quoted("it's"), r#""it's""#);
        assert_eq!(quoted("a\n{\"level\":\"error\"}"), r#""a\n{\"level\":\"error\"}""#);
        assert_eq!(quoted("\u{1b}[31mred"), r#""\u{1b}[31mred""#);
        assert_eq!(quoted("a\u{202e}b"), r#""a\u{202e}b""#);
        assert_eq!(quoted(""), r#""""#);
    }

    #[test]
    fn j05_names_lose_control_characters() {
        assert_eq!(printable("a\nb\u{1b}c"), "a b c");
        assert_eq!(printable("a\u{9b}b\u{202e}c\u{2028}d\u{2069}e"), "a b c d e");
        assert_eq!(printable(&"é".repeat(300)).chars().count(), 257);
    }

    #[test]
    fn j05_long_strings_are_cut_at_256_characters() {
        assert_eq!(quoted(&"x".repeat(256)), format!("\"{}\"", "x".repeat(256)));
        assert_eq!(quoted(&"x".repeat(257)), format!("\"{}…\"", "x".repeat(256)));
        // An escape is shown whole or not at all.
        assert_eq!(quoted(&format!("{}\n", "x".repeat(255))), format!("\"{}…\"", "x".repeat(255)));
    }
}

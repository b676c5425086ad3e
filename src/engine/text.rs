//! Text from objects within our own: quoted or stripped of control characters, and cut, so that nobody writes lines
//! into a log or a terminal (TRAPS J05).

/// Longest text taken over from an object, characters.
const MAX_CHARS: usize = 256;

/// The text in quotes, control characters escaped, cut to 256 characters.
pub fn quoted(text: &str) -> String {
    format!("{:?}", cut(text))
}

/// The text with every control character replaced by a space, cut to 256 characters.
pub fn printable(text: &str) -> String {
    cut(text).chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j05_control_characters_never_come_through() {
        assert_eq!(quoted("a\n{\"x\"}\u{1b}[31m"), r#""a\n{\"x\"}\u{1b}[31m""#);
        assert_eq!(printable("a\nb\u{1b}c"), "a b c");
        assert_eq!(printable(&"é".repeat(300)).chars().count(), 257);
    }
}

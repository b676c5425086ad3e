//! Which texts may become part of an API server's URL (TRAPS J03).

/// Whether this is a DNS-1123 subdomain, as names of ConfigMaps and Secrets are: lower case letters, digits, `-` and `.`,
/// at most 253 bytes. An object of another name cannot exist.
pub(super) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

/// Whether this is a DNS-1123 label of at most 63 bytes, as namespaces are.
pub(super) fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

fn is_part(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
}

/// Whether this may stand in a label selector as a key or a value without meaning anything else there.
pub(super) fn is_label_text(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j03_only_valid_names_pass() {
        for name in ["a", "app-config.v1", "0", "kube-root-ca.crt", &"a".repeat(253)] {
            assert!(is_subdomain(name), "{name}");
        }
        for name in ["", "A", "a/b", "../secrets", "..", "a..b", "-a", "a-", "a.", "a?b", "a%2fb", "a b", "ä", "a\n"] {
            assert!(!is_subdomain(name), "{name}");
            assert!(!is_label(name), "{name}");
        }
        assert!(!is_subdomain(&"a".repeat(254)));
        assert!(is_label(&"a".repeat(63)) && !is_label(&"a".repeat(64)) && !is_label("a.b"));
        assert!(
            is_label_text("app.kubernetes.io/name")
                && is_label_text("")
                && !is_label_text("a,b")
                && !is_label_text("a=b")
        );
    }
}

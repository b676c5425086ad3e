//! JSON Pointers (RFC 6901), written once so that every key from data is escaped (TRAPS B01).

/// The pointer to these members: `~` becomes `~0`, then `/` becomes `~1`.
pub fn pointer<S: AsRef<str>>(segments: &[S]) -> String {
    let mut out = String::new();
    for segment in segments {
        out.push('/');
        for character in segment.as_ref().chars() {
            match character {
                '~' => out.push_str("~0"),
                '/' => out.push_str("~1"),
                other => out.push(other),
            }
        }
    }
    out
}

/// The pointer without list indices: the identity of a place whose neighbours may move.
pub fn without_indices(pointer: &str) -> String {
    pointer
        .split('/')
        .filter(|segment| segment.is_empty() || !segment.bytes().all(|byte| byte.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b01_tilde_first_then_slash() {
        assert_eq!(pointer(&["metadata", "annotations", "a~/b"]), "/metadata/annotations/a~0~1b");
    }

    #[test]
    fn indices_go_names_stay() {
        assert_eq!(without_indices("/spec/containers/0/ports/12/name"), "/spec/containers/ports/name");
        assert_eq!(without_indices("/spec"), "/spec");
    }
}

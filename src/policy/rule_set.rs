//! Versions of the catalogue of rules.

use std::fmt;

/// `MAJOR.MINOR` of the Plimsoll that a rule came with or a policy was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleSet {
    major: u32,
    minor: u32,
}

impl RuleSet {
    /// The running program's.
    pub(super) const RUNNING: RuleSet =
        RuleSet { major: number(env!("CARGO_PKG_VERSION_MAJOR")), minor: number(env!("CARGO_PKG_VERSION_MINOR")) };

    /// Reads `0.1`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        // `+1` parses as a number too.
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten();
        Some(RuleSet { major: digits(major)?, minor: digits(minor)? })
    }

    /// Whether a rule that came with `since` is newer than this rule set.
    pub(super) fn is_newer(since: &str, rule_set: RuleSet) -> bool {
        RuleSet::parse(since).is_some_and(|since| since > rule_set)
    }
}

/// A decimal number at compile time; Cargo's own versions are nothing else.
const fn number(text: &str) -> u32 {
    let (bytes, mut at, mut value) = (text.as_bytes(), 0, 0);
    while at < bytes.len() {
        value = value * 10 + (bytes[at] - b'0') as u32;
        at += 1;
    }
    value
}

impl fmt::Display for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

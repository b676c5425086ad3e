//! How long one review may take (TRAPS A07).

use std::time::Duration;

use tokio::time::Instant;

/// Kept back from the API server's patience for the way there and back.
const RESERVE: Duration = Duration::from_millis(200);

/// When a review has to be answered and when its look-ups have to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// The answer.
    pub answer: Instant,
    /// The look-ups, so that time is left for a decision without them.
    pub lookups: Instant,
}

impl Deadline {
    /// From the URL's query and our own bound: `timeout` less 200 ms (of a timeout under 400 ms, half), at most `own`.
    /// Look-ups get 40 % of the timeout, and never more than 80 % of what the answer gets.
    pub fn new(start: Instant, query: Option<&str>, own: Duration) -> Self {
        let asked = query.and_then(timeout);
        let answer = match asked {
            Some(timeout) => timeout.saturating_sub(RESERVE).max(timeout / 2).min(own),
            None => own,
        };
        let lookups = (asked.unwrap_or(own + RESERVE) * 2 / 5).min(answer * 4 / 5);
        Deadline { answer: start + answer, lookups: start + lookups }
    }
}

/// `timeout` of a query; `None` where it is absent or cannot be read, for it is only a hint. A duration has no
/// character that a URL would escape.
fn timeout(query: &str) -> Option<Duration> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    parse_duration(value).filter(|timeout| !timeout.is_zero())
}

/// Reads a duration as Go writes it: `3s`, `2500ms`, `1m30s`, `1.5h`. At most 24 hours; no sign.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|character: char| character.is_ascii_digit()).unwrap_or(rest.len());
        total += number
            * match &rest[..unit] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    // The nanosecond is the smallest unit: what floats add below it is not meant.
    let valid = !text.is_empty() && (0.0..=86_400.0).contains(&total);
    valid.then(|| Duration::from_nanos((total * 1e9).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Duration = Duration::from_millis(2500);

    fn millis(query: Option<&str>, own: Duration) -> (u128, u128) {
        let start = Instant::now();
        let deadline = Deadline::new(start, query, own);
        ((deadline.answer - start).as_millis(), (deadline.lookups - start).as_millis())
    }

    #[test]
    fn a07_the_smaller_of_ours_and_the_timeout_less_200_ms() {
        assert_eq!(millis(Some("timeout=3s"), OWN), (2500, 1200));
        assert_eq!(millis(Some("timeout=1s"), OWN), (800, 400));
        assert_eq!(millis(Some("dryRun=All&timeout=10s"), OWN), (2500, 2000));
        assert_eq!(millis(Some("timeout=300ms"), OWN), (150, 120));
    }

    #[test]
    fn a07_what_cannot_be_read_is_ignored() {
        for query in
            [None, Some("timeout=soon"), Some("timeout=-3s"), Some("timeout="), Some("timeout=0s"), Some("x=1")]
        {
            assert_eq!(millis(query, OWN), (2500, 1080), "{query:?}");
        }
    }

    #[test]
    fn durations_as_go_writes_them() {
        let parsed = |text| parse_duration(text).map(|duration| duration.as_millis());
        assert_eq!(parsed("3s"), Some(3000));
        assert_eq!(parsed("2500ms"), Some(2500));
        assert_eq!(parsed("1m30s"), Some(90_000));
        assert_eq!(parsed("1.5h"), Some(5_400_000));
        for text in ["", "3", "s", "3 s", "3x", "-1s", "1e3s", "25h", "..s"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}

//! The arithmetic of a PodDisruptionBudget: both fields round percentages up, unlike a Deployment's (TRAPS G01).

use std::fmt;

use crate::engine::document::Value;

/// Most pods that a budget can cover: `spec.replicas` is an int32.
const MOST_PODS: i64 = i32::MAX as i64;

/// A count of pods or a percentage of those that the budget selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Pods.
    Count(i64),
    /// Hundredths of the pods selected.
    Percent(i64),
}

impl Amount {
    /// Reads an IntOrString as the API server validates it for budgets: a whole number ≥ 0, or digits and `%`. `None`
    /// for anything else, absent included.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text).filter(|amount| matches!(amount, Amount::Percent(_))),
            value => value.as_i64().filter(|count| *count >= 0).map(Amount::Count),
        }
    }

    /// Reads the text of one that an API server accepted: `2` or `50%`.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |digits: &str| {
            let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            whole.then(|| digits.parse().ok()).flatten()
        };
        match text.strip_suffix('%') {
            Some(digits) => number(digits).map(Amount::Percent),
            None => number(text).map(Amount::Count),
        }
    }

    /// This many of `pods` pods, percentages rounded up.
    fn of(self, pods: i64) -> i64 {
        match self {
            Amount::Count(count) => count,
            Amount::Percent(percent) => {
                let hundredths = i128::from(percent) * i128::from(pods);
                i64::try_from((hundredths + 99) / 100).unwrap_or(i64::MAX)
            }
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Count(count) => write!(f, "{count}"),
            Amount::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// What a budget says, by the field that says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// `spec.maxUnavailable`.
    MaxUnavailable(Amount),
    /// `spec.minAvailable`.
    MinAvailable(Amount),
}

impl Budget {
    /// How many of `pods` healthy pods may be evicted at once.
    pub fn allowed_disruptions(self, pods: i64) -> i64 {
        match self {
            Budget::MaxUnavailable(amount) => amount.of(pods).min(pods),
            Budget::MinAvailable(amount) => (pods - amount.of(pods)).max(0),
        }
    }

    /// Whether no eviction is allowed for any number of pods. What is allowed never falls as pods are added, so the
    /// largest number answers for all.
    pub fn blocks_always(self) -> bool {
        self.allowed_disruptions(MOST_PODS) == 0
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Budget::MaxUnavailable(amount) => write!(f, "maxUnavailable {amount}"),
            Budget::MinAvailable(amount) => write!(f, "minAvailable {amount}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g01_percentages_round_up_for_both_fields() {
        let max = |percent, pods| Budget::MaxUnavailable(Amount::Percent(percent)).allowed_disruptions(pods);
        let min = |percent, pods| Budget::MinAvailable(Amount::Percent(percent)).allowed_disruptions(pods);
        assert_eq!(max(30, 1), 1);
        assert_eq!(max(40, 3), 2);
        assert_eq!(min(50, 7), 3);
        assert_eq!(min(1, 1), 0);
        assert_eq!(min(90, 5), 0);
    }

    #[test]
    fn g01_counts_are_bounded_by_the_pods() {
        assert_eq!(Budget::MaxUnavailable(Amount::Count(5)).allowed_disruptions(3), 3);
        assert_eq!(Budget::MinAvailable(Amount::Count(2)).allowed_disruptions(3), 1);
        assert_eq!(Budget::MinAvailable(Amount::Count(2)).allowed_disruptions(1), 0);
        assert_eq!(Budget::MaxUnavailable(Amount::Percent(i64::MAX)).allowed_disruptions(3), 3);
        assert_eq!(Budget::MinAvailable(Amount::Percent(i64::MAX)).allowed_disruptions(3), 0);
    }

    #[test]
    fn g02_what_blocks_whatever_the_number_of_pods() {
        assert!(Budget::MaxUnavailable(Amount::Count(0)).blocks_always());
        assert!(Budget::MaxUnavailable(Amount::Percent(0)).blocks_always());
        assert!(Budget::MinAvailable(Amount::Percent(100)).blocks_always());
        assert!(Budget::MinAvailable(Amount::Percent(150)).blocks_always());
        assert!(!Budget::MaxUnavailable(Amount::Count(1)).blocks_always());
        assert!(!Budget::MaxUnavailable(Amount::Percent(1)).blocks_always());
        assert!(!Budget::MinAvailable(Amount::Percent(99)).blocks_always());
        assert!(!Budget::MinAvailable(Amount::Count(1000)).blocks_always());
    }

    #[test]
    fn a23_what_the_api_server_refuses_reads_as_nothing() {
        let read = |json: &str| Amount::read(&Value::parse(json).unwrap());
        assert_eq!(read("0"), Some(Amount::Count(0)));
        assert_eq!(read(r#""0%""#), Some(Amount::Percent(0)));
        assert_eq!(read(r#""0100%""#), Some(Amount::Percent(100)));
        for refused in ["null", "-1", "0.0", "true", "[]", "{}", r#""""#, r#""0""#, r#""%""#, r#""+0%""#, r#""-1%""#] {
            assert_eq!(read(refused), None, "{refused}");
        }
        assert_eq!(read(r#""99999999999999999999%""#), None);
    }
}

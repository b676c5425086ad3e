//! What a rule reports, and what it would write.

use super::document::Value;

/// What a finding does to the review, weakest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The rule does not run.
    Off,
    /// Recorded in the log and metrics only.
    Audit,
    /// Shown to the user as a warning.
    Warn,
    /// The object is refused.
    Deny,
}

impl Action {
    /// As in the policy file.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Off => "off",
            Action::Audit => "audit",
            Action::Warn => "warn",
            Action::Deny => "deny",
        }
    }
}

/// One thing that is wrong, where, what follows from it, and how to mend it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Id of the rule.
    pub rule: &'static str,
    /// JSON Pointer to the value in question, or to where it is missing.
    pub pointer: String,
    /// Name of the container, where the finding is a container's: with the rule it is the ratchet's key.
    pub container: Option<String>,
    /// A number of which more is worse, for the ratchet.
    pub measure: Option<i64>,
    /// The most that this finding may do whatever the policy says; `None`: no bound.
    pub cap: Option<Action>,
    /// One sentence: the value found and the consequence, computed.
    pub message: String,
    /// YAML of the lines to write, where it can be told.
    pub mend: Option<String>,
    /// What the rule itself would write.
    pub fix: Option<Fix>,
    /// Why a fixable rule has no fix here, if a look-up (the server's version, a quota, a ConfigMap) stood in the
    /// way: `/mutate` warns of those too, in the same words, so that the API server shows them once.
    pub stopped_by_lookup: bool,
}

impl Finding {
    /// A finding without bound, number, mend or fix.
    pub fn new(rule: &'static str, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Finding {
            rule,
            pointer: pointer.into(),
            container: None,
            measure: None,
            cap: None,
            message: message.into(),
            mend: None,
            fix: None,
            stopped_by_lookup: false,
        }
    }

    /// Names the container.
    pub fn container(mut self, name: impl Into<String>) -> Self {
        self.container = Some(name.into());
        self
    }

    /// Sets the number of which more is worse.
    pub fn measure(mut self, measure: i64) -> Self {
        self.measure = Some(measure);
        self
    }

    /// Bounds what the finding may do.
    pub fn at_most(mut self, cap: Action) -> Self {
        self.cap = Some(self.cap.map_or(cap, |old| old.min(cap)));
        self
    }

    /// Sets the YAML that mends it.
    pub fn mend(mut self, yaml: impl Into<String>) -> Self {
        self.mend = Some(yaml.into());
        self
    }

    /// Sets what the rule would write.
    pub fn fix(mut self, fix: Option<Fix>) -> Self {
        self.fix = fix;
        self
    }
}

/// What a rule would write: values at places of the object, and the sentence that tells the author.
#[derive(Debug, Clone, PartialEq)]
pub struct Fix {
    /// Entry of the marker: the rule and, for a container's fix, `/` and its name.
    pub claim: String,
    /// Each place (members from the root, list elements by index) and its value.
    pub writes: Vec<(Vec<String>, Value<'static>)>,
    /// What was done, for the warning: `container "app": added a preStop sleep of 5 s`.
    pub says: String,
    /// What to tell where an older value of ours stays although it differs, because the author's template did not
    /// change (TRAPS B18) or is a retained revision (C14); `None`: nothing.
    pub kept_says: Option<String>,
    /// Whether it renews a value of ours even where the author's template did not change.
    pub on_unchanged_template: bool,
}

impl Fix {
    /// A fix that only ever writes where the author's template is new or changed, and says nothing where it may not.
    pub fn new(claim: impl Into<String>, writes: Vec<(Vec<String>, Value<'static>)>, says: impl Into<String>) -> Self {
        Fix { claim: claim.into(), writes, says: says.into(), kept_says: None, on_unchanged_template: false }
    }

    /// Id of the rule whose fix it is.
    pub fn rule(&self) -> &str {
        self.claim.split_once('/').map_or(self.claim.as_str(), |(rule, _)| rule)
    }
}

//! What can be wrong with a policy, told to the person who wrote it: where, what, and what to do.

use std::fmt;

/// The most bytes of a policy that are read. A ConfigMap holds no more than 1 MiB.
pub const MAX_BYTES: usize = 1 << 20;

/// Where something stands in the policy's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
}

/// One thing that is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands; `None` where the text ends too early to say.
    pub place: Option<Place>,
    /// Members from the root: `spec.rules.missing-pre-stop.params.sleepSeconds`; empty for the whole text.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty where the message says it all.
    pub mend: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { line, column }) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match self.mend.as_str() {
            "" => Ok(()),
            mend => write!(f, "; {mend}"),
        }
    }
}

/// Why a text is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is larger than [`MAX_BYTES`].
    #[error("the policy has {0} bytes, at most {MAX_BYTES} are read; move what is no policy out of it")]
    TooLarge(usize),
    /// All that is wrong, in the order of the text; one line each.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
}

impl Error {
    /// The single problems; none where the text was not read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Error::TooLarge(_) => &[],
            Error::Invalid(problems) => problems,
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

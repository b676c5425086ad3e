//! Exceptions: findings that are known and borne until a day.

use std::fmt;

use chrono::NaiveDate;

use super::compile::Catalogue;
use super::decode::{Report, suggest};
use super::model::{ExceptionSpec, Match};
use super::path::{Path, shorten};
use crate::engine::kind::KINDS;

/// A whole name, or a beginning and `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    prefix: bool,
}

impl Pattern {
    /// Reads `legacy-a` or `legacy-*`; `None` for an empty text and for a `*` elsewhere than at the end.
    pub fn parse(text: &str) -> Option<Self> {
        let (text, prefix) = text.strip_suffix('*').map_or((text, false), |beginning| (beginning, true));
        let sound = !text.contains('*') && (prefix || !text.is_empty());
        sound.then(|| Pattern { text: text.to_owned(), prefix })
    }

    /// Whether it stands for this name.
    pub fn matches(&self, name: &str) -> bool {
        match self.prefix {
            true => name.starts_with(&self.text),
            false => name == self.text,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.prefix { "*" } else { "" })
    }
}

/// A compiled exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// Its name, unique in the policy.
    pub name: String,
    /// Ids of the rules whose findings are borne.
    pub rules: Vec<&'static str>,
    /// Namespaces; `None`: all.
    pub namespaces: Option<Vec<Pattern>>,
    /// Kinds; `None`: all.
    pub kinds: Option<Vec<String>>,
    /// Names; `None`: all.
    pub names: Option<Vec<Pattern>>,
    /// Who is asked about it.
    pub owner: String,
    /// Why it is borne.
    pub reason: String,
    /// The last day on which it holds, UTC.
    pub expires: NaiveDate,
}

impl Exception {
    /// Whether it is for findings of this rule on this object, be it expired or not. The name is what
    /// [`crate::engine::request::Request::display_name`] says: `web-*` for `generateName: web-`.
    pub fn covers(&self, rule: &str, namespace: &str, kind: &str, name: &str) -> bool {
        let any = |patterns: &Option<Vec<Pattern>>, text: &str| {
            patterns.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(text)))
        };
        self.rules.contains(&rule)
            && any(&self.namespaces, namespace)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|known| known == kind))
            && any(&self.names, name)
    }

    /// Whether its last day has passed.
    pub fn is_expired(&self, today: NaiveDate) -> bool {
        today > self.expires
    }
}

/// Checks and compiles the exceptions of a policy.
pub(super) fn compile(report: &mut Report<'_>, specs: &[ExceptionSpec], catalogue: Catalogue) -> Vec<Exception> {
    let root = Path::of(&["spec", "exceptions"]);
    let mut exceptions: Vec<Exception> = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let path = root.index(index);
        for (member, text) in [("name", &spec.name), ("owner", &spec.owner), ("reason", &spec.reason)] {
            if text.trim().is_empty() {
                report.refuse(&path.key(member), "it is empty", "an exception needs a name, an owner and a reason");
            }
        }
        if specs[..index].iter().any(|other| other.name == spec.name) {
            let message = format!("another exception is called {:?} too", shorten(&spec.name));
            report.refuse(&path.key("name"), message, "give each exception its own name");
        }
        if spec.rules.is_empty() {
            report.refuse(&path.key("rules"), "it names no rule", "name the rules whose findings are borne");
        }
        let rules = spec.rules.iter().enumerate().filter_map(|(position, id)| {
            let rule = catalogue.get(id);
            if rule.is_none() {
                catalogue.refuse_unknown(report, &path.key("rules").index(position), id);
            }
            rule.map(|rule| rule.meta().id)
        });
        let rules = rules.collect();
        let matches = path.key("match");
        let Match { namespaces, kinds, names } = &spec.matches;
        if namespaces.is_none() && kinds.is_none() && names.is_none() {
            let mend = "say `namespaces`, `kinds` or `names`; to bear a rule everywhere set its action";
            report.refuse(&matches, "it would match every object", mend);
        }
        let namespaces = patterns(report, &matches.key("namespaces"), namespaces.as_deref());
        let names = patterns(report, &matches.key("names"), names.as_deref());
        check_kinds(report, &matches.key("kinds"), kinds.as_deref());
        let Some(expires) = date(&spec.expires) else {
            let message = format!("{:?} is no day", shorten(&spec.expires));
            report.refuse(&path.key("expires"), message, "write the last day on which it holds, as in 2027-03-31");
            continue;
        };
        exceptions.push(Exception {
            name: spec.name.clone(),
            rules,
            namespaces,
            kinds: kinds.clone(),
            names,
            owner: spec.owner.clone(),
            reason: spec.reason.clone(),
            expires,
        });
    }
    exceptions
}

fn patterns(report: &mut Report<'_>, path: &Path, texts: Option<&[String]>) -> Option<Vec<Pattern>> {
    let texts = texts?;
    refuse_empty(report, path, texts);
    let mut patterns = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match Pattern::parse(text) {
            Some(pattern) => patterns.push(pattern),
            None => {
                let message = format!("{:?} is no pattern", shorten(text));
                report.refuse(&path.index(index), message, "write a whole name, or its beginning and `*`");
            }
        }
    }
    Some(patterns)
}

fn check_kinds(report: &mut Report<'_>, path: &Path, kinds: Option<&[String]>) {
    let Some(kinds) = kinds else { return };
    refuse_empty(report, path, kinds);
    let known: Vec<&str> = KINDS.iter().map(|row| row.kind).collect();
    for (index, kind) in kinds.iter().enumerate().filter(|(_, kind)| !known.contains(&kind.as_str())) {
        let message = format!("`{}` is no kind that is judged", shorten(kind));
        report.refuse(&path.index(index), message, suggest(kind, &known, "judged are"));
    }
}

fn refuse_empty(report: &mut Report<'_>, path: &Path, texts: &[String]) {
    if texts.is_empty() {
        report.refuse(path, "the list is empty, so nothing would match", "leave it out to match all");
    }
}

/// `2027-03-31` and nothing looser: chrono alone would read `2027-3-31` too.
fn date(text: &str) -> Option<NaiveDate> {
    (text.len() == 10).then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()).flatten()
}

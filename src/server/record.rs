//! The record of a decision: who asked what of which object, and what came of it (TRAPS K08).
//!
//! Never the object's content: no values, no annotations, no messages of findings (TRAPS J06). Strings from outside are
//! escaped and cut (TRAPS J05).

use std::fmt::Write as _;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use sha2::{Digest, Sha256};

use super::metrics::Decision;
use crate::engine::finding::Action;
use crate::engine::request::{Endpoint, Request};
use crate::engine::verdict::{Judged, Verdict};
use crate::review::{cut, push_json};

/// Characters of a string from outside.
const MAX_CHARS: usize = 256;
/// Findings and fixes named in one record.
const MAX_NAMED: usize = 20;

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// One line for a reader.
    Text,
}

/// What a record is made from, beside the request and the verdict.
#[derive(Debug, Clone)]
pub struct Circumstances<'a> {
    /// When the request came.
    pub at: DateTime<Utc>,
    /// How long it took.
    pub duration: Duration,
    /// `request.uid`; another one in `/mutate` than in `/validate` (TRAPS K03).
    pub uid: &'a str,
    /// Which webhook.
    pub endpoint: Endpoint,
    /// What became of it.
    pub decision: Decision,
    /// Hash of the policy that decided.
    pub policy_hash: &'a str,
    /// `requestKind`, where the API server converted the object.
    pub converted_from: Option<String>,
    /// How many equal records were not written before this one.
    pub repeats: u64,
}

/// The record as one line, its line feed included.
pub fn line(format: Format, about: &Circumstances<'_>, request: &Request<'_>, verdict: &Verdict) -> Vec<u8> {
    let mut out = match format {
        Format::Json => json(about, request, verdict),
        Format::Text => text(about, request, verdict),
    };
    out.push('\n');
    out.into_bytes()
}

fn json(about: &Circumstances<'_>, request: &Request<'_>, verdict: &Verdict) -> String {
    let mut out = String::with_capacity(768);
    out.push_str("{\"ts\":\"");
    out.push_str(&about.at.to_rfc3339_opts(SecondsFormat::Millis, true));
    out.push_str("\",\"level\":\"INFO\",\"message\":\"decision\"");
    member(&mut out, "uid", about.uid);
    member(&mut out, "endpoint", about.endpoint.as_str());
    member(&mut out, "operation", request.operation.as_str());
    member(&mut out, "decision", about.decision.as_str());
    out.push_str(",\"rules\":[");
    for (index, judged) in named(verdict).enumerate() {
        out.push_str(if index == 0 { "{\"rule\":" } else { ",{\"rule\":" });
        push_json(&mut out, judged.finding.rule);
        member(&mut out, "action", judged.action.as_str());
        member(&mut out, "path", &judged.finding.pointer);
        if let Some(container) = &judged.finding.container {
            member(&mut out, "container", container);
        }
        if judged.old {
            out.push_str(",\"old\":true");
        }
        if judged.unenforced {
            out.push_str(",\"unenforced\":true");
        }
        if let Some(exception) = &judged.exception {
            member(&mut out, "exception", exception);
        }
        out.push('}');
    }
    out.push(']');
    if let Some(omitted) = verdict.findings.len().checked_sub(MAX_NAMED).filter(|omitted| *omitted > 0) {
        let _ = write!(out, ",\"rulesOmitted\":{omitted}");
    }
    out.push_str(",\"fixes\":[");
    for (index, fix) in verdict.fixes.iter().take(MAX_NAMED).enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_json(&mut out, &cut(&fix.claim, MAX_CHARS));
    }
    out.push(']');
    member(&mut out, "policy", about.policy_hash);
    member(&mut out, "group", &request.group);
    member(&mut out, "kind", &request.kind);
    if !request.sub_resource.is_empty() {
        member(&mut out, "resource", &request.resource.plural);
        member(&mut out, "subResource", &request.sub_resource);
    }
    if let Some(asked) = &about.converted_from {
        member(&mut out, "requestKind", asked);
    }
    member(&mut out, "ns", &request.namespace);
    member(&mut out, "name", &request.display_name());
    member(&mut out, "user", &request.user.name);
    member(&mut out, "groupsHash", &groups_hash(&request.user.groups));
    if let Some(version) = old_resource_version(request) {
        member(&mut out, "oldResourceVersion", version);
    }
    for (name, value) in [
        ("dryRun", request.dry_run),
        ("outOfScope", verdict.out_of_scope),
        ("override", verdict.overridden),
        ("rollback", verdict.rollback),
    ] {
        if value || name == "dryRun" {
            let _ = write!(out, ",\"{name}\":{value}");
        }
    }
    if about.repeats > 0 {
        let _ = write!(out, ",\"repeats\":{}", about.repeats);
    }
    let _ = write!(
        out,
        ",\"opsCount\":{},\"durationMs\":{:.3}}}",
        verdict.patch_ops,
        about.duration.as_secs_f64() * 1000.0
    );
    out
}

/// The findings that have room: those that deny or would, then the others, each in the verdict's order.
fn named(verdict: &Verdict) -> impl Iterator<Item = &Judged> {
    let denies = |judged: &&Judged| judged.action == Action::Deny || judged.unenforced;
    let first = verdict.findings.iter().filter(denies);
    first.chain(verdict.findings.iter().filter(move |judged| !denies(judged))).take(MAX_NAMED)
}

fn member(out: &mut String, name: &str, value: &str) {
    let _ = write!(out, ",\"{name}\":");
    push_json(out, &cut(value, MAX_CHARS));
}

fn text(about: &Circumstances<'_>, request: &Request<'_>, verdict: &Verdict) -> String {
    let name = request.display_name();
    let object = match request.namespace.as_str() {
        "" => name,
        namespace => format!("{namespace}/{name}"),
    };
    let mut out = format!(
        "{} {:<8} {:<5} {} {} {} by {} policy {} {:.1} ms",
        about.at.to_rfc3339_opts(SecondsFormat::Millis, true),
        about.endpoint.as_str(),
        about.decision.as_str(),
        request.operation.as_str(),
        plain(&request.kind),
        plain(&object),
        plain(&request.user.name),
        about.policy_hash,
        about.duration.as_secs_f64() * 1000.0
    );
    for judged in named(verdict).filter(|judged| judged.action > Action::Off) {
        let container = judged.finding.container.as_deref();
        let container = container.map_or(String::new(), |name| format!("/{}", plain(name)));
        let unenforced = if judged.unenforced { " (unenforced)" } else { "" };
        let _ = write!(out, " {}:{}{container}{unenforced}", judged.action.as_str(), judged.finding.rule);
    }
    for fix in verdict.fixes.iter().take(MAX_NAMED) {
        let _ = write!(out, " fixed:{}", plain(&fix.claim));
    }
    for (name, value) in [
        ("dry-run", request.dry_run),
        ("out-of-scope", verdict.out_of_scope),
        ("override", verdict.overridden),
        ("rollback", verdict.rollback),
    ] {
        if value {
            let _ = write!(out, " {name}");
        }
    }
    if about.repeats > 0 {
        let _ = write!(out, " (and {} more like it)", about.repeats);
    }
    out
}

/// Cut, and nothing that a terminal would obey.
fn plain(value: &str) -> String {
    cut(value, MAX_CHARS).escape_debug().to_string()
}

/// `metadata.resourceVersion` of the old object: it joins the two calls of one UPDATE (TRAPS K03).
fn old_resource_version<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    request.old_object.as_ref()?["metadata"]["resourceVersion"].as_str()
}

/// First 12 hex digits of the SHA-256 over the sorted groups: whether two people have the same groups can be told from
/// the log, which groups those are cannot.
fn groups_hash(groups: &[String]) -> String {
    let mut sorted: Vec<&str> = groups.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let mut hasher = Sha256::new();
    for group in sorted {
        hasher.update((group.len() as u64).to_be_bytes());
        hasher.update(group);
    }
    hasher.finalize().iter().take(6).fold(String::with_capacity(12), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::document::Value;
    use crate::engine::finding::Finding;
    use crate::engine::request::{Operation, Resource, User};
    use crate::engine::verdict::Judged;

    fn request(object: &str) -> Request<'_> {
        Request {
            operation: Operation::Update,
            group: "apps".into(),
            kind: "Deployment".into(),
            resource: Resource { group: "apps".into(), plural: "deployments".into() },
            sub_resource: String::new(),
            namespace: "shop".into(),
            name: String::new(),
            user: User { name: "alice".into(), groups: vec!["b".into(), "a".into()] },
            object: Some(Value::parse(object).unwrap()),
            old_object: Some(Value::parse(r#"{"metadata":{"resourceVersion":"77"}}"#).unwrap()),
            dry_run: true,
            own: false,
        }
    }

    fn about() -> Circumstances<'static> {
        Circumstances {
            at: DateTime::from_timestamp(0, 0).unwrap(),
            duration: Duration::from_micros(1234),
            uid: "u-1",
            endpoint: Endpoint::Validate,
            decision: Decision::Deny,
            policy_hash: "abc",
            converted_from: None,
            repeats: 0,
        }
    }

    #[test]
    fn what_denies_or_would_is_named_however_much_else_is_found() {
        let judged = |rule, action, unenforced| Judged {
            finding: Finding::new(rule, "/spec", ""),
            action,
            old: false,
            unenforced,
            exception: None,
        };
        let mut findings = vec![judged("duplicate-env", Action::Warn, false); 20];
        findings.push(judged("missing-requests", Action::Warn, true));
        findings.push(judged("mutable-image-tag", Action::Deny, false));
        let verdict = Verdict { findings, ..Verdict::default() };
        let line = line(Format::Json, &about(), &request("{}"), &verdict);
        let record: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!((record["rules"].as_array().unwrap().len(), &record["rulesOmitted"]), (20, &2.into()));
        assert_eq!(
            record["rules"][0],
            serde_json::json!(
            {"rule": "missing-requests", "action": "warn", "path": "/spec", "unenforced": true})
        );
        assert_eq!(record["rules"][1]["rule"], "mutable-image-tag");
    }

    #[test]
    fn k08_a_record_has_exactly_these_fields() {
        let finding = Finding::new("mutable-image-tag", "/spec/template/spec/containers/0/image", "value hunter2");
        let verdict = Verdict {
            findings: vec![Judged {
                finding: finding.container("app"),
                action: Action::Deny,
                old: false,
                unenforced: false,
                exception: None,
            }],
            denial: Some("hunter2".into()),
            ..Verdict::default()
        };
        let object = r#"{"metadata":{"generateName":"web-"},"spec":{"secret":"hunter2"}}"#;
        let line = String::from_utf8(line(Format::Json, &about(), &request(object), &verdict)).unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&line).unwrap(),
            serde_json::json!({
                "ts": "1970-01-01T00:00:00.000Z", "level": "INFO", "message": "decision", "uid": "u-1",
                "endpoint": "validate", "operation": "UPDATE", "decision": "deny",
                "rules": [{"rule": "mutable-image-tag", "action": "deny",
                    "path": "/spec/template/spec/containers/0/image", "container": "app"}],
                "fixes": [], "policy": "abc", "group": "apps", "kind": "Deployment", "ns": "shop", "name": "web-*",
                "user": "alice", "groupsHash": groups_hash(&["a".into(), "b".into()]), "oldResourceVersion": "77",
                "dryRun": true, "opsCount": 0, "durationMs": 1.234
            })
        );
        assert!(!line.contains("hunter2"));
    }

    #[test]
    fn j05_no_name_breaks_the_line_or_speaks_to_the_terminal() {
        let object = r#"{"metadata":{"name":"a\n{\"level\":\"error\"}\u001b[31m"}}"#;
        for format in [Format::Json, Format::Text] {
            let line = line(format, &about(), &request(object), &Verdict::default());
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert!(!line[..line.len() - 1].iter().any(u8::is_ascii_control));
        }
    }

    #[test]
    fn a_reader_sees_who_what_and_why_in_one_line() {
        let line = line(Format::Text, &about(), &request(r#"{"metadata":{"name":"web"}}"#), &Verdict::default());
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "1970-01-01T00:00:00.000Z validate deny  UPDATE Deployment shop/web by alice policy abc 1.2 ms dry-run\n"
        );
    }
}

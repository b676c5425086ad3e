//! The AdmissionReview's envelope, in and out: ours, not a client library's.
//!
//! `request.object` and `request.oldObject` stay borrowed text until a known kind is sure, so that whatever stands in a
//! review of a foreign kind cannot fail it (TRAPS A11, A22, A26). Members that we do not know are ignored (TRAPS I20).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::engine::document::Value;
use crate::engine::kind::{self, Kind};
use crate::engine::request::{Operation, Request, Resource, User};
use crate::engine::text::is_obeyed;

/// Warnings in one answer; the last then says how many were left out (TRAPS A19).
const MAX_WARNINGS: usize = 15;
/// Characters of one warning: API servers cut at 256 once a total of 4096 is reached (TRAPS A19).
const MAX_WARNING_CHARS: usize = 240;
/// Containers of one object, its init and ephemeral ones too. No pod that runs comes near; every rule looks at each of
/// them, and what is found takes a hundred times the room of a container that says nothing (TRAPS J07).
const MAX_CONTAINERS: usize = 512;
/// Characters of a foreign string that an error message repeats.
const MAX_QUOTED_CHARS: usize = 64;

/// Why a body is no review that can be decided on: all of them are HTTP 400, never a denial (TRAPS A01).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// The body is not UTF-8.
    #[error("the body is not UTF-8: invalid byte at offset {0}")]
    NotUtf8(usize),
    /// The body is not JSON.
    #[error("the body is not JSON: {0}")]
    Syntax(String),
    /// A member of the envelope has a wrong type, is missing or stands there twice. The value itself is never repeated,
    /// it may be a secret.
    #[error("{path}: wrong type, missing or doubled (line {line}, column {column})")]
    Shape {
        /// Members from the root: `request.kind.group`.
        path: String,
        /// Line of the body, from 1.
        line: usize,
        /// Column in the line, from 1.
        column: usize,
    },
    /// `apiVersion` or `kind` name something else.
    #[error("{member} is {found:?}, expected {expected}")]
    NotAReview {
        /// `apiVersion` or `kind`.
        member: &'static str,
        /// What stands there, cut.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// There is nothing to decide on.
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// The answer could not be matched with the question.
    #[error("request.uid is missing or empty")]
    NoUid,
    /// The object or old object of a known kind cannot be read.
    #[error("request.{member}: {problem}")]
    Object {
        /// `object` or `oldObject`.
        member: &'static str,
        /// What the parser said.
        problem: String,
    },
}

impl ReviewError {
    /// A short name, the label of a metric.
    pub fn reason(&self) -> &'static str {
        match self {
            ReviewError::NotUtf8(_) => "utf8",
            ReviewError::Syntax(_) => "json",
            ReviewError::Shape { .. } | ReviewError::NoRequest | ReviewError::NoUid => "shape",
            ReviewError::NotAReview { .. } => "version",
            ReviewError::Object { .. } => "object",
        }
    }
}

/// The version of the admission API that a review came in and its answer goes out in (TRAPS A03).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `admission.k8s.io/v1`.
    V1,
    /// `admission.k8s.io/v1beta1`, of the same shape.
    V1Beta1,
}

impl Version {
    /// The value of `apiVersion`.
    pub fn as_str(self) -> &'static str {
        match self {
            Version::V1 => "admission.k8s.io/v1",
            Version::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// A review received: its objects still borrowed text.
#[derive(Debug, Clone)]
pub struct Review<'a> {
    /// The version to answer in.
    pub version: Version,
    /// `request.uid`, to be echoed byte for byte.
    pub uid: String,
    body: RawRequest<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawReview<'a> {
    #[serde(default, deserialize_with = "null_is_default")]
    api_version: String,
    #[serde(default, deserialize_with = "null_is_default")]
    kind: String,
    #[serde(borrow)]
    request: Option<RawRequest<'a>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRequest<'a> {
    #[serde(default, deserialize_with = "null_is_default")]
    uid: String,
    #[serde(default, deserialize_with = "null_is_default")]
    operation: String,
    #[serde(default, deserialize_with = "null_is_default")]
    kind: GroupVersionKind,
    #[serde(default, deserialize_with = "null_is_default")]
    request_kind: Option<GroupVersionKind>,
    #[serde(default, deserialize_with = "null_is_default")]
    resource: GroupVersionResource,
    #[serde(default, deserialize_with = "null_is_default")]
    sub_resource: String,
    #[serde(default, deserialize_with = "null_is_default")]
    namespace: String,
    #[serde(default, deserialize_with = "null_is_default")]
    name: String,
    #[serde(default, deserialize_with = "null_is_default")]
    user_info: UserInfo,
    #[serde(default, deserialize_with = "null_is_default")]
    dry_run: bool,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct GroupVersionKind {
    #[serde(default, deserialize_with = "null_is_default")]
    group: String,
    #[serde(default, deserialize_with = "null_is_default")]
    version: String,
    #[serde(default, deserialize_with = "null_is_default")]
    kind: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct GroupVersionResource {
    #[serde(default, deserialize_with = "null_is_default")]
    group: String,
    #[serde(default, deserialize_with = "null_is_default")]
    resource: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct UserInfo {
    #[serde(default, deserialize_with = "null_is_default")]
    username: String,
    #[serde(default, deserialize_with = "null_is_default")]
    groups: Vec<String>,
}

fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

impl<'a> Review<'a> {
    /// Reads the envelope. What needs care with a panic in mind, uid and version, is read here.
    ///
    /// # Errors
    /// A body that is no AdmissionReview of v1 or v1beta1 with a request and a uid.
    pub fn parse(body: &'a [u8]) -> Result<Self, ReviewError> {
        let text = std::str::from_utf8(body).map_err(|error| ReviewError::NotUtf8(error.valid_up_to()))?;
        let raw: RawReview<'a> = serde_json::from_str(text).map_err(|error| explain(text, &error))?;
        let version = match raw.api_version.as_str() {
            "admission.k8s.io/v1" => Version::V1,
            "admission.k8s.io/v1beta1" => Version::V1Beta1,
            other => {
                return Err(ReviewError::NotAReview {
                    member: "apiVersion",
                    found: cut(other, MAX_QUOTED_CHARS),
                    expected: "admission.k8s.io/v1 or admission.k8s.io/v1beta1",
                });
            }
        };
        if raw.kind != "AdmissionReview" {
            let found = cut(&raw.kind, MAX_QUOTED_CHARS);
            return Err(ReviewError::NotAReview { member: "kind", found, expected: "AdmissionReview" });
        }
        let mut body = raw.request.ok_or(ReviewError::NoRequest)?;
        let uid = std::mem::take(&mut body.uid);
        if uid.is_empty() {
            return Err(ReviewError::NoUid);
        }
        Ok(Review { version, uid, body })
    }

    /// The verb.
    pub fn operation(&self) -> Operation {
        Operation::parse(&self.body.operation)
    }

    /// The row of the object's kind, if it is one of ours.
    pub fn known_kind(&self) -> Option<&'static Kind> {
        kind::lookup(&self.body.kind.group, &self.body.kind.kind)
    }

    /// Whether nothing will be stored.
    pub fn dry_run(&self) -> bool {
        self.body.dry_run
    }

    /// `request.requestKind` as `group/version/kind`, where it differs from `request.kind` (TRAPS A21).
    pub fn converted_from(&self) -> Option<String> {
        let asked = self.body.request_kind.as_ref().filter(|asked| **asked != self.body.kind)?;
        Some(format!("{}/{}/{}", asked.group, asked.version, asked.kind))
    }

    /// The question to the engine. Objects are decoded where their kind is known and the request is for the object
    /// itself, or for the one subresource that the kind belongs to (`scale`); of anything else they are never looked at.
    ///
    /// # Errors
    /// An object of a known kind that cannot be read: nested too deeply (TRAPS A24), a number out of range, more
    /// containers than are judged.
    pub fn into_request(self, own_user: Option<&str>) -> Result<Request<'a>, ReviewError> {
        let kind = self.known_kind();
        let decode = kind.is_some_and(|kind| kind.sub_resource == self.body.sub_resource);
        let body = self.body;
        let object = |member: &'static str, text: Option<&'a RawValue>| match text {
            Some(text) if decode => {
                let problem = |problem: String| ReviewError::Object { member, problem };
                let value = Value::parse(text.get()).map_err(|error| problem(error.to_string()))?;
                match kind.map_or(0, |kind| containers(kind, &value)) {
                    count if count > MAX_CONTAINERS => {
                        Err(problem(format!("{count} containers, at most {MAX_CONTAINERS} are judged")))
                    }
                    _ => Ok(Some(value)),
                }
            }
            _ => Ok(None),
        };
        Ok(Request {
            operation: Operation::parse(&body.operation),
            object: object("object", body.object)?,
            old_object: object("oldObject", body.old_object)?,
            group: body.kind.group,
            kind: body.kind.kind,
            resource: Resource { group: body.resource.group, plural: body.resource.resource },
            sub_resource: body.sub_resource,
            namespace: body.namespace,
            name: body.name,
            own: own_user.is_some_and(|own| own == body.user_info.username),
            user: User { name: body.user_info.username, groups: body.user_info.groups },
            dry_run: body.dry_run,
        })
    }
}

/// How many containers the object's pods have.
fn containers(kind: &Kind, object: &Value<'_>) -> usize {
    let spec = kind.template.map(|path| &object.at(path)["spec"]);
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    spec.map_or(0, |spec| lists.iter().map(|list| spec[*list].items().len()).sum())
}

/// Where the envelope is wrong. Values are kept out: serde_json repeats them, and they may be secrets (TRAPS J06).
fn explain(text: &str, error: &serde_json::Error) -> ReviewError {
    if !error.is_data() {
        return ReviewError::Syntax(error.to_string());
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let path = match serde_path_to_error::deserialize::<_, RawReview<'_>>(&mut deserializer) {
        Err(error) => cut(&error.path().to_string(), MAX_QUOTED_CHARS),
        Ok(_) => String::from("."),
    };
    let path = if path == "." { "the body".to_owned() } else { path };
    ReviewError::Shape { path, line: error.line(), column: error.column() }
}

/// At most this many characters, the last then an ellipsis.
pub(crate) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// An answer to one review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response<'a> {
    /// The version of the review.
    pub version: Version,
    /// The uid of the review.
    pub uid: &'a str,
    /// The whole message of a denial; `None`: allowed.
    pub denial: Option<&'a str>,
    /// Warnings, most severe first; cut to what API servers show.
    pub warnings: &'a [String],
    /// Keys and values of the API server's audit event; keys as TRAPS K01 wants them.
    pub audit_annotations: &'a [(String, String)],
    /// JSON Patch as JSON text; for `/mutate` only.
    pub patch: Option<&'a str>,
}

impl<'a> Response<'a> {
    /// Allowed, and nothing else.
    pub fn allow(version: Version, uid: &'a str) -> Self {
        Response { version, uid, denial: None, warnings: &[], audit_annotations: &[], patch: None }
    }

    /// The AdmissionReview, as JSON text.
    pub fn to_json(&self) -> String {
        let patch_bytes = self.patch.map_or(0, |patch| patch.len() * 4 / 3);
        let mut out = String::with_capacity(256 + patch_bytes + self.denial.map_or(0, str::len));
        out.push_str("{\"apiVersion\":\"");
        out.push_str(self.version.as_str());
        out.push_str("\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":");
        push_json(&mut out, self.uid);
        match self.denial {
            None => out.push_str(",\"allowed\":true"),
            Some(message) => {
                // An empty message would read "denied the request without explanation" (TRAPS A05).
                let message = if message.is_empty() { "denied by the policy" } else { message };
                out.push_str(",\"allowed\":false,\"status\":{\"code\":403,\"reason\":\"Forbidden\",\"message\":");
                push_json(&mut out, &without_controls(message, true));
                out.push('}');
            }
        }
        if !self.warnings.is_empty() {
            out.push_str(",\"warnings\":[");
            let shown = if self.warnings.len() > MAX_WARNINGS { MAX_WARNINGS - 1 } else { self.warnings.len() };
            for (index, warning) in self.warnings.iter().take(shown).enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_json(&mut out, &cut(&without_controls(warning, false), MAX_WARNING_CHARS));
            }
            if shown < self.warnings.len() {
                out.push_str(&format!(",\"+{} more warnings\"", self.warnings.len() - shown));
            }
            out.push(']');
        }
        if !self.audit_annotations.is_empty() {
            out.push_str(",\"auditAnnotations\":{");
            for (index, (key, value)) in self.audit_annotations.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_json(&mut out, key);
                out.push(':');
                push_json(&mut out, value);
            }
            out.push('}');
        }
        if let Some(patch) = self.patch {
            out.push_str(",\"patchType\":\"JSONPatch\",\"patch\":\"");
            STANDARD.encode_string(patch, &mut out);
            out.push('"');
        }
        out.push_str("}}");
        out
    }
}

/// Control characters and their like become spaces: header builders drop a warning that has one, terminals obey them.
fn without_controls(text: &str, keep_newlines: bool) -> String {
    let keep = |character: char| !is_obeyed(character) || (keep_newlines && character == '\n');
    text.chars().map(|character| if keep(character) { character } else { ' ' }).collect()
}

/// Adds the text as a JSON string, quotes included. What a terminal obeys is escaped, so that a log can be read in one.
pub(crate) fn push_json(out: &mut String, text: &str) {
    out.push('"');
    let mut plain = 0;
    for (index, character) in text.char_indices() {
        let escape = match character {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            ' '..='~' => continue,
            // All of them have four hex digits at most.
            other if is_obeyed(other) => "",
            _ => continue,
        };
        out.push_str(&text[plain..index]);
        match escape {
            "" => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            escape => out.push_str(escape),
        }
        plain = index + character.len_utf8();
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

#[cfg(test)]
mod tests;

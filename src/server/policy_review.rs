//! Our own policy under review: a ConfigMap that would not load is denied when someone applies it (TRAPS I14).

use super::App;
use crate::engine::request::{Endpoint, Operation, Request};
use crate::engine::verdict::Verdict;
use crate::policy::Policy;
use crate::policy::source::KEY;

/// The verdict on our own policy's ConfigMap; `None` where this is another object.
pub fn verdict(app: &App, endpoint: Endpoint, request: &Request<'_>) -> Option<Verdict> {
    let (namespace, name) = app.config.policy_config_map.as_ref()?;
    let written = matches!(request.operation, Operation::Create | Operation::Update) && request.sub_resource.is_empty();
    let ours = request.group.is_empty() && request.kind == "ConfigMap" && request.namespace == *namespace;
    if endpoint != Endpoint::Validate || !written || !ours || request.display_name() != *name {
        return None;
    }
    let text = request.object.as_ref()?["data"].get(KEY).as_str();
    let problem = match text.map(Policy::parse) {
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(format!("it is no valid policy, and the one in force stays:\n{error}")),
        None => Some(format!("it has no policy under the key {KEY}, and the one in force stays")),
    };
    let denial =
        problem.map(|problem| format!("Plimsoll reads its policy from ConfigMap {namespace}/{name}: {problem}"));
    Some(Verdict { denial, ..Verdict::default() })
}

//! Asking the engine as the server does: the envelope read, the facts that it needs looked up, the answer written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll::engine::prepare;
use plimsoll::engine::request::Endpoint;
use plimsoll::engine::verdict::Verdict;
use plimsoll::policy::Policy;
use plimsoll::review::{Response, Review};

use super::generator::Case;
use super::generator::world::World;

/// The verdict on a case; `None` where its review is refused as unreadable.
pub fn ask(case: &Case, endpoint: Endpoint) -> Option<Verdict> {
    verdict(case.review().as_bytes(), &case.policy.policy, &case.world, endpoint)
}

/// The verdict on a review's bytes; `None` where they are refused.
pub fn verdict(review: &[u8], policy: &Policy, world: &World, endpoint: Endpoint) -> Option<Verdict> {
    let request = Review::parse(review).ok()?.into_request(None).ok()?;
    let prepared = prepare(endpoint, policy, &request);
    let facts = world.answer(&prepared.needs());
    Some(prepared.evaluate(&facts))
}

/// Checks that the answer to this review is an AdmissionReview that says what the verdict says.
pub fn check_answer(review: &[u8], verdict: &Verdict) -> Result<(), String> {
    let Ok(review) = Review::parse(review) else { return Ok(()) };
    let answer = Response {
        version: review.version,
        uid: &review.uid,
        denial: verdict.denial.as_deref(),
        warnings: &verdict.warnings,
        audit_annotations: &[],
        patch: verdict.patch.as_deref(),
    };
    let text = answer.to_json();
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| format!("{error} in answer {text}"))?;
    let response = &json["response"];
    let decoded = response["patch"].as_str().map(|patch| STANDARD.decode(patch));
    let patch = match decoded {
        Some(Ok(bytes)) => Some(bytes),
        Some(Err(error)) => return Err(format!("{error} in answer {text}")),
        None => None,
    };
    let warnings = response["warnings"].as_array().map_or(0, Vec::len);
    let printable = |text: &str| !text.contains(|character: char| character.is_control() && character != '\n');
    let shown = response["warnings"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
    let holds = response["uid"] == review.uid.as_str()
        && response["allowed"] == verdict.allowed()
        && patch.as_deref() == verdict.patch.as_deref().map(str::as_bytes)
        && response["patchType"].is_null() == patch.is_none()
        && warnings == verdict.warnings.len().min(15)
        && shown.clone().all(|warning| printable(warning) && warning.chars().count() <= 240)
        && response["status"]["message"].as_str().is_none_or(printable)
        && verdict.allowed() == response["status"].is_null();
    if holds { Ok(()) } else { Err(format!("answer {text}\nto verdict {verdict:?}")) }
}

//! What holds for every review.

use std::collections::BTreeSet;

use plimsoll::engine::document::Value;
use plimsoll::engine::finding::Action;
use plimsoll::engine::pointer::pointer;
use plimsoll::engine::request::Endpoint;
use plimsoll::engine::verdict::Verdict;

use super::apply::{Operation, operations, patched};
use super::ask::{ask, check_answer};
use super::generator::entropy::Entropy;
use super::generator::json::shuffled;
use super::generator::{Case, template, template_pointer};

/// Prefix of our own annotation keys.
const OWN_PREFIX: &str = "plimsoll.dev/";

/// What a case brought about, for the statistics.
#[allow(dead_code, reason = "the fuzzer counts by itself")]
#[derive(Debug, Default)]
pub struct Outcome {
    /// Rules that found something.
    pub found: BTreeSet<&'static str>,
    /// Rules whose fix was applied.
    pub fixed: BTreeSet<&'static str>,
    /// Whether there was a patch.
    pub patched: bool,
    /// Whether it was denied.
    pub denied: bool,
}

/// What the case brings about, unchecked; `None` where its review is refused as unreadable.
#[allow(dead_code, reason = "the fuzzer counts by itself")]
pub fn outcome(case: &Case) -> Option<Outcome> {
    let (mutate, validate) = (ask(case, Endpoint::Mutate)?, ask(case, Endpoint::Validate)?);
    Some(Outcome {
        found: validate.findings.iter().map(|judged| judged.finding.rule).collect(),
        fixed: mutate.fixes.iter().map(|fix| fix.rule).collect(),
        patched: mutate.patch.is_some(),
        denied: !validate.allowed(),
    })
}

/// Checks everything, or what every answer is checked for and, by every second number, one promise more; the error says
/// which promise is broken, and how. Whether there was a patch.
pub fn check(case: &Case, one_more: Option<u8>) -> Result<bool, String> {
    let asked = |promise| one_more.is_none_or(|number| number % 8 == promise);
    let (Some(mutate), Some(validate)) = (ask(case, Endpoint::Mutate), ask(case, Endpoint::Validate)) else {
        return Ok(false);
    };
    let review = case.review();
    if asked(0) {
        same(&mutate, ask(case, Endpoint::Mutate), "asked twice, /mutate")?;
        same(&validate, ask(case, Endpoint::Validate), "asked twice, /validate")?;
    }
    check_answer(review.as_bytes(), &mutate)?;
    check_answer(review.as_bytes(), &validate)?;
    if !mutate.allowed() || validate.patch.is_some() {
        return Err(format!("/mutate denies or /validate patches: {mutate:?} {validate:?}"));
    }
    if case.sound && mutate.anomalies.contains(&"patch-dropped") {
        return Err("a fix was planned that does not resolve".to_owned());
    }
    let result = match &mutate.patch {
        Some(patch) => {
            let operations = operations(patch)?;
            operations.iter().try_for_each(|operation| allowed_place(case, operation))?;
            patched(&case.object, patch).map_err(|error| format!("patch {patch}: {error}"))?
        }
        None => case.object.clone(),
    };
    nothing_lost(case, &mutate, &result)?;
    template_stays(case, &mutate, &result)?;
    converges(case, &mutate, &result, asked(1))?;
    if asked(2) {
        same_denials(case, &mutate, &validate, &result)?;
    }
    if asked(3) {
        order_is_nothing(case, &mutate, &validate)?;
    }
    Ok(mutate.patch.is_some())
}

fn same(first: &Verdict, second: Option<Verdict>, what: &str) -> Result<(), String> {
    match second {
        Some(second) if second == *first => Ok(()),
        second => Err(format!("{what}:\n{first:?}\n{second:?}")),
    }
}

/// Point 3: no operation at or below a place that is never ours.
fn allowed_place(case: &Case, operation: &Operation) -> Result<(), String> {
    let at = pointer(&operation.path);
    let template = template_pointer(case.named.kind);
    let never = [
        "/metadata/labels",
        "/metadata/managedFields",
        "/metadata/ownerReferences",
        "/spec/selector",
        "/status",
        &format!("{template}/metadata/labels"),
    ];
    // An operation that makes a parent carries what is below it.
    let brings = |place: &str| {
        let below = place.strip_prefix(&at).map(|rest| rest.split('/').skip(1).collect::<Vec<_>>());
        below.is_some_and(|below| !below.is_empty() && !operation.value.at(&below).is_null())
    };
    let hit = never.iter().find(|place| {
        at == **place || at.strip_prefix(**place).is_some_and(|rest| rest.starts_with('/')) || brings(place)
    });
    match hit {
        Some(place) => Err(format!("an operation at {at} touches {place}")),
        None => Ok(()),
    }
}

/// Point 4: every member and element is still there, in its order; what differs is a scalar that was replaced.
fn nothing_lost(case: &Case, mutate: &Verdict, result: &str) -> Result<(), String> {
    let replaced: Vec<String> = match &mutate.patch {
        Some(patch) => operations(patch)?.iter().map(|operation| pointer(&operation.path)).collect(),
        None => Vec::new(),
    };
    let (before, after) = (read(&case.object)?, read(result)?);
    kept(&before, &after, &mut Vec::new(), &replaced)
}

fn kept(before: &Value<'_>, after: &Value<'_>, at: &mut Vec<String>, replaced: &[String]) -> Result<(), String> {
    if before == after {
        return same_order(before, after, at);
    }
    // What is ours is renewed whole: a probe or a hook that a claim stands for, and whatever stands under our own keys.
    let ours =
        |member: &String| matches!(member.as_str(), "startupProbe" | "preStop") || member.starts_with(OWN_PREFIX);
    let scalar = !matches!(before, Value::Object(_) | Value::Array(_));
    if replaced.contains(&pointer(at)) && (scalar || at.iter().any(ours)) {
        return Ok(());
    }
    match (before, after) {
        (Value::Object(members), Value::Object(_)) => {
            same_order(before, after, at)?;
            for (name, value) in members.iter() {
                at.push(name.to_owned());
                kept(value, after.get(name), at, replaced)?;
                at.pop();
            }
            Ok(())
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                at.push(index.to_string());
                kept(before, after, at, replaced)?;
                at.pop();
            }
            Ok(())
        }
        _ => Err(format!("{} was {before} and became {after}", pointer(at))),
    }
}

fn same_order(before: &Value<'_>, after: &Value<'_>, at: &[String]) -> Result<(), String> {
    let names: Vec<&str> = before.members().map(|(name, _)| name).collect();
    let left: Vec<&str> = after.members().map(|(name, _)| name).filter(|name| names.contains(name)).collect();
    if names == left { Ok(()) } else { Err(format!("the members of {} were {names:?} and are {left:?}", pointer(at))) }
}

/// Point 2: what was mutated is not mutated again, neither in a second round nor, where that is asked, by a write that
/// changes nothing.
fn converges(case: &Case, mutate: &Verdict, result: &str, and_untouched: bool) -> Result<(), String> {
    let again = case.with_object(result.to_owned());
    if let Some(patch) = ask(&again, Endpoint::Mutate).and_then(|verdict| verdict.patch) {
        return Err(format!("first {:?}, and on the result\n{result}\na second patch {patch}", mutate.patch));
    }
    // A rollback is left alone for once; the next write marks what is ours in it. So is what no patch can be made for.
    if mutate.anomalies.contains(&"patch-dropped") || mutate.out_of_scope || mutate.rollback || !and_untouched {
        return Ok(());
    }
    let untouched = again.with_old(result.to_owned());
    if let Some(patch) = ask(&untouched, Endpoint::Mutate).and_then(|verdict| verdict.patch) {
        return Err(format!("an UPDATE that changes nothing of\n{result}\nis patched {patch}"));
    }
    // TRAPS C15: nor is it denied, whatever the policy says by now.
    match ask(&untouched, Endpoint::Validate).and_then(|verdict| verdict.denial) {
        Some(denial) => Err(format!("an UPDATE that changes nothing of\n{result}\nis denied {denial}")),
        None => Ok(()),
    }
}

/// Whether values of ours may stand in the object, to be renewed, or have been dropped, to come back: `/validate` alone
/// takes the one for the author's and misses the other.
fn had_ours(case: &Case) -> bool {
    case.old.as_ref().is_some_and(|old| old.contains(OWN_PREFIX))
}

/// Whether the object came with a marker that claimed too much, which `/validate` alone would have believed.
fn unmasks(case: &Case, result: &str) -> bool {
    let marker = |object: &str| {
        let object = Value::parse(object).map(|object| object.to_static()).unwrap_or(Value::Null);
        let marker =
            object.at(&["metadata", "annotations", "plimsoll.dev/fixed"]).as_str().unwrap_or_default().to_owned();
        let claims = marker.split(',').map(str::trim).filter(|claim| !claim.is_empty());
        claims.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    !marker(&case.object).is_subset(&marker(result))
}

/// Point 5: fixes neither cause nor hide a denial. One may go where an UPDATE dropped a value of ours and it came back:
/// that is no fix, and mends what dropping it broke.
fn same_denials(case: &Case, mutate: &Verdict, validate: &Verdict, result: &str) -> Result<(), String> {
    let Some(after) = ask(&case.with_object(result.to_owned()), Endpoint::Validate) else {
        return Err("the result cannot be read".to_owned());
    };
    // With its fixes the template may be that of a retained revision: then it is a rollback, and only then.
    if after.rollback != validate.rollback {
        return Ok(());
    }
    let restores = mutate.patch.is_some() && had_ours(case);
    let (before, after) = (denials(validate), denials(&after));
    let hidden: Vec<_> = before.difference(&after).filter(|_| !restores).collect();
    // A claim that no fix of today would make counts for nothing, so that a forger gains nothing by it.
    let unmasked = case.forged || unmasks(case, result);
    let caused: Vec<_> = after.difference(&before).filter(|_| !unmasked).collect();
    if hidden.is_empty() && caused.is_empty() {
        return Ok(());
    }
    Err(format!("the fixes hide the denials {hidden:?} and cause {caused:?}; they are {:?}", mutate.patch))
}

fn denials(verdict: &Verdict) -> BTreeSet<(&'static str, String, Option<String>)> {
    let denied = verdict.findings.iter().filter(|judged| judged.action == Action::Deny);
    denied
        .map(|judged| (judged.finding.rule, judged.finding.pointer.clone(), judged.finding.container.clone()))
        .collect()
}

/// Point 7: where the author left the template alone, it stays as it is.
fn template_stays(case: &Case, mutate: &Verdict, result: &str) -> Result<(), String> {
    let Some(old) = case.old.as_ref().filter(|_| !mutate.out_of_scope && case.keeps_templates()) else { return Ok(()) };
    let (old, object, result) = (read(old)?, read(&case.object)?, read(result)?);
    let of = |object| template(object, case.named.kind);
    // A label or another template annotation of ours at the object itself is not the pod template of a Pod.
    if case.named.kind == "Pod" {
        return Ok(());
    }
    if (case.template_kept || of(&old).to_string() == of(&object).to_string()) && of(&old) != of(&result) {
        return Err(format!("the template was\n{}\nand becomes\n{}", of(&old), of(&result)));
    }
    Ok(())
}

/// Point 8: the order of members means nothing.
fn order_is_nothing(case: &Case, mutate: &Verdict, validate: &Verdict) -> Result<(), String> {
    let bytes: Vec<u8> = case.object.bytes().rev().take(512).collect();
    let mut entropy = Entropy::new(&bytes);
    let mut reorder = |text: &str| read(text).map(|value| shuffled(&value.to_static(), &mut entropy).to_string());
    let mut other = case.with_object(reorder(&case.object)?);
    other.old = case.old.as_deref().map(reorder).transpose()?;
    for (endpoint, first) in [(Endpoint::Mutate, mutate), (Endpoint::Validate, validate)] {
        let Some(second) = ask(&other, endpoint) else { return Err("shuffled, it cannot be read".to_owned()) };
        let patch = |verdict: &Verdict| {
            verdict.patch.as_deref().map(Value::parse).transpose().map(|it| it.map(|v| v.to_static()))
        };
        let patches = [patch(first), patch(&second)].map(|patch| patch.map_err(|error| error.to_string()));
        if patches[0] != patches[1] {
            return Err(format!("patch {:?}, shuffled {:?}", first.patch, second.patch));
        }
        let rest = |verdict: &Verdict| Verdict { patch: None, ..verdict.clone() };
        same(&rest(first), Some(rest(&second)), "members in another order")?;
    }
    Ok(())
}

fn read(text: &str) -> Result<Value<'_>, String> {
    Value::parse(text).map_err(|error| error.to_string())
}

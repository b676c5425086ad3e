//! `/mutate`: which fixes are written, and the patch.

use std::collections::HashSet;

use super::author::{self, Places};
use super::case::Case;
use super::document::Value;
use super::facts::{Facts, Known, Reason};
use super::finding::{Finding, Fix};
use super::marker::{Claims, MARKER};
use super::patch::{Patch, Unresolved};
use super::scope::is_fought_over;
use super::text::quoted;
use super::verdict::{Applied, Verdict};
use crate::rules;

/// What keys and values of one map of annotations may hold together, bytes (apimachinery: TotalAnnotationSizeLimitB).
const ANNOTATION_BUDGET: usize = 262_144;

/// What this review writes.
struct Plan {
    /// Every value to write, in order.
    writes: Vec<(Vec<String>, Value<'static>)>,
    /// The marker as it will be.
    claims: Claims,
    /// Fixes that are new, told to the author.
    fresh: Vec<Fix>,
    /// Entries of the marker that hold already.
    proven: Claims,
}

impl Plan {
    /// Takes these fixes out again; what stands of ours from earlier stays ours.
    fn leave_out(&mut self, case: &Case<'_>, fixes: &[Fix]) {
        let claims: HashSet<&str> = fixes.iter().map(|fix| fix.claim.as_str()).collect();
        let writes: HashSet<&[String]> = fixes.iter().flat_map(|fix| &fix.writes).map(|(path, _)| &path[..]).collect();
        self.writes.retain(|(path, _)| !writes.contains(path.as_slice()));
        let proven = &self.proven;
        self.claims.retain(|claim| !claims.contains(claim.as_str()) || (proven.contains(claim) && stands(case, claim)));
    }
}

/// The verdict of `/mutate`: never a denial.
pub fn mutate(case: &Case<'_>, facts: &Facts) -> Verdict {
    let mut verdict = Verdict::default();
    if !may_write(case) {
        return verdict;
    }
    verdict.rollback = case.is_rollback(facts);
    unknown_declined_rules(case, &mut verdict);
    // Worth a count: while it lasts, changed configuration rolls nothing (TRAPS F12).
    if facts.digests.values().filter_map(Known::unknown).any(Reason::is_failure) {
        verdict.anomalies.push("config-lookup");
    }

    let (findings, proven) = prove(case, facts, |claim, _| case.held.contains(claim));
    let plan = if verdict.rollback || (case.old.is_some() && !case.template_changed) {
        tell_what_stays(case, &findings, &mut verdict);
        restore(case, verdict.rollback, findings, proven)
    } else {
        for finding in findings.iter().filter(|finding| finding.stopped_by_lookup) {
            verdict.warnings.push(warning(finding));
        }
        stay_as_they_were(case, renew(case, findings, proven), &mut verdict)
    };
    write(case, plan, &mut verdict);
    verdict
}

/// Whether `/mutate` writes to this object at all: not to a kind that cannot be patched, nor where its operator would
/// patch it back.
pub fn may_write(case: &Case<'_>) -> bool {
    let kind = case.kind;
    kind.mutable && !is_fought_over(kind, case.object) && !(kind.immutable && case.old.is_some())
}

/// The warning for a finding, in the same words from both webhooks: the API server shows equal ones once.
pub fn warning(finding: &Finding) -> String {
    format!("[{}] {}: {}", finding.rule, finding.pointer, finding.message)
}

/// Runs the rules on the author's object. Beside what is believed, by what was found, a marker counts only where each
/// value is exactly what this review would write: what is not is the author's, and the rules run again (TRAPS, P0).
pub fn prove(case: &Case<'_>, facts: &Facts, believed: impl Fn(&str, &[Finding]) -> bool) -> (Vec<Finding>, Claims) {
    let mut claims = case.claims.clone();
    loop {
        let findings = case.findings(&case.author(&claims), facts);
        let before = claims.clone();
        let fixes = findings.iter().filter_map(|finding| finding.fix.as_ref());
        let written: HashSet<&str> = fixes.filter(|fix| is_in_place(case, fix)).map(|fix| fix.claim.as_str()).collect();
        claims.retain(|claim| written.contains(claim.as_str()) || believed(claim, &findings));
        if claims == before {
            return (findings, claims);
        }
    }
}

/// The marker's entry for what would mend this finding.
pub fn claim_of(finding: &Finding) -> String {
    match &finding.container {
        Some(container) => format!("{}/{container}", finding.rule),
        None => finding.rule.to_owned(),
    }
}

/// Whether the marker can tell of this fix again, so that it is written: what it could not, a container without a name
/// of its own, would count as the author's.
pub fn can_be_claimed(places: &Places<'_>, fix: &Fix) -> bool {
    Claims::can_hold(&fix.claim) && !places.claimed(&fix.claim).is_empty()
}

/// Whether the object already holds what this fix writes.
fn is_in_place(case: &Case<'_>, fix: &Fix) -> bool {
    fix.writes.iter().all(|(path, value)| author::holds(case.object.at(path), value))
}

/// New fixes: on CREATE, and where the author changed the template.
fn renew(case: &Case<'_>, findings: Vec<Finding>, mut claims: Claims) -> Plan {
    let mut plan = Plan { writes: Vec::new(), claims: Claims::default(), fresh: Vec::new(), proven: claims.clone() };
    let old_values = OldValues::new(case);
    // A look-up that failed keeps the old value, even one that a PUT dropped (TRAPS F12).
    for finding in findings.iter().filter(|finding| finding.fix.is_none() && finding.stopped_by_lookup) {
        let claim = claim_of(finding);
        if claims.contains(&claim) {
            plan.writes.extend(old_values.of(&claim));
        }
    }
    let places = Places::of(case.object, case.kind, case.policy);
    for fix in findings.into_iter().filter_map(|finding| finding.fix).filter(|fix| can_be_claimed(&places, fix)) {
        claims.insert(&fix.claim);
        if !is_in_place(case, &fix) {
            plan.writes.extend(fix.writes.iter().cloned());
            plan.fresh.push(fix);
        }
    }
    // An entry for a value that is gone and is not written again says nothing.
    let written: HashSet<&[String]> = plan.writes.iter().map(|(path, _)| path.as_slice()).collect();
    claims.retain(|claim| {
        let mut places = places.claimed(claim).into_iter();
        places.any(|place| !case.object.at(&place.path).is_null() || written.contains(place.path.as_slice()))
    });
    plan.claims = claims;
    plan
}

/// Where nothing but values of ours, newer or gone, would tell the template from the old one, the old values stay: what the
/// author changed came to nothing, so no pod need restart (TRAPS B18), and a second round (B06) could not see the change.
fn stay_as_they_were(case: &Case<'_>, mut plan: Plan, verdict: &mut Verdict) -> Plan {
    let Some(old) = case.old else { return plan };
    let places = Places::of(case.object, case.kind, case.policy);
    let in_template = |claim: &str| places.claimed(claim).iter().any(|place| place.in_template);
    let old_values = OldValues::new(case);
    // What is renewed whether or not the template changed is renewed here, too.
    let renewed = |claim: &str| plan.fresh.iter().any(|fix| fix.on_unchanged_template && fix.claim == claim);
    let claims: Vec<&str> = case.held.iter().filter(|claim| in_template(claim) && !renewed(claim)).collect();
    let held: Vec<_> = claims.iter().flat_map(|claim| old_values.of(claim)).collect();
    let goes = |(path, value): &(Vec<String>, Value<'static>)| {
        let written = plan.writes.iter().find(|(written, _)| written == path);
        written.map_or(case.object.at(path), |(_, new)| new) != value
    };
    if !held.iter().any(goes) {
        return plan;
    }
    let mut outcome = case.object.clone();
    for (path, value) in plan.writes.iter().chain(&held) {
        outcome.set(path, value.clone());
    }
    if author::same_template(&outcome, old, case.kind) {
        let stays = |fix: &Fix| fix.writes.iter().all(|(path, _)| held.iter().any(|(old, _)| old == path));
        let (stay, fresh) = std::mem::take(&mut plan.fresh).into_iter().partition(stays);
        plan.fresh = fresh;
        let stay: Vec<Fix> = stay;
        verdict.warnings.extend(stay.iter().filter_map(|fix| Some(kept_warning(fix, fix.kept_says.as_ref()?))));
        plan.writes.extend(held);
        claims.into_iter().for_each(|claim| plan.claims.insert(claim));
    }
    plan
}

/// The old values of ours, byte for byte, where a request dropped them; new ones only from a fix that asks for it
/// (TRAPS B18, F04). A rollback is left exactly alone (C14).
fn restore(case: &Case<'_>, rollback: bool, findings: Vec<Finding>, claims: Claims) -> Plan {
    if rollback {
        let marker = own_marker(case, &claims);
        return Plan { writes: Vec::new(), claims: marker.clone(), fresh: Vec::new(), proven: marker };
    }
    let fixes = findings.into_iter().filter_map(|finding| finding.fix);
    let renewed: Vec<Fix> = fixes.filter(|fix| fix.on_unchanged_template && claims.contains(&fix.claim)).collect();
    let old_values = OldValues::new(case);
    // In a second round the old value is not put back over what the first one renewed, or wrote for the first time.
    let kept = claims.iter().filter(|claim| case.held.contains(claim) && renewed.iter().all(|fix| fix.claim != *claim));
    let mut writes: Vec<_> = kept.flat_map(|claim| old_values.of(claim)).collect();
    let fresh: Vec<Fix> = renewed.into_iter().filter(|fix| !is_in_place(case, fix)).collect();
    writes.extend(fresh.iter().flat_map(|fix| fix.writes.iter().cloned()));
    Plan { writes, proven: claims.clone(), claims, fresh }
}

/// The request's own marker, as far as it is proven and what it claims stands there.
fn own_marker(case: &Case<'_>, proven: &Claims) -> Claims {
    let mut marker = Claims::of(case.object);
    marker.retain(|claim| proven.contains(claim) && stands(case, claim));
    marker
}

/// Whether anything stands in the object where this claim's fix would have written it.
fn stands(case: &Case<'_>, claim: &str) -> bool {
    let places = Places::of(case.object, case.kind, case.policy);
    places.claimed(claim).iter().any(|place| !case.object.at(&place.path).is_null())
}

/// What the old object holds where claims stand, as writes into the new object.
struct OldValues<'c> {
    old: Option<(&'c Value<'c>, Places<'c>)>,
    new: Places<'c>,
}

impl<'c> OldValues<'c> {
    fn new(case: &'c Case<'_>) -> Self {
        let places = |object| Places::of(object, case.kind, case.policy);
        OldValues { old: case.old.map(|old| (old, places(old))), new: places(case.object) }
    }

    fn of(&self, claim: &str) -> Vec<(Vec<String>, Value<'static>)> {
        let Some((old, before)) = &self.old else { return Vec::new() };
        let pairs = before.claimed(claim).into_iter().zip(self.new.claimed(claim));
        pairs
            .filter(|(before, _)| !old.at(&before.path).is_null())
            .map(|(before, after)| (after.path, old.at(&before.path).to_static()))
            .collect()
    }
}

fn kept_warning(fix: &Fix, says: &str) -> String {
    format!("[{}] {says}", fix.rule())
}

/// Tells where a value of ours stays though it would differ today.
fn tell_what_stays(case: &Case<'_>, findings: &[Finding], verdict: &mut Verdict) {
    for fix in findings.iter().filter_map(|finding| finding.fix.as_ref()) {
        let Some(says) = fix.kept_says.as_ref().filter(|_| !fix.on_unchanged_template || verdict.rollback) else {
            continue;
        };
        let differs = fix.writes.iter().any(|(path, value)| {
            // A PUT may have dropped it: then the old value comes back.
            let held = match case.object.at(path) {
                Value::Null => case.old.map_or(&Value::Null, |old| old.at(path)),
                held => held,
            };
            !held.is_null() && !author::holds(held, value)
        });
        if differs {
            verdict.warnings.push(kept_warning(fix, says));
        }
    }
}

fn unknown_declined_rules(case: &Case<'_>, verdict: &mut Verdict) {
    for rule in &case.declined.rules {
        if !rules::REGISTRY.iter().any(|known| known.meta().id == rule) {
            let key = super::marker::SKIP_FIXES;
            verdict.warnings.push(format!("annotation {key}: there is no rule {}", quoted(rule)));
        }
    }
}

/// Turns the plan into a patch, or into one warning where it cannot be.
fn write(case: &Case<'_>, mut plan: Plan, verdict: &mut Verdict) {
    drop_what_has_no_room(case, &mut plan, verdict);
    let patch = match build(case, &plan) {
        Ok(patch) => patch,
        Err(_) => {
            verdict.anomalies.push("patch-dropped");
            return;
        }
    };
    if patch.is_empty() {
        return;
    }
    plan.fresh.sort_by(|a, b| a.claim.cmp(&b.claim));
    for fix in &plan.fresh {
        if case.policy.announce_fixes {
            verdict.warnings.push(format!("[{}] fixed: {}", fix.rule(), fix.says));
        }
        if let Some(rule) = rules::REGISTRY.iter().find(|rule| rule.meta().id == fix.rule()) {
            verdict.fixes.push(Applied { rule: rule.meta().id, claim: fix.claim.clone() });
        }
    }
    verdict.patch_ops = patch.len();
    verdict.patch = Some(patch.to_json());
}

fn build<'p>(case: &'p Case<'_>, plan: &Plan) -> Result<Patch<'p>, Unresolved> {
    let mut patch = Patch::new(case.object);
    let marker = plan.claims.to_string();
    let path = marker_path();
    // Absent and empty say the same.
    if case.object.at(&path).as_str().unwrap_or_default() != marker {
        patch.write(&path, Value::from(marker))?;
    }
    for (path, value) in &plan.writes {
        patch.write(path, value.clone())?;
    }
    Ok(patch)
}

fn marker_path() -> Vec<String> {
    ["metadata", "annotations", MARKER].map(str::to_owned).to_vec()
}

/// Annotations share a budget that `last-applied-configuration` may have used up (TRAPS B17): a fix whose own
/// annotation has no room is left out, and all are where the marker has none.
fn drop_what_has_no_room(case: &Case<'_>, plan: &mut Plan, verdict: &mut Verdict) {
    let over = |path: &[String], text: &str| {
        let (key, map) = path.split_last().filter(|(_, map)| map.last().is_some_and(|last| last == "annotations"))?;
        let others = case.object.at(map).members().filter(|(name, _)| name != key);
        let used: usize = others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
        let total = used + key.len() + text.len();
        (total > ANNOTATION_BUDGET).then_some(total)
    };
    let total = |fix: &Fix| fix.writes.iter().find_map(|(path, value)| over(path, value.as_str()?));
    let (dropped, fresh): (Vec<Fix>, _) =
        std::mem::take(&mut plan.fresh).into_iter().partition(|fix| total(fix).is_some());
    plan.fresh = fresh;
    for (fix, total) in dropped.iter().filter_map(|fix| Some((fix, total(fix)?))) {
        let says = format!("the annotations would take {total} of {ANNOTATION_BUDGET} bytes");
        verdict.warnings.push(format!("[{}] not fixed: {says}", fix.rule()));
    }
    plan.leave_out(case, &dropped);
    let no_room = |plan: &Plan| over(&marker_path(), &plan.claims.to_string()).is_some();
    if no_room(plan) {
        let fresh = std::mem::take(&mut plan.fresh);
        if !fresh.is_empty() {
            let says = format!("there is no room for the annotation {MARKER} in the {ANNOTATION_BUDGET} bytes");
            verdict.warnings.push(format!("nothing is fixed: {says}"));
        }
        plan.leave_out(case, &fresh);
    }
    // Old values come back all the same, or pods would restart; from then on they count as the author's.
    if no_room(plan) {
        let own = own_marker(case, &plan.proven);
        // What stands under a key of our own is ours without an entry: had it room, the next write would add it.
        let mut implied = author::implied(case.old.unwrap_or(case.object), case.kind, case.policy);
        implied.retain(|claim| plan.proven.contains(claim));
        implied.extend(own.clone());
        plan.claims = implied;
        if no_room(plan) {
            plan.claims = own;
        }
    }
}

//! A rollout may take too many replicas down at once.
//!
//! ## What it does
//!
//! Works out, with the rounding of the kind's own controller, how many replicas an update may take down at once, and
//! refuses all of them, or more than `maxUnavailablePercent` of them. The object is judged with the fixes that the
//! policy will make.
//!
//! * Deployment, Rollout (canary): `maxUnavailable` rounds down; where it and the surge come to 0 the controller takes
//!   one. One replica that a rollout takes down before its successor is ready is only warned about.
//! * StatefulSet: `maxUnavailable` rounds down to at least 1, and one at a time is always accepted: the kind cannot
//!   surge. Pods below the `partition` are not replaced and do not count.
//! * DaemonSet: only a percentage is judged, for nobody knows the number of nodes.
//!
//! Not judged: 0 replicas; `Recreate` and `OnDelete`, which say what they do; canaries with a traffic router and
//! blue-green Rollouts, which keep the old pods until the new ones serve. A PodDisruptionBudget does not help, for
//! controllers are not bound by it.
//!
//! ## Why it matters
//!
//! Replicas that are down at once serve nobody, and if the new version does not start they stay down.
//!
//! ## Example
//!
//! All three replicas may be down at once:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 3
//!   strategy:
//!     rollingUpdate:
//!       maxSurge: 0
//!       maxUnavailable: 100%
//! ```
//!
//! None is down before another is ready:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 3
//!   strategy:
//!     rollingUpdate:
//!       maxSurge: 1
//!       maxUnavailable: 0
//! ```
//!
//! ## Parameters
//!
//! * `maxUnavailablePercent`: the share of replicas, in percent from 0 to 100, that may be down at once. All of two or
//!   more replicas at once are refused whatever it is. Default: 50.
//!
//! ## Unknown facts
//!
//! None of its own. The fix of `default-rolling-update`, which is reckoned with, is not made where the namespace's
//! ResourceQuotas are unknown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::ROLLING;
use crate::engine::pointer::pointer;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::rollout::{IntOrPercent, MAX_SURGE, MAX_UNAVAILABLE, Resolved, Rolling};

/// The rule.
pub struct RolloutOutage;

/// Parameters of [`RolloutOutage`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Percent of the replicas that may be down at once.
    #[schemars(range(max = 100))]
    pub max_unavailable_percent: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { max_unavailable_percent: 50 }
    }
}

impl Rule for RolloutOutage {
    const META: Meta = Meta {
        id: "rollout-outage",
        category: Category::Rollout,
        since: "0.1",
        kinds: ROLLING,
        baseline: Action::Deny,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("rollout_outage.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("maxUnavailablePercent", params.max_unavailable_percent, 0..=100, "percent")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(plan) = context.roll() else { return };
        let Some(rolling) = &plan.rolling else { return };
        findings.extend(match (plan.replicas, rolling.planned.resolved) {
            (Some(1), Some(resolved)) => lone_replica(rolling, resolved),
            (Some(replicas), Some(resolved)) => of_replicas(rolling, replicas, resolved, params),
            _ => of_unknown_number(rolling, params),
        });
    }
}

/// The only replica goes before another is ready. Never a denial, and no kind is blamed that cannot surge.
fn lone_replica(rolling: &Rolling, resolved: Resolved) -> Option<Finding> {
    if !rolling.surges || resolved.unavailable < 1 {
        return None;
    }
    let bounds = rolling.planned;
    let (field, message) = if resolved.surge == 0 {
        (MAX_SURGE, format!("each rollout takes the only replica down: maxSurge is {}", bounds.max_surge))
    } else {
        let unavailable = bounds.max_unavailable;
        (MAX_UNAVAILABLE, format!("each rollout may take the only replica down: maxUnavailable is {unavailable}"))
    };
    // Measured as nothing, so that scaling up into an outage counts as worse than this.
    let finding = finding(rolling, field, message).at_most(Action::Warn).measure(0);
    Some(match &rolling.no_room {
        Some(reason) if !reason.is_lookup() => finding,
        _ => finding.mend(rolling.yaml(&[(MAX_SURGE, IntOrPercent::Int(1)), (MAX_UNAVAILABLE, IntOrPercent::Int(0))])),
    })
}

fn of_replicas(rolling: &Rolling, replicas: i64, resolved: Resolved, params: &Params) -> Option<Finding> {
    let down = resolved.unavailable.min(replicas);
    // One at a time is the least that a kind without a surge can do.
    if replicas == 0 || (down <= 1 && !rolling.surges) {
        return None;
    }
    let allowed = i64::from(params.max_unavailable_percent);
    let verdict = if down == replicas {
        format!("{down} of {replicas} replicas may be down at once")
    } else if down * 100 > allowed * replicas {
        format!("{down} of {replicas} replicas may be down at once, more than the allowed {allowed}%")
    } else {
        return None;
    };
    let bounds = rolling.planned;
    let cause = if resolved.forced {
        let (surge, unavailable) = (bounds.max_surge, bounds.max_unavailable);
        format!("maxSurge {surge} and maxUnavailable {unavailable} both come to 0, and the controller then takes one")
    } else {
        format!("maxUnavailable is {}", bounds.max_unavailable)
    };
    let finding = finding(rolling, MAX_UNAVAILABLE, format!("{verdict}: {cause}"));
    Some(finding.measure(percent_of(down, replicas)).mend(mend(rolling, replicas, allowed)))
}

/// A DaemonSet: only percentages can be judged.
fn of_unknown_number(rolling: &Rolling, params: &Params) -> Option<Finding> {
    let percent = rolling.planned.max_unavailable.percent()?;
    let allowed = params.max_unavailable_percent;
    let more = match percent {
        100 => String::new(),
        percent if percent > allowed => format!(", more than the allowed {allowed}%"),
        _ => return None,
    };
    let message =
        format!("the pods of {percent}% of the nodes may be down at once{more}: maxUnavailable is {percent}%");
    let mend = rolling.yaml(&[(MAX_UNAVAILABLE, IntOrPercent::Int(1))]);
    Some(finding(rolling, MAX_UNAVAILABLE, message).measure(i64::from(percent)).mend(mend))
}

/// Surge first where a surge can be placed; else one at a time, if that is within bounds.
fn mend(rolling: &Rolling, replicas: i64, allowed: i64) -> String {
    let surge = if rolling.planned.max_surge.is_zero() { IntOrPercent::Int(1) } else { rolling.planned.max_surge };
    let no_surge = !rolling.surges || rolling.no_room.as_ref().is_some_and(|reason| !reason.is_lookup());
    if no_surge && (100 <= allowed * replicas || !rolling.surges) {
        return rolling.yaml(&[(MAX_UNAVAILABLE, IntOrPercent::Int(1))]);
    }
    rolling.yaml(&[(MAX_SURGE, surge), (MAX_UNAVAILABLE, IntOrPercent::Int(0))])
}

fn finding(rolling: &Rolling, field: &str, message: String) -> Finding {
    Finding::new(RolloutOutage::META.id, pointer(&rolling.path(field)), message)
}

/// Rounded up, so that what is above a whole percentage never measures as that percentage.
fn percent_of(down: i64, replicas: i64) -> i64 {
    (down * 100 + replicas - 1) / replicas
}

#[cfg(test)]
mod tests;

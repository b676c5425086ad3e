//! A rollout waits for a pod that finds no place.
//!
//! ## What it does
//!
//! Finds workloads whose strategy wants a new pod before an old one goes, where that pod may have no place:
//!
//! * Deployments and Rollouts (canary) whose author wrote `maxUnavailable: 0`, with required pod anti-affinity, a
//!   `DoNotSchedule` topology spread, a host port, `hostNetwork` with a port, a PersistentVolumeClaim that is not for many
//!   nodes, or a ResourceQuota on pods, cpu or memory in the namespace;
//! * one replica on such a claim under `RollingUpdate`, whose default takes none down first either;
//! * DaemonSets with `maxSurge` above 0 whose pods take a port of their node;
//! * StatefulSets of `podManagementPolicy: OrderedReady` with a `maxUnavailable` above 1, which does not speed them up.
//!
//! Where it is a matter of chance (a topology spread, a quota that may have room, a claim whose mode is unknown, a
//! default, `OrderedReady`, a `maxUnavailable` that Plimsoll wrote) it warns, and never more.
//!
//! ## Why it matters
//!
//! The new pod stays `Pending` or `ContainerCreating`, the old one waits for it, and after `progressDeadlineSeconds` the
//! rollout counts as failed. It shows at the worst time: when as many nodes as replicas are left, or a mend is urgent.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! spec:
//!   strategy:
//!     rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
//!   template:
//!     spec:
//!       containers:
//!       - name: app
//!         ports: [{containerPort: 80, hostPort: 80}]
//! ```
//!
//! Good:
//!
//! ```yaml
//! spec:
//!   strategy:
//!     rollingUpdate: {maxSurge: 1, maxUnavailable: 1}
//!   template:
//!     spec:
//!       containers:
//!       - name: app
//!         ports: [{containerPort: 80, hostPort: 80}]
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! Unknown ResourceQuotas count as none. A claim that is unknown or not there counts as one that a single node holds, and
//! the finding then warns at most.

use std::collections::BTreeMap;

use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::{ROLLING, Strategy};
use crate::engine::neighbours::{Claim, ports};
use crate::engine::pod::Template;
use crate::engine::pointer::pointer;
use crate::engine::rule::{Category, Meta, Rule};
use crate::rollout::{IntOrPercent, MAX_SURGE, MAX_UNAVAILABLE, NoRoom, RollPlan, Rolling};

/// The rule.
pub struct StalledRollout;

/// [`StalledRollout`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Rule for StalledRollout {
    const META: Meta = Meta {
        id: "stalled-rollout",
        category: Category::Rollout,
        since: "0.1",
        kinds: ROLLING,
        baseline: Action::Warn,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("stalled_rollout.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        let Some((_, rolling, replicas)) = surging(context) else { return Needs::default() };
        let Some(waits) = waits(rolling, replicas) else { return Needs::default() };
        let claims = matches!(rolling.no_room, Some(NoRoom::Claim(_)));
        let quotas = rolling.no_room.as_ref().is_none_or(NoRoom::is_lookup) && waits != Waits::Lone;
        Needs { claims, quotas, ..Needs::default() }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        findings.extend(match context.kind.strategy {
            Strategy::DaemonSet => second_pod_of_a_node(context),
            Strategy::StatefulSet => ordered(context),
            _ => surging(context).and_then(|(template, rolling, replicas)| {
                let waits = waits(rolling, replicas)?;
                no_place(context, &template, rolling, replicas, waits)
            }),
        });
    }
}

/// The bounds of a kind that starts pods beyond the wanted number.
fn surging<'c>(context: &'c Context<'_>) -> Option<(Template<'c>, &'c Rolling, i64)> {
    let tiered = matches!(context.kind.strategy, Strategy::Deployment | Strategy::Rollout);
    let RollPlan { replicas: Some(replicas), rolling: Some(rolling), .. } = context.roll().filter(|_| tiered)? else {
        return None;
    };
    Some((context.template?, rolling, *replicas))
}

/// Why no old pod may go first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// The author wrote 0.
    Author,
    /// The author's percentage comes to none.
    Share,
    /// A percentage of the only replica comes to none.
    Lone,
}

fn waits(rolling: &Rolling, replicas: i64) -> Option<Waits> {
    let down = rolling.planned.resolved.map(|resolved| resolved.unavailable);
    match replicas {
        0 => None,
        _ if rolling.now.max_unavailable.is_zero() => Some(Waits::Author),
        1 if down == Some(0) => Some(Waits::Lone),
        _ if down == Some(0) && !rolling.defaulted => Some(Waits::Share),
        _ => None,
    }
}

fn no_place(
    context: &Context<'_>,
    template: &Template<'_>,
    rolling: &Rolling,
    replicas: i64,
    waits: Waits,
) -> Option<Finding> {
    let mut cap = None;
    let reason = match rolling.no_room.as_ref()? {
        NoRoom::Claim(_) => {
            let (claim, sure) = held_claim(context)?;
            cap = (!sure || waits == Waits::Lone).then_some(Action::Warn);
            NoRoom::Claim(claim).to_string()
        }
        _ if waits == Waits::Lone => return None,
        NoRoom::QuotaUnknown(_) => return None,
        NoRoom::HostNetwork if ports(template).is_empty() => return None,
        reason @ (NoRoom::Spread(_) | NoRoom::Quota(_) | NoRoom::Device(_)) => {
            cap = Some(Action::Warn);
            reason.to_string()
        }
        reason => reason.to_string(),
    };
    let unavailable = rolling.now.max_unavailable;
    let none = match waits {
        Waits::Author => format!("maxUnavailable is {unavailable}"),
        Waits::Share => format!("maxUnavailable {unavailable} of {replicas} replicas is 0"),
        Waits::Lone => format!("maxUnavailable {unavailable} of 1 replica is 0"),
    };
    let message = format!("a rollout may never finish: {none}, and {reason}");
    let finding = Finding::new(StalledRollout::META.id, pointer(&rolling.path(MAX_UNAVAILABLE)), message);
    let finding = finding.mend(mend(context, rolling, replicas));
    Some(match cap {
        Some(cap) => finding.at_most(cap),
        None => finding,
    })
}

/// The claim that one node or pod holds, and whether that is sure. `None` where the pods may be everywhere, or are kept
/// on one node anyway.
fn held_claim(context: &Context<'_>) -> Option<(String, bool)> {
    let workload = context.workload()?;
    let claims = context.facts.claims.known().into_iter().flatten();
    let claims: BTreeMap<&str, &Claim> = claims.map(|claim| (claim.name.as_str(), claim)).collect();
    let known = |name: &String| claims.get(name.as_str());
    let keeps_apart = |name: &&String| known(name).is_some_and(|claim| claim.keeps_apart(workload).is_some());
    let held = workload.shared_claims.iter().find(keeps_apart);
    let unsure = || workload.shared_claims.iter().find(|name| known(name).is_none() && !workload.on_one_node);
    held.map(|name| (name.clone(), true)).or_else(|| unsure().map(|name| (name.clone(), false)))
}

fn mend(context: &Context<'_>, rolling: &Rolling, replicas: i64) -> String {
    let claim = matches!(rolling.no_room, Some(NoRoom::Claim(_)));
    match replicas {
        1 if claim && context.kind.strategy == Strategy::Deployment => {
            "spec:\n  strategy:\n    type: Recreate\n    rollingUpdate: null".to_owned()
        }
        1 => rolling.yaml(&[(MAX_SURGE, IntOrPercent::Int(0)), (MAX_UNAVAILABLE, IntOrPercent::Int(1))]),
        _ => rolling.yaml(&[(MAX_UNAVAILABLE, IntOrPercent::Int(1))]),
    }
}

/// A DaemonSet that starts the new pod of a node beside the old one, which holds the port (TRAPS C08).
fn second_pod_of_a_node(context: &Context<'_>) -> Option<Finding> {
    let template = context.template?;
    let rolling = context.roll()?.rolling.as_ref().filter(|rolling| !rolling.now.max_surge.is_zero())?;
    let reason = match NoRoom::on_host(&template)? {
        NoRoom::HostNetwork if ports(&template).is_empty() => return None,
        reason => reason,
    };
    let message = format!("a rollout stops at the first node: maxSurge is {}, and {reason}", rolling.now.max_surge);
    let mend = rolling.yaml(&[(MAX_SURGE, IntOrPercent::Int(0)), (MAX_UNAVAILABLE, IntOrPercent::Int(1))]);
    Some(Finding::new(StalledRollout::META.id, pointer(&rolling.path(MAX_SURGE)), message).mend(mend))
}

/// A StatefulSet that starts its pods one after the other, however many are taken down (TRAPS C10).
fn ordered(context: &Context<'_>) -> Option<Finding> {
    let RollPlan { replicas: Some(replicas), rolling: Some(rolling), .. } = context.roll()? else { return None };
    let policy = match context.object.at(&["spec", "podManagementPolicy"]) {
        value if value.is_null() => "OrderedReady",
        value => value.as_str()?,
    };
    let down = rolling.now.down(*replicas).filter(|down| *down > 1 && policy == "OrderedReady")?;
    let message = format!(
        "maxUnavailable {} takes {down} of {replicas} replicas down at once, but with podManagementPolicy OrderedReady they come back \
         one by one; many servers ignore the field",
        rolling.now.max_unavailable
    );
    let mend = rolling.yaml(&[(MAX_UNAVAILABLE, IntOrPercent::Int(1))]);
    let finding = Finding::new(StalledRollout::META.id, pointer(&rolling.path(MAX_UNAVAILABLE)), message);
    Some(finding.at_most(Action::Warn).measure(down).mend(mend))
}

#[cfg(test)]
mod tests;

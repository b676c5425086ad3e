//! Nobody chose how many replicas a rollout may take down.
//!
//! ## What it does
//!
//! Finds Deployments whose `maxUnavailable` is the API default 25% that nobody applied, and Rollouts (canary) without
//! it, where the surge is above 0. A value that the author wrote, 25% included, is the author's choice and is left
//! alone; who wrote it is told by `Apply` entries of `metadata.managedFields` and by `kubectl apply`'s annotation.
//!
//! Below 4 replicas 25% comes to no replica at all: there the finding is only recorded.
//!
//! ## Why it matters
//!
//! With the default every rollout of 4 replicas or more runs short by up to a quarter of its capacity, at each change of
//! an image or a label, although a surge pod could have come up first.
//!
//! ## Example
//!
//! Of these 4 replicas one is taken down before its successor is ready:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 4
//! ```
//!
//! Here a new replica is ready before an old one goes:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 4
//!   strategy:
//!     rollingUpdate:
//!       maxUnavailable: 0
//! ```
//!
//! ## Fix safety
//!
//! The fix writes `maxUnavailable: 0` and keeps the surge. With `maxUnavailable` 0 a rollout waits for ever where no
//! pod more can be placed, so nothing is written, and the finding says why, with required pod anti-affinity, a
//! `DoNotSchedule` topology spread, a host port, `hostNetwork`, a PersistentVolumeClaim, or a ResourceQuota on pods, cpu
//! or memory in the namespace. Nothing is written either where the surge is 0 (the API refuses 0 and 0), for `Recreate`,
//! and where it would let more replicas be down than the default does. The strategy is no part of the pod template:
//! the fix restarts no pod.
//!
//! ## Parameters
//!
//! * `tiers`: what to write, by size. The first tier whose `upToReplicas` is not below the workload's replicas holds; in a
//!   tier without `upToReplicas` any size fits, and it comes last. `maxSurge` and `maxUnavailable` are numbers of pods or
//!   percentages; a field left out is left alone, and a `maxSurge` that the author wrote is kept. Where no tier fits, or
//!   the tier sets nothing, the default is accepted. Default: `[{maxUnavailable: 0}]`.
//!
//! ## Unknown facts
//!
//! ResourceQuotas of the namespace: unknown counts as present. Nothing is written, and the finding warns at most.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::facts::Needs;
use crate::engine::finding::{Action, Finding, Fix};
use crate::engine::ownership::{Managed, Place};
use crate::engine::pointer::pointer;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::rollout::{IntOrPercent, MAX_SURGE, MAX_UNAVAILABLE, NoRoom, RollPlan, Rolling};

/// The rule.
pub struct DefaultRollingUpdate;

/// Parameters of [`DefaultRollingUpdate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// What to write, by size of the workload; the first tier that fits holds.
    pub tiers: Vec<Tier>,
}

/// What to write up to some size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Tier {
    /// Most replicas that the tier is for; absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_replicas: Option<u32>,
    /// The surge to write in place of a default; absent: left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrPercent>,
    /// The unavailability to write in place of a default; absent: left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrPercent>,
}

impl Default for Params {
    fn default() -> Self {
        Params { tiers: vec![Tier { max_unavailable: Some(IntOrPercent::Int(0)), ..Tier::default() }] }
    }
}

impl Params {
    /// The first tier for a workload of this many replicas.
    pub fn tier(&self, replicas: i64) -> Option<&Tier> {
        self.tiers.iter().find(|tier| tier.up_to_replicas.is_none_or(|most| replicas <= i64::from(most)))
    }
}

impl Rule for DefaultRollingUpdate {
    const META: Meta = Meta {
        id: "default-rolling-update",
        category: Category::Rollout,
        since: "0.1",
        kinds: &["Deployment", "Rollout"],
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: true,
        baseline_fix: true,
        source: include_str!("default_rolling_update.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        let refuse = |path: String, message: &str| Err(InvalidParam { path, message: message.to_owned() });
        if params.tiers.is_empty() {
            return refuse("tiers".to_owned(), "must hold at least one tier; to turn the rule off, set action: off");
        }
        let mut below = Some(0);
        for (index, tier) in params.tiers.iter().enumerate() {
            let path = |field: &str| format!("tiers[{index}].{field}");
            match (below, tier.up_to_replicas) {
                (None, _) => {
                    return refuse(format!("tiers[{index}]"), "is never reached: the tier before it fits any size");
                }
                (Some(below), Some(most)) if most <= below => {
                    return refuse(path("upToReplicas"), "must be above 0 and above that of the tier before it");
                }
                (_, most) => below = most,
            }
            if tier.max_surge.is_some_and(IntOrPercent::is_zero) {
                return refuse(
                    path(MAX_SURGE),
                    "must be above 0, for the fix counts on a new pod being ready before an old one goes; \
                     leave it out to keep the workload's own",
                );
            }
            if tier.max_unavailable.and_then(IntOrPercent::percent).is_some_and(|percent| percent >= 100) {
                return refuse(path(MAX_UNAVAILABLE), "must be below 100%, or a rollout may take every replica down");
            }
        }
        Ok(())
    }

    fn managed(params: &Params) -> Vec<Managed> {
        let surge = params.tiers.iter().any(|tier| tier.max_surge.is_some());
        let place = |kind, path| Place::Object(kind, path);
        let mut places = vec![
            Managed {
                place: place("Deployment", &["spec", "strategy", "rollingUpdate", MAX_UNAVAILABLE]),
                default: Some("\"25%\""),
            },
            Managed { place: place("Rollout", &["spec", "strategy", "canary", MAX_UNAVAILABLE]), default: None },
        ];
        if surge {
            places.push(Managed {
                place: place("Deployment", &["spec", "strategy", "rollingUpdate", MAX_SURGE]),
                default: Some("\"25%\""),
            });
            places.push(Managed { place: place("Rollout", &["spec", "strategy", "canary", MAX_SURGE]), default: None });
        }
        places
    }

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        let rolling = context.roll().and_then(|plan| plan.rolling.as_ref());
        let quotas = rolling.is_some_and(|rolling| {
            rolling.proposal.is_some() && rolling.no_room.as_ref().is_none_or(NoRoom::is_lookup)
        });
        Needs { quotas, ..Needs::default() }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(RollPlan { replicas: Some(replicas), rolling: Some(rolling), .. }) = context.roll() else { return };
        let (Some(writes), Some(down)) = (writes(rolling), rolling.now.down(*replicas)) else { return };
        let default = match context.kind.defaulted {
            true => format!("the API default {}", rolling.now.max_unavailable),
            false => format!("absent, which means {}", rolling.now.max_unavailable),
        };
        let replicas = count(*replicas);
        let cost = format!("{down} of {replicas} may be down during every rollout");
        let at = pointer(&rolling.path(MAX_UNAVAILABLE));
        match &rolling.no_room {
            // Nobody is down and nothing is written: nothing to say.
            Some(_) if down == 0 => {}
            Some(reason) => {
                // Short, for the reason comes last and a warning is cut at its end.
                let (stays, down) = (rolling.now.max_unavailable, down);
                let message = format!(
                    "{down} of {replicas} may be down during every rollout: maxUnavailable stays {stays}, because {reason}"
                );
                let mut finding = Finding::new(Self::META.id, at, message);
                finding.mend = Some(rolling.yaml(&[(MAX_UNAVAILABLE, IntOrPercent::Int(1))]));
                finding.stopped_by_lookup = reason.is_lookup();
                findings.push(match reason {
                    NoRoom::QuotaUnknown(_) => finding.at_most(Action::Warn),
                    _ => finding,
                });
            }
            None => {
                let message = match down {
                    0 => format!(
                        "maxUnavailable is {default}: it takes none of {replicas} down, but will when there are more"
                    ),
                    _ => format!("{cost}: maxUnavailable is {default}"),
                };
                let finding = Finding::new(Self::META.id, at, message).mend(rolling.yaml(&writes));
                let finding = finding.fix(Some(fix(rolling, &writes, &default)));
                findings.push(if down == 0 { finding.at_most(Action::Audit) } else { finding });
            }
        }
    }
}

/// The fields that the tier changes.
fn writes(rolling: &Rolling) -> Option<Vec<(&'static str, IntOrPercent)>> {
    let (now, proposal) = (rolling.now, rolling.proposal?);
    let fields = [
        (MAX_SURGE, now.max_surge, proposal.max_surge),
        (MAX_UNAVAILABLE, now.max_unavailable, proposal.max_unavailable),
    ];
    Some(fields.into_iter().filter(|(_, old, new)| old != new).map(|(name, _, new)| (name, new)).collect())
}

fn fix(rolling: &Rolling, writes: &[(&'static str, IntOrPercent)], default: &str) -> Fix {
    let words: Vec<String> = writes.iter().map(|(name, value)| format!("{name} to {value}")).collect();
    let writes = writes.iter().map(|(name, value)| (rolling.path(name), value.to_value())).collect();
    let says = format!("set {} (maxUnavailable was {default})", words.join(" and "));
    Fix::new(DefaultRollingUpdate::META.id, writes, says)
}

fn count(replicas: i64) -> String {
    if replicas == 1 { "1 replica".to_owned() } else { format!("{replicas} replicas") }
}

#[cfg(test)]
mod tests;

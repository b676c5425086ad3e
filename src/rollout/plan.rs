//! How a workload will replace its pods: planned once, read by every rule on rollouts.

use super::rounding::{Resolved, resolve};
use super::{IntOrPercent, NoRoom};
use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::kind::Strategy;
use crate::engine::ownership::author_set;
use crate::engine::rule::Rule;
use crate::rules::rollout::default_rolling_update::{DefaultRollingUpdate, Tier};

/// Member of a strategy: pods that may exist beyond the wanted number.
pub const MAX_SURGE: &str = "maxSurge";

/// Member of a strategy: pods that may be unavailable at once.
pub const MAX_UNAVAILABLE: &str = "maxUnavailable";

/// How a workload will replace its pods.
#[derive(Debug, Clone, PartialEq)]
pub struct RollPlan {
    /// Wanted pods; `None` for a DaemonSet, whose nodes we do not know.
    pub replicas: Option<i64>,
    /// The procedure.
    pub update_type: UpdateType,
    /// The bounds; `None` where the procedure knows no `maxSurge` and `maxUnavailable`.
    pub rolling: Option<Rolling>,
}

/// The procedure of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateType {
    /// Old pods make way for new ones within bounds.
    RollingUpdate,
    /// All old pods end before a new one starts.
    Recreate,
    /// A pod is replaced when somebody deletes it.
    OnDelete,
    /// Argo Rollouts' canary without a traffic router: within bounds, as a rolling update.
    Canary,
    /// Argo Rollouts' canary with a traffic router: the stable pods stay, the bounds are not looked at.
    RoutedCanary,
    /// Argo Rollouts' blue-green: all new pods start beside the old ones. Its `maxUnavailable` is for restarts only.
    BlueGreen,
}

/// The bounds of an update, as they are and as they will be.
#[derive(Debug, Clone, PartialEq)]
pub struct Rolling {
    /// As the object says, absent fields by their defaults.
    pub now: Bounds,
    /// With what `default-rolling-update` writes, where the policy turns its fix on and nothing stands in the way.
    pub planned: Bounds,
    /// What `default-rolling-update` would write, whether or not a surge can be placed; `None` where it has no say.
    pub proposal: Option<Bounds>,
    /// Whether `maxUnavailable` is the default that nobody applied.
    pub defaulted: bool,
    /// Why a surge cannot be counted on; never set for kinds that `default-rolling-update` is not for.
    pub no_room: Option<NoRoom>,
    /// Whether the kind can surge at all.
    pub surges: bool,
    parent: &'static [&'static str],
}

/// A pair of `maxSurge` and `maxUnavailable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// `maxSurge`.
    pub max_surge: IntOrPercent,
    /// `maxUnavailable`.
    pub max_unavailable: IntOrPercent,
    /// In pods; `None` where their number is unknown.
    pub resolved: Option<Resolved>,
}

/// Where a procedure keeps its bounds, and what absent ones mean.
struct Family {
    strategy: Strategy,
    parent: &'static [&'static str],
    max_surge: IntOrPercent,
    max_unavailable: IntOrPercent,
    surges: bool,
    tiered: bool,
}

/// `SetDefaults_Deployment` in `pkg/apis/apps/v1/defaults.go`.
const DEPLOYMENT: Family = Family {
    strategy: Strategy::Deployment,
    parent: &["spec", "strategy", "rollingUpdate"],
    max_surge: IntOrPercent::Percent(25),
    max_unavailable: IntOrPercent::Percent(25),
    surges: true,
    tiered: true,
};

/// Defaults of Argo Rollouts' controller (`utils/defaults`); the server fills in nothing.
const CANARY: Family = Family { strategy: Strategy::Rollout, parent: &["spec", "strategy", "canary"], ..DEPLOYMENT };

/// `SetDefaults_DaemonSet` in `pkg/apis/apps/v1/defaults.go`.
const DAEMON_SET: Family = Family {
    strategy: Strategy::DaemonSet,
    parent: &["spec", "updateStrategy", "rollingUpdate"],
    max_surge: IntOrPercent::Int(0),
    max_unavailable: IntOrPercent::Int(1),
    surges: true,
    tiered: false,
};

/// `getStatefulSetMaxUnavailable`: absent means 1. The kind has no `maxSurge`.
const STATEFUL_SET: Family = Family { strategy: Strategy::StatefulSet, surges: false, ..DAEMON_SET };

impl RollPlan {
    /// Plans from what the author set, the policy and the facts.
    ///
    /// `None` where the workload does not roll, has no containers, or says what the API server refuses: the 422 is the
    /// server's to give (TRAPS A23, C04).
    pub fn plan(context: &Context<'_>) -> Option<RollPlan> {
        context.template?.regular().next()?;
        let replicas = match context.kind.scales {
            true => Some(context.replicas().filter(|replicas| *replicas <= i64::from(i32::MAX))?),
            false => None,
        };
        let (update_type, family) = procedure(context)?;
        let rolling = match family {
            Some(family) => Some(family.rolling(context, replicas)?),
            None => None,
        };
        Some(RollPlan { replicas, update_type, rolling })
    }
}

fn procedure(context: &Context<'_>) -> Option<(UpdateType, Option<Family>)> {
    let spec = context.object.get("spec");
    let native = |strategy: &Value<'_>| match &object_or_absent(strategy)?["type"] {
        Value::Null => Some(UpdateType::RollingUpdate),
        name => match name.as_str()? {
            "" | "RollingUpdate" => Some(UpdateType::RollingUpdate),
            "Recreate" => Some(UpdateType::Recreate),
            "OnDelete" => Some(UpdateType::OnDelete),
            _ => None,
        },
    };
    let within = |family: Family, update_type: UpdateType| {
        (update_type, (update_type == UpdateType::RollingUpdate).then_some(family))
    };
    match context.kind.strategy {
        Strategy::Deployment => {
            native(&spec["strategy"]).filter(|it| *it != UpdateType::OnDelete).map(|it| within(DEPLOYMENT, it))
        }
        Strategy::DaemonSet => {
            native(&spec["updateStrategy"]).filter(|it| *it != UpdateType::Recreate).map(|it| within(DAEMON_SET, it))
        }
        Strategy::StatefulSet => {
            native(&spec["updateStrategy"]).filter(|it| *it != UpdateType::Recreate).map(|it| within(STATEFUL_SET, it))
        }
        Strategy::Rollout => {
            let strategy = &spec["strategy"];
            match (&strategy["canary"], &strategy["blueGreen"]) {
                (Value::Object(canary), Value::Null) => Some(match canary.get("trafficRouting") {
                    None | Some(Value::Null) => (UpdateType::Canary, Some(CANARY)),
                    Some(_) => (UpdateType::RoutedCanary, None),
                }),
                (Value::Null, Value::Object(_)) => Some((UpdateType::BlueGreen, None)),
                _ => None,
            }
        }
        Strategy::None => None,
    }
}

/// The value if it is an object or absent; of any other type the server makes nothing.
fn object_or_absent<'v, 'a>(value: &'v Value<'a>) -> Option<&'v Value<'a>> {
    matches!(value, Value::Null | Value::Object(_)).then_some(value)
}

impl Family {
    fn rolling(&self, context: &Context<'_>, replicas: Option<i64>) -> Option<Rolling> {
        let fields = object_or_absent(context.object.at(self.parent))?;
        let or_default = |field: &str, default: IntOrPercent| match &fields[field] {
            Value::Null => Some(default),
            value => IntOrPercent::parse(value),
        };
        let max_surge = if self.surges { or_default(MAX_SURGE, self.max_surge)? } else { self.max_surge };
        let max_unavailable = or_default(MAX_UNAVAILABLE, self.max_unavailable)?;
        if !self.accepts(max_surge, max_unavailable) {
            return None;
        }
        // A StatefulSet replaces only the pods from the partition's ordinal on.
        let replaced = match (self.strategy, &fields["partition"], replicas) {
            (Strategy::StatefulSet, partition, Some(replicas)) if !partition.is_null() => {
                (replicas - partition.as_i64().filter(|ordinal| *ordinal >= 0)?).max(0)
            }
            _ => i64::MAX,
        };
        let bounds = |max_surge, max_unavailable| Bounds {
            max_surge,
            max_unavailable,
            resolved: replicas.map(|replicas| {
                let resolved = resolve(self.strategy, replicas, max_surge, max_unavailable);
                Resolved { unavailable: resolved.unavailable.min(replaced), ..resolved }
            }),
        };
        let now = bounds(max_surge, max_unavailable);
        let defaulted = self.tiered
            && max_unavailable == self.max_unavailable
            && self.unset(context, MAX_UNAVAILABLE, self.max_unavailable);
        let proposal = replicas.filter(|_| defaulted && !max_surge.is_zero()).and_then(|replicas| {
            let params = context.policy.params::<DefaultRollingUpdate>();
            let (surge, unavailable) = self.raised(context, params.tier(replicas)?, &now);
            Some(bounds(surge, unavailable)).filter(|proposal| improves(proposal, &now))
        });
        let no_room = context.template.as_ref().filter(|_| self.tiered);
        let no_room = no_room.and_then(|template| NoRoom::find(template, &context.facts.quotas));
        let fixed = no_room.is_none() && context.fixes(DefaultRollingUpdate::META.id);
        Some(Rolling {
            now,
            planned: proposal.filter(|_| fixed).unwrap_or(now),
            proposal,
            defaulted,
            no_room,
            surges: self.surges,
            parent: self.parent,
        })
    }

    /// What the API server takes (`ValidateRollingUpdateDeployment`, `…DaemonSet`, StatefulSet's validation).
    fn accepts(&self, max_surge: IntOrPercent, max_unavailable: IntOrPercent) -> bool {
        let at_most_all = |value: IntOrPercent| value.percent().is_none_or(|percent| percent <= 100);
        at_most_all(max_unavailable)
            && match self.strategy {
                Strategy::DaemonSet => at_most_all(max_surge) && max_surge.is_zero() != max_unavailable.is_zero(),
                Strategy::StatefulSet => !max_unavailable.is_zero(),
                _ => !(max_surge.is_zero() && max_unavailable.is_zero()),
            }
    }

    /// Whether the field is absent, or the default that nobody applied.
    fn unset(&self, context: &Context<'_>, field: &str, default: IntOrPercent) -> bool {
        let path: Vec<&str> = self.parent.iter().copied().chain([field]).collect();
        !author_set(context.object, context.kind, &path, &default.to_value())
    }

    /// The pair with the tier's values in place of defaults that nobody applied (TRAPS B14).
    fn raised(&self, context: &Context<'_>, tier: &Tier, now: &Bounds) -> (IntOrPercent, IntOrPercent) {
        let surge = tier.max_surge.filter(|_| self.unset(context, MAX_SURGE, self.max_surge));
        (surge.unwrap_or(now.max_surge), tier.max_unavailable.unwrap_or(now.max_unavailable))
    }
}

/// Whether it is another pair, is one that the API server takes, and takes no more pods down.
fn improves(proposal: &Bounds, now: &Bounds) -> bool {
    let unavailable = |bounds: &Bounds| bounds.resolved.map(|resolved| resolved.unavailable);
    (proposal.max_surge, proposal.max_unavailable) != (now.max_surge, now.max_unavailable)
        && !proposal.max_surge.is_zero()
        && unavailable(proposal) <= unavailable(now)
}

impl Rolling {
    /// Members from the object's root to `maxSurge` or `maxUnavailable`.
    pub fn path(&self, field: &str) -> Vec<String> {
        self.parent.iter().copied().chain([field]).map(str::to_owned).collect()
    }

    /// YAML of these fields below their parents.
    pub fn yaml(&self, fields: &[(&str, IntOrPercent)]) -> String {
        let indent = |level: usize| "  ".repeat(level);
        let parents = self.parent.iter().enumerate().map(|(level, name)| format!("{}{name}:\n", indent(level)));
        let leaves = fields.iter().map(|(name, value)| format!("{}{name}: {value}\n", indent(self.parent.len())));
        parents.chain(leaves).collect()
    }
}

impl Bounds {
    /// Pods out of `replicas` that may be down at once; `None` where nothing is known of their number.
    pub fn down(&self, replicas: i64) -> Option<i64> {
        self.resolved.map(|resolved| resolved.unavailable.min(replicas))
    }
}

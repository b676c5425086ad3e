//! What a rule sees: the object, the facts, the policy, and the plans that rules share.

use std::cell::OnceCell;

use super::document::Value;
use super::facts::Facts;
use super::kind::Kind;
use super::marker::{Claims, OWN_PREFIX};
use super::plan::Termination;
use super::pod::Template;
use super::request::{Endpoint, Operation};
use crate::policy::Policy;
use crate::rollout::RollPlan;

/// One object under judgement.
///
/// For `/mutate` the object is the author's: what our fixes wrote earlier is taken out, so that a rule decides as if it
/// were for the first time. For `/validate` it is the object as it stands.
pub struct Context<'a> {
    /// Which webhook asks.
    pub endpoint: Endpoint,
    /// The verb.
    pub operation: Operation,
    /// The row of its kind.
    pub kind: &'static Kind,
    /// The object.
    pub object: &'a Value<'a>,
    /// Its pod template; `None` where it has none (a PodDisruptionBudget, a Rollout by `workloadRef`).
    pub template: Option<Template<'a>>,
    /// What is known beside the object.
    pub facts: &'a Facts,
    /// The policy, for the parameters of neighbouring rules.
    pub policy: &'a Policy,
    /// Rules that the workload's author declined fixes of.
    pub declined: &'a Declined,
    termination: OnceCell<Termination>,
    roll: OnceCell<Option<RollPlan>>,
}

/// Fixes that the annotation `plimsoll.dev/skip-fixes` declines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declined {
    /// `all`.
    pub all: bool,
    /// Single rule ids.
    pub rules: Vec<String>,
}

impl Declined {
    /// Whether fixes of this rule are declined.
    pub fn covers(&self, rule: &str) -> bool {
        self.all || self.rules.iter().any(|id| id == rule)
    }
}

impl<'a> Context<'a> {
    /// A context for this object.
    pub fn new(
        endpoint: Endpoint,
        operation: Operation,
        kind: &'static Kind,
        object: &'a Value<'a>,
        facts: &'a Facts,
        policy: &'a Policy,
        declined: &'a Declined,
    ) -> Self {
        let template = kind.template.map(|path| Template { path, value: object.at(path) });
        let template = template.filter(|template| template.value.as_object().is_some());
        Context {
            endpoint,
            operation,
            kind,
            object,
            template,
            facts,
            policy,
            declined,
            termination: OnceCell::new(),
            roll: OnceCell::new(),
        }
    }

    /// `spec.replicas`; absent means 1 (a Pod, a DaemonSet: 1 too). `None` where it is no whole number ≥ 0.
    pub fn replicas(&self) -> Option<i64> {
        match self.object.at(&["spec", "replicas"]) {
            Value::Null => Some(1),
            value => value.as_i64().filter(|replicas| *replicas >= 0),
        }
    }

    /// Whether this rule's fix is turned on and its kind may be written to.
    pub fn fixes(&self, rule: &str) -> bool {
        self.kind.mutable && self.policy.fixes(rule) && !self.declined.covers(rule)
    }

    /// Whether what stands under this template annotation is this rule's: the key is our own, or the marker says so.
    pub fn is_ours(&self, rule: &str, annotation: &str) -> bool {
        annotation.starts_with(OWN_PREFIX) || Claims::of(self.object).contains(rule)
    }

    /// How its pods will end: sleeps and grace, as they are and as they will be.
    pub fn termination(&self) -> &Termination {
        self.termination.get_or_init(|| Termination::plan(self))
    }

    /// How it will replace its pods; `None` where it does not roll, or what it says is no valid strategy.
    pub fn roll(&self) -> Option<&RollPlan> {
        self.roll.get_or_init(|| RollPlan::plan(self)).as_ref()
    }
}

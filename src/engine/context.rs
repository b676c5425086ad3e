//! What a rule sees: the object, the facts, the policy, and the plans that rules share.

use std::cell::OnceCell;

use super::document::Value;
use super::facts::{Facts, Known};
use super::kind::Kind;
use super::marker::{Claims, OWN_PREFIX};
use super::neighbours::Workload;
use super::plan::Termination;
use super::pod::Template;
use super::request::{Endpoint, Operation};
use super::scope::is_fought_over;
use crate::policy::{FixAt, Policy};
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
    /// The kind of the workload that the object is a subresource of, see [`Context::of_parent`].
    pub parent: Option<&'static Kind>,
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
    workload: OnceCell<Option<Workload>>,
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
            parent: None,
            object,
            template,
            facts,
            policy,
            declined,
            termination: OnceCell::new(),
            roll: OnceCell::new(),
            workload: OnceCell::new(),
        }
    }

    /// The same context for a subresource (`deployments/scale`) of a workload of this kind.
    pub fn of_parent(self, parent: Option<&'static Kind>) -> Self {
        Context { parent, ..self }
    }

    /// `spec.replicas`; absent means 1 (a Pod, a DaemonSet: 1 too), in a Scale 0. `None` where it is no whole number
    /// ≥ 0.
    pub fn replicas(&self) -> Option<i64> {
        self.kind.replicas(self.object)
    }

    /// Kind of the workload whose pods the object speaks of: its own, or what a Scale scales.
    pub fn workload_kind(&self) -> &'static Kind {
        self.parent.unwrap_or(self.kind)
    }

    /// Name of that workload; `None` where the API server has yet to make one.
    pub fn workload_name(&self) -> Option<&'a str> {
        self.object.at(&["metadata", "name"]).as_str().filter(|name| !name.is_empty())
    }

    /// Whether [`Context::workload`] needs the workloads of the namespace as a fact.
    pub fn needs_workload(&self) -> bool {
        self.parent.is_some()
    }

    /// What replica rules read of the workload: from the object where it is one, for a Scale from the workloads of the
    /// namespace. `None` where it has no pod template or is unknown.
    pub fn workload(&self) -> Option<&Workload> {
        let Some(parent) = self.parent else {
            let read = || self.template.and_then(|_| Workload::of(self.kind, self.object));
            return self.workload.get_or_init(read).as_ref();
        };
        let (Known::Known(workloads), Some(name)) = (&self.facts.workloads, self.workload_name()) else { return None };
        let scaled = |workload: &&Workload| {
            workload.group == parent.group && workload.kind == parent.kind && workload.name == name
        };
        workloads.iter().find(scaled)
    }

    /// Whether this rule's fix is turned on and will be written, to the object or to the pods that it makes: not where
    /// an operator would patch it back (TRAPS B10).
    pub fn fixes(&self, rule: &str) -> bool {
        let Some(setting) = self.policy.setting(rule).filter(|setting| setting.fixes()) else { return false };
        let at_pod = self.policy.fix_at == FixAt::Pod && setting.fixes_pods();
        let written = at_pod || !is_fought_over(self.kind, self.object);
        self.kind.mutable && written && !self.declined.covers(rule)
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

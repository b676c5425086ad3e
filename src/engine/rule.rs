//! What a rule is: metadata, parameters, a check. One rule is one file under [`crate::rules`].

use std::any::Any;
use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use super::facts::Needs;
use super::finding::{Action, Finding};
use super::kind::Kind;
use super::ownership::Managed;

/// What a rule is about; the folder it lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// References to ConfigMaps and Secrets.
    Config,
    /// PodDisruptionBudgets.
    Disruption,
    /// Container images.
    Images,
    /// Services and the ports they send to.
    Network,
    /// Liveness, readiness and startup probes.
    Probes,
    /// Requests and limits.
    Resources,
    /// How a workload replaces its pods.
    Rollout,
    /// How many pods there are, and who says so.
    Scaling,
    /// How a pod ends.
    Termination,
    /// What kind of object runs the pods.
    Workload,
}

impl Category {
    /// As in RULES.md.
    pub fn as_str(self) -> &'static str {
        match self {
            Category::Config => "config",
            Category::Disruption => "disruption",
            Category::Images => "images",
            Category::Network => "network",
            Category::Probes => "probes",
            Category::Resources => "resources",
            Category::Rollout => "rollout",
            Category::Scaling => "scaling",
            Category::Termination => "termination",
            Category::Workload => "workload",
        }
    }
}

/// What is said of a rule in one place: policies, schema, docs, CLI and metric labels are made from it.
#[derive(Debug)]
pub struct Meta {
    /// Names the thing that is wrong: `mutable-image-tag`.
    pub id: &'static str,
    /// What it is about.
    pub category: Category,
    /// Version of Plimsoll that brought it: `0.1`.
    pub since: &'static str,
    /// Kinds it looks at (names as in [`super::kind::KINDS`]).
    pub kinds: &'static [&'static str],
    /// Action in the shipped baseline.
    pub baseline: Action,
    /// Action in the shipped critical profile.
    pub critical: Action,
    /// Whether the rule can write what is missing.
    pub fixable: bool,
    /// Whether the shipped baseline turns its fix on.
    pub baseline_fix: bool,
    /// The source of the rule's own file, whose leading `//!` lines are its documentation: `include_str!`.
    pub source: &'static str,
}

impl Meta {
    /// Whether the rule looks at objects of this kind.
    pub fn is_for(&self, kind: &Kind) -> bool {
        self.kinds.contains(&kind.judged_as())
    }

    /// The rule's documentation, Markdown: the leading `//!` lines of its file.
    pub fn doc(&self) -> String {
        let lines = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}

/// A parameter that makes no sense, though its type is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidParam {
    /// Members below `params`: `sleepSeconds`, `tiers[0].maxSurge`.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl InvalidParam {
    /// Refuses a number that is not in this range; `unit` says what it counts: `seconds`.
    ///
    /// # Errors
    /// It is not.
    pub fn unless_in<N: PartialOrd + fmt::Display>(
        path: &str,
        number: N,
        allowed: RangeInclusive<N>,
        unit: &str,
    ) -> Result<(), InvalidParam> {
        if allowed.contains(&number) {
            return Ok(());
        }
        let message = format!("{number} is out of range: {} to {} {unit}", allowed.start(), allowed.end());
        Err(InvalidParam { path: path.to_owned(), message })
    }
}

/// One rule. Its functions are pure: same context, same findings, same order.
pub trait Rule: 'static {
    /// Its entry in the catalogue.
    const META: Meta;

    /// Its parameters, `camelCase` in the policy; unknown ones are errors (`deny_unknown_fields`).
    type Params: DeserializeOwned + Serialize + JsonSchema + Default + Send + Sync + 'static;

    /// Refuses parameters that make no sense.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    fn validate(_params: &Self::Params) -> Result<(), InvalidParam> {
        Ok(())
    }

    /// The places that its fix writes: what a marker entry of this rule stands for.
    fn managed(_params: &Self::Params) -> Vec<Managed> {
        Vec::new()
    }

    /// The facts that its check will ask for.
    fn needs(_context: &Context<'_>, _params: &Self::Params) -> Needs {
        Needs::default()
    }

    /// Adds what is wrong with the object.
    fn check(context: &Context<'_>, params: &Self::Params, findings: &mut Vec<Finding>);
}

/// Parameters of some rule, their type erased.
pub type AnyParams = Box<dyn Any + Send + Sync>;

/// A rule with its parameters' type erased: what the registry holds.
pub trait AnyRule: Sync {
    /// Its entry in the catalogue.
    fn meta(&self) -> &'static Meta;
    /// Parameters when the policy says nothing, as JSON.
    fn default_params(&self) -> serde_json::Value;
    /// JSON Schema of the parameters.
    fn schema(&self, generator: &mut schemars::SchemaGenerator) -> schemars::Schema;
    /// Reads parameters; the path in the error is below `params`.
    ///
    /// # Errors
    /// A parameter that is unknown, of a wrong type or out of range.
    fn parse_params(&self, params: serde_json::Value) -> Result<AnyParams, InvalidParam>;
    /// [`Rule::managed`].
    fn managed(&self, params: &AnyParams) -> Vec<Managed>;
    /// [`Rule::needs`].
    fn needs(&self, context: &Context<'_>, params: &AnyParams) -> Needs;
    /// [`Rule::check`], for the kinds of the rule only.
    fn check(&self, context: &Context<'_>, params: &AnyParams, findings: &mut Vec<Finding>);
}

/// The registry's handle of a rule.
pub struct Entry<R>(std::marker::PhantomData<fn() -> R>);

impl<R> Entry<R> {
    /// The handle.
    pub const fn new() -> Self {
        Entry(std::marker::PhantomData)
    }
}

impl<R> Default for Entry<R> {
    fn default() -> Self {
        Self::new()
    }
}

/// `META` of a rule behind a reference that lives for ever.
struct Static<R>(std::marker::PhantomData<R>);
impl<R: Rule> Static<R> {
    const META: &'static Meta = &R::META;
}

impl<R: Rule> AnyRule for Entry<R> {
    fn meta(&self) -> &'static Meta {
        Static::<R>::META
    }

    fn default_params(&self) -> serde_json::Value {
        serde_json::to_value(R::Params::default()).unwrap_or_default()
    }

    fn schema(&self, generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<R::Params>()
    }

    fn parse_params(&self, params: serde_json::Value) -> Result<AnyParams, InvalidParam> {
        let parsed: R::Params = serde_path_to_error::deserialize(params).map_err(|error| InvalidParam {
            path: match error.path().to_string() {
                path if path == "." => String::new(),
                path => path,
            },
            message: error.inner().to_string(),
        })?;
        R::validate(&parsed)?;
        Ok(Box::new(parsed))
    }

    fn managed(&self, params: &AnyParams) -> Vec<Managed> {
        params.downcast_ref::<R::Params>().map(R::managed).unwrap_or_default()
    }

    fn needs(&self, context: &Context<'_>, params: &AnyParams) -> Needs {
        match params.downcast_ref::<R::Params>() {
            Some(params) if R::META.is_for(context.kind) => R::needs(context, params),
            _ => Needs::default(),
        }
    }

    fn check(&self, context: &Context<'_>, params: &AnyParams, findings: &mut Vec<Finding>) {
        if let Some(params) = params.downcast_ref::<R::Params>()
            && R::META.is_for(context.kind)
        {
            R::check(context, params, findings);
        }
    }
}

//! Tests of the policy as a whole, on a catalogue of their own so that the rules' files can change.

mod decides;
mod generated;
mod refused;
mod reload;
mod strange;
mod watched;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compile::{self, Catalogue};
use super::{Error, Policy, Store};
use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::rule::{AnyRule, Category, Entry, InvalidParam, Meta, Rule};

/// A rule that finds nothing: `name, id, since, baseline/critical, (fixable, baseline fix), parameters`.
macro_rules! rule {
    ($name:ident, $id:literal, $since:literal, $baseline:ident / $critical:ident, $fix:expr, $params:ident) => {
        struct $name;
        impl Rule for $name {
            const META: Meta = Meta {
                id: $id,
                category: Category::Termination,
                since: $since,
                kinds: &["Deployment"],
                baseline: Action::$baseline,
                critical: Action::$critical,
                fixable: $fix.0,
                baseline_fix: $fix.1,
                source: concat!("//! # What it does\n//! Finds ", $id, ". And more.\n//!\n//! # Why\n//! Because.\n"),
            };
            type Params = $params;

            fn validate(params: &$params) -> Result<(), InvalidParam> {
                params.check()
            }

            fn check(_: &Context<'_>, _: &$params, _: &mut Vec<Finding>) {}
        }
    };
}

/// No parameters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Nothing {
    fn check(&self) -> Result<(), InvalidParam> {
        Ok(())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Sleep {
    sleep_seconds: u32,
    only_if_ports: bool,
}

impl Default for Sleep {
    fn default() -> Self {
        Sleep { sleep_seconds: 5, only_if_ports: true }
    }
}

impl Sleep {
    fn check(&self) -> Result<(), InvalidParam> {
        match self.sleep_seconds {
            1..=60 => Ok(()),
            other => {
                let message = format!("{other} s is out of range; allowed is 1 to 60");
                Err(InvalidParam { path: "sleepSeconds".to_owned(), message })
            }
        }
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Tiers {
    tiers: Vec<Tier>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Tier {
    max_unavailable: i64,
}

impl Tiers {
    fn check(&self) -> Result<(), InvalidParam> {
        match self.tiers.iter().position(|tier| tier.max_unavailable < 0) {
            None => Ok(()),
            Some(index) => {
                Err(InvalidParam { path: format!("tiers[{index}].maxUnavailable"), message: "below 0".to_owned() })
            }
        }
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Numbers {
    drain_seconds: u32,
    min_seconds: u32,
    budget_seconds: u32,
    max_unavailable_percent: u32,
}

impl Numbers {
    fn check(&self) -> Result<(), InvalidParam> {
        Ok(())
    }
}

rule!(Checksum, "config-checksum", "0.1", Warn / Warn, (true, true), Nothing);
rule!(Rolling, "default-rolling-update", "0.1", Warn / Warn, (true, true), Tiers);
rule!(Late, "late-rule", "9.0", Deny / Deny, (true, true), Nothing);
rule!(PreStop, "missing-pre-stop", "0.1", Warn / Deny, (true, true), Sleep);
rule!(Requests, "missing-requests", "0.1", Warn / Deny, (false, false), Nothing);
rule!(Startup, "missing-startup-probe", "0.1", Warn / Warn, (true, true), Numbers);
rule!(Tag, "mutable-image-tag", "0.1", Deny / Deny, (false, false), Nothing);
rule!(Eviction, "pdb-blocks-eviction", "0.1", Deny / Deny, (false, false), Nothing);
rule!(Outage, "rollout-outage", "0.1", Deny / Deny, (false, false), Numbers);
rule!(Grace, "short-grace-period", "0.1", Deny / Deny, (true, true), Numbers);
rule!(Ready, "short-min-ready", "0.1", Off / Warn, (true, true), Nothing);

static RULES: &[&dyn AnyRule] = &[
    &Entry::<Checksum>::new(),
    &Entry::<Rolling>::new(),
    &Entry::<Late>::new(),
    &Entry::<PreStop>::new(),
    &Entry::<Requests>::new(),
    &Entry::<Startup>::new(),
    &Entry::<Tag>::new(),
    &Entry::<Eviction>::new(),
    &Entry::<Outage>::new(),
    &Entry::<Grace>::new(),
    &Entry::<Ready>::new(),
];

fn parse(text: &str) -> Result<Policy, Error> {
    compile::parse(text, Catalogue(RULES))
}

fn store() -> Store {
    Store::with_catalogue(Catalogue(RULES))
}

/// A policy with this text below `spec:`, which is line 4; the text is indented as it will stand.
fn with_spec(spec: &str) -> String {
    format!("apiVersion: plimsoll.dev/v1alpha1\nkind: Policy\nmetadata: {{name: test}}\nspec:\n{spec}\n")
}

/// A policy that has to be valid.
fn policy(spec: &str) -> Policy {
    match parse(&with_spec(spec)) {
        Ok(policy) => policy,
        Err(error) => panic!("{error}"),
    }
}

/// What is wrong with it, a line each.
fn problems(text: &str) -> Vec<String> {
    match parse(text) {
        Ok(_) => Vec::new(),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

/// Action and fix of a rule.
fn said(policy: &Policy, rule: &str) -> (Action, bool) {
    let setting = policy.setting(rule).unwrap_or_else(|| panic!("no rule {rule}"));
    (setting.action, setting.fix)
}

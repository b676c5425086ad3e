//! The policy: which rules run, what they do, whether their fixes are applied.

mod compile;
mod decode;
pub mod docs;
pub mod error;
pub mod exception;
pub mod model;
mod node;
mod path;
mod profile;
mod rule_set;
pub mod source;
pub mod store;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use chrono::NaiveDate;

pub use error::{Error, Place, Problem};
pub use exception::Exception;
pub use profile::Profiles;
pub use store::Store;

use compile::Catalogue;

use crate::engine::finding::Action;
use crate::engine::ownership::{Managed, Place as ManagedPlace};
use crate::engine::request::User;
use crate::engine::rule::{AnyParams, AnyRule, InvalidParam, Rule};
use crate::rules;

/// Whether a deny denies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Enforcement {
    /// Denies deny.
    #[default]
    Enforce,
    /// Every deny becomes a warning.
    Warn,
}

/// Where fixes are applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FixAt {
    /// To the workload's template: visible at apply.
    #[default]
    Template,
    /// To Pods when they are created: the workload stays as its author wrote it.
    Pod,
}

/// What the policy says of one rule.
pub struct Setting {
    /// The rule.
    pub rule: &'static dyn AnyRule,
    /// What its findings do.
    pub action: Action,
    /// Whether its fix is applied.
    pub fix: bool,
    /// Its parameters.
    pub params: AnyParams,
    /// The places that its fix writes under these parameters; none for a rule without a fix.
    pub managed: Vec<Managed>,
}

impl Setting {
    fn new(rule: &'static dyn AnyRule, action: Action, fix: bool, params: AnyParams) -> Setting {
        let managed = rule.managed(&params);
        Setting { rule, action, fix, params, managed }
    }

    /// Whether its fix is applied.
    pub fn fixes(&self) -> bool {
        self.fix && self.action != Action::Off
    }

    /// Whether its fix can be written to a Pod in its workload's stead: it writes nothing but a pod's spec.
    pub fn fixes_pods(&self) -> bool {
        let in_pod = |managed: &Managed| matches!(managed.place, ManagedPlace::Container(_) | ManagedPlace::PodSpec(_));
        !self.managed.is_empty() && self.managed.iter().all(in_pod)
    }
}

/// A compiled policy. Immutable: a reload makes a new one.
pub struct Policy {
    /// `metadata.name`.
    pub name: String,
    /// First 12 hex digits of the SHA-256 over all that the policy decides, defaults filled in; stable across restarts
    /// and replicas, the same under every profile.
    pub hash: String,
    /// Whether denies deny.
    pub enforcement: Enforcement,
    /// Where fixes are applied.
    pub fix_at: FixAt,
    /// Whether each fix applied is told in a warning.
    pub announce_fixes: bool,
    /// Namespaces in which nothing is judged.
    pub exempt_namespaces: Vec<String>,
    /// Users that nothing is judged for: whole names; a final `*` after a `:` stands for one whole segment.
    pub exempt_users: Vec<String>,
    /// Groups whose denies become warnings.
    pub break_glass_groups: Vec<String>,
    /// One setting per rule of the catalogue, sorted by its id.
    pub settings: Vec<Setting>,
    /// Findings that are known and borne, expired ones too: ask [`Policy::exception`].
    pub exceptions: Arc<[Exception]>,
    /// Stricter variants: ask [`Policy::resolve`].
    pub profiles: Profiles,
    /// What its author should know, though it is no error; for the log and the CLI.
    pub notices: Vec<String>,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("name", &self.name).field("hash", &self.hash).finish_non_exhaustive()
    }
}

impl Policy {
    /// Reads, checks and compiles a policy file: YAML, or JSON.
    ///
    /// # Errors
    /// All that is wrong with it, each with its path, line and column.
    pub fn parse(text: &str) -> Result<Policy, Error> {
        compile::parse(text, Catalogue(rules::REGISTRY))
    }

    /// The policy that says nothing but `extends: baseline`: what runs where nobody gives one.
    ///
    /// # Errors
    /// A rule of the catalogue that refuses its own default parameters; never otherwise.
    pub fn baseline() -> Result<Policy, Error> {
        Policy::parse("{apiVersion: plimsoll.dev/v1alpha1, kind: Policy, metadata: {name: baseline}, spec: {}}")
    }

    /// The policy for an object whose namespace and workload carry these values of the label `plimsoll.dev/profile`.
    /// Both tighten; a name that the policy does not know changes nothing.
    pub fn resolve(&self, namespace_profile: Option<&str>, workload_profile: Option<&str>) -> &Policy {
        self.profiles.get(namespace_profile, workload_profile).unwrap_or(self)
    }

    /// The exception that bears this rule's findings on this object today (UTC), the first in the policy's order.
    pub fn exception(
        &self,
        rule: &str,
        namespace: &str,
        kind: &str,
        name: &str,
        today: NaiveDate,
    ) -> Option<&Exception> {
        self.covering(rule, namespace, kind, name).find(|exception| !exception.is_expired(today))
    }

    /// The exception that would bear this rule's findings on this object, had it not expired: to be shown, not honoured.
    pub fn expired_exception(
        &self,
        rule: &str,
        namespace: &str,
        kind: &str,
        name: &str,
        today: NaiveDate,
    ) -> Option<&Exception> {
        self.covering(rule, namespace, kind, name).find(|exception| exception.is_expired(today))
    }

    fn covering(&self, rule: &str, namespace: &str, kind: &str, name: &str) -> impl Iterator<Item = &Exception> {
        self.exceptions.iter().filter(move |exception| exception.covers(rule, namespace, kind, name))
    }

    /// The exceptions whose last day has passed (UTC), in the policy's order.
    pub fn expired(&self, today: NaiveDate) -> impl Iterator<Item = &Exception> {
        self.exceptions.iter().filter(move |exception| exception.is_expired(today))
    }

    /// This policy with other settings and without profiles of its own.
    fn with_settings(&self, settings: Vec<Setting>) -> Policy {
        Policy {
            name: self.name.clone(),
            hash: self.hash.clone(),
            enforcement: self.enforcement,
            fix_at: self.fix_at,
            announce_fixes: self.announce_fixes,
            exempt_namespaces: self.exempt_namespaces.clone(),
            exempt_users: self.exempt_users.clone(),
            break_glass_groups: self.break_glass_groups.clone(),
            settings,
            exceptions: Arc::clone(&self.exceptions),
            profiles: Profiles::default(),
            notices: Vec::new(),
        }
    }

    /// The parameters of the rule `R`; its defaults where the catalogue lacks it.
    pub fn params<R: Rule>(&self) -> Cow<'_, R::Params>
    where
        R::Params: Clone,
    {
        let params = self.setting(R::META.id).and_then(|setting| setting.params.downcast_ref::<R::Params>());
        params.map_or_else(|| Cow::Owned(R::Params::default()), Cow::Borrowed)
    }

    /// What is said of this rule; `None` for an id that is not in the catalogue.
    pub fn setting(&self, rule: &str) -> Option<&Setting> {
        let index = self.settings.binary_search_by_key(&rule, |setting| setting.rule.meta().id).ok()?;
        self.settings.get(index)
    }

    /// Whether this rule's fix is applied.
    pub fn fixes(&self, rule: &str) -> bool {
        self.setting(rule).is_some_and(Setting::fixes)
    }

    /// Whether nothing is judged in this namespace or for this user.
    pub fn exempts(&self, namespace: &str, user: &User) -> bool {
        self.exempt_namespaces.iter().any(|exempt| exempt == namespace)
            || self.exempt_users.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) if prefix.ends_with(':') => {
                    user.name.strip_prefix(prefix).is_some_and(|last| !last.is_empty() && !last.contains(':'))
                }
                _ => *pattern == user.name,
            })
    }

    /// Whether this user's denies become warnings.
    pub fn breaks_glass(&self, user: &User) -> bool {
        user.groups.iter().any(|group| self.break_glass_groups.contains(group))
    }

    /// A policy in which these rules run and every other is off: what tests start from.
    ///
    /// # Errors
    /// The first parameter that is refused.
    pub fn of(rules: &[(&str, Action, bool, serde_json::Value)]) -> Result<Policy, InvalidParam> {
        let mut settings = Vec::new();
        for &rule in rules::REGISTRY {
            let said = rules.iter().find(|(id, ..)| *id == rule.meta().id);
            let (action, fix, params) = match said {
                Some((_, action, fix, params)) => (*action, *fix, params.clone()),
                None => (Action::Off, false, serde_json::json!({})),
            };
            settings.push(Setting::new(rule, action, fix, rule.parse_params(params)?));
        }
        Ok(Policy {
            name: "test".to_owned(),
            hash: "000000000000".to_owned(),
            enforcement: Enforcement::Enforce,
            fix_at: FixAt::Template,
            announce_fixes: true,
            exempt_namespaces: ["kube-system", "kube-public", "kube-node-lease"].map(str::to_owned).to_vec(),
            exempt_users: Vec::new(),
            break_glass_groups: vec!["platform-breakglass".to_owned()],
            settings,
            exceptions: Arc::default(),
            profiles: Profiles::default(),
            notices: Vec::new(),
        })
    }
}

//! The policy: which rules run, what they do, whether their fixes are applied.

use std::any::Any;

use crate::engine::finding::Action;
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
}

/// A compiled policy. Immutable: a reload makes a new one.
pub struct Policy {
    /// `metadata.name`.
    pub name: String,
    /// First 12 hex digits of the SHA-256 over the policy's text; stable across restarts and replicas.
    pub hash: String,
    /// Whether denies deny.
    pub enforcement: Enforcement,
    /// Whether each fix applied is told in a warning.
    pub announce_fixes: bool,
    /// Namespaces in which nothing is judged.
    pub exempt_namespaces: Vec<String>,
    /// Users that nothing is judged for: whole names, or a prefix up to a final `:*`.
    pub exempt_users: Vec<String>,
    /// Groups whose denies become warnings.
    pub break_glass_groups: Vec<String>,
    /// One setting per rule of the catalogue, in its order.
    pub settings: Vec<Setting>,
}

impl Policy {
    /// What is said of the rule `R`, with its parameters.
    pub fn params<R: Rule>(&self) -> R::Params
    where
        R::Params: Clone,
    {
        let setting = self.setting(R::META.id);
        let params = setting.and_then(|setting| (&*setting.params as &dyn Any).downcast_ref::<R::Params>());
        params.cloned().unwrap_or_default()
    }

    /// What is said of this rule; `None` for an id that is not in the catalogue.
    pub fn setting(&self, rule: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.rule.meta().id == rule)
    }

    /// Whether this rule's fix is applied.
    pub fn fixes(&self, rule: &str) -> bool {
        self.setting(rule).is_some_and(|setting| setting.fix && setting.action != Action::Off)
    }

    /// Whether nothing is judged in this namespace or for this user.
    pub fn exempts(&self, namespace: &str, user: &User) -> bool {
        self.exempt_namespaces.iter().any(|exempt| exempt == namespace)
            || self.exempt_users.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) if prefix.ends_with(':') => user.name.starts_with(prefix),
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
            settings.push(Setting { rule, action, fix, params: rule.parse_params(params)? });
        }
        Ok(Policy {
            name: "test".to_owned(),
            hash: "000000000000".to_owned(),
            enforcement: Enforcement::Enforce,
            announce_fixes: true,
            exempt_namespaces: ["kube-system", "kube-public", "kube-node-lease"].map(str::to_owned).to_vec(),
            exempt_users: Vec::new(),
            break_glass_groups: vec!["platform-breakglass".to_owned()],
            settings,
        })
    }
}

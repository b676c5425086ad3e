//! The policy file as people write it. Nothing here is checked beyond names and types; `compile` does the rest.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Enforcement, FixAt};
use crate::engine::finding::Action;

/// `apiVersion` of a policy.
pub const API_VERSION: &str = "plimsoll.dev/v1alpha1";
/// `kind` of a policy.
pub const KIND: &str = "Policy";

/// A policy: which rules run, what their findings do, and whether their fixes are applied.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "Plimsoll policy")]
pub struct Document {
    /// Always `plimsoll.dev/v1alpha1`.
    #[schemars(extend("const" = API_VERSION))]
    pub api_version: String,
    /// Always `Policy`.
    #[schemars(extend("const" = KIND))]
    pub kind: String,
    /// Its name.
    pub metadata: Metadata,
    /// What it says.
    pub spec: Spec,
}

/// The name that logs and metrics show.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// Any name, for people.
    pub name: String,
}

/// What a policy says.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// Where rules start that are not named here.
    #[serde(default)]
    pub extends: Extends,
    /// The rule set that the policy was written for, `MAJOR.MINOR`: rules that came later warn at most. Absent: the
    /// running one's.
    #[serde(default)]
    #[schemars(extend("pattern" = r"^[0-9]+\.[0-9]+$"))]
    pub rule_set: Option<String>,
    /// Whether a deny denies.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// Where fixes are applied.
    #[serde(default)]
    pub fix_at: FixAt,
    /// Whether each fix applied is told to the author in a warning.
    #[serde(default = "yes")]
    pub announce_fixes: bool,
    /// Where and for whom nothing is judged.
    #[serde(default)]
    pub exempt: Exempt,
    /// Who may get past a deny in an emergency.
    #[serde(default)]
    pub break_glass: BreakGlass,
    /// What differs from where the rules start, by rule id.
    #[serde(default)]
    pub rules: BTreeMap<String, RuleSpec>,
    /// Stricter variants, chosen by the label `plimsoll.dev/profile` of a namespace or a workload.
    #[serde(default)]
    pub profiles: BTreeMap<String, Profile>,
    /// Findings that are known and borne for a while.
    #[serde(default)]
    pub exceptions: Vec<ExceptionSpec>,
}

/// Where rules start that the policy does not name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Extends {
    /// As shipped for every cluster.
    #[default]
    Baseline,
    /// As shipped for workloads that must not fail: no rule laxer than in the baseline.
    Critical,
    /// Off.
    None,
}

/// Where and for whom nothing is judged.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exempt {
    /// Namespaces, whole names. Absent: `kube-system`, `kube-public`, `kube-node-lease`.
    #[serde(default = "system_namespaces")]
    pub namespaces: Vec<String>,
    /// Users, whole names; a final `*` after a `:` stands for one whole segment:
    /// `system:serviceaccount:kube-system:*`.
    #[serde(default)]
    pub users: Vec<String>,
}

impl Default for Exempt {
    fn default() -> Self {
        Exempt { namespaces: system_namespaces(), users: Vec::new() }
    }
}

/// Who may get past a deny in an emergency; every use is logged.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakGlass {
    /// Groups, whole names, as the API server authenticated them.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// What the policy says of one rule; a bare action is short for `{action: …}`.
#[derive(Debug, Clone, Default, JsonSchema)]
#[schemars(with = "RuleForm")]
pub struct RuleSpec {
    /// What its findings do.
    pub action: Option<Action>,
    /// Whether its fix is applied.
    pub fix: Option<bool>,
    /// Its parameters; absent ones keep their defaults.
    pub params: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RuleMembers {
    /// What its findings do.
    #[serde(default)]
    action: Option<Action>,
    /// Whether its fix is applied.
    #[serde(default)]
    fix: Option<bool>,
    /// Its parameters; absent ones keep their defaults.
    #[serde(default)]
    params: serde_json::Map<String, serde_json::Value>,
}

/// Only for the schema: serde's own untagged enums cannot say which key is wrong.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "read by the schema generator only")]
enum RuleForm {
    Action(Action),
    Members(RuleMembers),
}

impl<'de> Deserialize<'de> for RuleSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = RuleSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an action, or a map of action, fix and params")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RuleSpec, E> {
                let action = Action::deserialize(serde::de::value::StrDeserializer::new(text))?;
                Ok(RuleSpec { action: Some(action), ..RuleSpec::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RuleSpec, A::Error> {
                let RuleMembers { action, fix, params } = RuleMembers::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RuleSpec { action, fix, params })
            }
        }
        deserializer.deserialize_any(Form)
    }
}

/// A stricter variant of the policy. A workload's author can choose one, so it can only tighten: raise actions, turn
/// fixes on.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profile {
    /// `critical`: no rule laxer than shipped for workloads that must not fail. Absent: only what is named.
    #[serde(default)]
    pub extends: Option<ProfileExtends>,
    /// What it tightens, by rule id.
    #[serde(default)]
    pub rules: BTreeMap<String, ProfileRule>,
}

/// Where a profile starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProfileExtends {
    /// No rule laxer than shipped for workloads that must not fail.
    Critical,
}

/// What a profile says of one rule.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileRule {
    /// What its findings do: no less than without the profile.
    #[serde(default)]
    pub action: Option<Action>,
    /// `true` turns its fix on.
    #[serde(default)]
    pub fix: Option<bool>,
}

/// Findings that are known and borne until a day.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExceptionSpec {
    /// Its name, unique in the policy.
    pub name: String,
    /// Ids of the rules whose findings are borne.
    #[schemars(length(min = 1))]
    pub rules: Vec<String>,
    /// Which objects.
    #[serde(rename = "match")]
    pub matches: Match,
    /// Who is asked about it.
    pub owner: String,
    /// Why it is borne.
    pub reason: String,
    /// The last day on which it holds, UTC: `2027-03-31`.
    #[schemars(extend("format" = "date"))]
    pub expires: String,
}

/// Which objects an exception is for: all that is said must hold, at least one thing must be said.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Match {
    /// Namespaces: whole names, or a beginning and `*`.
    #[serde(default)]
    pub namespaces: Option<Vec<String>>,
    /// Kinds, whole names.
    #[serde(default)]
    pub kinds: Option<Vec<String>>,
    /// Names: whole names, or a beginning and `*`.
    #[serde(default)]
    pub names: Option<Vec<String>>,
}

fn yes() -> bool {
    true
}

fn system_namespaces() -> Vec<String> {
    ["kube-system", "kube-public", "kube-node-lease"].map(str::to_owned).to_vec()
}

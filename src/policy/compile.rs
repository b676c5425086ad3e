//! From the model to the policy that decides: checks what types cannot say, and works out every rule's setting.

use sha2::{Digest, Sha256};

use super::decode::{Complaint, Report, suggest};
use super::error::{Error, MAX_BYTES};
use super::exception;
use super::model::{API_VERSION, Document, Extends, KIND, RuleSpec, Spec};
use super::node::{Content, Node};
use super::path::{Path, shorten};
use super::profile::{self, Profiles};
use super::rule_set::RuleSet;
use super::{Policy, Setting};
use crate::engine::finding::Action;
use crate::engine::rule::{AnyRule, Meta};

/// The rules that a policy can name: [`crate::rules::REGISTRY`], or a test's own.
#[derive(Clone, Copy)]
pub(super) struct Catalogue(pub(super) &'static [&'static dyn AnyRule]);

impl Catalogue {
    pub(super) fn get(self, id: &str) -> Option<&'static dyn AnyRule> {
        self.0.iter().copied().find(|rule| rule.meta().id == id)
    }

    /// Complains about an id that no rule has.
    pub(super) fn refuse_unknown(self, report: &mut Report<'_>, path: &Path, id: &str) {
        if report.is_full() {
            return;
        }
        let ids: Vec<&str> = self.0.iter().map(|rule| rule.meta().id).collect();
        report.refuse_key(path, format!("no rule is called `{}`", shorten(id)), suggest(id, &ids, "the rules are"));
    }
}

/// What a rule will do, its parameters still JSON so that profiles can make settings of it again.
pub(super) struct Plan {
    pub(super) rule: &'static dyn AnyRule,
    pub(super) action: Action,
    pub(super) fix: bool,
    params: serde_json::Value,
}

impl Plan {
    pub(super) fn id(&self) -> &'static str {
        self.rule.meta().id
    }

    /// The setting, with this action and fix; `None` where the parameters are refused, which was told before.
    pub(super) fn setting(&self, action: Action, fix: bool) -> Option<Setting> {
        let params = self.rule.parse_params(self.params.clone()).ok()?;
        Some(Setting::new(self.rule, action, fix && action != Action::Off, params))
    }
}

/// Reads, checks and compiles a policy.
pub(super) fn parse(text: &str, catalogue: Catalogue) -> Result<Policy, Error> {
    if text.len() > MAX_BYTES {
        return Err(Error::TooLarge(text.len()));
    }
    let tree = Node::parse(text).map_err(|problem| Error::Invalid(vec![problem]))?;
    let mut report = Report::new(&tree);
    let policy = match check_root(&mut report) {
        true => {
            report.check_members();
            report.decode::<Document>().and_then(|document| compile(&mut report, &document, catalogue))
        }
        false => None,
    };
    match (policy, report.finish()) {
        (Some(policy), problems) if problems.is_empty() => Ok(policy),
        (_, problems) => Err(Error::Invalid(problems)),
    }
}

/// Whether this is a policy at all, so that another kind of object gets one sentence and not fifty.
fn check_root(report: &mut Report<'_>) -> bool {
    let tree = report.tree;
    let root = Path::default();
    match &tree.content {
        Content::Map(_) => {}
        Content::Null => {
            report.refuse(&root, "the text is empty", format!("write a policy: apiVersion {API_VERSION}, kind {KIND}"));
            return false;
        }
        _ => {
            report.refuse(
                &root,
                "the text is no map",
                format!("write a policy: apiVersion {API_VERSION}, kind {KIND}"),
            );
            return false;
        }
    }
    let mut sound = true;
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        let said = tree.member(key).map(|member| &member.node.content);
        let message = match said {
            Some(Content::String(text)) if text == wanted => continue,
            Some(Content::String(text)) => format!("expected {wanted}, found {:?}", shorten(text)),
            Some(_) => format!("expected {wanted}, found something else than a string"),
            None => "it is missing".to_owned(),
        };
        let mend = match said {
            Some(Content::String(text)) if text == "ConfigMap" => {
                "this is the ConfigMap around a policy: the policy is what stands under its key policy.yaml".to_owned()
            }
            _ => format!("write `{key}: {wanted}`"),
        };
        report.refuse(&root.key(key), message, mend);
        sound = false;
    }
    sound
}

fn compile(report: &mut Report<'_>, document: &Document, catalogue: Catalogue) -> Option<Policy> {
    let spec = &document.spec;
    if document.metadata.name.trim().is_empty() {
        report.refuse(&Path::of(&["metadata", "name"]), "it is empty", "give the policy a name");
    }
    check_scope(report, spec);
    let (rule_set, notices) = rule_set(report, spec);
    let plans = plans(report, spec, rule_set, catalogue);
    let tightened = profile::compile(report, spec, &plans, rule_set, catalogue);
    let exceptions = exception::compile(report, &spec.exceptions, catalogue);
    let mut policy = Policy {
        name: document.metadata.name.clone(),
        hash: String::new(),
        enforcement: spec.enforcement,
        fix_at: spec.fix_at,
        announce_fixes: spec.announce_fixes,
        exempt_namespaces: spec.exempt.namespaces.clone(),
        exempt_users: spec.exempt.users.clone(),
        break_glass_groups: spec.break_glass.groups.clone(),
        settings: plans.iter().filter_map(|plan| plan.setting(plan.action, plan.fix)).collect(),
        exceptions: exceptions.into(),
        profiles: Profiles::default(),
        notices,
    };
    policy.hash = hash(&policy, spec, &plans, &tightened);
    policy.profiles = Profiles::new(&policy, &plans, &tightened);
    Some(policy)
}

/// The names and patterns of `exempt` and `breakGlass`.
fn check_scope(report: &mut Report<'_>, spec: &Spec) {
    let namespaces = Path::of(&["spec", "exempt", "namespaces"]);
    for (index, name) in spec.exempt.namespaces.iter().enumerate() {
        if name.is_empty() || name.contains('*') {
            let message = format!("{:?} is no namespace's name", shorten(name));
            report.refuse(&namespaces.index(index), message, "write whole names: `*` has no meaning here");
        }
    }
    let users = Path::of(&["spec", "exempt", "users"]);
    for (index, user) in spec.exempt.users.iter().enumerate() {
        let path = users.index(index);
        let shown = shorten(user);
        match user.strip_suffix('*') {
            _ if user.is_empty() => report.refuse(&path, "it is empty", "write a user's whole name"),
            // A segment begun and cut short would exempt whoever thinks of a name that begins alike.
            Some(prefix) if prefix.contains('*') || !prefix.ends_with(':') => report.refuse(
                &path,
                format!("in {shown:?} the `*` does not stand for a whole segment"),
                "a `*` goes only after the last `:`, as in system:serviceaccount:kube-system:*",
            ),
            Some("system:serviceaccount:") => report.refuse(
                &path,
                format!("{shown:?} matches nobody: the `*` stands for one segment"),
                "name the namespace, as in system:serviceaccount:kube-system:*",
            ),
            None if user.contains('*') => report.refuse(
                &path,
                format!("in {shown:?} the `*` is not at the end"),
                "a `*` goes only after the last `:`, as in system:serviceaccount:kube-system:*",
            ),
            _ => {}
        }
    }
    let groups = Path::of(&["spec", "breakGlass", "groups"]);
    for (index, group) in spec.break_glass.groups.iter().enumerate() {
        let path = groups.index(index);
        if group.is_empty() || group.contains('*') {
            let message = format!("{:?} is no group's name", shorten(group));
            report.refuse(&path, message, "write whole names: `*` has no meaning here");
        } else if ["system:authenticated", "system:unauthenticated"].contains(&group.as_str()) {
            let mend = "name a group that people join in an emergency; to deny nothing set `enforcement: warn`";
            report.refuse(&path, format!("everybody is in {group}"), mend);
        }
    }
}

/// The rule set that the policy was written for, and what is to be told of it.
fn rule_set(report: &mut Report<'_>, spec: &Spec) -> (RuleSet, Vec<String>) {
    let Some(text) = &spec.rule_set else { return (RuleSet::RUNNING, Vec::new()) };
    let Some(said) = RuleSet::parse(text) else {
        let message = format!("{:?} is no rule set", shorten(text));
        report.refuse(&Path::of(&["spec", "ruleSet"]), message, format!("write \"{}\"", RuleSet::RUNNING));
        return (RuleSet::RUNNING, Vec::new());
    };
    // No error: a Plimsoll rolled back in an emergency has to start with the policy that is there.
    let ahead = said > RuleSet::RUNNING;
    let notice = ahead.then(|| {
        format!("the policy was written for rule set {said}, this is {}: rules may be missing", RuleSet::RUNNING)
    });
    (said, notice.into_iter().collect())
}

/// Every rule's action, fix and parameters.
fn plans(report: &mut Report<'_>, spec: &Spec, rule_set: RuleSet, catalogue: Catalogue) -> Vec<Plan> {
    let root = Path::of(&["spec", "rules"]);
    for id in spec.rules.keys().filter(|id| catalogue.get(id).is_none()) {
        catalogue.refuse_unknown(report, &root.key(id), id);
    }
    let absent = RuleSpec::default();
    let plan = |rule: &&'static dyn AnyRule| {
        let meta = rule.meta();
        let named = spec.rules.get(meta.id);
        let said = named.unwrap_or(&absent);
        let newer = RuleSet::is_newer(meta.since, rule_set);
        let shipped = match spec.extends {
            Extends::Baseline => meta.baseline,
            Extends::Critical => meta.baseline.max(meta.critical),
            Extends::None => Action::Off,
        };
        let shipped = if newer { shipped.min(Action::Warn) } else { shipped };
        let action = said.action.unwrap_or(shipped);
        let fix = said.fix.unwrap_or(meta.baseline_fix && spec.extends != Extends::None && !newer);
        if named.is_some() {
            check_rule(report, &root.key(meta.id), *rule, said, action, spec.extends, newer);
        }
        Plan { rule: *rule, action, fix: fix && action != Action::Off, params: said.params.clone().into() }
    };
    catalogue.0.iter().map(plan).collect()
}

fn check_rule(
    report: &mut Report<'_>,
    path: &Path,
    rule: &'static dyn AnyRule,
    said: &RuleSpec,
    action: Action,
    extends: Extends,
    newer: bool,
) {
    let meta = rule.meta();
    let action_at = path.key("action");
    // An action that was refused already is there, though not in `said`.
    let has_action = report.tree.find(&action_at).node.is_some();
    if extends == Extends::None && said.action.is_none() && !has_action {
        let mend = "write `action: deny`, `warn`, `audit` or `off`";
        report.refuse_key(path, "there is no action, and `extends: none` gives it none", mend);
    } else if said.fix == Some(true) {
        check_fix(report, path, meta, action);
    }
    if newer && said.action == Some(Action::Deny) {
        refuse_newer(report, if has_action { &action_at } else { path }, meta);
    }
    if let Err(invalid) = rule.parse_params(said.params.clone().into()) {
        let complaint = Complaint::read(&invalid.message);
        let params = path.key("params").join(&invalid.path);
        let (message, mend) = complaint.told();
        match complaint {
            Complaint::UnknownKey { .. } => report.refuse_key(&params, message, mend),
            _ => report.refuse(&params, message, mend),
        }
    }
}

/// Complains where `fix: true` has no effect.
pub(super) fn check_fix(report: &mut Report<'_>, rule: &Path, meta: &Meta, action: Action) {
    let refused_action = report.tree.find(&rule.key("action")).node.is_some_and(Node::is_discarded);
    if !meta.fixable {
        report.refuse(&rule.key("fix"), format!("{} has no fix", meta.id), "leave `fix` out");
    } else if action == Action::Off && !refused_action {
        let mend = "give it another action or leave `fix` out";
        report.refuse(&rule.key("fix"), "a rule whose action is off fixes nothing", mend);
    }
}

/// Complains about a deny of a rule that the policy's rule set does not have (TRAPS I24).
pub(super) fn refuse_newer(report: &mut Report<'_>, path: &Path, meta: &Meta) {
    let message =
        format!("the rule came with rule set {}, after the policy's `ruleSet`: it could not deny", meta.since);
    report.refuse(path, message, format!("set `ruleSet: \"{}\"`, or `warn` here", meta.since));
}

/// First 12 hex digits of the SHA-256 over all that decides, defaults filled in: comments, order and spelling of the
/// text do not count, a default that changed between versions does.
fn hash(policy: &Policy, spec: &Spec, plans: &[Plan], profiles: &[profile::Tightened]) -> String {
    let rules = plans.iter().map(|plan| {
        let mut params = plan.rule.default_params();
        if let (Some(all), Some(said)) = (params.as_object_mut(), plan.params.as_object()) {
            all.extend(said.clone());
        }
        (plan.id().to_owned(), serde_json::json!([plan.action, plan.fix, params]))
    });
    let rules: serde_json::Map<_, _> = rules.collect();
    let profiles = profiles.iter().map(|profile| serde_json::json!([profile.name, profile.settings]));
    let canonical = serde_json::json!({
        "name": policy.name,
        "enforcement": policy.enforcement,
        "fixAt": policy.fix_at,
        "announceFixes": policy.announce_fixes,
        "exempt": [policy.exempt_namespaces, policy.exempt_users],
        "breakGlass": policy.break_glass_groups,
        "rules": rules,
        "profiles": profiles.collect::<Vec<_>>(),
        "exceptions": spec.exceptions,
    });
    let digest = Sha256::digest(canonical.to_string().as_bytes());
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

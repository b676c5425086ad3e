//! What is generated from the catalogue of rules: `policies/baseline.yaml`, `policies/critical.yaml`,
//! `policies/RULES.md` and `policies/policy.schema.json`.

use std::fmt::Write;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::model::{API_VERSION, Document, KIND};
use super::rule_set::RuleSet;
use crate::engine::finding::Action;
use crate::engine::rule::{AnyRule, Meta};

/// How the generated files come to be, for whoever opens one.
const GENERATED: &str =
    "Generated from the rules' own files; `UPDATE_DOCS=1 cargo test --lib policies_are_current` writes it.";

/// Rules, as [`crate::rules::REGISTRY`] has them.
type Rules = &'static [&'static dyn AnyRule];

/// One generated file.
pub struct Generated {
    /// Its name below `policies/`.
    pub name: &'static str,
    /// Its content.
    pub text: String,
}

/// Every generated file.
pub fn generate(rules: Rules) -> Vec<Generated> {
    vec![
        Generated { name: "baseline.yaml", text: policy_yaml(rules, "baseline", |meta| meta.baseline) },
        Generated {
            name: "critical.yaml",
            text: policy_yaml(rules, "critical", |meta| meta.baseline.max(meta.critical)),
        },
        Generated { name: "RULES.md", text: rules_md(rules) },
        Generated { name: "policy.schema.json", text: schema_json(rules) },
    ]
}

/// The shipped policy of this name with everything said that it implies.
fn policy_yaml(rules: Rules, name: &str, action: impl Fn(&Meta) -> Action) -> String {
    let mut yaml = format!(
        "# yaml-language-server: $schema=policy.schema.json\n# {GENERATED}\napiVersion: {API_VERSION}\nkind: {KIND}\n\
         metadata: {{name: {name}}}\nspec:\n  extends: {name}\n  ruleSet: \"{}\"\n  rules:",
        RuleSet::RUNNING
    );
    if rules.is_empty() {
        yaml.push_str(" {}");
    }
    yaml.push('\n');
    for rule in rules {
        let meta = rule.meta();
        let action = action(meta);
        let fix = if meta.baseline_fix && action != Action::Off { ", fix: true" } else { "" };
        let params = match rule.default_params() {
            Value::Object(params) if params.is_empty() => String::new(),
            params => format!(", params: {}", flow(&params)),
        };
        // Infallible, as every write to a String.
        let _ =
            writeln!(yaml, "    # {}\n    {}: {{action: {}{fix}{params}}}", summary(meta), meta.id, action.as_str());
    }
    yaml
}

/// The catalogue for people.
fn rules_md(rules: Rules) -> String {
    let mut text = format!(
        "# Rules\n\n<!-- {GENERATED} -->\n\nActions in the shipped policies [baseline.yaml](baseline.yaml) and \
         [critical.yaml](critical.yaml); *fix* says that the baseline turns the rule's fix on, *(fix)* that a policy can.\n\n\
         | Rule | Finds | Baseline | Critical | |\n|---|---|---|---|---|\n"
    );
    for meta in rules.iter().map(|rule| rule.meta()) {
        let fix = match (meta.fixable, meta.baseline_fix) {
            (false, _) => "",
            (true, false) => "(fix)",
            (true, true) => "fix",
        };
        let (baseline, critical) = (meta.baseline.as_str(), meta.baseline.max(meta.critical).as_str());
        let finds = summary(meta).replace('|', "\\|");
        let _ = writeln!(text, "| [{0}](#{0}) | {finds} | {baseline} | {critical} | {fix} |", meta.id);
    }
    for rule in rules {
        let meta = rule.meta();
        let _ = writeln!(
            text,
            "\n## {}\n\nCategory {}, since {}. Looks at {}.\n\n{}",
            meta.id,
            meta.category.as_str(),
            meta.since,
            meta.kinds.join(", "),
            demoted(&meta.doc())
        );
        match rule.default_params() {
            Value::Object(params) if params.is_empty() => {}
            params => {
                let _ = writeln!(text, "\nDefaults: `params: {}`", flow(&params));
            }
        }
    }
    text
}

/// JSON Schema of the policy file, for editors: draft 7, which all of them know.
fn schema_json(rules: Rules) -> String {
    let mut generator = SchemaSettings::draft07().into_generator();
    let mut named = serde_json::Map::new();
    let mut tightened = serde_json::Map::new();
    for rule in rules {
        let meta = rule.meta();
        let mut members = serde_json::Map::new();
        members.insert("action".to_owned(), json!({"$ref": "#/definitions/Action"}));
        if meta.fixable {
            members.insert("fix".to_owned(), json!({"type": "boolean", "description": "Whether its fix is applied."}));
        }
        members.insert("params".to_owned(), rule.schema(&mut generator).to_value());
        let map = json!({"type": "object", "properties": members, "additionalProperties": false});
        let forms = json!([{"$ref": "#/definitions/Action"}, map]);
        named.insert(meta.id.to_owned(), json!({"description": summary(meta), "anyOf": forms}));
        tightened.insert(meta.id.to_owned(), json!({"$ref": "#/definitions/ProfileRule"}));
    }
    let mut schema = generator.into_root_schema_for::<Document>().to_value();
    // What the types cannot say: which ids there are, and which parameters each has.
    for (place, properties) in
        [("/definitions/Spec/properties/rules", named), ("/definitions/Profile/properties/rules", tightened)]
    {
        if let Some(rules) = schema.pointer_mut(place).and_then(Value::as_object_mut) {
            rules.insert("properties".to_owned(), properties.into());
            rules.insert("additionalProperties".to_owned(), false.into());
        }
    }
    if let Some(items) = schema.pointer_mut("/definitions/ExceptionSpec/properties/rules/items")
        && !rules.is_empty()
    {
        let ids: Vec<&str> = rules.iter().map(|rule| rule.meta().id).collect();
        *items = json!({"enum": ids});
    }
    if let Some(definitions) = schema.pointer_mut("/definitions").and_then(Value::as_object_mut) {
        definitions.remove("RuleSpec");
        definitions.remove("RuleForm");
        definitions.remove("RuleMembers");
    }
    format!("{schema:#}\n")
}

/// The first sentence of a rule's documentation, on one line.
fn summary(meta: &Meta) -> String {
    let doc = meta.doc();
    let lines = doc.lines().map(str::trim).skip_while(|line| line.is_empty() || line.starts_with('#'));
    let paragraph = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    match paragraph.find(". ") {
        Some(end) => paragraph[..=end].to_owned(),
        None => paragraph,
    }
}

/// Markdown with its headings two levels down, code aside.
fn demoted(markdown: &str) -> String {
    let mut code = false;
    let lines = markdown.lines().map(|line| {
        code ^= line.trim_start().starts_with("```");
        if line.starts_with('#') && !code { format!("##{line}") } else { line.to_owned() }
    });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// JSON as YAML is written by hand: `{sleepSeconds: 5, tiers: [{maxSurge: 1}]}`.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| format!("{key}: {}", flow(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        // Words that YAML may take for something else, and whatever holds punctuation, keep JSON's quotes.
        Value::String(text) if is_word(text) => text.clone(),
        scalar => scalar.to_string(),
    }
}

fn is_word(text: &str) -> bool {
    let letters = text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let lower = text.to_ascii_lowercase();
    letters && text.len() > 1 && !["true", "false", "null", "yes", "no", "on", "off"].contains(&lower.as_str())
}

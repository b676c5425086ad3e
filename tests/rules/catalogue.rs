//! What must hold of every entry of the registry, so that policies, docs and schema can be made from it.

use plimsoll::engine::kind::KINDS;
use plimsoll::engine::rule::{AnyRule, Meta};
use plimsoll::rules::REGISTRY;
use schemars::SchemaGenerator;
use serde_json::json;

/// The headings of a rule's documentation in their order; `Fix safety` where the rule is fixable.
const HEADINGS: [&str; 6] = ["What it does", "Why it matters", "Example", "Fix safety", "Parameters", "Unknown facts"];

fn metas() -> impl Iterator<Item = (&'static dyn AnyRule, &'static Meta)> {
    REGISTRY.iter().map(|&rule| (rule, rule.meta()))
}

#[test]
fn the_registry_is_not_empty_and_sorted_without_doubles() {
    let ids: Vec<_> = metas().map(|(_, meta)| meta.id).collect();
    assert!(!ids.is_empty());
    for pair in ids.windows(2) {
        assert!(pair[0] < pair[1], "{} must not stand before {}", pair[0], pair[1]);
    }
}

#[test]
fn ids_are_kebab_case_and_versions_are_versions() {
    for (_, meta) in metas() {
        let word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
        assert!(meta.id.split('-').all(word), "{} is not kebab-case", meta.id);
        let number = |part: &str| part.parse::<u32>().is_ok();
        let parts: Vec<_> = meta.since.split('.').collect();
        assert!(parts.len() == 2 && parts.into_iter().all(number), "{}: since {}", meta.id, meta.since);
    }
}

#[test]
fn kinds_are_known_and_named_once() {
    for (_, meta) in metas() {
        assert!(!meta.kinds.is_empty(), "{} looks at no kind", meta.id);
        for (index, kind) in meta.kinds.iter().enumerate() {
            assert!(KINDS.iter().any(|row| row.kind == *kind), "{}: no kind {kind}", meta.id);
            assert!(!meta.kinds[..index].contains(kind), "{} names {kind} twice", meta.id);
        }
    }
}

/// Editors are told by the schema what the rule then checks by itself.
#[test]
fn numbers_are_bounded_as_the_schema_says() {
    for (rule, meta) in metas() {
        let mut generator = SchemaGenerator::default();
        let mut schema = rule.schema(&mut generator).to_value();
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            schema = generator.definitions()[name].clone();
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            for (bound, beyond) in [("minimum", -1), ("maximum", 1)] {
                let Some(limit) = property[bound].as_i64() else { continue };
                let refused = |number: i64| rule.parse_params(json!({name: number})).is_err();
                assert!(!refused(limit), "{}: {name} refuses its {bound} {limit}", meta.id);
                assert!(refused(limit + beyond), "{}: {name} takes more than its {bound} {limit}", meta.id);
            }
        }
    }
}

#[test]
fn the_critical_profile_only_tightens() {
    for (_, meta) in metas() {
        assert!(meta.critical >= meta.baseline, "{} is weaker in the critical profile", meta.id);
    }
}

#[test]
fn only_fixable_rules_manage_places_and_turn_a_fix_on() {
    for (rule, meta) in metas() {
        let params = rule.parse_params(rule.default_params()).unwrap();
        assert_eq!(meta.fixable, !rule.managed(&params).is_empty(), "{}: fixable and managed() differ", meta.id);
        assert!(meta.fixable || !meta.baseline_fix, "{} has no fix that the baseline could turn on", meta.id);
    }
}

#[test]
fn the_documentation_has_a_summary_and_its_headings_in_order() {
    for (_, meta) in metas() {
        let (summary, sections) = sections(&meta.doc());
        assert!(summary.ends_with('.') && !summary.contains('\n'), "{}: {summary:?} is no one-line summary", meta.id);
        let wanted: Vec<_> = HEADINGS.into_iter().filter(|name| meta.fixable || *name != "Fix safety").collect();
        let found: Vec<_> = sections.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, wanted, "{}: headings", meta.id);
        for (name, text) in &sections {
            assert!(text.ends_with(['.', '`']), "{}: {name} does not end with a full stop: {text:?}", meta.id);
        }
        let example = &sections[2].1;
        assert_eq!(example.matches("```yaml\n").count() * 2, example.matches("```").count(), "{}: Example", meta.id);
        assert!(example.matches("```yaml\n").count() >= 2, "{}: Example wants bad and good YAML", meta.id);
    }
}

/// The text before the first heading, and each heading with its text.
fn sections(doc: &str) -> (String, Vec<(String, String)>) {
    let mut parts = doc.split("\n## ");
    let summary = parts.next().unwrap_or_default().trim().to_owned();
    let section = |part: &str| {
        let (name, text) = part.split_once('\n').unwrap_or((part, ""));
        (name.trim().to_owned(), text.trim().to_owned())
    };
    (summary, parts.map(section).collect())
}

#[test]
fn parameters_have_defaults_that_are_accepted_and_unknown_ones_are_refused() {
    for (rule, meta) in metas() {
        let defaults = rule.default_params();
        assert!(defaults.is_object(), "{}: parameters are no object", meta.id);
        for params in [defaults, serde_json::json!({})] {
            if let Err(error) = rule.parse_params(params) {
                panic!("{}: {}: {}", meta.id, error.path, error.message);
            }
        }
        let unknown = rule.parse_params(serde_json::json!({"noSuchParameter": 1}));
        assert!(unknown.is_err(), "{} takes any parameter", meta.id);
    }
}

#[test]
fn each_parameter_is_documented_in_the_schema_and_in_the_rule() {
    for (rule, meta) in metas() {
        let mut generator = schemars::SchemaGenerator::default();
        // A schema of its own goes to the definitions, one in place is what was returned.
        let reference = rule.schema(&mut generator).to_value();
        let definitions = generator.take_definitions(true);
        let name = reference["$ref"].as_str().and_then(|target| target.rsplit('/').next());
        let schema = name.map_or(&reference, |name| &definitions[name]);
        assert_eq!(schema["additionalProperties"], false, "{}: the schema takes any parameter", meta.id);
        let (_, sections) = sections(&meta.doc());
        let section = sections.iter().find(|(name, _)| name == "Parameters").map_or("", |(_, text)| text);
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        for (name, property) in &properties {
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{}: {name} is not camelCase", meta.id);
            assert!(property["description"].is_string(), "{}: {name} has no doc comment", meta.id);
            assert!(section.contains(&format!("`{name}`")), "{}: Parameters does not tell of `{name}`", meta.id);
        }
        assert!(!properties.is_empty() || section == "None.", "{}: Parameters must be `None.`", meta.id);
    }
}

//! The generated files under `policies/`.

use std::fs;
use std::path::Path;

use super::{RULES, parse, said};
use crate::engine::finding::Action::{Deny, Warn};
use crate::policy::{Policy, docs};
use crate::rules;

fn text(name: &str) -> String {
    let generated = docs::generate(RULES).into_iter().find(|generated| generated.name == name);
    generated.map(|generated| generated.text).unwrap_or_default()
}

/// Writes the files with `UPDATE_DOCS=1`, else compares.
#[test]
fn policies_are_current() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    for generated in docs::generate(rules::REGISTRY) {
        let path = dir.join(generated.name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &generated.text).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == generated.text, "policies/{} is stale: run the tests with UPDATE_DOCS=1", generated.name);
    }
}

/// With the rules as they ship: none refuses its own defaults.
#[test]
fn shipped_policies_are_valid() {
    assert!(Policy::baseline().is_ok());
    for generated in docs::generate(rules::REGISTRY).iter().filter(|generated| generated.name.ends_with(".yaml")) {
        let policy = Policy::parse(&generated.text);
        assert!(policy.is_ok(), "{policy:?}");
    }
}

#[test]
fn the_baseline_file_says_all_that_the_baseline_implies() {
    let yaml = text("baseline.yaml");
    assert!(
        yaml.contains("\n    # Finds missing-pre-stop.\n    missing-pre-stop: {action: warn, fix: true, params: {onlyIfPorts: true, sleepSeconds: 5}}\n"),
        "{yaml}"
    );
    // The late rule is newer than the file's rule set, so that it may not deny; nobody ships such a registry.
    let shipped = yaml.replace("ruleSet: \"0.1\"", "ruleSet: \"9.0\"");
    let alone = shipped.replace("extends: baseline", "extends: none");
    let (file, alone) = (parse(&shipped).unwrap(), parse(&alone).unwrap());
    assert_eq!(file.hash, alone.hash);
    assert_eq!(said(&alone, "missing-pre-stop"), (Warn, true));
}

#[test]
fn the_critical_file_says_all_that_critical_implies() {
    let shipped = text("critical.yaml").replace("ruleSet: \"0.1\"", "ruleSet: \"9.0\"");
    let alone = shipped.replace("extends: critical", "extends: none");
    let (file, alone) = (parse(&shipped).unwrap(), parse(&alone).unwrap());
    assert_eq!(file.hash, alone.hash);
    assert_eq!(said(&alone, "short-min-ready"), (Warn, true));
    assert_eq!(said(&alone, "missing-requests"), (Deny, false));
}

#[test]
fn rules_are_documented() {
    let markdown = text("RULES.md");
    let row = "| [missing-pre-stop](#missing-pre-stop) | Finds missing-pre-stop. | warn | deny | fix |\n";
    assert!(markdown.contains(row), "{markdown}");
    let section = "\n## missing-pre-stop\n\nCategory termination, since 0.1. Looks at Deployment.\n\n### What it does\n\
                   Finds missing-pre-stop. And more.\n\n### Why\nBecause.\n\nDefaults: `params: {onlyIfPorts: true, \
                   sleepSeconds: 5}`\n";
    assert!(markdown.contains(section), "{markdown}");
}

#[test]
fn the_schema_knows_every_rule_and_parameter() {
    let schema: serde_json::Value = serde_json::from_str(&text("policy.schema.json")).unwrap();
    let rules = &schema["definitions"]["Spec"]["properties"]["rules"];
    assert_eq!(rules["additionalProperties"], false);
    let forms = &rules["properties"]["missing-pre-stop"]["anyOf"];
    assert_eq!(forms[0]["$ref"], "#/definitions/Action");
    assert_eq!(forms[1]["additionalProperties"], false);
    let params = forms[1]["properties"]["params"]["$ref"].as_str().unwrap_or_default();
    let params = schema.pointer(params.trim_start_matches('#')).cloned().unwrap_or_default();
    assert_eq!(params["properties"]["sleepSeconds"]["default"], 5);
    assert_eq!(params["additionalProperties"], false);
    assert!(rules["properties"]["mutable-image-tag"]["anyOf"][1]["properties"].get("fix").is_none());
    let ids = &schema["definitions"]["ExceptionSpec"]["properties"]["rules"]["items"]["enum"];
    assert_eq!(ids.as_array().map(Vec::len), Some(11));
    // Every reference leads somewhere.
    let text = schema.to_string();
    for name in text.split("\"#/definitions/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(schema["definitions"].get(name).is_some(), "{name}");
    }
}

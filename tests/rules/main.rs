//! Every rule against its fixtures: `tests/rules/<rule-id>/{pass,fail}/*.yaml`, at least two of each.
//!
//! A fixture is one manifest, as the API server would hand it on: defaults are not filled in. In `pass` the rule finds
//! nothing; in `fail` it finds what the fixture's comments say, no more and no less:
//!
//! ```yaml
//! # expect: /spec/template/spec/containers/0/image | can change under the same name
//! # params: {"tags": ["latest", "main"]}
//! # operation: UPDATE
//! # endpoint: mutate
//! # resource: apps/deployments
//! # facts: {"serverVersion": "1.29", "quotas": [{"name": "team", "hard": ["pods"]}], "limitRange": true}
//! ```
//!
//! `expect` is `<pointer> | <part of the message>`, one line a finding. `resource` says what a Scale scales. Without the other directives the parameters are
//! the rule's defaults, the operation is CREATE, the endpoint is validate, and the facts are: server 1.37, no ResourceQuota, no LimitRange, no
//! retained revision, each ConfigMap there with some digest. A fact may be `"unknown"`; `digests` maps `ConfigMap/cfg` to
//! a digest, `"absent"` or `"unknown"`, `configs` maps it to `{"immutable": true, "bytes": 9, "missingKeys": ["k"],
//! "binaryKeys": ["b"]}`, `{"absent": true}` or `"unknown"`; a quota may have `"scopes": ["BestEffort"]`. The YAML documents after the first are what else stands in the namespace
//! (`{"neighbours": "unknown"}`: nothing is known of it). A rule is told only what it asks for.
//!
//! The whole messages stand in `snapshots/<rule-id>.snap`; `INSTA_UPDATE=always cargo test --test rules` writes them, to
//! be read before they are committed.

mod catalogue;
mod fixture;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fixture::{Expect, Fixture};
use plimsoll::engine::document::Value;
use plimsoll::engine::finding::Finding;
use plimsoll::engine::pointer::pointer;
use plimsoll::engine::rule::AnyRule;
use plimsoll::rules::REGISTRY;

/// Fewest fixtures of each outcome.
const FEWEST: usize = 2;

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules")
}

/// Names in a folder, sorted; none where there is no such folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The fixtures of a rule and outcome; what is wrong with a file goes to `failures`.
fn fixtures(rule: &dyn AnyRule, outcome: &str, failures: &mut Vec<String>) -> Vec<Fixture> {
    let id = rule.meta().id;
    let folder = home().join(id).join(outcome);
    let files = names(&folder).into_iter().map(|file| (format!("{id}/{outcome}/{file}"), folder.join(file)));
    let read = files.filter_map(|(name, path)| match Fixture::read(name.clone(), &path) {
        Ok(fixture) => Some(fixture),
        Err(error) => {
            failures.push(format!("{name}: {error}"));
            None
        }
    });
    read.collect()
}

/// What the rule finds in the fixture as it stands.
fn findings(rule: &dyn AnyRule, fixture: &Fixture) -> Result<Vec<Finding>, String> {
    fixture.check(rule, &Value::parse(&fixture.object).unwrap())
}

fn assert_none(failures: Vec<String>) {
    assert!(failures.is_empty(), "{} failures:\n\n{}\n", failures.len(), failures.join("\n\n"));
}

#[test]
fn each_rule_has_fixtures_and_nothing_else_lies_about() {
    let mut failures = Vec::new();
    let ids: BTreeSet<&str> = REGISTRY.iter().map(|rule| rule.meta().id).collect();
    for name in names(&home()) {
        let known = ids.contains(name.as_str()) || name == "snapshots" || name.ends_with(".rs");
        if !known {
            failures.push(format!("{name}: no rule has this id"));
        }
    }
    for id in &ids {
        let folder = home().join(id);
        for name in names(&folder).into_iter().filter(|name| name != "pass" && name != "fail") {
            failures.push(format!("{id}/{name}: only pass and fail belong here"));
        }
        for outcome in ["pass", "fail"] {
            let files = names(&folder.join(outcome));
            let manifests = files.iter().filter(|file| file.ends_with(".yaml")).count();
            if manifests < FEWEST {
                failures.push(format!("{id}/{outcome}: {manifests} fixtures, at least {FEWEST} are wanted"));
            }
            for file in files.iter().filter(|file| !file.ends_with(".yaml")) {
                failures.push(format!("{id}/{outcome}/{file}: only .yaml files belong here"));
            }
        }
    }
    let snapshots: BTreeSet<String> = ids.iter().map(|id| format!("{id}.snap")).collect();
    for name in names(&home().join("snapshots")).difference(&snapshots) {
        failures.push(format!("snapshots/{name}: no rule refers to it"));
    }
    assert_none(failures);
}

#[test]
fn each_fixture_is_judged_as_it_expects() {
    let mut failures = Vec::new();
    for &rule in REGISTRY {
        for fixture in fixtures(rule, "pass", &mut failures) {
            if !fixture.expects.is_empty() {
                failures.push(format!("{}: expects findings, so it belongs to fail", fixture.name));
            }
            match findings(rule, &fixture) {
                Ok(found) if found.is_empty() => {}
                Ok(found) => failures.push(format!("{}: should pass, but:\n{}", fixture.name, shown(&found))),
                Err(error) => failures.push(format!("{}: {error}", fixture.name)),
            }
        }
        for fixture in fixtures(rule, "fail", &mut failures) {
            if fixture.expects.is_empty() {
                failures.push(format!("{}: has no `# expect:` line", fixture.name));
            }
            match findings(rule, &fixture) {
                Ok(found) => failures.extend(unexpected(rule, &fixture, &found)),
                Err(error) => failures.push(format!("{}: {error}", fixture.name)),
            }
        }
    }
    assert_none(failures);
}

/// What differs between the findings and those that the fixture expects.
fn unexpected(rule: &dyn AnyRule, fixture: &Fixture, found: &[Finding]) -> Option<String> {
    let mut left: Vec<&Finding> = found.iter().collect();
    let mut missing: Vec<&Expect> = Vec::new();
    for expect in &fixture.expects {
        let meant = |finding: &&Finding| finding.pointer == expect.pointer && finding.message.contains(&expect.message);
        match left.iter().position(meant) {
            Some(index) => drop(left.remove(index)),
            None => missing.push(expect),
        }
    }
    let mut text = String::new();
    for expect in missing {
        writeln!(text, "  expected, not found: {} | {}", expect.pointer, expect.message).unwrap();
    }
    for finding in left {
        writeln!(text, "  found, not expected: {} | {}", finding.pointer, finding.message).unwrap();
    }
    for finding in found {
        if finding.rule != rule.meta().id {
            writeln!(text, "  a finding names another rule: {}", finding.rule).unwrap();
        }
        if finding.message.contains(char::is_control) {
            writeln!(text, "  control characters in a message: {:?}", finding.message).unwrap();
        }
    }
    (!text.is_empty()).then(|| format!("{}:\n{}", fixture.name, text.trim_end()))
}

#[test]
fn each_fix_applies_and_leaves_nothing_to_fix() {
    let mut failures = Vec::new();
    for &rule in REGISTRY.iter() {
        let mut fixed = 0;
        for fixture in fixtures(rule, "fail", &mut failures) {
            match converge(rule, &fixture) {
                Ok(fixes) => fixed += fixes,
                Err(error) => failures.push(format!("{}: {error}", fixture.name)),
            }
        }
        let (id, fixable) = (rule.meta().id, rule.meta().fixable);
        if fixable != (fixed > 0) {
            failures.push(format!("{id}: fixable is {fixable}, and its fixtures show {fixed} fixes"));
        }
    }
    assert_none(failures);
}

/// Applies the fixes of all findings; the number of them. A finding that had a fix must be gone.
fn converge(rule: &dyn AnyRule, fixture: &Fixture) -> Result<usize, String> {
    let before = findings(rule, fixture)?;
    let mut object = Value::parse(&fixture.object).unwrap().to_static();
    let fixes: Vec<_> = before.iter().filter_map(|finding| finding.fix.as_ref()).collect();
    for (path, value) in fixes.iter().flat_map(|fix| &fix.writes) {
        object.set(path, value.clone());
        if object.at(path) != value {
            return Err(format!("the fix cannot write {}", pointer(path)));
        }
    }
    let after = fixture.check(rule, &object)?;
    let stays = |finding: &&Finding| {
        let place = (&finding.pointer, &finding.container);
        let fixed = before.iter().filter(|old| old.fix.is_some());
        finding.fix.is_some() || fixed.into_iter().any(|old| (&old.pointer, &old.container) == place)
    };
    let stay: Vec<Finding> = after.iter().filter(stays).cloned().collect();
    if stay.is_empty() { Ok(fixes.len()) } else { Err(format!("after the fix there is still:\n{}", shown(&stay))) }
}

/// Findings as a person reads them.
fn shown(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let cap = finding.cap.map(|cap| format!(" (at most {})", cap.as_str())).unwrap_or_default();
        writeln!(text, "  {}{cap}\n    {}", finding.pointer, finding.message).unwrap();
        for line in finding.mend.iter().flat_map(|mend| mend.lines()) {
            writeln!(text, "      {line}").unwrap();
        }
        if let Some(fix) = &finding.fix {
            writeln!(text, "    fix: {} [{}]", fix.says, fix.claim).unwrap();
            for (path, value) in &fix.writes {
                writeln!(text, "      {} = {value}", pointer(path)).unwrap();
            }
        }
    }
    text.trim_end().to_owned()
}

#[test]
fn each_message_is_as_recorded() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(home().join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let _bound = settings.bind_to_scope();
    let mut differing = Vec::new();
    for &rule in REGISTRY {
        let mut text = String::new();
        let mut failures = Vec::new();
        for fixture in fixtures(rule, "fail", &mut failures) {
            match findings(rule, &fixture) {
                Ok(found) => writeln!(text, "{}\n{}\n", fixture.name, shown(&found)).unwrap(),
                Err(error) => failures.push(error),
            }
        }
        assert_none(failures);
        // One rule's difference must not hide the next one's.
        let id = rule.meta().id;
        if catch_unwind(AssertUnwindSafe(|| insta::assert_snapshot!(id, text))).is_err() {
            differing.push(id.to_owned());
        }
    }
    assert_none(differing);
}

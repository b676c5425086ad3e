//! What a valid policy decides.

use chrono::NaiveDate;

use super::{PreStop, parse, policy, said, with_spec};
use crate::engine::finding::Action::{Audit, Deny, Off, Warn};
use crate::engine::request::User;
use crate::policy::{Enforcement, FixAt};

#[test]
fn the_reference_policy() {
    let text = include_str!("../../../tests/server/p0.yaml");
    let policy = parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(policy.name, "p0");
    assert_eq!(policy.enforcement, Enforcement::Enforce);
    assert_eq!(policy.exempt_namespaces, ["kube-system", "kube-public", "kube-node-lease"]);
    assert_eq!(policy.break_glass_groups, ["platform-breakglass"]);
    let settings = policy.settings.iter().map(|setting| (setting.rule.meta().id, setting.action, setting.fix));
    assert_eq!(
        settings.collect::<Vec<_>>(),
        [
            ("config-checksum", Warn, true),
            ("default-rolling-update", Warn, true),
            ("late-rule", Off, false),
            ("missing-pre-stop", Warn, true),
            ("missing-requests", Deny, false),
            ("missing-startup-probe", Warn, true),
            ("mutable-image-tag", Deny, false),
            ("pdb-blocks-eviction", Deny, false),
            ("rollout-outage", Deny, false),
            ("short-grace-period", Deny, true),
            ("short-min-ready", Off, false),
        ]
    );
    let params = policy.params::<PreStop>();
    assert_eq!((params.sleep_seconds, params.only_if_ports), (10, true));
}

#[test]
fn what_is_not_said_is_the_baseline() {
    let policy = policy("  rules: {missing-requests: deny, missing-pre-stop: {fix: false}}");
    assert_eq!(said(&policy, "missing-requests"), (Deny, false));
    assert_eq!(said(&policy, "missing-pre-stop"), (Warn, false));
    assert_eq!(said(&policy, "short-grace-period"), (Deny, true));
    assert_eq!(said(&policy, "short-min-ready"), (Off, false));
    assert_eq!(policy.exempt_namespaces, ["kube-system", "kube-public", "kube-node-lease"]);
    assert_eq!(policy.fix_at, FixAt::Template);
    assert!(policy.announce_fixes);
}

#[test]
fn a_rule_that_the_baseline_has_off_keeps_its_fix_when_it_is_turned_on() {
    assert_eq!(said(&policy("  rules: {short-min-ready: warn}"), "short-min-ready"), (Warn, true));
}

#[test]
fn off_is_a_word_and_turns_the_fix_off() {
    let policy = policy("  rules: {missing-pre-stop: off, short-grace-period: {action: off}}");
    assert_eq!(said(&policy, "missing-pre-stop"), (Off, false));
    assert_eq!(said(&policy, "short-grace-period"), (Off, false));
    assert!(!policy.fixes("missing-pre-stop"));
}

#[test]
fn critical_is_no_laxer() {
    let policy = policy("  extends: critical\n  ruleSet: \"9.0\"");
    assert_eq!(said(&policy, "missing-pre-stop"), (Deny, true));
    assert_eq!(said(&policy, "missing-requests"), (Deny, false));
    assert_eq!(said(&policy, "short-min-ready"), (Warn, true));
    assert_eq!(said(&policy, "late-rule"), (Deny, true));
}

#[test]
fn i24_a_newer_rule_warns_at_most_and_fixes_nothing() {
    let older = policy("  ruleSet: \"0.1\"");
    assert_eq!(said(&older, "late-rule"), (Warn, false));
    let raised = policy("  ruleSet: \"9.0\"");
    assert_eq!(said(&raised, "late-rule"), (Deny, true));
    assert_eq!(raised.notices, ["the policy was written for rule set 9.0, this is 0.1: rules may be missing"]);
    assert!(older.notices.is_empty());
}

#[test]
fn json_is_a_policy_too() {
    let json = r#"{"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "j"},
        "spec": {"extends": "none", "rules": {"missing-pre-stop": {"action": "deny", "params": {"sleepSeconds": 7}}}}}"#;
    let policy = parse(json).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(said(&policy, "missing-pre-stop"), (Deny, false));
    assert_eq!(policy.params::<PreStop>().sleep_seconds, 7);
}

#[test]
fn anchors_and_merges_are_yaml() {
    let policy = policy("  rules:\n    missing-requests: &strict {action: deny}\n    mutable-image-tag: {<<: *strict}");
    assert_eq!(said(&policy, "missing-requests"), (Deny, false));
    assert_eq!(said(&policy, "mutable-image-tag"), (Deny, false));
}

#[test]
fn the_hash_is_of_what_is_decided() {
    let hash = |spec: &str| policy(spec).hash;
    let plain = hash("  rules: {missing-pre-stop: {action: warn, params: {sleepSeconds: 5}}}");
    assert_eq!(plain.len(), 12);
    assert!(plain.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(plain, hash("  # a comment\n  extends: baseline\n  rules: {}"));
    assert_ne!(plain, hash("  rules: {missing-pre-stop: {params: {sleepSeconds: 6}}}"));
    assert_ne!(plain, hash("  rules: {missing-pre-stop: deny}"));
    assert_ne!(plain, hash("  enforcement: warn"));
    assert_ne!(plain, hash("  fixAt: pod"));
    assert_ne!(plain, hash("  profiles: {critical: {extends: critical}}"));
}

#[test]
fn j04_profiles_tighten_alone_and_together() {
    let policy = policy(
        "  rules: {missing-requests: audit, missing-pre-stop: {action: warn, fix: false}}
  profiles:
    critical: {extends: critical}
    measured:
      rules:
        missing-requests: {action: warn}
        missing-pre-stop: {fix: true}",
    );
    let under = |namespace, workload, rule| said(policy.resolve(namespace, workload), rule);
    assert_eq!(under(None, None, "missing-requests"), (Audit, false));
    assert_eq!(under(Some("unknown"), None, "missing-requests"), (Audit, false));
    assert_eq!(under(Some("measured"), None, "missing-requests"), (Warn, false));
    assert_eq!(under(None, Some("measured"), "missing-pre-stop"), (Warn, true));
    assert_eq!(under(None, Some("critical"), "missing-requests"), (Deny, false));
    assert_eq!(under(None, Some("critical"), "missing-pre-stop"), (Deny, false));
    assert_eq!(under(None, Some("critical"), "short-min-ready"), (Warn, true));
    // A workload that asks for the milder one does not get out of its namespace's.
    assert_eq!(under(Some("critical"), Some("measured"), "missing-requests"), (Deny, false));
    assert_eq!(under(Some("measured"), Some("critical"), "missing-pre-stop"), (Deny, true));
    assert_eq!(under(Some("critical"), Some("nonsense"), "missing-requests"), (Deny, false));
    assert_eq!(policy.resolve(Some("critical"), None).hash, policy.hash);
    assert_eq!(policy.profiles.names(), ["critical", "measured"]);
}

#[test]
fn exceptions_hold_through_their_last_day() {
    let policy = policy(
        "  exceptions:
    - name: legacy-billing
      rules: [mutable-image-tag]
      match: {namespaces: [billing], kinds: [Deployment], names: [\"legacy-*\", old]}
      owner: team-billing
      reason: image is rebuilt in place
      expires: 2027-03-31",
    );
    let day = |month, day| NaiveDate::from_ymd_opt(2027, month, day).unwrap_or_default();
    let borne = |rule, namespace, kind, name, today| {
        policy.exception(rule, namespace, kind, name, today).map(|exception| exception.name.as_str())
    };
    let last = day(3, 31);
    assert_eq!(borne("mutable-image-tag", "billing", "Deployment", "legacy-api", last), Some("legacy-billing"));
    assert_eq!(borne("mutable-image-tag", "billing", "Deployment", "old", last), Some("legacy-billing"));
    assert_eq!(borne("mutable-image-tag", "billing", "Deployment", "older", last), None);
    assert_eq!(borne("mutable-image-tag", "billing", "Deployment", "api", last), None);
    assert_eq!(borne("mutable-image-tag", "billing-2", "Deployment", "legacy-api", last), None);
    assert_eq!(borne("mutable-image-tag", "billing", "StatefulSet", "legacy-api", last), None);
    assert_eq!(borne("rollout-outage", "billing", "Deployment", "legacy-api", last), None);
    let after = day(4, 1);
    assert_eq!(borne("mutable-image-tag", "billing", "Deployment", "legacy-api", after), None);
    let expired = policy.expired_exception("mutable-image-tag", "billing", "Deployment", "legacy-api", after);
    assert_eq!(expired.map(|exception| exception.owner.as_str()), Some("team-billing"));
    assert_eq!(policy.expired(last).count(), 0);
    assert_eq!(policy.expired(after).count(), 1);
}

#[test]
fn j08_a_star_is_one_whole_segment() {
    let policy = policy("  exempt: {users: [\"system:serviceaccount:kube-system:*\", \"alice\"]}");
    let exempt = |name: &str| policy.exempts("shop", &User { name: name.to_owned(), groups: Vec::new() });
    assert!(exempt("system:serviceaccount:kube-system:replicaset-controller"));
    assert!(exempt("alice"));
    assert!(!exempt("alice2"));
    assert!(!exempt("system:serviceaccount:kube-system"));
    assert!(!exempt("system:serviceaccount:kube-system:"));
    assert!(!exempt("system:serviceaccount:kube-system-2:x"));
    assert!(!exempt("system:serviceaccount:kube-system:x:y"));
    assert!(!exempt("x:system:serviceaccount:kube-system:y"));
    // `system:masters` is a group like any other.
    assert!(!policy.exempts("shop", &User { name: "root".to_owned(), groups: vec!["system:masters".to_owned()] }));
    assert!(policy.exempts("kube-system", &User::default()));
}

#[test]
fn the_longest_pair_of_profiles_is_compiled() {
    let mut spec = "  profiles:\n".to_owned();
    for number in 10..26 {
        spec.push_str(&format!("    p{number}: {{rules: {{missing-requests: {{action: deny}}}}}}\n"));
    }
    let many = policy(&spec);
    assert_eq!(said(many.resolve(Some("p10"), Some("p25")), "missing-requests"), (Deny, false));
    spec.push_str("    p26: {}\n");
    assert_eq!(
        super::problems(&with_spec(&spec)),
        ["line 5, column 3: spec.profiles: there are 17 profiles, at most 16 are taken; join those that are alike"]
    );
}

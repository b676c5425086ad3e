//! Policies that are refused, and what their author reads.

use super::{problems, with_spec};

/// The one problem of a policy with this spec.
#[track_caller]
fn problem(spec: &str) -> String {
    let mut problems = problems(&with_spec(spec));
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.remove(0)
}

#[test]
fn e09_a_sleep_of_an_hour_names_its_path() {
    assert_eq!(
        problem("  rules:\n    missing-pre-stop: {params: {sleepSeconds: 3600}}"),
        "line 6, column 47: spec.rules.missing-pre-stop.params.sleepSeconds: 3600 s is out of range; allowed is 1 to 60"
    );
}

#[test]
fn i14_a_number_in_words_names_its_path() {
    assert_eq!(
        problem("  rules:\n    missing-pre-stop:\n      params: {sleepSeconds: \"ten\"}"),
        "line 7, column 30: spec.rules.missing-pre-stop.params.sleepSeconds: expected a whole number, 0 or more, found \
         string \"ten\""
    );
}

#[test]
fn unknown_rules_and_keys_are_guessed() {
    assert_eq!(
        problem("  rules:\n    missing-prestop: deny"),
        "line 6, column 5: spec.rules.missing-prestop: no rule is called `missing-prestop`; did you mean \
         `missing-pre-stop`?"
    );
    assert_eq!(
        problem("  rules:\n    missing-pre-stop: {params: {sleepSecond: 5}}"),
        "line 6, column 33: spec.rules.missing-pre-stop.params.sleepSecond: there is no such key; did you mean \
         `sleepSeconds`?"
    );
    assert_eq!(
        problem("  rules:\n    missing-pre-stop: {acton: deny}"),
        "line 6, column 24: spec.rules.missing-pre-stop.acton: there is no such key; did you mean `action`?"
    );
    assert_eq!(
        problem("  enforcment: warn"),
        "line 5, column 3: spec.enforcment: there is no such key; did you mean `enforcement`?"
    );
    assert_eq!(
        problem("  rules:\n    mutable-image-tag: {params: {colour: red}}"),
        "line 6, column 34: spec.rules.mutable-image-tag.params.colour: there is no such key; leave it out"
    );
}

#[test]
fn unknown_words_are_guessed_or_all_named() {
    assert_eq!(
        problem("  rules:\n    mutable-image-tag: dney"),
        "line 6, column 24: spec.rules.mutable-image-tag: `dney` is not known here; did you mean `deny`?"
    );
    assert_eq!(
        problem("  rules:\n    mutable-image-tag: {action: enforce}"),
        "line 6, column 33: spec.rules.mutable-image-tag.action: `enforce` is not known here; allowed: off, audit, \
         warn, deny"
    );
    assert_eq!(
        problem("  extends: restricted"),
        "line 5, column 12: spec.extends: `restricted` is not known here; allowed: baseline, critical, none"
    );
    assert_eq!(
        problem("  fixAt: pods"),
        "line 5, column 10: spec.fixAt: `pods` is not known here; did you mean `pod`?"
    );
}

#[test]
fn a_yaml_1_1_off_is_told_as_such() {
    assert_eq!(
        problem("  rules:\n    mutable-image-tag: {action: false}"),
        "line 6, column 33: spec.rules.mutable-image-tag.action: expected a word, found boolean `false`; an unquoted \
         `off` became `false` on its way: write \"off\""
    );
}

#[test]
fn wrong_types() {
    assert_eq!(
        problem("  announceFixes: \"yes\""),
        "line 5, column 18: spec.announceFixes: expected true or false, found string \"yes\"; write true or false"
    );
    assert_eq!(
        problem("  exempt: {namespaces: kube-system}"),
        "line 5, column 24: spec.exempt.namespaces: expected a list, found string \"kube-system\""
    );
    assert_eq!(
        problem("  ruleSet: 0.1"),
        "line 5, column 12: spec.ruleSet: expected a string, found floating point `0.1`; put it in quotes"
    );
    assert_eq!(
        problem("  rules:\n    - mutable-image-tag"),
        "line 6, column 5: spec.rules: expected a map, found sequence"
    );
}

#[test]
fn a_key_without_value_is_no_default() {
    assert_eq!(
        problem("  rules:\n    missing-pre-stop:\n    mutable-image-tag: deny"),
        "line 6, column 5: spec.rules.missing-pre-stop: there is no value; write one or leave the key out"
    );
}

#[test]
fn doubled_keys() {
    assert_eq!(
        problem("  rules:\n    mutable-image-tag: deny\n    missing-requests: warn\n    mutable-image-tag: warn"),
        "line 8, column 5: spec.rules.mutable-image-tag: the key is there twice (first in line 6); keep one of them"
    );
}

#[test]
fn a_fix_that_there_is_not() {
    assert_eq!(
        problem("  rules:\n    rollout-outage: {fix: true}"),
        "line 6, column 27: spec.rules.rollout-outage.fix: rollout-outage has no fix; leave `fix` out"
    );
    assert_eq!(
        problem("  rules:\n    missing-pre-stop: {action: off, fix: true}"),
        "line 6, column 42: spec.rules.missing-pre-stop.fix: a rule whose action is off fixes nothing; give it another \
         action or leave `fix` out"
    );
}

#[test]
fn a_refused_action_is_not_called_missing_too() {
    assert_eq!(
        problem("  extends: none\n  rules:\n    missing-pre-stop: {action: dney, fix: true}"),
        "line 7, column 32: spec.rules.missing-pre-stop.action: `dney` is not known here; did you mean `deny`?"
    );
}

#[test]
fn extends_none_wants_an_action() {
    assert_eq!(
        problem("  extends: none\n  rules:\n    missing-pre-stop: {fix: true}"),
        "line 7, column 5: spec.rules.missing-pre-stop: there is no action, and `extends: none` gives it none; write \
         `action: deny`, `warn`, `audit` or `off`"
    );
}

#[test]
fn parameters_in_lists() {
    assert_eq!(
        problem(
            "  rules:\n    default-rolling-update:\n      params:\n        tiers:\n          - {maxUnavailable: 0}\n          - {maxUnavailable: -1}"
        ),
        "line 10, column 30: spec.rules.default-rolling-update.params.tiers[1].maxUnavailable: below 0"
    );
}

#[test]
fn i24_a_deny_newer_than_the_rule_set() {
    assert_eq!(
        problem("  ruleSet: \"0.1\"\n  rules:\n    late-rule: deny"),
        "line 7, column 16: spec.rules.late-rule: the rule came with rule set 9.0, after the policy's `ruleSet`: it \
         could not deny; set `ruleSet: \"9.0\"`, or `warn` here"
    );
    assert_eq!(
        problem("  ruleSet: latest"),
        "line 5, column 12: spec.ruleSet: \"latest\" is no rule set; write \"0.1\""
    );
}

#[test]
fn j08_exempt_users_are_whole_segments() {
    let refused = |user: &str| problems(&with_spec(&format!("  exempt: {{users: [\"{user}\"]}}")));
    let mend = "a `*` goes only after the last `:`, as in system:serviceaccount:kube-system:*";
    assert_eq!(
        refused("system:serviceaccount:kube-*"),
        [format!(
            "line 5, column 20: spec.exempt.users[0]: in \"system:serviceaccount:kube-*\" the `*` does not stand for a \
             whole segment; {mend}"
        )]
    );
    assert_eq!(
        refused("*"),
        [format!(
            "line 5, column 20: spec.exempt.users[0]: in \"*\" the `*` does not stand for a whole segment; {mend}"
        )]
    );
    assert_eq!(
        refused("system:*:default"),
        [format!("line 5, column 20: spec.exempt.users[0]: in \"system:*:default\" the `*` is not at the end; {mend}")]
    );
    assert_eq!(
        refused("system:serviceaccount:*"),
        [
            "line 5, column 20: spec.exempt.users[0]: \"system:serviceaccount:*\" matches nobody: the `*` stands for one \
          segment; name the namespace, as in system:serviceaccount:kube-system:*"
        ]
    );
    assert!(refused("system:serviceaccount:kube-system:*").is_empty());
    assert!(refused("alice@example.com").is_empty());
}

#[test]
fn everybody_may_not_break_the_glass() {
    assert_eq!(
        problem("  breakGlass: {groups: [\"system:authenticated\"]}"),
        "line 5, column 25: spec.breakGlass.groups[0]: everybody is in system:authenticated; name a group that people \
         join in an emergency; to deny nothing set `enforcement: warn`"
    );
    assert_eq!(
        problem("  exempt: {namespaces: [\"kube-*\"]}"),
        "line 5, column 25: spec.exempt.namespaces[0]: \"kube-*\" is no namespace's name; write whole names: `*` has no \
         meaning here"
    );
}

#[test]
fn profiles_that_loosen() {
    assert_eq!(
        problem("  profiles:\n    lax:\n      rules:\n        mutable-image-tag: {action: warn}"),
        "line 8, column 37: spec.profiles.lax.rules.mutable-image-tag.action: warn is laxer than deny without the \
         profile; a label may only tighten: raise it, or lower it in spec.rules"
    );
    assert_eq!(
        problem("  profiles:\n    lax:\n      rules:\n        missing-pre-stop: {fix: false}"),
        "line 8, column 33: spec.profiles.lax.rules.missing-pre-stop.fix: a profile turns no fix off; a label may only \
         tighten: turn it off in spec.rules, or by plimsoll.dev/skip-fixes"
    );
    assert_eq!(
        problem("  profiles:\n    tuned:\n      rules:\n        missing-pre-stop: {params: {sleepSeconds: 9}}"),
        "line 8, column 28: spec.profiles.tuned.rules.missing-pre-stop.params: there is no such key; known here: \
         action, fix"
    );
    assert_eq!(
        problem("  profiles:\n    very strict: {extends: critical}"),
        "line 6, column 5: spec.profiles.\"very strict\": \"very strict\" can be no label's value; use up to 63 \
         letters, digits, `-`, `_`, `.`, the first and last a letter or digit"
    );
}

const EXCEPTION: &str = "  exceptions:
    - name: legacy-billing
      rules: [mutable-image-tag]
      match: {namespaces: [billing], kinds: [Deployment], names: [\"legacy-*\"]}
      owner: team-billing
      reason: image is rebuilt in place until the registry moves
      expires: 2027-03-31";

#[test]
fn exceptions_are_whole() {
    let refused = |from: &str, to: &str| problem(&EXCEPTION.replace(from, to));
    assert_eq!(problems(&with_spec(EXCEPTION)), Vec::<String>::new());
    assert_eq!(
        refused("      owner: team-billing\n", ""),
        "line 6, column 7: spec.exceptions[0].owner: it is missing; write `owner: …`"
    );
    assert_eq!(
        refused("team-billing", "\" \""),
        "line 9, column 14: spec.exceptions[0].owner: it is empty; an exception needs a name, an owner and a reason"
    );
    assert_eq!(
        refused("2027-03-31", "2027-02-30"),
        "line 11, column 16: spec.exceptions[0].expires: \"2027-02-30\" is no day; write the last day on which it \
         holds, as in 2027-03-31"
    );
    assert_eq!(
        refused("2027-03-31", "31.3.2027"),
        "line 11, column 16: spec.exceptions[0].expires: \"31.3.2027\" is no day; write the last day on which it holds, \
         as in 2027-03-31"
    );
    assert_eq!(
        refused("[mutable-image-tag]", "[mutable-image-tags]"),
        "line 7, column 15: spec.exceptions[0].rules[0]: no rule is called `mutable-image-tags`; did you mean \
         `mutable-image-tag`?"
    );
    assert_eq!(
        refused("[mutable-image-tag]", "[]"),
        "line 7, column 14: spec.exceptions[0].rules: it names no rule; name the rules whose findings are borne"
    );
    assert_eq!(
        refused("[Deployment]", "[Deployments]"),
        "line 8, column 46: spec.exceptions[0].match.kinds[0]: `Deployments` is no kind that is judged; did you mean \
         `Deployment`?"
    );
    assert_eq!(
        refused("\"legacy-*\"", "\"*-legacy\""),
        "line 8, column 67: spec.exceptions[0].match.names[0]: \"*-legacy\" is no pattern; write a whole name, or its \
         beginning and `*`"
    );
    assert_eq!(
        refused("[billing]", "[]"),
        "line 8, column 27: spec.exceptions[0].match.namespaces: the list is empty, so nothing would match; leave it \
         out to match all"
    );
    assert_eq!(
        problem(&EXCEPTION.replace("{namespaces: [billing], kinds: [Deployment], names: [\"legacy-*\"]}", "{}")),
        "line 8, column 14: spec.exceptions[0].match: it would match every object; say `namespaces`, `kinds` or \
         `names`; to bear a rule everywhere set its action"
    );
    let twice = format!("{EXCEPTION}\n{}", EXCEPTION.split_once('\n').map_or("", |(_, item)| item));
    assert_eq!(
        problem(&twice),
        "line 12, column 13: spec.exceptions[1].name: another exception is called \"legacy-billing\" too; give each \
         exception its own name"
    );
}

#[test]
fn every_problem_is_told_in_the_order_of_the_text() {
    let text = with_spec(
        "  enforcement: strict
  rules:
    missing-pre-stop: {params: {sleepSeconds: 0}}
    mutable-image-tag: {action: 5}
    rollout-outrage: deny
  exceptions:
    - {name: a, owner: 5, rules: [nothing], match: {names: [x]}, reason: r, expires: 2027-01-01}
    - {name: b, owner: o, rules: [nothing], match: {names: [x]}, reason: r, expires: never}",
    );
    assert_eq!(
        problems(&text),
        [
            "line 5, column 16: spec.enforcement: `strict` is not known here; allowed: enforce, warn",
            "line 7, column 47: spec.rules.missing-pre-stop.params.sleepSeconds: 0 s is out of range; allowed is 1 to 60",
            "line 8, column 33: spec.rules.mutable-image-tag.action: expected a word, found integer `5`",
            "line 9, column 5: spec.rules.rollout-outrage: no rule is called `rollout-outrage`; did you mean \
             `rollout-outage`?",
            "line 11, column 24: spec.exceptions[0].owner: expected a string, found integer `5`; put it in quotes",
            "line 12, column 35: spec.exceptions[1].rules[0]: no rule is called `nothing`; the rules are: \
             config-checksum, default-rolling-update, late-rule, missing-pre-stop, missing-requests, \
             missing-startup-probe, mutable-image-tag, pdb-blocks-eviction, rollout-outage, short-grace-period, \
             short-min-ready",
            "line 12, column 86: spec.exceptions[1].expires: \"never\" is no day; write the last day on which it holds, \
             as in 2027-03-31",
        ]
    );
}

#[test]
fn nothing_of_the_text_reaches_a_terminal_raw() {
    assert_eq!(
        problem("  enforcement: \"warn\\e[2J\\nERROR\""),
        "line 5, column 16: spec.enforcement: `warn\u{fffd}[2J\u{fffd}ERROR` is not known here; allowed: enforce, warn"
    );
    assert_eq!(
        problem("  \"a\\nb\": 1"),
        "line 5, column 3: spec.\"a\u{fffd}b\": there is no such key; known here: extends, ruleSet, enforcement, fixAt, \
         announceFixes, exempt, breakGlass, rules, profiles, exceptions"
    );
}

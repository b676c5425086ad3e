//! Texts that are no policy at all.

use proptest::prelude::*;

use super::{parse, problems, with_spec};
use crate::policy::Error;
use crate::policy::error::MAX_BYTES;

#[test]
fn what_is_no_policy() {
    assert_eq!(
        problems(""),
        ["line 1, column 1: the text is empty; write a policy: apiVersion plimsoll.dev/v1alpha1, kind Policy"]
    );
    assert_eq!(
        problems("- a"),
        ["line 1, column 1: the text is no map; write a policy: apiVersion plimsoll.dev/v1alpha1, kind Policy"]
    );
    assert_eq!(
        problems("apiVersion: v1\nkind: ConfigMap\ndata: {}\n"),
        [
            "line 1, column 13: apiVersion: expected plimsoll.dev/v1alpha1, found \"v1\"; write `apiVersion: \
             plimsoll.dev/v1alpha1`",
            "line 2, column 7: kind: expected Policy, found \"ConfigMap\"; this is the ConfigMap around a policy: the \
             policy is what stands under its key policy.yaml",
        ]
    );
    assert_eq!(
        problems("apiVersion: plimsoll.dev/v1alpha1\nkind: Policy\nmetadata: {name: x}\n"),
        ["line 1, column 1: spec: it is missing; write `spec: …`"]
    );
}

#[test]
fn what_is_no_yaml() {
    let mend = "the text must be one YAML or JSON document";
    assert_eq!(
        problems("apiVersion: [\n"),
        [format!("line 1, column 13: cannot be read: unclosed bracket '['; {mend}")]
    );
    assert_eq!(
        problems("---\na: 1\n---\na: 2\n"),
        [format!("line 4, column 1: cannot be read: only single YAML document expected but multiple found; {mend}")]
    );
    assert_eq!(problems("a: !foo 1"), [format!("line 1, column 9: cannot be read: unsupported tag `!foo`; {mend}")]);
    assert_eq!(
        problems("{a: .nan}"),
        [format!("line 1, column 5: cannot be read: value `.nan` is not a finite number; {mend}")]
    );
}

#[test]
fn many_faults_have_an_end() {
    let doubled = with_spec(&"  extends: none\n".repeat(10_000));
    assert_eq!(problems(&doubled).len(), 50);
    // A round for each fault, as many as the size of the policy allows.
    let wrong = with_spec(&format!("  exceptions: [{}]", "1, ".repeat(8_000)));
    assert_eq!(problems(&wrong).len(), 31);
    // A long key above many members is not copied for each of them.
    let key = "k".repeat(400_000);
    let below: Vec<String> = (0..20_000).map(|number| format!("m{number}: ")).collect();
    let long = with_spec(&format!("  ? {key}\n  : {{{}}}", below.join(", ")));
    assert_eq!(problems(&long).len(), 50);
}

#[test]
fn j05_no_word_of_a_policy_turns_the_message() {
    let told = problems(&with_spec("  enforcement: \"a\\e[31m\\u202e\\x9b\""));
    assert!(told[0].contains("`a\u{fffd}[31m\u{fffd}\u{fffd}`"), "{told:?}");
}

#[test]
fn too_large_and_alias_bombs() {
    let large = format!("{}#{}", with_spec("  extends: none"), "x".repeat(MAX_BYTES));
    assert_eq!(parse(&large).err(), Some(Error::TooLarge(large.len())));
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..=8 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    assert!(problems(&bomb)[0].contains("cannot be read: "), "{:?}", problems(&bomb));
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(problems(&deep)[0].contains("cannot be read: "), "{:?}", problems(&deep));
}

proptest! {
    #[test]
    fn no_text_is_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    /// Lines of a real policy, in any order, cut anywhere, with strange values.
    #[test]
    fn no_policy_is_too_strange(
        lines in proptest::collection::vec((0usize..24, 0usize..12, "[ -~\u{e9}]{0,12}"), 0..24),
    ) {
        let keys = ["apiVersion: plimsoll.dev/v1alpha1", "kind: Policy", "metadata:", "name:", "spec:", "rules:",
            "missing-pre-stop:", "params:", "sleepSeconds:", "tiers:", "default-rolling-update:", "action:", "fix:",
            "profiles:", "critical:", "exceptions:", "- name:", "match:", "names:", "expires:", "extends:", "ruleSet:",
            "exempt:", "- "];
        let mut text = String::from("apiVersion: plimsoll.dev/v1alpha1\nkind: Policy\nmetadata: {name: x}\nspec:\n");
        for (key, indent, value) in lines {
            text.push_str(&format!("{}{} {value}\n", " ".repeat(indent), keys[key]));
        }
        if let Err(error) = parse(&text) {
            prop_assert!(!error.problems().is_empty());
        }
    }
}

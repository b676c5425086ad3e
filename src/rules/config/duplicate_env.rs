//! An environment variable is set twice, and only the last counts.
//!
//! ## What it does
//! Reports containers, init containers and sidecars that list a name more than once under `env`. It is fine where a
//! later variable, or the repetition itself, refers to the earlier value as `$(NAME)`. Values are never shown.
//!
//! ## Why it matters
//! The last one wins without a word, so what a reader finds first is not what runs. `kubectl apply` merges the list by
//! name and may drop or keep either one when it changes: a later apply of the same file can then change the value.
//!
//! ## Example
//! Bad:
//! ```yaml
//! env:
//!   - {name: LOG_LEVEL, value: info}
//!   - {name: LOG_LEVEL, value: debug}
//! ```
//! Good:
//! ```yaml
//! env:
//!   - {name: LOG_LEVEL, value: debug}
//! ```
//!
//! ## Parameters
//! None.
//!
//! ## Unknown facts
//! It needs none.

use std::collections::BTreeMap;

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::pod::{Class, Container};
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// The rule `duplicate-env`.
pub struct DuplicateEnv;

/// Parameters of `duplicate-env`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {}

impl Rule for DuplicateEnv {
    const META: Meta = Meta {
        id: "duplicate-env",
        category: Category::Config,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("duplicate_env.rs"),
    };

    type Params = Params;

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template else { return };
        for container in template.containers().filter(|container| container.class != Class::Ephemeral) {
            let repeated = repeated(container.value.get("env").items());
            // For the ratchet a container is worse the more of its entries are without effect.
            let lost: usize = repeated.iter().map(|variable| variable.places.len() - 1).sum();
            let measure = i64::try_from(lost).unwrap_or(i64::MAX);
            findings.extend(repeated.iter().map(|variable| report(container, variable).measure(measure)));
        }
    }
}

/// A name that is set more than once.
struct Repeated<'a> {
    name: &'a str,
    /// Indices in `env`, at least two; the last is in force.
    places: Vec<usize>,
}

/// The names that are set more than once and not made of each other, in the order of their last places.
fn repeated<'a>(variables: &'a [Value<'_>]) -> Vec<Repeated<'a>> {
    // Nearly all containers name each variable once.
    let mut names: Vec<&str> = variables.iter().filter_map(|variable| variable["name"].as_str()).collect();
    names.sort_unstable();
    if names.is_sorted_by(|one, next| one < next) {
        return Vec::new();
    }
    let mut seen: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, variable) in variables.iter().enumerate() {
        if let Some(name) = variable["name"].as_str() {
            seen.entry(name).or_default().push(index);
        }
    }
    seen.retain(|_, places| places.len() > 1);
    // Read once for all names: for each it would take time by the square of the list.
    let referring = references(variables);
    seen.retain(|name, places| !referring.get(name).is_some_and(|from| is_referred_to(from, places)));
    let mut found: Vec<_> = seen.into_iter().map(|(name, places)| Repeated { name, places }).collect();
    found.sort_by_key(|variable| variable.places.last().copied());
    found
}

/// Where each name is referred to as `$(NAME)`: indices in `env`, rising.
fn references<'a>(variables: &'a [Value<'_>]) -> BTreeMap<&'a str, Vec<usize>> {
    let mut referring: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, variable) in variables.iter().enumerate() {
        let mut pieces = variable["value"].as_str().unwrap_or_default().split(')').peekable();
        while let Some(piece) = pieces.next() {
            // The last piece has no closing bracket.
            let Some((before, name)) = piece.rsplit_once("$(").filter(|_| pieces.peek().is_some()) else { continue };
            // `$$` is one `$` that means nothing (k8s.io/kubernetes, third_party/forked/golang/expansion).
            let escapes = before.bytes().rev().take_while(|byte| *byte == b'$').count();
            if escapes % 2 == 0 {
                referring.entry(name).or_default().push(index);
            }
        }
    }
    referring
}

/// Whether some variable up to the last repetition is made of an earlier value.
fn is_referred_to(from: &[usize], places: &[usize]) -> bool {
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return false };
    from.get(from.partition_point(|index| index <= first)).is_some_and(|index| index <= last)
}

fn report(container: Container<'_>, variable: &Repeated<'_>) -> Finding {
    let last = variable.places.last().copied().unwrap_or_default();
    let name = quoted(variable.name);
    let lost = variable.places.len() - 1;
    let earlier = if lost == 1 { "1 earlier entry is".to_owned() } else { format!("{lost} earlier entries are") };
    let message = format!(
        "container {} sets {name} {} times: env[{last}] is in force, {earlier} without effect, and kubectl apply may \
         drop either",
        quoted(container.name()),
        variable.places.len()
    );
    Finding::new(DuplicateEnv::META.id, container.pointer(&["env", &last.to_string(), "name"]), message)
        .container(container.name())
        .mend(format!("env:\n- name: {name}  # once: what env[{last}] says is in force"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::in_pod_spec;

    fn found(env: serde_json::Value) -> Vec<Finding> {
        in_pod_spec::<DuplicateEnv>(json!({"containers": [{"name": "app", "env": env}]}), json!({}))
    }

    fn set(name: &str, value: &str) -> serde_json::Value {
        json!({"name": name, "value": value})
    }

    #[test]
    fn j06_the_message_tells_the_places_and_never_a_value() {
        let findings = found(json!([set("A", "secret-1"), set("B", "x"), set("A", "secret-2")]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].pointer, "/spec/template/spec/containers/0/env/2/name");
        assert_eq!(
            findings[0].message,
            "container \"app\" sets \"A\" 2 times: env[2] is in force, 1 earlier entry is without effect, and kubectl apply \
             may drop either"
        );
        assert_eq!(findings[0].mend.as_deref(), Some("env:\n- name: \"A\"  # once: what env[2] says is in force"));
        assert!(!format!("{findings:?}").contains("secret-"));
    }

    #[test]
    fn findings_come_in_the_order_of_the_entries_and_measure_what_is_lost() {
        let env = json!([set("B", "1"), set("A", "1"), set("B", "2"), set("B", "3"), set("A", "2")]);
        let told: Vec<_> = found(env).into_iter().map(|finding| (finding.pointer, finding.measure)).collect();
        let place = |index| format!("/spec/template/spec/containers/0/env/{index}/name");
        assert_eq!(told, [(place(3), Some(3)), (place(4), Some(3))]);
    }

    #[test]
    fn a_value_made_of_the_earlier_one_is_meant() {
        assert_eq!(found(json!([set("PATH", "/bin"), set("PATH", "$(PATH):/opt/bin")])), []);
        assert_eq!(found(json!([set("A", "1"), set("B", "x-$(A)"), set("A", "2")])), []);
        // A reference after the repetition reads the last value.
        assert_eq!(found(json!([set("A", "1"), set("A", "2"), set("B", "$(A)")])).len(), 1);
    }

    #[test]
    fn names_are_compared_exactly_and_per_container() {
        assert_eq!(found(json!([set("a", "1"), set("A", "1")])), []);
        let one = json!({"name": "x", "env": [set("A", "1")]});
        assert_eq!(in_pod_spec::<DuplicateEnv>(json!({"containers": [one, one]}), json!({})), []);
    }

    #[test]
    fn h08_init_containers_and_sidecars_are_judged_too() {
        let twice = |name: &str| json!({"name": name, "env": [set("A", "1"), set("A", "2")]});
        let spec = json!({"initContainers": [twice("init")], "ephemeralContainers": [twice("debug")]});
        let findings = in_pod_spec::<DuplicateEnv>(spec, json!({}));
        assert_eq!(findings.iter().map(|finding| finding.container.as_deref()).collect::<Vec<_>>(), [Some("init")]);
    }

    #[test]
    fn a23_nonsense_is_skipped() {
        for env in [json!(null), json!("x"), json!({"A": 1}), json!([null, null, 1, {}, {"name": 1}, {"name": 1}])] {
            assert_eq!(found(env), []);
        }
    }
}

//! The ConfigMaps and Secrets of a pod template, each with the places that use it.
//!
//! The rules on them ask for the facts of the same references, so that one look-up serves them all.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::references::{Use, uses};
use crate::config::{Reference, Source};
use crate::engine::facts::{ConfigFacts, Facts};
use crate::engine::pod::Template;

/// Length of the content hash at the end of a name that kustomize generated.
const HASH_LENGTH: usize = 10;

/// The characters of such a hash: hexadecimal digits, in which it replaces `0`, `1`, `3`, `a` and `e` so that no words
/// arise (kustomize: api/hasher, encode).
const HASH_CHARACTERS: &str = "2456789bcdfghkmt";

/// One ConfigMap or Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object<'a> {
    /// What to look up: `keys` are those that some use cannot do without; `optional` where every use can do without the
    /// object.
    pub reference: Reference,
    /// Where it is used, in their order; at least one.
    pub uses: Vec<Use<'a>>,
}

/// The ConfigMaps, and with `secrets` the Secrets, that this pod template uses, sorted.
pub fn objects(template: Template<'_>, secrets: bool) -> Vec<Object<'_>> {
    let mut grouped: BTreeMap<(Source, &str), Vec<Use<'_>>> = BTreeMap::new();
    for used in uses(template.spec()).into_iter().filter(|used| secrets || used.source == Source::ConfigMap) {
        grouped.entry((used.source, used.name)).or_default().push(used);
    }
    grouped.into_iter().map(|((source, name), uses)| Object::of(source, name, uses)).collect()
}

impl<'a> Object<'a> {
    fn of(source: Source, name: &str, uses: Vec<Use<'a>>) -> Self {
        let required = uses.iter().filter(|used| !used.optional);
        let keys = required.flat_map(|used| used.keys.iter().flatten());
        let keys: BTreeSet<String> = keys.map(|key| (*key).to_owned()).collect();
        let optional = uses.iter().all(|used| used.optional);
        let keys = (!keys.is_empty()).then_some(keys);
        Object { reference: Reference { source, name: name.to_owned(), keys, optional }, uses }
    }

    /// What is known of it by whichever reference: unlike missing keys, size and immutability hang on no keys, and the old
    /// object of an update, which is judged by the new one's facts, may use other keys.
    pub fn told<'f>(&self, facts: &'f Facts) -> Option<&'f ConfigFacts> {
        let same = |other: &Reference| other.source == self.reference.source && other.name == self.reference.name;
        // References are sorted by source and name, and without keys one comes before all others of its object.
        let first = Reference { keys: None, optional: false, ..self.reference.clone() };
        facts.configs.range(first..).take_while(|(reference, _)| same(reference)).find_map(|(_, told)| told.known())
    }

    /// Where its name stands first.
    pub fn pointer(&self, template: Template<'_>) -> String {
        self.uses.first().map(|used| name_pointer(template, used)).unwrap_or_default()
    }

    /// Whether its name says what is in it, so that other content goes by another name (TRAPS F14).
    pub fn is_named_by_content(&self) -> bool {
        let suffix = self.reference.name.rsplit_once('-').map_or("", |(_, suffix)| suffix);
        suffix.len() == HASH_LENGTH && suffix.chars().all(|character| HASH_CHARACTERS.contains(character))
    }
}

/// JSON Pointer of the object's name within this use.
pub fn name_pointer(template: Template<'_>, used: &Use<'_>) -> String {
    let path = used.path();
    let in_volume =
        path.last().is_some_and(|last| last == "secret") && path.get(3).is_some_and(|last| last == "secret");
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    template.pointer(&[path.as_slice(), &[if in_volume { "secretName" } else { "name" }]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::document::Value;

    #[test]
    fn f03_only_keys_that_some_use_cannot_do_without_are_asked_for() {
        let pod = r#"{"spec": {
            "containers": [{"env": [
                {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "a"}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "b", "optional": true}}},
                {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}
            ], "envFrom": [{"configMapRef": {"name": "c"}}]}],
            "volumes": [{"name": "v", "secret": {"secretName": "s", "optional": true}}]
        }}"#;
        let value = Value::parse(pod).unwrap();
        let template = Template { path: &[], value: &value };
        assert_eq!(objects(template, false).len(), 1);
        let found = objects(template, true);
        let show = |object: &Object<'_>| {
            let keys: Vec<String> = object.reference.keys.iter().flatten().cloned().collect();
            format!(
                "{} {keys:?} {} {}",
                object.reference.subject(),
                object.reference.optional,
                object.pointer(template)
            )
        };
        assert_eq!(
            found.iter().map(show).collect::<Vec<_>>(),
            [
                "ConfigMap \"c\" [\"a\"] false /spec/containers/0/env/0/valueFrom/configMapKeyRef/name",
                "Secret \"s\" [] true /spec/containers/0/env/2/valueFrom/secretKeyRef/name",
            ]
        );
        assert_eq!(name_pointer(template, &found[1].uses[1]), "/spec/volumes/0/secret/secretName");
    }

    #[test]
    fn f14_names_by_kustomize_say_what_is_in_them() {
        let named = |name: &str| {
            let reference = Reference { source: Source::ConfigMap, name: name.to_owned(), keys: None, optional: false };
            Object { reference, uses: Vec::new() }.is_named_by_content()
        };
        assert!(named("app-config-7h8gf2k4mt") && named("x-2456789bcd"));
        for name in ["7h8gf2k4mt", "app-config", "app-7h8gf2k4m", "app-7h8gf2k4mtt", "app-production", "app-1234567890"]
        {
            assert!(!named(name), "{name}");
        }
    }
}

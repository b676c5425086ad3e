//! What a review wants to know of ConfigMaps and Secrets, by object: one read answers all that is asked of one.

use std::collections::{BTreeMap, BTreeSet};

use super::object::Config;
use crate::config::digest::DigestKey;
use crate::config::{Reference, Source};
use crate::engine::facts::{ConfigFacts, Facts, Known, Reason};

/// More objects than this in one review, and none is looked up (TRAPS F02).
pub const MAX_REFERENCES: usize = 16;

/// What is wanted of one object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    digests: Vec<Reference>,
    configs: Vec<Reference>,
}

/// Kind and name.
pub(super) type Object = (Source, String);

/// What is to be read. What is too much is answered at once: too many digests are all unknown, and facts that would take
/// further objects beside the digests' are unknown rather than to cost the digests.
pub(super) fn wanted(digests: Vec<Reference>, configs: Vec<Reference>, facts: &mut Facts) -> BTreeMap<Object, Wanted> {
    let object = |reference: &Reference| (reference.source, reference.name.clone());
    let objects = |references: &[Reference]| references.iter().map(object).collect::<BTreeSet<_>>();
    let mut wanted: BTreeMap<Object, Wanted> = BTreeMap::new();
    if objects(&digests).len() > MAX_REFERENCES {
        facts.digests.extend(digests.into_iter().map(|reference| (reference, Known::Unknown(Reason::TooMany))));
    } else {
        for reference in digests {
            wanted.entry(object(&reference)).or_default().digests.push(reference);
        }
    }
    let mut all = objects(&configs);
    all.extend(wanted.keys().cloned());
    for reference in configs {
        let object = object(&reference);
        if all.len() <= MAX_REFERENCES || wanted.contains_key(&object) {
            wanted.entry(object).or_default().configs.push(reference);
        } else {
            facts.configs.insert(reference, Known::Unknown(Reason::TooMany));
        }
    }
    wanted
}

impl Wanted {
    /// Answers with the object.
    pub(super) fn answer(self, config: Known<&Config>, namespace: &str, key: Option<&DigestKey>, facts: &mut Facts) {
        for reference in self.digests {
            let digest = match config {
                Known::Known(config) => config.content.digest(&reference, namespace, key),
                Known::Absent => Known::Absent,
                Known::Unknown(reason) => Known::Unknown(reason),
            };
            facts.digests.insert(reference, digest);
        }
        for reference in self.configs {
            let told = match config {
                Known::Known(config) => Known::Known(ConfigFacts {
                    immutable: config.immutable,
                    bytes: config.content.bytes(),
                    missing_keys: config.content.missing_keys(&reference),
                    binary_keys: config.content.binary_keys(&reference),
                }),
                Known::Absent => Known::Absent,
                Known::Unknown(reason) => Known::Unknown(reason),
            };
            facts.configs.insert(reference, told);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(numbers: std::ops::Range<usize>) -> Vec<Reference> {
        let reference = |number| Reference {
            source: Source::ConfigMap,
            name: format!("c{number}"),
            keys: None,
            optional: number % 2 == 0,
        };
        numbers.map(reference).collect()
    }

    #[test]
    fn f02_facts_never_cost_the_digests() {
        let mut facts = Facts::unknown(Reason::NotAsked);
        let objects = wanted(references(0..10), references(8..17), &mut facts);
        assert_eq!(objects.len(), 10, "the union has 17");
        assert_eq!(objects.values().filter(|wanted| !wanted.configs.is_empty()).count(), 2);
        assert_eq!(facts.configs.len(), 7);
        assert!(facts.configs.values().all(|told| *told == Known::Unknown(Reason::TooMany)));
        assert!(facts.digests.is_empty());

        let mut facts = Facts::unknown(Reason::NotAsked);
        let objects = wanted(references(0..17), references(0..16), &mut facts);
        assert_eq!((objects.len(), facts.digests.len(), facts.configs.len()), (16, 17, 0));
    }
}

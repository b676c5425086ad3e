//! What is known beside the object: answers to whatever the engine asks, the same for the same question.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::NaiveDate;
use plimsoll::config::Reference;
use plimsoll::engine::facts::{ConfigFacts, Facts, Known, Needs, Quota, Reason, Revision, ServerVersion};
use plimsoll::engine::neighbours::Neighbours;

use super::entropy::Entropy;
use super::workload::{claim, neighbour};

/// Everything that could be asked.
#[derive(Debug, Clone)]
pub struct World {
    facts: Facts,
    /// Digests and config facts follow from this and the reference; another salt is another content.
    salt: u64,
}

fn unknown(entropy: &mut Entropy<'_>) -> Reason {
    entropy.pick(&[Reason::Failed, Reason::TimedOut, Reason::Forbidden, Reason::TooMany, Reason::NotAllowed])
}

fn known<T>(entropy: &mut Entropy<'_>, value: T) -> Known<T> {
    match entropy.below(16) {
        15 => Known::Unknown(unknown(entropy)),
        14 => Known::Absent,
        _ => Known::Known(value),
    }
}

impl World {
    /// A world; `templates` may be retained revisions.
    pub fn generate(entropy: &mut Entropy<'_>, templates: &[String]) -> World {
        let mut facts = Facts::unknown(Reason::Failed);
        let minor = entropy.pick(&[37, 37, 37, 34, 30, 29, 26]);
        facts.server_version = known(entropy, ServerVersion { major: 1, minor });
        let crd_sleep = !entropy.chance(20);
        facts.crd_sleep = known(entropy, crd_sleep);
        facts.quotas = match entropy.below(8) {
            0..=5 => Known::Absent,
            6 => {
                Known::Known(vec![Quota { name: "team".to_owned(), hard: vec!["pods".to_owned()], scopes: Vec::new() }])
            }
            _ => Known::Unknown(unknown(entropy)),
        };
        facts.limit_range = if entropy.chance(25) { Known::Known(()) } else { Known::Absent };
        let retained = templates.iter().filter(|_| entropy.chance(12));
        let revision =
            |(index, template): (usize, &String)| Revision { name: format!("web-{index}"), template: template.clone() };
        facts.revisions = Known::Known(retained.enumerate().map(revision).collect());
        if entropy.chance(15) {
            facts.revisions = Known::Unknown(unknown(entropy));
        }
        let profile = entropy.pick(&["", "", "", "critical", "strict"]);
        let labels = BTreeMap::from([("plimsoll.dev/profile".to_owned(), profile.to_owned())]);
        facts.namespace_labels = known(entropy, labels);
        let mut neighbours = Neighbours::default();
        (0..entropy.below(7)).for_each(|_| neighbours.add(&neighbour(entropy)));
        if entropy.chance(50) {
            neighbours.add(&claim(entropy));
        }
        facts.budgets = known(entropy, neighbours.budgets);
        facts.autoscalers = known(entropy, neighbours.autoscalers);
        facts.services = known(entropy, neighbours.services);
        facts.workloads = known(entropy, neighbours.workloads);
        facts.claims = known(entropy, neighbours.claims);
        facts.today = NaiveDate::from_ymd_opt(2026, 12, 1);
        World { facts, salt: entropy.word() }
    }

    /// The same world after its configuration changed.
    pub fn with_other_config(&self) -> World {
        World { facts: self.facts.clone(), salt: self.salt.wrapping_add(1) }
    }

    /// What is asked for, and nothing else.
    pub fn answer(&self, needs: &Needs) -> Facts {
        let all = &self.facts;
        let mut facts = Facts { today: all.today, ..Facts::unknown(Reason::NotAsked) };
        fn take<T: Clone>(asked: bool, from: &Known<T>, to: &mut Known<T>) {
            if asked {
                *to = from.clone();
            }
        }
        take(needs.server_version, &all.server_version, &mut facts.server_version);
        take(needs.crd_sleep, &all.crd_sleep, &mut facts.crd_sleep);
        take(needs.quotas, &all.quotas, &mut facts.quotas);
        take(needs.limit_range, &all.limit_range, &mut facts.limit_range);
        take(needs.revisions.is_some(), &all.revisions, &mut facts.revisions);
        take(needs.namespace_labels, &all.namespace_labels, &mut facts.namespace_labels);
        take(needs.budgets, &all.budgets, &mut facts.budgets);
        take(needs.autoscalers, &all.autoscalers, &mut facts.autoscalers);
        take(needs.services, &all.services, &mut facts.services);
        take(needs.workloads, &all.workloads, &mut facts.workloads);
        take(needs.claims, &all.claims, &mut facts.claims);
        for reference in &needs.digests {
            facts.digests.insert(reference.clone(), self.digest(reference));
        }
        for reference in &needs.configs {
            facts.configs.insert(reference.clone(), self.config(reference));
        }
        facts
    }

    fn hash(&self, reference: &Reference) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.salt, reference).hash(&mut hasher);
        hasher.finish()
    }

    fn digest(&self, reference: &Reference) -> Known<String> {
        match self.hash(reference) % 16 {
            0 => Known::Unknown(Reason::TimedOut),
            1 => Known::Absent,
            hash => Known::Known(format!("{hash:x}{:063x}", self.hash(reference))),
        }
    }

    fn config(&self, reference: &Reference) -> Known<ConfigFacts> {
        let hash = self.hash(reference);
        let missing_keys = reference.keys.iter().flatten().filter(|_| hash & 32 != 0).cloned().collect();
        match hash % 16 {
            0 => Known::Unknown(Reason::Forbidden),
            1..4 => Known::Absent,
            _ => Known::Known(ConfigFacts {
                immutable: hash & 16 != 0,
                bytes: if hash & 64 == 0 { 100 } else { 600 * 1024 },
                missing_keys,
                binary_keys: reference.keys.iter().flatten().filter(|_| hash & 128 != 0).cloned().collect(),
            }),
        }
    }
}

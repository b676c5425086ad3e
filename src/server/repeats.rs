//! Controllers retry what was denied for ever: equal records are written once a minute, with a count (TRAPS K05).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::request::{Endpoint, Operation, Request};
use crate::engine::verdict::Verdict;

/// How long equal records are held back after one was written.
const PERIOD: Duration = Duration::from_secs(60);
/// Records remembered; beyond that every record is written.
const MAX_REMEMBERED: usize = 4096;

/// What was denied within the last minute.
#[derive(Debug, Default)]
pub struct Repeats {
    seen: Mutex<HashMap<u64, Seen>>,
}

#[derive(Debug)]
struct Seen {
    written: Instant,
    held_back: u64,
}

impl Repeats {
    /// Whether this denied record is to be written: `Some` with the number of equal ones held back since the last, or
    /// `None`. The first is always written.
    pub fn admit(&self, key: u64, now: Instant) -> Option<u64> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = seen.get_mut(&key) {
            if now.saturating_duration_since(entry.written) < PERIOD {
                entry.held_back += 1;
                return None;
            }
            entry.written = now;
            return Some(std::mem::take(&mut entry.held_back));
        }
        if seen.len() >= MAX_REMEMBERED {
            seen.retain(|_, entry| now.saturating_duration_since(entry.written) < PERIOD);
        }
        if seen.len() < MAX_REMEMBERED {
            seen.insert(key, Seen { written: now, held_back: 0 });
        }
        Some(0)
    }
}

/// What makes two denied records equal: webhook, user, operation, rules, kind, namespace, and the object's controller,
/// generateName when it is created, or name, the first that there is: a controller's pods have a new name at each
/// attempt, and so has what `generateName` names (the API server has put the name in by the time that /validate is
/// asked). Dry runs count by themselves, so that a rehearsal never hides the real thing. A denial by no rule, of our own
/// policy, counts by its text.
pub fn key(endpoint: Endpoint, request: &Request<'_>, verdict: &Verdict) -> u64 {
    let mut hasher = DefaultHasher::new();
    (endpoint, request.operation, request.dry_run, &request.user.name).hash(&mut hasher);
    (&request.group, &request.kind, &request.namespace).hash(&mut hasher);
    // Two workloads of one name may be scaled.
    (&request.resource.group, &request.resource.plural, &request.sub_resource).hash(&mut hasher);
    for judged in &verdict.findings {
        (judged.finding.rule, judged.action).hash(&mut hasher);
    }
    if verdict.findings.is_empty() {
        verdict.denial.hash(&mut hasher);
    }
    let metadata = request.object.as_ref().map(|object| &object["metadata"]);
    let controller = metadata.and_then(|metadata| {
        let owners = metadata["ownerReferences"].items();
        owners.iter().find(|owner| owner["controller"].as_bool() == Some(true))
    });
    let prefix = metadata
        .filter(|_| request.operation == Operation::Create)
        .and_then(|metadata| metadata["generateName"].as_str())
        .filter(|prefix| !prefix.is_empty());
    match (controller, prefix) {
        (Some(owner), _) => (0_u8, ["kind", "name", "uid"].map(|member| owner[member].as_str())).hash(&mut hasher),
        (None, Some(prefix)) => (1_u8, prefix).hash(&mut hasher),
        (None, None) => (2_u8, request.display_name()).hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::document::Value;
    use crate::engine::request::{Operation, Resource, User};

    #[test]
    fn k05_the_first_is_written_then_one_a_minute_with_a_count() {
        let (repeats, start) = (Repeats::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(repeats.admit(1, at(0)), Some(0));
        assert_eq!(repeats.admit(1, at(1)), None);
        assert_eq!(repeats.admit(1, at(59)), None);
        assert_eq!(repeats.admit(2, at(59)), Some(0));
        assert_eq!(repeats.admit(1, at(60)), Some(2));
        assert_eq!(repeats.admit(1, at(61)), None);
    }

    #[test]
    fn k05_a_first_is_written_however_many_there_are() {
        let (repeats, start) = (Repeats::default(), Instant::now());
        for key in 0..2 * MAX_REMEMBERED as u64 {
            assert_eq!(repeats.admit(key, start), Some(0));
        }
        assert_eq!(repeats.seen.lock().unwrap().len(), MAX_REMEMBERED);
        assert_eq!(repeats.admit(u64::MAX, start + PERIOD), Some(0));
        assert_eq!(repeats.seen.lock().unwrap().len(), 1);
    }

    /// The key of a request by this user about an object with this metadata.
    fn key_of(operation: Operation, user: &str, metadata: &str, denial: Option<&str>) -> u64 {
        let object = format!(r#"{{"metadata":{metadata}}}"#);
        let request = Request {
            operation,
            group: String::new(),
            kind: "Pod".into(),
            resource: Resource::default(),
            sub_resource: String::new(),
            namespace: "shop".into(),
            name: String::new(),
            user: User { name: user.into(), ..User::default() },
            object: Some(Value::parse(&object).unwrap().to_static()),
            old_object: None,
            dry_run: false,
            own: false,
        };
        let verdict = Verdict { denial: denial.map(str::to_owned), ..Verdict::default() };
        key(Endpoint::Validate, &request, &verdict)
    }

    #[test]
    fn k05_pods_of_one_controller_are_equal_whatever_their_names() {
        let pod = |name: &str, owner: &str, uid: &str, user: &str| {
            let owner = format!(r#"{{"controller":true,"kind":"ReplicaSet","name":"{owner}","uid":"{uid}"}}"#);
            let metadata = format!(r#"{{"name":"{name}","generateName":"p-","ownerReferences":[{owner}]}}"#);
            key_of(Operation::Create, user, &metadata, None)
        };
        let first = pod("web-1", "web", "1", "replicaset-controller");
        assert_eq!(first, pod("web-2", "web", "1", "replicaset-controller"));
        assert_ne!(first, pod("web-1", "api", "1", "replicaset-controller"));
        assert_ne!(first, pod("web-1", "web", "2", "replicaset-controller"), "another controller of the same name");
        // Who was refused is what an auditor looks for.
        assert_ne!(pod("web-1", "web", "1", "alice"), pod("web-1", "web", "1", "bob"));
    }

    #[test]
    fn k05_what_generate_name_names_is_equal_when_it_is_created() {
        let pod = |operation, metadata| key_of(operation, "alice", metadata, None);
        let (first, second) =
            (r#"{"generateName":"run-","name":"run-a"}"#, r#"{"generateName":"run-","name":"run-b"}"#);
        assert_eq!(pod(Operation::Create, first), pod(Operation::Create, second));
        assert_eq!(pod(Operation::Create, first), pod(Operation::Create, r#"{"generateName":"run-"}"#));
        assert_ne!(pod(Operation::Create, first), pod(Operation::Create, r#"{"name":"run-"}"#));
        // What is there has a name of its own.
        assert_ne!(pod(Operation::Update, first), pod(Operation::Update, second));
        assert_ne!(pod(Operation::Create, r#"{"name":"a"}"#), pod(Operation::Update, r#"{"name":"a"}"#));
    }

    #[test]
    fn k05_a_denial_by_no_rule_counts_by_its_text() {
        let denied = |text| key_of(Operation::Update, "alice", r#"{"name":"plimsoll-policy"}"#, Some(text));
        assert_eq!(denied("line 6: no number"), denied("line 6: no number"));
        assert_ne!(denied("line 6: no number"), denied("line 7: no number"));
    }
}

//! What the engine knows of the world beside the object; gathered by [`crate::cluster`] or from a folder of manifests.
//!
//! "Unknown" is a value of its own: what is unknown neither denies nor patches.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use chrono::NaiveDate;

use super::neighbours::{Autoscaler, Budget, Claim, Labels, Requirement, Selector, Service, Workload};
use super::pod::{Container, Template};
use crate::config::Reference;

/// A fact: known, known to be absent, or unknown for a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known<T> {
    /// It is so.
    Known(T),
    /// There is no such thing.
    Absent,
    /// We could not find out.
    Unknown(Reason),
}

impl<T> Known<T> {
    /// The value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Known::Known(value) => Some(value),
            _ => None,
        }
    }

    /// The reason, if it is unknown.
    pub fn unknown(&self) -> Option<Reason> {
        match self {
            Known::Unknown(reason) => Some(*reason),
            _ => None,
        }
    }
}

impl<T> Known<Vec<T>> {
    /// The things there are, none where they are known to be absent; `None` where nobody knows.
    pub fn list(&self) -> Option<&[T]> {
        match self {
            Known::Known(items) => Some(items),
            Known::Absent => Some(&[]),
            Known::Unknown(_) => None,
        }
    }
}

/// Why a fact is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Nobody asked, or there is no cluster to ask.
    NotAsked,
    /// The answer did not come within the deadline.
    TimedOut,
    /// The API server refused us (403).
    Forbidden,
    /// Any other failure of the look-up.
    Failed,
    /// More look-ups than one review may cause.
    TooMany,
    /// The policy does not allow to look (Secrets without `secrets: true`, or without client authentication).
    NotAllowed,
}

impl Reason {
    /// Whether a look-up was made and failed; else there was none to make.
    pub fn is_failure(self) -> bool {
        matches!(self, Reason::TimedOut | Reason::Forbidden | Reason::Failed | Reason::TooMany)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::NotAsked => "not known here",
            Reason::TimedOut => "look-up timed out",
            Reason::Forbidden => "look-up forbidden",
            Reason::Failed => "look-up failed",
            Reason::TooMany => "too many look-ups",
            Reason::NotAllowed => "look-up not allowed",
        })
    }
}

/// `major.minor` of the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerVersion {
    /// 1.
    pub major: u32,
    /// For instance 37.
    pub minor: u32,
}

impl ServerVersion {
    /// The newest version that we know of, the default where there is no cluster to ask.
    pub const NEWEST: ServerVersion = ServerVersion { major: 1, minor: 37 };

    /// Reads `1.37`, `v1.37.2`, `1.29+`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().trim_start_matches('v').splitn(3, '.');
        let number = |part: Option<&str>| {
            let part = part?;
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            part[..digits].parse::<u32>().ok()
        };
        Some(ServerVersion { major: number(parts.next())?, minor: number(parts.next())? })
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A ResourceQuota, as far as a surge pod is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// `metadata.name`.
    pub name: String,
    /// The keys of `spec.hard`, for instance `pods`, `requests.cpu`.
    pub hard: Vec<String>,
    /// `spec.scopes` and `spec.scopeSelector`, all of which a pod must match to be counted: a requirement's key is the
    /// scope's name.
    pub scopes: Vec<Requirement>,
}

impl Quota {
    /// Whether it limits what a pod more of this template would need: pods, cpu or memory (TRAPS C20).
    pub fn limits(&self, template: &Template<'_>) -> bool {
        self.limits_pods() && self.counts(template)
    }

    /// Whether pods of this template match its scopes (core/v1 ResourceQuotaScope). Those of a workload that is rolled
    /// out have no `activeDeadlineSeconds`, which is what `Terminating` asks for.
    fn counts(&self, template: &Template<'_>) -> bool {
        if self.scopes.is_empty() {
            return true;
        }
        let asks = |list: &str, container: &Container<'_>| {
            let amounts = container.value["resources"][list].members();
            amounts.into_iter().any(|(name, amount)| matches!(name, "cpu" | "memory") && !amount.is_null())
        };
        let mut containers = template.containers();
        let some = containers.any(|container| asks("requests", &container) || asks("limits", &container));
        let mut scopes = Labels::new();
        let effort = if some { "NotBestEffort" } else { "BestEffort" };
        // Which namespaces its affinity names is not looked at: it may be counted.
        for scope in ["NotTerminating", "CrossNamespacePodAffinity", effort] {
            scopes.insert(scope.to_owned(), String::new());
        }
        if let Some(class) = template.spec()["priorityClassName"].as_str() {
            scopes.insert("PriorityClass".to_owned(), class.to_owned());
        }
        Selector { labels: Labels::new(), expressions: self.scopes.clone() }.matches(&scopes)
    }

    fn limits_pods(&self) -> bool {
        self.hard.iter().any(|key| {
            matches!(
                key.as_str(),
                "pods"
                    | "count/pods"
                    | "cpu"
                    | "memory"
                    | "requests.cpu"
                    | "requests.memory"
                    | "limits.cpu"
                    | "limits.memory"
            )
        })
    }
}

/// One retained revision of a workload: a ReplicaSet or a ControllerRevision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// `metadata.name` of the ReplicaSet or ControllerRevision.
    pub name: String,
    /// Its pod template as JSON text; the label `pod-template-hash` may still be in it.
    pub template: String,
}

/// All that a review's rules may ask about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Version of the API server.
    pub server_version: Known<ServerVersion>,
    /// Whether the CRD of a kind that is no built-in one (Rollout) keeps `lifecycle.preStop.sleep`: a structural schema
    /// that does not list the member drops it.
    pub crd_sleep: Known<bool>,
    /// ResourceQuotas of the request's namespace; [`Known::Absent`] where there is none.
    pub quotas: Known<Vec<Quota>>,
    /// Whether the namespace has a LimitRange that sets container defaults; [`Known::Absent`] where it has none.
    pub limit_range: Known<()>,
    /// Retained revisions of the workload.
    pub revisions: Known<Vec<Revision>>,
    /// One digest per reference of the pod spec, 64 hex digits; [`Known::Absent`] for a missing object.
    pub digests: BTreeMap<Reference, Known<String>>,
    /// What can be told of each referenced object beside its content.
    pub configs: BTreeMap<Reference, Known<ConfigFacts>>,
    /// Labels of the request's namespace.
    pub namespace_labels: Known<Labels>,
    /// PodDisruptionBudgets of the namespace; an empty list where there is none.
    pub budgets: Known<Vec<Budget>>,
    /// HorizontalPodAutoscalers of the namespace; an empty list where there is none.
    pub autoscalers: Known<Vec<Autoscaler>>,
    /// Services of the namespace; an empty list where there is none.
    pub services: Known<Vec<Service>>,
    /// Workloads of the namespace that no other workload stands for; an empty list where there is none.
    pub workloads: Known<Vec<Workload>>,
    /// PersistentVolumeClaims of the namespace; an empty list where there is none.
    pub claims: Known<Vec<Claim>>,
    /// Today, UTC, for exceptions that expire; `None` where nobody said: then none has.
    pub today: Option<NaiveDate>,
}

/// What can be told of a ConfigMap or Secret without its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFacts {
    /// `immutable: true`.
    pub immutable: bool,
    /// Keys and values of `data` and `binaryData` together, bytes, values decoded.
    pub bytes: u64,
    /// Keys that the reference names and the object lacks, sorted.
    pub missing_keys: Vec<String>,
    /// Keys that the reference names and a ConfigMap has in `binaryData` alone, sorted: no environment variable can be
    /// made of them (the kubelet reads `data`).
    pub binary_keys: Vec<String>,
}

impl Facts {
    /// Nothing is known, for this reason.
    pub fn unknown(reason: Reason) -> Self {
        Facts {
            server_version: Known::Unknown(reason),
            crd_sleep: Known::Unknown(reason),
            quotas: Known::Unknown(reason),
            limit_range: Known::Unknown(reason),
            revisions: Known::Unknown(reason),
            digests: BTreeMap::new(),
            configs: BTreeMap::new(),
            namespace_labels: Known::Unknown(reason),
            budgets: Known::Unknown(reason),
            autoscalers: Known::Unknown(reason),
            services: Known::Unknown(reason),
            workloads: Known::Unknown(reason),
            claims: Known::Unknown(reason),
            today: None,
        }
    }

    /// Nothing is known of what was wanted, reference by reference, for this reason.
    pub fn none_of(needs: Needs, reason: Reason) -> Self {
        let digests = needs.digests.into_iter().map(|reference| (reference, Known::Unknown(reason))).collect();
        let configs = needs.configs.into_iter().map(|reference| (reference, Known::Unknown(reason))).collect();
        Facts { digests, configs, ..Facts::unknown(reason) }
    }

    /// What can be told of one referenced object; unknown where nobody looked.
    pub fn config(&self, reference: &Reference) -> &Known<ConfigFacts> {
        self.configs.get(reference).unwrap_or(&Known::Unknown(Reason::NotAsked))
    }

    /// The digest of one reference; unknown where nobody looked.
    pub fn digest(&self, reference: &Reference) -> Known<String> {
        self.digests.get(reference).cloned().unwrap_or(Known::Unknown(Reason::NotAsked))
    }
}

/// Which facts a review wants: what is not wanted is not looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The server's version.
    pub server_version: bool,
    /// Whether the Rollout CRD knows the `sleep` action.
    pub crd_sleep: bool,
    /// ResourceQuotas of the namespace.
    pub quotas: bool,
    /// LimitRanges of the namespace.
    pub limit_range: bool,
    /// Retained revisions of this workload.
    pub revisions: Option<RevisionOwner>,
    /// Digests of these references, all in the request's namespace.
    pub digests: Vec<Reference>,
    /// [`ConfigFacts`] of these references.
    pub configs: Vec<Reference>,
    /// Labels of the namespace.
    pub namespace_labels: bool,
    /// PodDisruptionBudgets of the namespace.
    pub budgets: bool,
    /// HorizontalPodAutoscalers of the namespace.
    pub autoscalers: bool,
    /// Services of the namespace.
    pub services: bool,
    /// Workloads of the namespace.
    pub workloads: bool,
    /// PersistentVolumeClaims of the namespace.
    pub claims: bool,
}

impl Needs {
    /// Whether nothing at all is wanted.
    pub fn is_empty(&self) -> bool {
        *self == Needs::default()
    }

    /// Adds what another asks for.
    pub fn merge(&mut self, other: Needs) {
        self.server_version |= other.server_version;
        self.crd_sleep |= other.crd_sleep;
        self.quotas |= other.quotas;
        self.limit_range |= other.limit_range;
        self.revisions = self.revisions.take().or(other.revisions);
        self.namespace_labels |= other.namespace_labels;
        self.budgets |= other.budgets;
        self.autoscalers |= other.autoscalers;
        self.services |= other.services;
        self.workloads |= other.workloads;
        self.claims |= other.claims;
        for (mine, others) in [(&mut self.digests, other.digests), (&mut self.configs, other.configs)] {
            if others.is_empty() {
                continue;
            }
            let mut known: HashSet<Reference> = mine.iter().cloned().collect();
            mine.extend(others.into_iter().filter(|reference| known.insert(reference.clone())));
        }
    }
}

/// Whose revisions to list: those controlled by `uid`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionOwner {
    /// Where the kind keeps its revisions.
    pub store: RevisionStore,
    /// `metadata.uid` of the workload (from the old object).
    pub uid: String,
    /// `spec.selector.matchLabels` of the old object, to narrow the list call.
    pub match_labels: Vec<(String, String)>,
}

/// Where a kind keeps its revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionStore {
    /// ReplicaSets (Deployment, Rollout).
    ReplicaSets,
    /// ControllerRevisions (StatefulSet, DaemonSet).
    ControllerRevisions,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::document::Value;

    #[test]
    fn c20_a_quota_counts_the_pods_that_match_every_scope() {
        let requirement = |text: &str| Requirement::read(&Value::parse(text).unwrap(), "scopeName").unwrap();
        let exists = |name: &str| requirement(&format!(r#"{{"scopeName":"{name}","operator":"Exists"}}"#));
        let limits = |scopes: Vec<Requirement>, pod: &str| {
            let pod = Value::parse(pod).unwrap();
            let quota = Quota { name: "q".to_owned(), hard: vec!["pods".to_owned()], scopes };
            quota.limits(&Template { path: &[], value: &pod })
        };
        let some = r#"{"spec":{"containers":[{"name":"c"},{"name":"d","resources":{"limits":{"cpu":"1"}}}]}}"#;
        let none = r#"{"spec":{"containers":[{"name":"c","resources":{"limits":{"example.org/x":1}}}]}}"#;
        let high = r#"{"spec":{"priorityClassName":"high"}}"#;
        for (scope, in_some, in_none) in [
            ("NotBestEffort", true, false),
            ("BestEffort", false, true),
            ("NotTerminating", true, true),
            ("Terminating", false, false),
        ] {
            assert_eq!(limits(vec![exists(scope)], some), in_some, "{scope}");
            assert_eq!(limits(vec![exists(scope)], none), in_none, "{scope}");
        }
        assert!(!limits(vec![exists("NotTerminating"), exists("BestEffort")], some), "all must match");
        let class = |rest: &str| requirement(&format!(r#"{{"scopeName":"PriorityClass",{rest}}}"#));
        assert!(limits(vec![class(r#""operator":"In","values":["high"]"#)], high));
        assert!(!limits(vec![class(r#""operator":"In","values":["low"]"#)], high));
        assert!(!limits(vec![class(r#""operator":"In","values":["high"]"#)], some));
        assert!(!limits(vec![class(r#""operator":"Exists""#)], some));
        assert!(limits(vec![class(r#""operator":"DoesNotExist""#)], some));
    }

    #[test]
    fn versions_as_servers_spell_them() {
        let version = |text| ServerVersion::parse(text).map(|version| (version.major, version.minor));
        assert_eq!(version("v1.37.2"), Some((1, 37)));
        assert_eq!(version("1.29+"), Some((1, 29)));
        assert_eq!(version("1.30"), Some((1, 30)));
        assert_eq!(version("one"), None);
        assert_eq!(version("1"), None);
    }
}

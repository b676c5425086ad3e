//! A small cluster and a policy around the server: what a trap needs, and how it asks.
//!
//! A fact that the engine does not ask for stays unknown to it, as in production: so each trap also proves that what
//! it needs is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll::cluster::FactSource;
use plimsoll::config::digest::{Content, DigestKey};
use plimsoll::config::{Reference, Source};
use plimsoll::engine::facts::{Facts, Known, Needs, Quota, Reason, Revision, ServerVersion};
use plimsoll::engine::finding::Action;
use plimsoll::engine::neighbours::Labels;
use plimsoll::policy::Policy;
use serde_json::{Map, Value, json};

pub use super::answer::{Answer, digest_in, same_operations};
pub use crate::harness::yaml;
use crate::harness::{self, Server};

/// Policy P0 of the catalogue.
const P0: &str = include_str!("../p0.yaml");

/// Namespace of every request that does not name another.
const NAMESPACE: &str = "team-a";

/// A policy and the facts beside it. The server starts with the first question.
pub struct World {
    policy: Value,
    cluster: Cluster,
    server: std::sync::OnceLock<Server>,
}

/// What is there beside the object under review.
#[derive(Clone)]
pub struct Cluster {
    server_version: Known<ServerVersion>,
    crd_sleep: Known<bool>,
    quotas: Known<Vec<Quota>>,
    limit_range: Known<()>,
    revisions: Known<Vec<Revision>>,
    namespace_labels: Known<Labels>,
    contents: BTreeMap<(Source, String), Known<BTreeMap<String, String>>>,
}

impl World {
    /// Policy P0 and the facts that the catalogue gives where a case says nothing: server 1.37, no ResourceQuota, no
    /// LimitRange, no retained revision, ConfigMap `cfg` there and readable.
    pub fn p0() -> World {
        let cluster = Cluster {
            server_version: Known::Known(ServerVersion { major: 1, minor: 37 }),
            crd_sleep: Known::Known(true),
            quotas: Known::Absent,
            limit_range: Known::Absent,
            revisions: Known::Absent,
            namespace_labels: Known::Known(Labels::new()),
            contents: BTreeMap::new(),
        };
        World { policy: yaml(P0), cluster, server: std::sync::OnceLock::new() }.config("cfg", "first")
    }

    /// Version of the API server, `1.28` or `unknown`.
    pub fn server_version(mut self, version: &str) -> World {
        self.cluster.server_version = match ServerVersion::parse(version) {
            Some(version) => Known::Known(version),
            None => Known::Unknown(Reason::Failed),
        };
        self
    }

    /// Whether the CRD of Rollouts keeps `preStop.sleep`.
    pub fn crd_sleep(mut self, knows: bool) -> World {
        self.cluster.crd_sleep = Known::Known(knows);
        self
    }

    /// A ConfigMap with this one value.
    pub fn config(self, name: &str, content: &str) -> World {
        self.config_data(name, &[("value", content)])
    }

    /// A ConfigMap with this data.
    pub fn config_data(self, name: &str, data: &[(&str, &str)]) -> World {
        self.content(Source::ConfigMap, name, Known::Known(text_map(data)))
    }

    /// A Secret with this data, not yet base64.
    pub fn secret(self, name: &str, data: &[(&str, &str)]) -> World {
        self.content(Source::Secret, name, Known::Known(text_map(data)))
    }

    /// No ConfigMap of this name.
    pub fn config_absent(self, name: &str) -> World {
        self.content(Source::ConfigMap, name, Known::Absent)
    }

    /// A ConfigMap that cannot be looked up.
    pub fn config_unknown(self, name: &str, reason: Reason) -> World {
        self.content(Source::ConfigMap, name, Known::Unknown(reason))
    }

    fn content(mut self, source: Source, name: &str, content: Known<BTreeMap<String, String>>) -> World {
        self.cluster.contents.insert((source, name.to_owned()), content);
        self
    }

    /// One ResourceQuota more in the namespace, with these keys under `spec.hard`.
    pub fn quota(mut self, name: &str, hard: &[&str]) -> World {
        let quota = Quota {
            name: name.to_owned(),
            hard: hard.iter().map(|key| (*key).to_owned()).collect(),
            scopes: Vec::new(),
        };
        match &mut self.cluster.quotas {
            Known::Known(quotas) => quotas.push(quota),
            none => *none = Known::Known(vec![quota]),
        }
        self
    }

    /// ResourceQuotas cannot be looked up.
    pub fn quotas_unknown(mut self, reason: Reason) -> World {
        self.cluster.quotas = Known::Unknown(reason);
        self
    }

    /// Whether the namespace has a LimitRange that sets container defaults.
    pub fn limit_range(mut self, there: bool) -> World {
        self.cluster.limit_range = if there { Known::Known(()) } else { Known::Absent };
        self
    }

    /// LimitRanges cannot be looked up.
    pub fn limit_range_unknown(mut self, reason: Reason) -> World {
        self.cluster.limit_range = Known::Unknown(reason);
        self
    }

    /// One retained revision more, with this pod template.
    pub fn revision(mut self, template: &Value) -> World {
        let mut revisions = self.cluster.revisions.known().cloned().unwrap_or_default();
        revisions.push(Revision { name: format!("web-{}", revisions.len() + 1), template: template.to_string() });
        self.cluster.revisions = Known::Known(revisions);
        self
    }

    /// Revisions cannot be looked up.
    pub fn revisions_unknown(mut self, reason: Reason) -> World {
        self.cluster.revisions = Known::Unknown(reason);
        self
    }

    /// Other parameters for a rule.
    pub fn params(mut self, rule: &str, params: Value) -> World {
        self.policy["spec"]["rules"][rule]["params"] = params;
        self
    }

    /// A rule beside those of P0, or one of them otherwise.
    pub fn rule(mut self, id: &str, action: Action, fix: bool, params: Value) -> World {
        let mut rule = json!({"action": action.as_str(), "params": params});
        if fix {
            rule["fix"] = json!(true);
        }
        self.policy["spec"]["rules"][id] = rule;
        self
    }

    /// More members of the policy's `spec`.
    pub fn spec(mut self, members: Value) -> World {
        for (name, value) in members.as_object().expect("members") {
            self.policy["spec"][name] = value.clone();
        }
        self
    }

    /// A label of the request's namespace.
    pub fn namespace_label(mut self, key: &str, value: &str) -> World {
        self.cluster.namespace_labels = Known::Known([(key.to_owned(), value.to_owned())].into());
        self
    }

    /// The namespace's labels cannot be looked up.
    pub fn namespace_labels_unknown(mut self) -> World {
        self.cluster.namespace_labels = Known::Unknown(Reason::Failed);
        self
    }

    /// `spec.enforcement` of the policy.
    pub fn enforcement(mut self, enforcement: &str) -> World {
        self.policy["spec"]["enforcement"] = json!(enforcement);
        self
    }

    /// The policy as its file says it.
    pub fn policy(&self) -> String {
        self.policy.to_string()
    }

    /// Asks about a new object.
    pub fn create(&self, object: &Value) -> Asked<'_> {
        self.asked(json!({"operation": "CREATE", "object": object}), object)
    }

    /// Asks about a changed object. Both get one uid, as stored objects have.
    pub fn update(&self, old: &Value, new: &Value) -> Asked<'_> {
        let stored = |object: &Value| {
            let mut object = object.clone();
            if object["metadata"]["uid"].is_null() {
                object["metadata"]["uid"] = json!("5f3c1b1e-0000-4000-8000-000000000001");
            }
            object
        };
        self.asked(json!({"operation": "UPDATE", "object": stored(new), "oldObject": stored(old)}), new)
    }

    /// Asks this very AdmissionReview.
    pub fn review(&self, review: Value) -> Asked<'_> {
        Asked { world: self, review }
    }

    fn asked(&self, mut request: Value, object: &Value) -> Asked<'_> {
        let api_version = object["apiVersion"].as_str().expect("an apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = object["kind"].as_str().expect("a kind");
        request["uid"] = json!("4d9a7c52-0000-4000-8000-000000000002");
        request["kind"] = json!({"group": group, "version": version, "kind": kind});
        request["resource"] =
            json!({"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())});
        request["namespace"] = object["metadata"].get("namespace").cloned().unwrap_or_else(|| json!(NAMESPACE));
        request["name"] = object["metadata"]["name"].clone();
        request["userInfo"] = json!({"username": "alice", "groups": ["developers", "system:authenticated"]});
        request["dryRun"] = json!(false);
        self.review(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}))
    }

    /// The new object as it is stored after `/mutate`.
    pub fn mutated(&self, object: &Value) -> Value {
        apply(object, self.create(object).mutate().patch.as_ref())
    }

    /// The changed object as it is stored after `/mutate`.
    pub fn mutated_update(&self, old: &Value, new: &Value) -> Value {
        apply(new, self.update(old, new).mutate().patch.as_ref())
    }

    /// A counter's or gauge's value; 0 where there is no such sample.
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let labels: BTreeSet<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let (_, text) = self.server().admin("/metrics");
        let sample = text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let (sample, value) = line.rsplit_once(' ')?;
            let (found, set) =
                sample.split_once('{').map_or((sample, ""), |(name, set)| (name, set.trim_end_matches('}')));
            let set: BTreeSet<String> = set.split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect();
            (found == name && labels.is_subset(&set)).then(|| value.parse::<f64>().expect("a number"))
        });
        sample.unwrap_or(0.0) as u64
    }

    /// The decisions written so far.
    pub fn records(&self) -> Vec<Value> {
        self.server().records()
    }

    fn server(&self) -> &Server {
        self.server.get_or_init(|| {
            let policy = Policy::parse(&self.policy()).unwrap_or_else(|error| panic!("{error}"));
            Server::asking(policy, Arc::new(self.cluster.clone()))
        })
    }
}

/// The object with the patch applied, if there is one.
pub fn apply(object: &Value, patch: Option<&Value>) -> Value {
    patch.map_or_else(|| object.clone(), |patch| harness::apply(patch, object))
}

fn text_map(members: &[(&str, &str)]) -> BTreeMap<String, String> {
    members.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

impl Cluster {
    fn digest(&self, namespace: &str, reference: &Reference) -> Known<String> {
        let data = match self.contents.get(&(reference.source, reference.name.clone())) {
            None | Some(Known::Absent) => return Known::Absent,
            Some(Known::Unknown(reason)) => return Known::Unknown(*reason),
            Some(Known::Known(data)) => data.clone(),
        };
        let key = DigestKey::new(b"the same key for every replica..").expect("32 bytes");
        let content = match reference.source {
            Source::ConfigMap => Content::config_map(data, BTreeMap::new()),
            Source::Secret => Content::secret(BTreeMap::new(), data),
        };
        content.expect("no base64").digest(reference, namespace, Some(&key))
    }
}

impl FactSource for Cluster {
    fn gather<'a>(
        &'a self,
        namespace: &'a str,
        needs: Needs,
        _deadline: tokio::time::Instant,
    ) -> futures::future::BoxFuture<'a, Facts> {
        let mut facts = Facts::unknown(Reason::NotAsked);
        if needs.server_version {
            facts.server_version = self.server_version.clone();
        }
        if needs.crd_sleep {
            facts.crd_sleep = self.crd_sleep.clone();
        }
        if needs.quotas {
            facts.quotas = self.quotas.clone();
        }
        if needs.limit_range {
            facts.limit_range = self.limit_range.clone();
        }
        if needs.revisions.is_some() {
            facts.revisions = self.revisions.clone();
        }
        if needs.namespace_labels {
            facts.namespace_labels = self.namespace_labels.clone();
        }
        for reference in needs.digests {
            let digest = self.digest(namespace, &reference);
            facts.digests.insert(reference, digest);
        }
        Box::pin(std::future::ready(facts))
    }
}

/// A question about to be put.
pub struct Asked<'w> {
    world: &'w World,
    review: Value,
}

impl Asked<'_> {
    /// Asks as this user.
    pub fn user(mut self, name: &str, groups: &[&str]) -> Self {
        self.review["request"]["userInfo"] = json!({"username": name, "groups": groups});
        self
    }

    /// Asks in this namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.review["request"]["namespace"] = json!(namespace);
        self
    }

    /// Asks for a dry run.
    pub fn dry_run(mut self) -> Self {
        self.review["request"]["dryRun"] = json!(true);
        self
    }

    /// The answer of `/mutate`.
    pub fn mutate(&self) -> Answer {
        self.ask("/mutate")
    }

    /// The answer of `/validate`.
    pub fn validate(&self) -> Answer {
        self.ask("/validate")
    }

    fn ask(&self, path: &str) -> Answer {
        let reply = self.world.server().connect().post(path, &self.review);
        let (status, review) = (reply.status, reply.json);
        let response = &review["response"];
        assert_eq!(response["uid"], self.review["request"]["uid"], "{review}");
        let strings =
            |value: &Value| value.as_array().map(|items| items.iter().map(text).collect()).unwrap_or_default();
        Answer {
            status,
            allowed: response["allowed"].as_bool().expect("allowed"),
            code: response["status"]["code"].as_u64(),
            message: response["status"]["message"].as_str().unwrap_or_default().to_owned(),
            warnings: strings(&response["warnings"]),
            patch: decode(response),
            audit: response["auditAnnotations"].as_object().cloned().unwrap_or_default(),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

/// The patch, if there is one. It and its type come together or not at all.
fn decode(response: &Value) -> Option<Value> {
    use base64::Engine as _;
    match (response.get("patch"), response.get("patchType")) {
        (None, None) => None,
        (Some(Value::String(patch)), Some(Value::String(kind))) => {
            assert_eq!(kind, "JSONPatch");
            let bytes = base64::engine::general_purpose::STANDARD.decode(patch).expect("base64");
            Some(serde_json::from_slice(&bytes).expect("JSON"))
        }
        other => panic!("patch and patchType belong together: {other:?}"),
    }
}

/// The first regular container of the template.
pub fn container(object: &mut Value) -> &mut Map<String, Value> {
    object["spec"]["template"]["spec"]["containers"][0].as_object_mut().expect("a container")
}

//! The engine in this process, with the facts of the scenario's namespace.

use std::collections::BTreeSet;
use std::path::PathBuf;

use plimsoll::cluster::manifests::{Manifests, Place};
use plimsoll::engine;
use plimsoll::engine::facts::ServerVersion;
use plimsoll::engine::request::Endpoint;
use plimsoll::engine::verdict::Verdict;
use plimsoll::policy::Policy;
use plimsoll::review::{Response, Review, Version};
use serde_json::{Value, json};

use crate::case::Case;
use crate::corpus::rollout_crd::rollout_crd;

/// What facts are made of.
const KINDS: &str = "configmaps,services,persistentvolumeclaims,poddisruptionbudgets,horizontalpodautoscalers,\
                     deployments,statefulsets,daemonsets,replicasets,rollouts";

/// A policy and a world.
pub struct Offline {
    policy: Policy,
    world: Manifests,
    namespace: String,
    version: ServerVersion,
}

/// What the engine says.
pub struct Said {
    /// The decoded patch.
    pub patch: Option<Value>,
    /// The denial's message.
    pub denial: Option<String>,
    /// Warnings as they would be sent.
    pub warnings: Vec<String>,
    /// Rules that found something.
    pub rules: BTreeSet<&'static str>,
}

impl Offline {
    /// The policy's spec, and what stands in the case's namespace.
    pub fn new(policy: &Value, case: &Case) -> Self {
        let policy = json!({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "e2e"},
            "spec": policy});
        let mut world = Manifests::default();
        let mut add = |object: Value| {
            let place = Place { path: PathBuf::from("the cluster"), line: 1 };
            world.add_object(&place, object).unwrap();
        };
        add(case.kubectl.get(KINDS));
        add(case.kubectl.get(&format!("namespace/{}", case.namespace)));
        add(rollout_crd(true));
        let told: Value = serde_json::from_str(&case.kubectl.ok(&["get", "--raw", "/version"])).unwrap();
        let text = |member: &str| told[member].as_str().unwrap_or_default().to_owned();
        Offline {
            policy: Policy::parse(&policy.to_string()).unwrap(),
            world,
            namespace: case.namespace.clone(),
            version: ServerVersion::parse(&format!("{}.{}", text("major"), text("minor"))).unwrap(),
        }
    }

    /// An answered object as the webhooks saw it: in our namespace, without what is told of nobody's wishes.
    pub fn as_shown(&self, answered: &Value) -> Value {
        let mut object = answered.clone();
        object["metadata"]["namespace"] = json!(self.namespace);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        object
    }

    /// The answer of `/mutate` to a CREATE.
    pub fn mutate(&self, object: &Value) -> Said {
        self.ask(Endpoint::Mutate, object)
    }

    /// The answer of `/validate` to a CREATE.
    pub fn validate(&self, object: &Value) -> Said {
        self.ask(Endpoint::Validate, object)
    }

    fn ask(&self, endpoint: Endpoint, object: &Value) -> Said {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "1",
                "operation": "CREATE",
                "kind": {"group": group, "version": version, "kind": object["kind"]},
                "namespace": self.namespace,
                "name": object["metadata"]["name"],
                "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
                "object": object,
                "dryRun": true,
            },
        })
        .to_string();
        let request = Review::parse(review.as_bytes()).unwrap().into_request(None).unwrap();
        let needs = engine::needs(endpoint, &self.policy, &request);
        let facts = self.world.gather(&self.namespace, needs, self.version, None);
        said(engine::evaluate(endpoint, &self.policy, &request, &facts))
    }
}

fn said(verdict: Verdict) -> Said {
    let answer = Response { warnings: &verdict.warnings, ..Response::allow(Version::V1, "1") };
    let answer: Value = serde_json::from_str(&answer.to_json()).unwrap();
    let warnings = answer["response"]["warnings"].as_array().into_iter().flatten();
    Said {
        patch: verdict.patch.as_deref().map(|patch| serde_json::from_str(patch).unwrap()),
        warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
        rules: verdict.findings.iter().map(|judged| judged.finding.rule).collect(),
        denial: verdict.denial,
    }
}

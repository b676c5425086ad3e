//! The way in.

use std::sync::Arc;

use plimsoll::cluster::FactSource;
use plimsoll::engine::finding::Action;
use plimsoll::engine::request::Endpoint;
use plimsoll::policy::Policy;
use plimsoll::review::{Response, Review};
use serde_json::{Value, json};

/// The engine behind the envelope.
pub struct Door {
    policy: Policy,
    facts: Arc<dyn FactSource>,
    anomalies: std::sync::Mutex<Vec<&'static str>>,
}

impl Door {
    pub fn open(policy: &str, facts: Arc<dyn FactSource>) -> Door {
        let policy: Value = serde_json::from_str(policy).unwrap();
        let rules: Vec<(String, Action, bool, Value)> = policy["spec"]["rules"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(id, rule)| {
                let action = match rule["action"].as_str().unwrap() {
                    "deny" => Action::Deny,
                    "warn" => Action::Warn,
                    "audit" => Action::Audit,
                    _ => Action::Off,
                };
                let params = if rule["params"].is_null() { json!({}) } else { rule["params"].clone() };
                (id.clone(), action, rule["fix"] == true, params)
            })
            .collect();
        let rules: Vec<_> = rules.iter().map(|(id, a, f, p)| (id.as_str(), *a, *f, p.clone())).collect();
        let mut compiled = Policy::of(&rules).unwrap();
        if policy["spec"]["enforcement"] == "warn" {
            compiled.enforcement = plimsoll::policy::Enforcement::Warn;
        }
        Door { policy: compiled, facts, anomalies: Default::default() }
    }

    pub fn post(&self, path: &str, body: &str) -> (u16, String) {
        let endpoint = if path == "/mutate" { Endpoint::Mutate } else { Endpoint::Validate };
        let review = Review::parse(body.as_bytes()).unwrap();
        let (version, uid) = (review.version, review.uid.clone());
        let request = review.into_request(Some("system:serviceaccount:plimsoll:plimsoll")).unwrap();
        let needs = plimsoll::engine::needs(endpoint, &self.policy, &request);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let facts =
            runtime.block_on(async { self.facts.gather(&request.namespace, needs, tokio::time::Instant::now()).await });
        let verdict = plimsoll::engine::evaluate(endpoint, &self.policy, &request, &facts);
        self.anomalies.lock().unwrap().extend(&verdict.anomalies);
        let mut audit = Vec::new();
        if verdict.overridden {
            audit.push(("override".to_owned(), "true".to_owned()));
        }
        if verdict.rollback {
            audit.push(("rollback".to_owned(), "true".to_owned()));
        }
        let response = Response {
            denial: verdict.denial.as_deref(),
            warnings: &verdict.warnings,
            patch: verdict.patch.as_deref(),
            audit_annotations: &audit,
            ..Response::allow(version, &uid)
        };
        (200, response.to_json())
    }

    pub fn metrics(&self) -> String {
        let mut out = String::new();
        for reason in self.anomalies.lock().unwrap().iter() {
            out.push_str(&format!("plimsoll_anomalies_total{{reason=\"{reason}\"}} 1\n"));
        }
        out
    }
}

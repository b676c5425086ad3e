//! Two ways to one answer: what the API server makes of an object with us in its path, and what the engine says of it
//! in this process.

mod api;
mod generator;
mod offline;

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use plimsoll::rules::REGISTRY;
use serde_json::{Value, json};

use self::api::{Answer, Api};
use self::generator::{Generated, generate};
use self::offline::Offline;
use super::baseline::define_rollouts;
use crate::case::{Case, Setup};
use crate::changes::changes;
use crate::corpus::defaults::defaulted;
use crate::kubectl::Kubectl;
use crate::manifests::list;

/// Objects.
const COUNT: u64 = 3000;
/// Creates at one time.
const AT_ONCE: usize = 8;

/// Kinds that `/mutate` is asked about: what it makes of others is theirs.
const MUTATED: [&str; 5] = ["Deployment", "StatefulSet", "DaemonSet", "Rollout", "PodDisruptionBudget"];

pub fn the_api_server_and_the_engine_say_the_same() {
    let policy = every_rule();
    let before = |kubectl: &Kubectl| {
        define_rollouts(kubectl, true);
        kubectl.ok_with(&["create", "-f", "-"], &list(&neighbours()));
    };
    let case = Case::with("differential", &Setup { policy: policy.clone(), before: Some(&before), ..Setup::default() });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let api = runtime.block_on(Api::connect(&case.plane.admin_kubeconfig)).unwrap();
    let offline = Offline::new(&policy, &case);
    let world = World { api: &api, offline: &offline, namespace: &case.namespace };

    // The server's watches have told it all when it says of the first what the engine says.
    case.wait("the server to know its neighbours", || {
        let of = |seed| runtime.block_on(world.compare(seed)).map(drop);
        (0..40).try_for_each(of)
    });

    let outcomes = runtime.block_on(async {
        let all = stream::iter(0..COUNT).map(|seed| world.compare(seed)).buffer_unordered(AT_ONCE);
        all.collect::<Vec<_>>().await
    });
    let failures: Vec<&String> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    let first = failures.first().map_or("", |failure| failure.as_str());
    assert!(failures.is_empty(), "{} of {COUNT} differ, the first:\n{first}", failures.len());

    // The generator is only worth what it reaches.
    let outcomes: Vec<&Outcome> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    let share = |so: fn(&Outcome) -> bool| outcomes.iter().filter(|one| so(one)).count() as u64 * 100 / COUNT;
    let (accepted, patched, denied) = (share(|one| one.accepted), share(|one| one.patched), share(|one| one.denied));
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    for rule in outcomes.iter().flat_map(|one| &one.rules) {
        *rules.entry(rule).or_default() += 1;
    }
    println!("of {COUNT}: {accepted} % accepted without us, {patched} % patched, {denied} % denied; {rules:?}");
    assert!(
        accepted >= 50 && patched >= 20 && denied >= 5,
        "{accepted} % accepted, {patched} % patched, {denied} % denied"
    );
}

/// Every rule at work, every fix turned on.
fn every_rule() -> Value {
    let mut rules = json!({});
    for meta in REGISTRY.iter().map(|rule| rule.meta()) {
        let action = meta.baseline.max(plimsoll::engine::finding::Action::Warn);
        rules[meta.id] = json!({"action": action.as_str()});
        if meta.fixable {
            rules[meta.id]["fix"] = json!(true);
        }
    }
    rules["registry-not-allowed"]["params"] = json!({"registries": ["reg.example", "other.example:5000"]});
    json!({"extends": "none", "enforcement": "enforce", "rules": rules})
}

/// What stands in the namespace, so that rules on other objects have something to find. Nothing generated has these
/// names.
fn neighbours() -> [Value; 8] {
    let named = |api_version: &str, kind: &str, name: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let claim = |mode: &str| json!({"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}});
    let labels = json!({"app": "neighbour"});
    let container = json!({
        "name": "app", "image": "reg.example/app:1.2.3", "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    });
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}, "data": {"MODE": "a"}}),
        named("v1", "PersistentVolumeClaim", "one", claim("ReadWriteOnce")),
        named("v1", "PersistentVolumeClaim", "many", claim("ReadWriteMany")),
        named(
            "v1",
            "Service",
            "neighbour",
            json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}),
        ),
        named(
            "policy/v1",
            "PodDisruptionBudget",
            "neighbour",
            json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "api"}}}),
        ),
        named(
            "policy/v1",
            "PodDisruptionBudget",
            "another",
            json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "api"}}}),
        ),
        named(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "neighbour",
            json!({"scaleTargetRef": web, "minReplicas": 2, "maxReplicas": 5}),
        ),
        named(
            "apps/v1",
            "Deployment",
            "neighbour",
            json!({"replicas": 0, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}),
        ),
    ]
}

struct World<'w> {
    api: &'w Api,
    offline: &'w Offline,
    namespace: &'w str,
}

/// What became of one object.
#[derive(Debug, Default)]
struct Outcome {
    /// Whether it is accepted without us.
    accepted: bool,
    patched: bool,
    denied: bool,
    /// Rules that had something to say.
    rules: BTreeSet<&'static str>,
}

impl World<'_> {
    /// Creates the object of this seed by dry run, without us and with us, and compares. The error says how they differ.
    async fn compare(&self, seed: u64) -> Result<Outcome, String> {
        let generated = generate(seed);
        let differs = |what: String| format!("seed {seed}: {what}\n{}", generated.object);
        let alone = self.create(&generated, &format!("{}-exempt", self.namespace)).await?;
        let with_us = self.create(&generated, self.namespace).await?;
        if !alone.accepted() {
            // A sleep longer than the default grace period is refused, and our fix raises that one.
            let mended = alone.message().contains("must be non-negative and less than terminationGracePeriodSeconds");
            return match with_us.accepted() && !mended {
                true => Err(differs(format!("only a patch of ours makes it acceptable: {}", alone.message()))),
                false => Ok(Outcome::default()),
            };
        }

        // What the API server shows us first is what it makes of the object alone.
        let shown = self.offline.as_shown(&alone.object);
        let mutate = self.offline.mutate(&shown);
        let expected = match &mutate.patch {
            Some(patch) => defaulted(&patched(&shown, patch)),
            None => shown,
        };
        let kind = expected["kind"].as_str().unwrap_or_default();
        let mutated = MUTATED.contains(&kind);
        let expected = if mutated { expected } else { self.offline.as_shown(&alone.object) };
        if with_us.accepted() && mutated {
            let differences = changes(&expected, &with_us.object);
            if !differences.is_empty() {
                return Err(differs(format!("stored otherwise than the engine's patch says: {differences:#?}")));
            }
        }
        let judged = if with_us.accepted() { self.offline.as_shown(&with_us.object) } else { expected };
        let validate = self.offline.validate(&judged);
        match (&validate.denial, with_us.accepted()) {
            (None, true) => {}
            (Some(denial), false) if with_us.denial() == Some(denial.as_str()) => {}
            (denial, _) => {
                let told = with_us.message();
                return Err(differs(format!("the engine denies with {denial:?}, the API server says {told:?}")));
            }
        }
        let mut warnings: BTreeSet<String> = alone.warnings.iter().cloned().collect();
        if mutated {
            warnings.extend(mutate.warnings);
        }
        warnings.extend(validate.warnings);
        // Above 4096 characters in all the API server leaves warnings out.
        let all_shown = warnings.iter().map(|warning| warning.chars().count()).sum::<usize>() <= 4096;
        let told: BTreeSet<String> = with_us.warnings.iter().cloned().collect();
        if told != warnings && (all_shown || !told.is_subset(&warnings)) {
            let (ours, theirs): (Vec<_>, Vec<_>) =
                (warnings.difference(&told).collect(), told.difference(&warnings).collect());
            return Err(differs(format!(
                "warnings of the engine alone: {ours:#?}, of the API server alone: {theirs:#?}"
            )));
        }
        Ok(Outcome {
            accepted: true,
            patched: mutated && mutate.patch.is_some(),
            denied: validate.denial.is_some(),
            rules: validate.rules,
        })
    }

    async fn create(&self, generated: &Generated, namespace: &str) -> Result<Answer, String> {
        let path = format!("{}/namespaces/{namespace}/{}?dryRun=All", generated.api, generated.resource);
        self.api.post(&path, &generated.object).await
    }
}

fn patched(object: &Value, patch: &Value) -> Value {
    let patch: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).unwrap();
    object
}

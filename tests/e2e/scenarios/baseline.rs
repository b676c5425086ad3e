//! What is out there, under the policy that is shipped: stored, completed, and left alone when it comes again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::case::{Case, Setup};
use crate::changes::changes;
use crate::corpus::defaults::defaulted;
use crate::corpus::rollout_crd::rollout_crd;
use crate::corpus::{ARGUED, Manifest, id, manifests};
use crate::kubectl::Kubectl;
use crate::manifests::list;

/// Kinds whose specs are their author's and ours alone.
const KINDS: &str = "deployments,statefulsets,daemonsets,rollouts,jobs,cronjobs,poddisruptionbudgets";

/// Rollouts with containers of their own.
const ROLLOUTS: [&str; 3] =
    ["rollout.argoproj.io/billing-api", "rollout.argoproj.io/landing", "rollout.argoproj.io/search-api"];

pub fn client_side_apply_stores_all_and_changes_nothing_the_second_time() {
    let apply = ["apply", "-f", "-"];
    let case = baseline("baseline-client", true);
    let first = first_apply(&case, &apply, "created");

    let count = case.count();
    let second = case.kubectl.run_with(&apply, &list(&first.sent));
    let (mut all, configured) = (said(&second.stdout, "unchanged"), said(&second.stdout, "configured"));
    all.extend(configured.clone());
    assert_same(&all, &first.stored_names, &second.stderr);

    // kubectl also sends what is no change: quantities and zeroes spelled in another way, selectors of budgets. Without
    // us it would send the same, but for the lists of a custom resource, which it knows no keys of: it sends those
    // without what is ours, and gets that back.
    let again: Vec<Value> = first.sent.iter().filter(|object| configured.contains(&printed(object))).cloned().collect();
    case.exempt.ok_with(&apply, &list(&again));
    let without_us = said(&case.exempt.ok_with(&apply, &list(&again)), "configured");
    let mut of_ours = ROLLOUTS.map(str::to_owned).to_vec();
    of_ours.extend(without_us);
    assert_same(&configured, &of_ours.into_iter().collect(), &second.stderr);
    first.is_all_there_is(&case, &count.moved());

    // With the sleep in its schema, a Rollout gets one.
    let rollout = case.kubectl.get("rollout/search-api");
    let hook = &rollout["spec"]["template"]["spec"]["containers"][0]["lifecycle"]["preStop"];
    assert_eq!(*hook, json!({"sleep": {"seconds": 5}}));
}

pub fn server_side_apply_stores_all_and_changes_nothing_the_second_time() {
    let apply = ["apply", "--server-side", "-f", "-"];
    let case = baseline("baseline-server", false);
    let first = first_apply(&case, &apply, "serverside-applied");

    let count = case.count();
    let second = case.kubectl.run_with(&apply, &list(&first.sent));
    assert_same(&said(&second.stdout, "serverside-applied"), &first.stored_names, &second.stderr);
    first.is_all_there_is(&case, &count.moved());

    // A schema without the sleep would drop it: none is written, and the author is told.
    let rollout = case.kubectl.get("rollout/search-api");
    assert_eq!(rollout["spec"]["template"]["spec"]["containers"][0]["lifecycle"], Value::Null);
    assert!(first.told.contains("the CRD of this kind does not know the sleep action"), "{}", first.told);
}

pub fn the_defaults_that_offline_tests_fill_in_are_the_api_servers() {
    let case = baseline("baseline-defaults", true);
    // A Job's uid and a Pod's token come after the defaults.
    let compared = ["Deployment", "StatefulSet", "DaemonSet", "Rollout", "CronJob"];
    let all: Vec<Manifest> = manifests()
        .into_iter()
        .filter(|manifest| compared.iter().any(|kind| manifest.object["kind"] == *kind))
        .collect();
    let sent: Vec<Value> = all.iter().map(|manifest| manifest.object.clone()).collect();
    let text = case.exempt.ok_with(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &list(&sent));
    // kubectl prints one document an object.
    let answered = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let answered: Vec<Value> = answered.collect::<Result<_, _>>().unwrap();
    assert_eq!(answered.len(), all.len());
    for (manifest, answered) in all.iter().zip(answered) {
        let spec = |object: &Value| comparable(&json!({"spec": object["spec"]}));
        let differs = changes(&spec(&defaulted(&manifest.object)), &spec(&answered));
        assert_eq!(differs, [], "{}", manifest.id);
    }
}

/// The shipped baseline, failing closed, with Rollouts whose schema knows the sleep or does not.
#[track_caller]
fn baseline(name: &str, sleep: bool) -> Case {
    let before = |kubectl: &Kubectl| define_rollouts(kubectl, sleep);
    let policy = json!({"extends": "baseline", "enforcement": "enforce"});
    let setup = Setup { policy, before: Some(&before), ..Setup::default() };
    Case::with(name, &setup)
}

/// Defines Rollouts and waits until the API server goes by it.
#[track_caller]
pub fn define_rollouts(kubectl: &Kubectl, sleep: bool) {
    kubectl.ok_with(&["apply", "-f", "-"], &rollout_crd(sleep));
    let hook = json!({"exec": {"command": ["true"]}, "sleep": {"seconds": 1}});
    let probe = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "probe"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "lifecycle": {"preStop": hook}}]}}},
    });
    let kept = || {
        let create = ["create", "--dry-run=server", "--validate=false", "-o", "json", "-f", "-"];
        let text = kubectl.run_with(&create, &probe).success("a Rollout")?;
        let answered: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let hook = &answered["spec"]["template"]["spec"]["containers"][0]["lifecycle"]["preStop"];
        let keeps = hook["exec"].is_object() && hook["sleep"].is_object() == sleep;
        if keeps { Ok(()) } else { Err(text) }
    };
    crate::control_plane().wait_for("the schema of Rollouts to be followed", kept).unwrap();
}

/// What a first apply left.
struct First {
    /// All of the corpus but what is denied.
    sent: Vec<Value>,
    /// Their names as kubectl says them.
    stored_names: BTreeSet<String>,
    /// Generation, spec and annotations of each.
    stored: BTreeMap<String, [Value; 3]>,
    /// Standard error.
    told: String,
}

/// Applies the whole corpus: every object is stored but those that are argued, and every review was answered.
#[track_caller]
fn first_apply(case: &Case, apply: &[&str], verb: &str) -> First {
    let all = manifests();
    let count = case.count();
    let objects: Vec<Value> = all.iter().map(|manifest| manifest.object.clone()).collect();
    let output = case.kubectl.run_with(apply, &list(&objects));

    let denied: BTreeSet<&str> = ARGUED.iter().map(|argued| argued.id).collect();
    let sent: Vec<Value> = objects.iter().filter(|object| !denied.contains(id(object).as_str())).cloned().collect();
    let stored_names: BTreeSet<String> = sent.iter().map(printed).collect();
    assert_same(&said(&output.stdout, verb), &stored_names, &output.stderr);
    for argued in ARGUED {
        let (kind, name) = argued.id.split_once('/').unwrap();
        let head = format!("denied the request: Plimsoll found 1 violation in {kind} {}/{name}:\n", case.namespace);
        let rest = output.stderr.split_once(&head).map(|(_, rest)| rest);
        let rest = rest.unwrap_or_else(|| panic!("{} is not denied, though {}", argued.id, argued.why));
        assert!(rest.starts_with(&format!("[{}]", argued.rule)), "{rest}");
    }
    assert_eq!(output.stderr.matches("denied the request").count(), ARGUED.len(), "{}", output.stderr);
    assert_eq!(output.stderr.matches("Error from server").count(), ARGUED.len(), "{}", output.stderr);

    // An autoscaler raises this one to its minimum, and that is asked about.
    case.wait("an autoscaler's write", || {
        let replicas = case.kubectl.get("deployment/shop-web")["spec"]["replicas"].clone();
        if replicas == 3 { Ok(()) } else { Err(replicas.to_string()) }
    });
    let kinds: BTreeSet<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    let mut expected = Vec::new();
    for kind in ["DaemonSet", "Deployment", "PodDisruptionBudget", "Rollout", "StatefulSet"] {
        assert!(kinds.contains(kind));
        expected.push(format!("mutate CREATE {kind} allow"));
    }
    let not_asked_about = ["ConfigMap", "PersistentVolumeClaim", "Secret", "ServiceAccount"];
    for kind in kinds.iter().filter(|kind| !not_asked_about.contains(kind)) {
        expected.push(format!("validate CREATE {kind} allow"));
        if denied.iter().any(|id| id.starts_with(&format!("{kind}/"))) {
            expected.push(format!("validate CREATE {kind} deny"));
        }
    }
    expected.push("validate UPDATE Scale allow".to_owned());
    assert_eq!(count.moved(), expected);

    for warning in output.told().into_iter().filter_map(|line| line.strip_prefix("Warning: ")) {
        let rule = warning.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(rule, _)| rule);
        let known = plimsoll::rules::REGISTRY.iter().any(|known| Some(known.meta().id) == rule);
        assert!(known, "not ours: {warning}");
    }
    First { sent, stored_names, stored: stored(case), told: output.stderr }
}

impl First {
    /// Nothing changed since, and nobody was asked but about Rollouts, whose lists are sent whole.
    #[track_caller]
    fn is_all_there_is(&self, case: &Case, moved: &[String]) {
        assert_eq!(moved, ["mutate UPDATE Rollout allow"], "asked again about what is the same");
        let now = stored(case);
        for (id, before) in &self.stored {
            assert_eq!(Some(before), now.get(id), "{id} changed");
        }
        assert_eq!(now.len(), self.stored.len());
    }
}

fn stored(case: &Case) -> BTreeMap<String, [Value; 3]> {
    let all = case.kubectl.get(KINDS);
    let items = all["items"].as_array().unwrap().iter();
    let of = |object: &Value| {
        let mut annotations = object["metadata"]["annotations"].clone();
        // The Deployment controller counts here.
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.remove("deployment.kubernetes.io/revision");
            annotations.remove("deprecated.daemonset.template.generation");
        }
        [object["metadata"]["generation"].clone(), object["spec"].clone(), annotations]
    };
    items.map(|object| (id(object), of(object))).collect()
}

/// `deployment.apps/web`, as kubectl prints it.
fn printed(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let group = version.split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{}", text(&object["kind"]).to_lowercase(), text(&object["metadata"]["name"]))
}

fn name_of(wanted: &str, objects: &[Value]) -> String {
    let object = objects.iter().find(|object| id(object) == wanted);
    printed(object.unwrap_or_else(|| panic!("{wanted} is not in the corpus")))
}

/// Of two long lists, what is in one only.
#[track_caller]
fn assert_same(got: &BTreeSet<String>, wanted: &BTreeSet<String>, told: &str) {
    let missing: Vec<&String> = wanted.difference(got).collect();
    let extra: Vec<&String> = got.difference(wanted).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:#?}, not expected {extra:#?}\n{told}");
}

/// The objects that kubectl says this of.
fn said(stdout: &str, verb: &str) -> BTreeSet<String> {
    stdout.lines().filter_map(|line| line.strip_suffix(&format!(" {verb}"))).map(str::to_owned).collect()
}

/// The object without what the API server spells in another way than authors do: quantities, and zeroes and empty
/// values, which it leaves out.
fn comparable(object: &Value) -> Value {
    match object {
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| !["resources", "sizeLimit"].contains(&key.as_str()));
            let kept = kept.map(|(key, value)| (key.clone(), comparable(value)));
            kept.filter(|(_, value)| !is_nothing(value)).collect()
        }
        Value::Array(items) => items.iter().map(comparable).collect(),
        other => other.clone(),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        value => [json!(null), json!(0), json!(""), json!(false)].contains(value),
    }
}

//! The baseline harms nobody: what is out there goes through both webhooks under the policy that is shipped.

#[path = "../../e2e/corpus/mod.rs"]
mod manifests;
mod mix;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use plimsoll::cluster::FactSource;
use plimsoll::cluster::manifests::{Manifests, Place};
use plimsoll::engine::facts::{Facts, Needs, ServerVersion};
use plimsoll::policy::Policy;
use serde_json::{Value, json};

use self::manifests::defaults::defaulted;
use self::manifests::rollout_crd::rollout_crd;
use self::manifests::{ARGUED, Manifest, manifests};
use crate::harness::{Client, Reply, Server, apply};

const NAMESPACE: &str = "apps";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How an object gets there: who set a value is told by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// `kubectl create`, a controller, an SDK.
    Create,
    /// `kubectl apply`: the manifest comes along in an annotation.
    Apply,
}

/// A namespace where all of the corpus stands.
struct Cluster(Manifests);

impl Cluster {
    fn new() -> Self {
        let mut cluster = Manifests::default();
        for manifest in manifests() {
            let place = Place { path: Path::new(&manifest.file).to_owned(), line: 1 };
            let object = in_namespace(&defaulted(&manifest.object));
            cluster.add_object(&place, object).unwrap_or_else(|error| panic!("{error}"));
        }
        let place = Place { path: Path::new("rollout_crd.rs").to_owned(), line: 1 };
        cluster.add_object(&place, rollout_crd(true)).unwrap_or_else(|error| panic!("{error}"));
        Cluster(cluster)
    }
}

impl FactSource for Cluster {
    fn gather<'a>(
        &'a self,
        namespace: &'a str,
        needs: Needs,
        _deadline: tokio::time::Instant,
    ) -> futures::future::BoxFuture<'a, Facts> {
        let version = ServerVersion { major: 1, minor: 37 };
        Box::pin(std::future::ready(self.0.gather(namespace, needs, version, None)))
    }
}

fn in_namespace(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(NAMESPACE);
    object
}

fn server() -> Server {
    Server::asking(Policy::baseline().unwrap(), Arc::new(Cluster::new()))
}

/// What the webhooks are asked about: the manifest, completed by the API server.
fn sent(manifest: &Manifest, by: By) -> Value {
    let mut object = in_namespace(&defaulted(&manifest.object));
    if by == By::Apply {
        object["metadata"]["annotations"][LAST_APPLIED] = json!(manifest.object.to_string());
    }
    object
}

fn review(object: &Value, old: Option<&Value>) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let kind = text(&object["kind"]);
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "8a3f0b51-0000-4000-8000-000000000003",
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())},
            "namespace": NAMESPACE,
            "name": object["metadata"]["name"],
            "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
            "object": object,
            "oldObject": old,
            "dryRun": false,
        },
    })
}

/// One of the webhooks' answers.
fn ask(client: &mut Client<'_>, path: &str, object: &Value, old: Option<&Value>) -> Reply {
    let reply = client.post(path, &review(object, old));
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply
}

/// The object after `/mutate`, which allows everything.
fn mutated(client: &mut Client<'_>, object: &Value, old: Option<&Value>) -> Value {
    let reply = ask(client, "/mutate", object, old);
    assert!(reply.allowed(), "/mutate never denies: {}", reply.text);
    // A member that a patch added gets its defaults, too.
    reply.patch().map_or_else(|| object.clone(), |patch| defaulted(&apply(&patch, object)))
}

/// The ids of the rules in a denial: `[rule-id]`.
fn rules_in(message: &str) -> BTreeSet<String> {
    let brackets = message.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    let id = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    brackets.map(|(id, _)| id).filter(id).map(str::to_owned).collect()
}

#[test]
fn there_are_at_least_sixty_and_no_two_of_one_name() {
    let all = manifests();
    let ids: BTreeSet<&str> = all.iter().map(|manifest| manifest.id.as_str()).collect();
    assert_eq!(ids.len(), all.len());
    let workloads = all.iter().filter(|manifest| manifest.object["spec"].get("template").is_some());
    assert!(workloads.count() >= 60);
}

#[test]
fn the_baseline_denies_none_but_those_that_are_argued() {
    let server = server();
    let mut client = server.connect();
    for by in [By::Create, By::Apply] {
        let mut denied = BTreeMap::new();
        for manifest in manifests() {
            let object = mutated(&mut client, &sent(&manifest, by), None);
            let reply = ask(&mut client, "/validate", &object, None);
            if !reply.allowed() {
                denied.insert(manifest.id, rules_in(reply.message()));
            }
        }
        for argued in ARGUED {
            let rules = denied.remove(argued.id);
            assert_eq!(rules, Some([argued.rule.to_owned()].into()), "{by:?} {}: {}", argued.id, argued.why);
        }
        assert_eq!(denied, BTreeMap::new(), "{by:?}: denied, and nobody argued for it");
    }
}

#[test]
fn every_patch_applies_and_a_second_round_changes_nothing() {
    let server = server();
    for manifest in manifests() {
        // A server ends connections that have asked much.
        let mut client = server.connect();
        for by in [By::Create, By::Apply] {
            let what = format!("{by:?} {}", manifest.id);
            let object = sent(&manifest, by);
            let stored = mutated(&mut client, &object, None);

            // The API server asks again when another webhook changed something.
            let again = ask(&mut client, "/mutate", &stored, None);
            assert_eq!(again.patch(), None, "{what}: asked twice");
            // The same stored object, touched or applied again.
            let touched = ask(&mut client, "/mutate", &stored, Some(&stored));
            assert_eq!(touched.patch(), None, "{what}: touched");
            assert_eq!(touched.warnings(), [""; 0], "{what}: touched");
            // `kubectl replace` with the author's manifest drops what is ours; it comes back byte for byte.
            assert_eq!(mutated(&mut client, &object, Some(&stored)), stored, "{what}: replaced");

            for new in [&stored, &object] {
                let new = mutated(&mut client, new, Some(&stored));
                let reply = ask(&mut client, "/validate", &new, Some(&stored));
                assert!(reply.allowed(), "{what}: an update that adds nothing bad: {}", reply.message());
            }
        }
    }
}

/// What app developers read at the first apply: `cargo test --test server corpus -- --nocapture` prints every line, and
/// how often each rule speaks.
#[test]
fn an_apply_says_little() {
    let server = server();
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    let (mut lines, mut workloads, mut most) = (0, 0, (0, String::new()));
    for manifest in manifests() {
        let mut client = server.connect();
        let object = sent(&manifest, By::Apply);
        let mutate = ask(&mut client, "/mutate", &object, None);
        let stored = mutated(&mut client, &object, None);
        let validate = ask(&mut client, "/validate", &stored, None);
        // The API server shows equal ones once.
        let warnings: BTreeSet<&str> = mutate.warnings().into_iter().chain(validate.warnings()).collect();
        for warning in &warnings {
            let (rule, rest) = warning.trim_start_matches('[').split_once("] ").expect("a rule's id comes first");
            let fixed = if rest.starts_with("fixed: ") { " fixed" } else { "" };
            *said.entry(format!("{rule}{fixed}")).or_default() += 1;
            println!("{}: {warning}", manifest.id);
        }
        for rule in rules_in(validate.message()) {
            *said.entry(format!("{rule} denied")).or_default() += 1;
        }
        lines += warnings.len();
        workloads += usize::from(manifest.object["spec"].get("template").is_some());
        most = most.max((warnings.len(), manifest.id));
    }
    for (what, count) in &said {
        println!("{count:4} {what}");
    }
    println!("{lines} warnings over {workloads} workloads, most of them {most:?}");
    assert!(lines <= 5 * workloads, "{lines} warnings over {workloads} workloads: nobody reads so much");
    assert!(most.0 <= 10, "{most:?}");
}

//! Writes what the fuzzers start from: the rules' fixtures as reviews, cases of the generator, and the policies that we
//! ship and test with.

#[path = "../server/properties/generator/entropy.rs"]
#[allow(dead_code, reason = "only its bytes are wanted")]
mod entropy;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Cases of the generator.
const CASES: u64 = 256;

/// Bytes of each.
const ENOUGH: usize = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = home.join("../..");
    let reviews = home.join("corpus/review");
    let policies = home.join("corpus/policy");
    fs::create_dir_all(&reviews)?;
    fs::create_dir_all(&policies)?;
    for (index, path) in files(&root.join("tests/rules"), "yaml")?.iter().enumerate() {
        let manifests: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(path)?)?;
        if let Some(manifest) = manifests.first() {
            // The first byte says that a body follows, and which policy judges it.
            let policy = u8::try_from(index % 32)? * 2;
            fs::write(reviews.join(format!("fixture-{index}")), [&[policy], review(manifest).as_bytes()].concat())?;
        }
    }
    for seed in 0..CASES {
        fs::write(reviews.join(format!("case-{seed}")), [&[1], entropy::bytes(seed, ENOUGH).as_slice()].concat())?;
    }
    let shipped = files(&root.join("policies"), "yaml")?;
    let tested = [root.join("tests/server/p0.yaml")];
    for (index, path) in shipped.iter().chain(&tested).enumerate() {
        fs::copy(path, policies.join(format!("policy-{index}")))?;
    }
    fs::write(policies.join("all-members"), ALL_MEMBERS)?;
    Ok(())
}

const ALL_MEMBERS: &str = r#"apiVersion: plimsoll.dev/v1alpha1
kind: Policy
metadata: {name: cluster}
spec:
  extends: baseline
  ruleSet: "0.1"
  enforcement: warn
  fixAt: pod
  announceFixes: false
  exempt: {namespaces: [kube-system], users: ["system:serviceaccount:kube-system:*"]}
  breakGlass: {groups: [platform-breakglass]}
  rules:
    missing-pre-stop: {action: warn, fix: true, params: {sleepSeconds: 5}}
    mutable-image-tag: deny
  profiles:
    critical: {rules: {missing-requests: {action: deny}}}
  exceptions:
  - {name: a, rules: [mutable-image-tag], match: {kinds: [Deployment], names: ["legacy-*"]}, owner: b, reason: c,
     expires: 2027-03-31}
"#;

/// An AdmissionReview that creates the object, or changes nothing of it.
fn review(manifest: &Value) -> String {
    let api_version = manifest["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "namespace": "team-a", "userInfo": {"username": "alice"},
        "kind": {"group": group, "version": version, "kind": manifest["kind"]}, "object": manifest}})
    .to_string()
}

/// Files of this extension below a folder, sorted.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

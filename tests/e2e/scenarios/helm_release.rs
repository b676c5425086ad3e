//! Charts: other people's, and our own again.

use crate::case::{Case, RELEASE, SYSTEM};
use crate::changes::{changed, changes};
use crate::manifests::{IMAGE, NEXT_IMAGE, chart, digest, fixes_of_safe};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/sample-chart");

pub fn a_chart_installs_and_upgrades() {
    let case = Case::new("helm");
    let namespace = case.namespace.clone();
    let common = |verb: &'static str| [verb, "web", SAMPLE, "--namespace", namespace.as_str()];
    let text = case.helm.ok(&common("template"));
    let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    let sent = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();

    let count = case.count();
    case.helm.ok(&common("install"));
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment allow"]);
    case.rolled_out("web");
    let first = case.kubectl.get("deployment/web");
    let mut alone = case.without_us(sent);
    // Helm notes whose object it is.
    alone["metadata"]["labels"] = first["metadata"]["labels"].clone();
    for (key, value) in first["metadata"]["annotations"].as_object().unwrap() {
        if key.starts_with("meta.helm.sh/") {
            alone["metadata"]["annotations"][key] = value.clone();
        }
    }
    assert_eq!(changes(&alone, &first), fixes_of_safe(&digest(&first)));

    let count = case.count();
    case.helm.ok(&common("upgrade"));
    assert_eq!(count.moved(), [""; 0], "nothing changed");
    assert_eq!(case.generation("deployment/web"), 1);

    // Helm applies the ConfigMap just before the Deployment.
    let values = format!("image={NEXT_IMAGE},mode=b");
    let mut upgrade = common("upgrade").to_vec();
    upgrade.extend(["--set", &values]);
    case.helm.ok(&upgrade);
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);
    case.rolled_out("web");
    let second = case.kubectl.get("deployment/web");
    assert_ne!(digest(&first), digest(&second));
    assert_eq!(
        changes(&first, &second),
        [
            changed(
                "/spec/template/metadata/annotations/plimsoll.dev~1config-checksum",
                digest(&first),
                digest(&second)
            ),
            changed("/spec/template/spec/containers/0/image", IMAGE, NEXT_IMAGE),
        ]
    );
    assert_eq!(case.generation("deployment/web"), 2);
    assert_eq!(case.replica_sets("web").len(), 2);

    let count = case.count();
    case.helm.ok(&["rollback", "web", "1", "--namespace", &namespace]);
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);
    case.rolled_out("web");
    assert_eq!(case.kubectl.get("deployment/web")["spec"], first["spec"]);
    assert_eq!(case.replica_sets("web").len(), 2);
}

pub fn our_own_chart_upgrades_after_its_ca_was_filled_in() {
    let case = Case::new("own-chart");
    let configuration = || case.kubectl.get(&format!("validatingwebhookconfiguration/{RELEASE}"));
    let before = configuration()["webhooks"].clone();
    let values = case.values.to_str().unwrap();
    case.helm.ok(&["upgrade", RELEASE, &chart(), "--namespace", SYSTEM, "--values", values]);
    assert_eq!(configuration()["webhooks"], before, "and the CA is still there");

    let slower = "webhook.timeoutSeconds=4";
    case.helm.ok(&["upgrade", RELEASE, &chart(), "--namespace", SYSTEM, "--values", values, "--set", slower]);
    let after = configuration();
    for entry in after["webhooks"].as_array().unwrap() {
        assert_eq!(entry["timeoutSeconds"], 4);
        assert_eq!(entry["clientConfig"], before[0]["clientConfig"]);
    }
    let count = case.count();
    let denied = case.kubectl.run_with(&["create", "-f", "-"], &crate::manifests::unsafe_deployment("web"));
    assert_eq!(denied.code, 1, "{denied:?}");
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment deny"]);
}

//! Writes to a workload that Plimsoll has already completed.

use crate::case::{Case, Setup};
use crate::changes::{Change, changed, changes};
use crate::kubectl::Kubectl;
use crate::manifests::{IMAGE, NEXT_IMAGE, config, digest, fixes_of_safe, image_patch, large, safe, unsafe_deployment};

/// What is told where the digest stays though the config has changed.
const CONFIG_CHANGED: &str = "Warning: [config-checksum] config changed since last rollout (ConfigMap \"cfg\"): running \
                              pods may hold old values";

/// A completed Deployment `web`, rolled out.
fn with_web(name: &str) -> Case {
    let case = Case::new(name);
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    case.kubectl.ok_with(&["create", "-f", "-"], &safe("web"));
    case.rolled_out("web");
    case
}

pub fn replacing_with_the_same_manifest_changes_nothing() {
    let case = with_web("replace");
    let stored = case.kubectl.get("deployment/web");
    let sets = case.replica_sets("web");
    // What the config says by now is no reason to restart pods that nobody touched.
    case.kubectl.ok_with(&["replace", "-f", "-"], &config("b"));

    let count = case.count();
    let output = case.kubectl.run_with(&["replace", "-f", "-"], &safe("web"));
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(output.told(), [CONFIG_CHANGED]);
    // With our fields put back the spec is the old one: nothing is left to validate.
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow"]);
    assert_eq!(changes(&stored, &case.kubectl.get("deployment/web")), []);
    assert_eq!(case.replica_sets("web"), sets);
    // Not the spec's doing: the manifest does not have the controller's revision
    // annotation, and a Deployment counts annotations too.
    assert_eq!(case.generation("deployment/web"), 2);
}

pub fn a_patched_image_rolls_out_with_the_fixes_it_had() {
    let case = with_web("patch");
    let stored = case.kubectl.get("deployment/web");
    let count = case.count();
    let output = case.kubectl.run(&["patch", "deployment", "web", "-p", &image_patch(NEXT_IMAGE)]);
    assert_eq!((output.code, output.told()), (0, vec![]), "nothing new is fixed");
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);

    case.rolled_out("web");
    assert_eq!(
        changes(&stored, &case.kubectl.get("deployment/web")),
        [changed("/spec/template/spec/containers/0/image", IMAGE, NEXT_IMAGE)]
    );
    assert_eq!(case.generation("deployment/web"), 2);
    let replicas: Vec<i64> = case.replica_sets("web").iter().map(|set| set.replicas).collect();
    assert_eq!(replicas, [0, 2]);
}

pub fn a_patch_to_a_mutable_tag_is_denied() {
    let case = with_web("patch-denied");
    let stored = case.kubectl.get("deployment/web");
    let sets = case.replica_sets("web");
    let count = case.count();
    let patch = image_patch("reg.example/app:latest");
    let output = case.kubectl.run(&["patch", "deployment", "web", "-p", &patch]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("mutable-image-tag"), "{output:?}");
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment deny"]);
    assert_eq!(stored, case.kubectl.get("deployment/web"));
    assert_eq!(case.replica_sets("web"), sets);
}

pub fn labels_and_annotations_do_not_reach_us_and_scale_is_only_asked_about() {
    let case = with_web("metadata");
    let stored = case.kubectl.get("deployment/web");
    let sets = case.replica_sets("web");
    let count = case.count();
    case.kubectl.ok(&["label", "deployment", "web", "team=a"]);
    assert_eq!(case.generation("deployment/web"), 1);
    case.kubectl.ok(&["annotate", "deployment", "web", "note=b"]);
    // A Deployment's generation counts annotations too.
    assert_eq!(case.generation("deployment/web"), 2);
    assert_eq!(case.replica_sets("web"), sets);
    assert_eq!(count.moved(), [""; 0]);

    case.kubectl.ok(&["scale", "deployment", "web", "--replicas=3"]);
    case.rolled_out("web");
    assert_eq!(count.moved(), ["validate UPDATE Scale allow"]);
    let after = case.kubectl.get("deployment/web");
    assert_eq!(
        changes(&stored, &after),
        [
            Change::Added("/metadata/annotations/note".to_owned(), "b".into()),
            Change::Added("/metadata/labels/team".to_owned(), "a".into()),
            changed("/spec/replicas", 2, 3),
        ]
    );
    assert_eq!(after["metadata"]["generation"], 3);
    let now = case.replica_sets("web");
    assert_eq!((now.len(), &now[0].name, now[0].replicas), (1, &sets[0].name, 3));
}

pub fn labels_on_a_spec_of_850_kb_do_not_reach_us() {
    let case = Case::new("large");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let manifest = large("web");
    let size = manifest["spec"].to_string().len();
    assert!((850_000..900_000).contains(&size), "{size} bytes");
    let count = case.count();
    case.kubectl.ok_with(&["create", "-f", "-"], &manifest);
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment allow"]);
    let stored = case.kubectl.get("deployment/web");
    assert_eq!(case.changes(&manifest, "deployment/web"), fixes_of_safe(&digest(&stored)));
    case.rolled_out("web");

    // The condition that compares the specs is evaluated within the API server's budget:
    // beyond it, a webhook that fails closed would forbid even this.
    let count = case.count();
    case.kubectl.ok(&["label", "deployment", "web", "team=a"]);
    case.kubectl.ok(&["annotate", "deployment", "web", "note=b"]);
    assert_eq!(count.moved(), [""; 0]);
    case.kubectl.ok(&["patch", "deployment", "web", "-p", &image_patch(NEXT_IMAGE)]);
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);
    assert_eq!(
        changes(&stored, &case.kubectl.get("deployment/web")),
        [
            Change::Added("/metadata/annotations/note".to_owned(), "b".into()),
            Change::Added("/metadata/labels/team".to_owned(), "a".into()),
            changed("/spec/template/spec/containers/0/image", IMAGE, NEXT_IMAGE),
        ]
    );
    assert_eq!(case.generation("deployment/web"), 3);
    case.rolled_out("web");
    assert_eq!(case.replica_sets("web").len(), 2);
}

pub fn restart_adds_nothing_of_ours() {
    let case = with_web("restart");
    let stored = case.kubectl.get("deployment/web");
    let count = case.count();
    case.kubectl.ok(&["rollout", "restart", "deployment", "web"]);
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);
    case.rolled_out("web");
    let found = changes(&stored, &case.kubectl.get("deployment/web"));
    let restarted = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt";
    assert!(matches!(&found[..], [Change::Added(pointer, _)] if pointer == restarted), "{found:?}");
    assert_eq!(case.generation("deployment/web"), 2);
    assert_eq!(case.replica_sets("web").len(), 2);
}

pub fn old_violations_only_warn_and_new_ones_are_denied() {
    let prepare = |kubectl: &Kubectl| {
        kubectl.ok_with(&["create", "-f", "-"], &config("a"));
        kubectl.ok_with(&["create", "-f", "-"], &unsafe_deployment("web"));
    };
    let setup = Setup { before: Some(&prepare), ..Setup::default() };
    let case = Case::with("ratchet", &setup);
    case.rolled_out("web");
    assert_eq!(case.replica_sets("web").len(), 1);

    // Another environment, the three violations as before.
    let count = case.count();
    case.kubectl.ok(&["set", "env", "deployment/web", "REGION=north"]);
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);
    case.rolled_out("web");
    assert_eq!(case.generation("deployment/web"), 2);
    assert_eq!(case.replica_sets("web").len(), 2);

    // A second container with the same mistake is a new one.
    let stored = case.kubectl.get("deployment/web");
    let sidecar = r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:latest"}]}}}}"#;
    let count = case.count();
    let denied = case.kubectl.run(&["patch", "deployment", "web", "-p", sidecar]);
    assert_eq!(denied.code, 1, "{denied:?}");
    assert!(denied.stderr.contains("side:latest"), "{denied:?}");
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment deny"]);
    assert_eq!(changes(&stored, &case.kubectl.get("deployment/web")), []);
    assert_eq!(case.replica_sets("web").len(), 2);
}

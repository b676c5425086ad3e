//! `kubectl rollout undo`: the revision that ran is the one that comes back.

use crate::case::{Case, Setup};
use crate::kubectl::Kubectl;
use crate::manifests::{NEXT_IMAGE, config, image_patch, safe, set};

const UPDATED: [&str; 2] = ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"];

pub fn undo_brings_the_previous_replica_set_back() {
    let case = Case::new("undo");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    case.kubectl.ok_with(&["create", "-f", "-"], &safe("web"));
    case.rolled_out("web");
    let first = case.kubectl.get("deployment/web");
    // The config changes in between: the digest of the old revision stays the old one.
    case.kubectl.ok_with(&["replace", "-f", "-"], &config("b"));
    case.kubectl.ok(&["patch", "deployment", "web", "-p", &image_patch(NEXT_IMAGE)]);
    case.rolled_out("web");
    let sets = case.replica_sets("web");
    assert_eq!(sets.len(), 2);

    let count = case.count();
    let output = case.kubectl.run(&["rollout", "undo", "deployment", "web"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(count.moved(), UPDATED);
    case.rolled_out("web");
    let now = case.kubectl.get("deployment/web");
    assert_eq!(now["spec"], first["spec"]);
    assert_eq!(now["metadata"]["generation"], 3);
    let back = case.replica_sets("web");
    assert_eq!(back.len(), 2, "no third ReplicaSet: {back:?}");
    assert_eq!((back[1].name.as_str(), back[1].replicas), (sets[0].name.as_str(), 2));
}

pub fn undo_to_a_revision_from_before_plimsoll() {
    // Two revisions that nobody looked at; the first would be denied today.
    let prepare = |kubectl: &Kubectl| {
        let image = "/spec/template/spec/containers/0/image";
        kubectl.ok_with(&["create", "-f", "-"], &config("a"));
        kubectl.ok_with(&["create", "-f", "-"], &set(safe("web"), image, "reg.example/app:latest"));
        kubectl.ok(&["rollout", "status", "deployment", "web"]);
        kubectl.ok(&["patch", "deployment", "web", "-p", &image_patch("reg.example/app:1.0.0")]);
        kubectl.ok(&["rollout", "status", "deployment", "web"]);
    };
    let case = Case::with("undo-before", &Setup { before: Some(&prepare), ..Setup::default() });
    case.rolled_out("web");
    let old = case.replica_sets("web");
    assert_eq!(old.len(), 2);
    let template_of = |set: &str| {
        let mut template = case.kubectl.get(&format!("replicaset/{set}"))["spec"]["template"].clone();
        let labels = template["metadata"]["labels"].as_object_mut().unwrap();
        labels.remove("pod-template-hash");
        template
    };

    case.kubectl.ok(&["patch", "deployment", "web", "-p", &image_patch(NEXT_IMAGE)]);
    case.rolled_out("web");
    assert_eq!(case.replica_sets("web").len(), 3);

    for (revision, set, next) in [(1, &old[0], 4), (2, &old[1], 5)] {
        let count = case.count();
        let target = format!("--to-revision={revision}");
        let output = case.kubectl.run(&["rollout", "undo", "deployment", "web", &target]);
        assert_eq!(output.code, 0, "{output:?}");
        assert_eq!(count.moved(), UPDATED);
        case.rolled_out("web");
        let stored = case.kubectl.get("deployment/web");
        assert_eq!(stored["spec"]["template"], template_of(&set.name));
        let back = case.replica_sets("web");
        assert_eq!(back.len(), 3, "no fourth ReplicaSet: {back:?}");
        let last = back.last().unwrap();
        assert_eq!((&last.name, last.revision, last.replicas), (&set.name, next, 2));
        assert_eq!(case.generation("deployment/web"), next);
    }
}

//! What is being deleted is never held up.

use serde_json::json;

use crate::case::{Case, Setup};
use crate::kubectl::Kubectl;
use crate::manifests::unsafe_deployment;

pub fn finalizers_can_be_removed_from_what_is_being_deleted() {
    // From before Plimsoll, so that it violates whatever it likes.
    let prepare = |kubectl: &Kubectl| {
        let mut manifest = unsafe_deployment("web");
        manifest["metadata"]["finalizers"] = json!(["e2e.plimsoll.dev/first", "e2e.plimsoll.dev/second"]);
        kubectl.ok_with(&["create", "-f", "-"], &manifest);
    };
    let case = Case::with("deletion", &Setup { before: Some(&prepare), ..Setup::default() });
    let count = case.count();
    case.kubectl.ok(&["delete", "deployment", "web", "--wait=false", "--cascade=orphan"]);
    case.kubectl.ok(&["scale", "deployment", "web", "--replicas=0"]);
    case.kubectl.ok(&[
        "patch",
        "deployment",
        "web",
        "--type=json",
        "-p",
        r#"[{"op":"test","path":"/metadata/finalizers/0","value":"e2e.plimsoll.dev/first"},
            {"op":"remove","path":"/metadata/finalizers/0"}]"#,
    ]);
    assert_eq!(count.moved(), [""; 0], "metadata and scaling to 0 do not reach us");

    // Some operators write the spec together with their finalizer, and worse than before.
    let generation = case.generation("deployment/web");
    let patch = json!({"spec": {"replicas": 5, "template": {"spec": {"containers": [
        {"name": "app", "image": "reg.example/other:latest"}]}}}});
    let output = case.kubectl.run(&["patch", "deployment", "web", "-p", &patch.to_string()]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);
    let stored = case.kubectl.get("deployment/web");
    assert_eq!(stored["metadata"]["generation"], generation + 1);
    assert_eq!(stored["spec"]["template"]["spec"]["containers"][0]["lifecycle"], json!(null));
    assert_eq!(stored["metadata"]["annotations"]["plimsoll.dev/fixed"], json!(null));

    case.kubectl.ok(&["patch", "deployment", "web", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
    case.wait("the Deployment to be gone", || {
        let output = case.kubectl.run(&["get", "deployment", "web"]);
        if output.stderr.contains("not found") { Ok(()) } else { Err(output.stdout) }
    });
}

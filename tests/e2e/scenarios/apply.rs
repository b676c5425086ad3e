//! `kubectl apply` in all its forms.

use crate::case::{Case, SYSTEM};
use crate::changes::{changed, changes};
use crate::manifests::{IMAGE, NEXT_IMAGE, TOLD_OF_SAFE, config, digest, fixes_of_safe, safe, set, unsafe_deployment};

const CREATED: [&str; 2] = ["mutate CREATE Deployment allow", "validate CREATE Deployment allow"];

pub fn an_unsafe_deployment_is_denied_with_all_its_findings() {
    let case = Case::new("denied");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let count = case.count();
    let output = case.kubectl.run_with(&["apply", "-f", "-"], &unsafe_deployment("web"));

    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    // All that a person sees: what is done for them, which object is refused, why, with
    // the numbers, and what to write instead.
    assert_eq!(
        output.told(),
        [
            "Warning: [config-checksum] fixed: wrote the digest of ConfigMap \"cfg\" into the pod template",
            "Warning: [missing-pre-stop] fixed: container \"app\": added a preStop sleep of 10 s",
            "Warning: [missing-startup-probe] fixed: container \"app\": added a startupProbe that allows 120 s to \
             start, made from its livenessProbe",
            "Error from server (Forbidden): error when creating \"STDIN\": admission webhook \
             \"workloads.validate.plimsoll.dev\" denied the request: Plimsoll found 3 violations in Deployment \
             e2e-denied/web:",
            "[missing-requests] /spec/template/spec/containers/0/resources/requests: container \"app\" requests no \
             cpu and no memory: none is reserved, and it is the first to starve or be evicted on a full node",
            "  mend it with:",
            "    resources:",
            "      requests:",
            "        cpu: 100m  # an example: measure it",
            "        memory: 128Mi  # an example: measure it",
            "[mutable-image-tag] /spec/template/spec/containers/0/image: container \"app\": image \
             \"reg.example/app:latest\" can change under the same name, so replicas may run different code and a \
             rollback may not roll back",
            "  mend it with:",
            "    image: \"reg.example/app@sha256:<digest>\"  # or a tag that is never pushed twice",
            "[rollout-outage] /spec/strategy/rollingUpdate/maxUnavailable: 3 of 3 replicas may be down at once: \
             maxUnavailable is 100%",
            "  mend it with:",
            "    spec:",
            "      strategy:",
            "        rollingUpdate:",
            "          maxSurge: 1",
            "          maxUnavailable: 0",
        ]
    );
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment deny"]);
    assert_eq!(count.total(), 2);
    let stored = case.kubectl.run(&["get", "deployment", "web"]);
    assert!(stored.stderr.contains("not found"), "{stored:?}");
    assert_eq!(case.replica_sets("web"), []);
}

pub fn a_safe_deployment_is_completed_and_rolls_out_once() {
    let case = Case::new("safe");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let count = case.count();
    let output = case.kubectl.run_with(&["apply", "-f", "-"], &safe("web"));
    assert_eq!((output.code, output.told()), (0, TOLD_OF_SAFE.to_vec()));
    assert_eq!(count.moved(), CREATED);
    assert_eq!(count.total(), 2);

    case.rolled_out("web");
    let stored = case.kubectl.get("deployment/web");
    assert_eq!(case.changes(&safe("web"), "deployment/web"), fixes_of_safe(&digest(&stored)));
    assert_eq!(stored["metadata"]["generation"], 1);
    let sets = case.replica_sets("web");
    assert_eq!(sets.len(), 1, "{sets:?}");
    assert_eq!(sets[0].replicas, 2);
    assert_eq!(count.total(), 2, "the controllers' writes are not ours to judge");
}

pub fn client_side_apply_says_unchanged_the_second_time() {
    let case = Case::new("client-side");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let count = case.count();
    let first = case.kubectl.ok_with(&["apply", "-f", "-"], &safe("web"));
    assert_eq!(first, "deployment.apps/web created\n");
    assert_eq!(count.moved(), CREATED);
    case.rolled_out("web");
    let stored = case.kubectl.get("deployment/web");

    let count = case.count();
    let second = case.kubectl.ok_with(&["apply", "-f", "-"], &safe("web"));
    assert_eq!(second, "deployment.apps/web unchanged\n");
    assert_eq!(count.moved(), [""; 0]);
    assert_eq!(changes(&stored, &case.kubectl.get("deployment/web")), []);
    assert_eq!(case.generation("deployment/web"), 1);
    assert_eq!(case.replica_sets("web").len(), 1);
}

pub fn server_side_apply_has_no_conflict_for_a_second_manager() {
    let case = Case::new("server-side");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let count = case.count();
    let first = ["apply", "--server-side", "--field-manager=first", "-f", "-"];
    case.kubectl.ok_with(&first, &safe("web"));
    assert_eq!(count.moved(), CREATED);
    case.rolled_out("web");
    let stored = case.kubectl.get("deployment/web");
    assert_eq!(case.changes(&safe("web"), "deployment/web"), fixes_of_safe(&digest(&stored)));

    let count = case.count();
    case.kubectl.ok_with(&first, &safe("web"));
    let second = ["apply", "--server-side", "--field-manager=second", "-f", "-"];
    case.kubectl.ok_with(&second, &safe("web"));
    assert_eq!(count.moved(), [""; 0]);
    assert_eq!(changes(&stored, &case.kubectl.get("deployment/web")), []);
    assert_eq!(case.generation("deployment/web"), 1);

    // One of them moves on, and owns what it changes together with nobody.
    let next = set(safe("web"), "/spec/template/spec/containers/0/image", NEXT_IMAGE);
    let count = case.count();
    let output = case.kubectl.run_with(&first, &next);
    assert_eq!(output.code, 1, "the image is the second manager's too: {output:?}");
    assert_eq!(count.moved(), [""; 0]);
    case.kubectl.ok_with(&["apply", "--server-side", "--field-manager=first", "--force-conflicts", "-f", "-"], &next);
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);
    case.rolled_out("web");
    assert_eq!(
        changes(&stored, &case.kubectl.get("deployment/web")),
        [changed("/spec/template/spec/containers/0/image", IMAGE, NEXT_IMAGE)]
    );
    assert_eq!(case.generation("deployment/web"), 2);
    assert_eq!(case.replica_sets("web").len(), 2);
}

pub fn dry_run_answers_the_same_and_stores_nothing() {
    let case = Case::new("dry-run");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let before = case.server.reviews();
    let count = case.count();
    let text = case.kubectl.ok_with(&["apply", "--dry-run=server", "-o", "json", "-f", "-"], &safe("web"));
    let answered = serde_json::from_str(&text).unwrap();
    // The two reviews of a dry run are series that the harness' own probe has begun.
    let dry = ["mutate CREATE Deployment allow (dry run)", "validate CREATE Deployment allow (dry run)"];
    assert_eq!(count.moved(), dry, "{before:?}");
    let expected = fixes_of_safe(&digest(&answered));
    assert_eq!(changes(&case.without_us(&safe("web")), &answered), expected);
    assert_eq!(case.replica_sets("web"), []);

    case.kubectl.ok_with(&["apply", "-f", "-"], &safe("web"));
    let stored = case.kubectl.get("deployment/web");
    assert_eq!(changes(&answered, &stored), [], "a dry run shows what would be stored");

    let count = case.count();
    let dry = case.kubectl.run_with(&["apply", "--dry-run=server", "-f", "-"], &unsafe_deployment("bad"));
    let real = case.kubectl.run_with(&["apply", "-f", "-"], &unsafe_deployment("bad"));
    assert_eq!((dry.code, &dry.stderr), (1, &real.stderr));
    assert_eq!(
        count.moved(),
        [
            "mutate CREATE Deployment allow",
            "mutate CREATE Deployment allow (dry run)",
            "validate CREATE Deployment deny",
            "validate CREATE Deployment deny (dry run)",
        ]
    );
}

pub fn diff_shows_what_the_author_changed() {
    let case = Case::new("diff");
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    case.kubectl.ok_with(&["apply", "-f", "-"], &safe("web"));
    case.rolled_out("web");
    let stored = case.kubectl.get("deployment/web");

    let count = case.count();
    let same = case.kubectl.run_with(&["diff", "-f", "-"], &safe("web"));
    assert_eq!((same.code, same.stdout.as_str()), (0, ""), "{same:?}");
    assert_eq!(count.moved(), [""; 0]);

    let next = set(safe("web"), "/spec/template/spec/containers/0/image", NEXT_IMAGE);
    let other = case.kubectl.run_with(&["diff", "-f", "-"], &next);
    assert_eq!(other.code, 1, "{other:?}");
    assert_eq!(
        count.moved(),
        ["mutate UPDATE Deployment allow (dry run)", "validate UPDATE Deployment allow (dry run)"]
    );
    let lines: Vec<&str> = other
        .stdout
        .lines()
        .filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---"))
        .map(str::trim_end)
        .collect();
    assert_eq!(
        lines,
        [
            "-  generation: 1",
            "+  generation: 2",
            "-        image: reg.example/app:1.2.3",
            "+        image: reg.example/app:1.2.4",
        ]
    );
    assert_eq!(changes(&stored, &case.kubectl.get("deployment/web")), []);
    assert_eq!(case.generation("deployment/web"), 1);
    assert_eq!(case.replica_sets("web").len(), 1);
}

pub fn exempt_namespaces_are_not_asked_about() {
    let case = Case::new("not-asked");
    let count = case.count();
    let named = [SYSTEM, "kube-system", "kube-public", "kube-node-lease"].map(|name| case.kubectl.in_namespace(name));
    for kubectl in named.iter().chain([&case.exempt]) {
        kubectl.ok_with(&["create", "--dry-run=server", "-f", "-"], &unsafe_deployment("web"));
    }
    assert_eq!(count.moved(), [""; 0]);
}

//! Where no extra pod can exist, a rollout must be allowed to take one down first.

use serde_json::{Value, json};

use crate::case::{Case, Setup};
use crate::changes::{Change, added, changed, changes};
use crate::control_plane::NODES;
use crate::kubectl::Kubectl;
use crate::manifests::{IMAGE, NEXT_IMAGE, config, digest, fixes_of_safe, image_patch, p0_with_short_sleep, safe, set};

const UPDATED: [&str; 2] = ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"];

/// Creates a Deployment that fills all the room there is, updates it, and expects the
/// strategy to be left alone and the rollout to complete. With the parameters that the
/// fix would have set it never does.
fn completes(case: &Case, manifest: &Value, reason: &str) {
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let count = case.count();
    let output = case.kubectl.run_with(&["apply", "-f", "-"], manifest);
    assert_eq!(output.code, 0, "{output:?}");
    let why = format!(
        "Warning: [default-rolling-update] /spec/strategy/rollingUpdate/maxUnavailable: 1 of 4 replicas may be down \
         during every rollout: maxUnavailable stays 25%, because {reason}"
    );
    assert_eq!(output.told().iter().filter(|line| line.contains("default-rolling-update")).collect::<Vec<_>>(), [&why]);
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment allow"]);
    case.rolled_out("web");
    let stored = case.kubectl.get("deployment/web");
    let mut expected = fixes_of_safe(&digest(&stored));
    expected.retain(|change| !matches!(change, Change::Changed(at, ..) if at.ends_with("/maxUnavailable")));
    expected[0] = added(
        "/metadata/annotations/plimsoll.dev~1fixed",
        "config-checksum,missing-pre-stop/app,missing-startup-probe/app",
    );
    let sleep = json!({"preStop": {"sleep": {"seconds": 1}}});
    expected[2] = added("/spec/template/spec/containers/0/lifecycle", sleep);
    assert_eq!(case.changes(manifest, "deployment/web"), expected);

    let count = case.count();
    case.kubectl.ok(&["patch", "deployment", "web", "-p", &image_patch(NEXT_IMAGE)]);
    assert_eq!(count.moved(), UPDATED);
    let mut round = 0;
    case.wait("the rollout", || {
        // A refused pod is tried again ever later, up to 16 minutes; in a ReplicaSet that
        // somebody touches, at once.
        round += 1;
        let touch = format!("e2e.plimsoll.dev/round={round}");
        case.kubectl.try_ok(&["annotate", "replicasets", "--all", "--overwrite", &touch])?;
        let status = case.kubectl.try_ok(&["rollout", "status", "deployment", "web", "--watch=false"])?;
        if status.contains("successfully rolled out") { Ok(()) } else { Err(status) }
    });
    case.rolled_out("web");
    let next = case.kubectl.get("deployment/web");
    assert_eq!(changes(&stored, &next), [changed("/spec/template/spec/containers/0/image", IMAGE, NEXT_IMAGE)]);
    assert_eq!(case.generation("deployment/web"), 2);
    let replicas: Vec<i64> = case.replica_sets("web").iter().map(|set| set.replicas).collect();
    assert_eq!(replicas, [0, NODES as i64]);

    // The control: the author insists, and the controllers give up.
    let mut insists: Value = serde_json::from_str(&image_patch(IMAGE)).unwrap();
    insists["spec"]["template"]["metadata"]["annotations"]["try"] = "3".into();
    insists["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    insists["spec"]["progressDeadlineSeconds"] = 2.into();
    let count = case.count();
    case.kubectl.ok(&["patch", "deployment", "web", "-p", &insists.to_string()]);
    assert_eq!(count.moved(), UPDATED);
    case.wait("the end of the controllers' patience", || {
        let status = case.kubectl.get("deployment/web")["status"].clone();
        let gave_up = status["conditions"].to_string().contains("ProgressDeadlineExceeded");
        if gave_up && status["observedGeneration"] == 3 { Ok(()) } else { Err(status.to_string()) }
    });
    let stuck = case.replica_sets("web");
    assert_eq!(stuck.iter().map(|set| set.replicas).collect::<Vec<_>>(), [0, NODES as i64, 1]);
    let ready = |set: &str| case.kubectl.get(&format!("replicaset/{set}"))["status"]["readyReplicas"].clone();
    assert_eq!((ready(&stuck[1].name), ready(&stuck[2].name)), (json!(NODES), Value::Null));
}

pub fn a_full_quota_does_not_stop_the_rollout() {
    let prepare = |kubectl: &Kubectl| {
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"},
            "spec": {"hard": {"pods": NODES.to_string()}},
        });
        kubectl.ok_with(&["create", "-f", "-"], &quota);
    };
    let setup = Setup { policy: p0_with_short_sleep(), before: Some(&prepare), ..Setup::default() };
    let case = Case::with("quota", &setup);
    let reason = "ResourceQuota \"team\" on pods, cpu or memory may have no room for an extra pod";
    completes(&case, &set(safe("web"), "/spec/replicas", NODES), reason);
}

pub fn required_anti_affinity_does_not_stop_the_rollout() {
    let setup = Setup { policy: p0_with_short_sleep(), ..Setup::default() };
    let case = Case::with("anti-affinity", &setup);
    let mut manifest = set(safe("web"), "/spec/replicas", NODES);
    manifest["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    ]}});
    completes(&case, &manifest, "required podAntiAffinity may leave no node for an extra pod");
}

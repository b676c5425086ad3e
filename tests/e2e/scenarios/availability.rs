//! Available pods during a rollout, as the API server reports them.

use crate::case::{Case, Setup};
use crate::kubectl::Kubectl;
use crate::manifests::{config, p0_with_short_sleep, safe, set};
use crate::process::Process;

const REPLICAS: i64 = 4;

pub fn a_rollout_of_ours_never_falls_below_its_replicas() {
    let setup = Setup { policy: p0_with_short_sleep(), ..Setup::default() };
    let case = Case::with("availability", &setup);
    let manifest = set(safe("web"), "/spec/replicas", REPLICAS);

    let count = case.count();
    let lowest = lowest_available(&case, &case.exempt, &manifest);
    assert!(lowest < REPLICAS, "the API server's defaults take pods away: lowest {lowest}");
    assert_eq!(count.moved(), [""; 0]);
    case.exempt.ok(&["delete", "deployment", "web", "--wait=false"]);

    let lowest = lowest_available(&case, &case.kubectl, &manifest);
    assert_eq!(lowest, REPLICAS);
    assert_eq!(
        count.moved(),
        [
            "mutate CREATE Deployment allow",
            "mutate UPDATE Deployment allow",
            "validate CREATE Deployment allow",
            "validate UPDATE Deployment allow",
        ]
    );
    assert_eq!(case.generation("deployment/web"), 2);
    let replicas: Vec<i64> = case.replica_sets("web").iter().map(|set| set.replicas).collect();
    assert_eq!(replicas, [0, REPLICAS]);
}

/// Creates `web`, restarts it when all pods are available, and gives the lowest number
/// of available pods seen until the restart is through.
fn lowest_available(case: &Case, kubectl: &Kubectl, manifest: &serde_json::Value) -> i64 {
    kubectl.run_with(&["create", "-f", "-"], &config("a"));
    kubectl.ok_with(&["create", "-f", "-"], manifest);
    let available = |case: &Case, generation: i64| {
        case.wait("the rollout", || {
            let status = kubectl.get("deployment/web")["status"].clone();
            let done = status["observedGeneration"] == generation
                && [&status["availableReplicas"], &status["updatedReplicas"], &status["replicas"]]
                    .iter()
                    .all(|n| **n == REPLICAS);
            if done { Ok(()) } else { Err(status.to_string()) }
        });
    };
    available(case, 1);

    // kubectl prints every state that the watch delivers, the present one first.
    let columns = "jsonpath=[{.status.observedGeneration},{.status.availableReplicas},\
                   {.status.updatedReplicas},{.status.replicas}]{\"\\n\"}";
    let watch = kubectl.command(&["get", "deployment", "web", "--watch", "-o", columns]);
    let watch = Process::spawn("watch", watch, &case.dir).unwrap();
    let skip = watch.log().lines().count();
    case.wait("the watch to begin", || match watch.log().lines().nth(skip) {
        Some(_) => Ok(()),
        None => Err(watch.log()),
    });
    kubectl.ok(&["rollout", "restart", "deployment", "web"]);
    available(case, 2);
    let last = format!("[2,{REPLICAS},{REPLICAS},{REPLICAS}]");
    case.wait("the watch to show the end", || {
        let log = watch.log();
        if log.lines().skip(skip).any(|line| line == last) { Ok(()) } else { Err(log) }
    });
    let log = watch.log();
    let states = log.lines().skip(skip).map(|line| {
        // A count of none is left out of the status.
        let count = line.trim_matches(['[', ']']).split(',').nth(1).unwrap_or_default();
        count.parse().unwrap_or(0)
    });
    states.min().unwrap()
}

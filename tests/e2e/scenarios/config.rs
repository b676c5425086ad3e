//! The digest of what a workload reads.

use crate::case::Case;
use crate::changes::{changed, changes};
use crate::manifests::{IMAGE, NEXT_IMAGE, TOLD_OF_SAFE, config, digest, fixes_of_safe, image_patch, list, safe, set};

pub fn config_and_workload_in_one_apply_carry_the_new_digest() {
    let case = Case::new("config");
    let mut digests = Vec::new();
    for round in 0..5 {
        let mode = format!("mode-{round}");
        let image = format!("reg.example/app:1.{round}.0");
        let web = set(safe("web"), "/spec/template/spec/containers/0/image", image);
        let count = case.count();
        // One after the other on one connection, some 10 ms apart: too soon for a cache.
        case.kubectl.ok_with(&["apply", "-f", "-"], &list(&[config(&mode), web]));
        let operation = if round == 0 { "CREATE" } else { "UPDATE" };
        assert_eq!(
            count.moved(),
            [format!("mutate {operation} Deployment allow"), format!("validate {operation} Deployment allow"),]
        );
        let digest_now = digest(&case.kubectl.get("deployment/web"));
        assert!(!digests.contains(&digest_now), "round {round}: {digest_now} was seen before");
        digests.push(digest_now);
        case.rolled_out("web");
        assert_eq!(case.generation("deployment/web"), round + 1);
        assert_eq!(case.replica_sets("web").len(), digests.len());

        // A workload that comes later, when nothing can be stale any more, agrees.
        let witness = format!("witness-{round}");
        case.kubectl.ok_with(&["create", "-f", "-"], &safe(&witness));
        let seen = digest(&case.kubectl.get(&format!("deployment/{witness}")));
        assert_eq!(Some(&seen), digests.last());
    }
}

pub fn a_config_change_alone_rolls_nothing() {
    let case = Case::new("config-alone");
    case.kubectl.ok_with(&["apply", "-f", "-"], &list(&[config("a"), safe("web")]));
    case.rolled_out("web");
    let stored = case.kubectl.get("deployment/web");
    let sets = case.replica_sets("web");

    let count = case.count();
    case.kubectl.ok_with(&["apply", "-f", "-"], &list(&[config("b"), safe("web")]));
    assert_eq!(count.moved(), [""; 0]);
    // Neither does a new number of replicas, sent with the whole manifest.
    let four = set(safe("web"), "/spec/replicas", 4);
    let output = case.kubectl.run_with(&["apply", "-f", "-"], &four);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        output.told(),
        [
            "Warning: [config-checksum] config changed since last rollout (ConfigMap \"cfg\"): running pods may hold old \
          values"
        ]
    );
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);
    case.rolled_out("web");
    let now = case.kubectl.get("deployment/web");
    assert_eq!(changes(&stored, &now), [changed("/spec/replicas", 2, 4)]);
    assert_eq!(now["metadata"]["generation"], 2);
    let after = case.replica_sets("web");
    assert_eq!((after.len(), &after[0].name), (1, &sets[0].name));
}

pub fn a_config_may_come_after_its_workload() {
    let case = Case::new("config-later");
    let count = case.count();
    let output = case.kubectl.run_with(&["apply", "-f", "-"], &safe("web"));
    assert_eq!(output.code, 0, "{output:?}");
    let mut told = TOLD_OF_SAFE.map(str::to_owned);
    told[0].push_str(" (not there yet: ConfigMap \"cfg\")");
    assert_eq!(output.told(), told);
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment allow"]);
    let stored = case.kubectl.get("deployment/web");
    let absent = digest(&stored);
    assert_eq!(case.changes(&safe("web"), "deployment/web"), fixes_of_safe(&absent));
    assert_eq!(case.generation("deployment/web"), 1);

    // The digest follows at the author's next change.
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    case.rolled_out("web");
    assert_eq!(case.replica_sets("web").len(), 1);
    let count = case.count();
    case.kubectl.ok(&["patch", "deployment", "web", "-p", &image_patch(NEXT_IMAGE)]);
    assert_eq!(count.moved(), ["mutate UPDATE Deployment allow", "validate UPDATE Deployment allow"]);
    let now = case.kubectl.get("deployment/web");
    assert_eq!(
        changes(&stored, &now),
        [
            changed("/spec/template/metadata/annotations/plimsoll.dev~1config-checksum", absent, digest(&now)),
            changed("/spec/template/spec/containers/0/image", IMAGE, NEXT_IMAGE),
        ]
    );
    assert_eq!(case.generation("deployment/web"), 2);
}

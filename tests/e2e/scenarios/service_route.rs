//! The way an installation is called: by a Service, at a pod's address.

use crate::case::{Case, Setup};
use crate::manifests::{config, digest, fixes_of_safe, safe, unsafe_deployment};
use crate::network::Network;

pub fn the_way_an_installation_is_called() {
    let network = Network::new().unwrap();
    let case = Case::with("service", &Setup { network: Some(&network), ..Setup::default() });
    case.kubectl.ok_with(&["create", "-f", "-"], &config("a"));
    let count = case.count();
    let denied = case.kubectl.run_with(&["apply", "-f", "-"], &unsafe_deployment("bad"));
    assert_eq!(denied.code, 1, "{denied:?}");
    assert!(denied.stderr.contains("denied the request"), "{denied:?}");
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment deny"]);

    let count = case.count();
    case.kubectl.ok_with(&["apply", "-f", "-"], &safe("web"));
    assert_eq!(count.moved(), ["mutate CREATE Deployment allow", "validate CREATE Deployment allow"]);
    assert_eq!(count.total(), 2);
    case.rolled_out("web");
    let stored = case.kubectl.get("deployment/web");
    assert_eq!(case.changes(&safe("web"), "deployment/web"), fixes_of_safe(&digest(&stored)));
    assert_eq!(stored["metadata"]["generation"], 1);
    assert_eq!(case.replica_sets("web").len(), 1);
}

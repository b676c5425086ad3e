use std::collections::BTreeSet;

use super::*;
use crate::config::Reference;
use crate::engine::facts::ConfigFacts;

fn manifests(name: &str, text: &str) -> Result<Manifests, String> {
    let mut manifests = Manifests::default();
    manifests.add(Path::new(name), text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(manifests)
}

fn config_map(name: &str) -> Reference {
    Reference { source: Source::ConfigMap, name: name.to_owned(), keys: None, optional: false }
}

fn facts(manifests: &Manifests, namespace: &str, needs: Needs) -> Facts {
    manifests.gather(namespace, needs, ServerVersion::NEWEST, None)
}

const CLUSTER: &str = "\
# A comment, and an empty document.
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cfg, namespace: shop, labels: {a: b}}
data: {a: '1', empty: }
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cfg}
data: {a: '1', empty: ''}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: shop}
stringData: {k: x}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: shop}, spec: {hard: {pods: 4, cpu: '1'}}}
- {apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop}, spec: {limits: [{type: Container, default: {cpu: 1}}]}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  namespace: shop
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u1, controller: true}]
spec: {template: {spec: {containers: [{name: a}]}}}
---
apiVersion: example.com/v1
kind: ConfigMap
metadata: [no, object]
";

fn all(uid: &str) -> Needs {
    let owner = RevisionOwner { store: RevisionStore::ReplicaSets, uid: uid.to_owned(), match_labels: Vec::new() };
    let secret = Reference { source: Source::Secret, ..config_map("s") };
    Needs {
        server_version: true,
        quotas: true,
        limit_range: true,
        revisions: Some(owner),
        digests: vec![config_map("cfg"), config_map("gone"), secret],
        ..Needs::default()
    }
}

#[test]
fn what_is_there_is_known_and_what_is_not_is_absent() {
    let manifests = manifests("cluster.yaml", CLUSTER).unwrap();
    let shop = facts(&manifests, "shop", all("u1"));
    assert_eq!(shop.server_version, Known::Known(ServerVersion { major: 1, minor: 37 }));
    let quota = Quota { name: "q".to_owned(), hard: vec!["cpu".to_owned(), "pods".to_owned()], scopes: Vec::new() };
    assert_eq!(shop.quotas, Known::Known(vec![quota]));
    assert_eq!(shop.limit_range, Known::Known(()));
    let template = r#"{"spec":{"containers":[{"name":"a"}]}}"#.to_owned();
    assert_eq!(shop.revisions, Known::Known(vec![Revision { name: "web-1".to_owned(), template }]));
    assert_eq!(shop.digest(&config_map("gone")), Known::Absent);
    let secret = Reference { source: Source::Secret, ..config_map("s") };
    assert_eq!(shop.digest(&secret), Known::Unknown(Reason::NotAllowed));

    let default = facts(&manifests, "default", all("u1"));
    assert_eq!((default.quotas, default.limit_range, default.revisions), (Known::Absent, Known::Absent, Known::Absent));
    assert_eq!(default.digests[&config_map("cfg")], shop.digests[&config_map("cfg")], "null reads as empty text");
    assert_eq!(facts(&manifests, "shop", all("u2")).revisions, Known::Absent);
}

const NEIGHBOURS: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {tier: gold}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b, namespace: shop}
spec: {minAvailable: 1, selector: {}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b, namespace: shop}
spec: {minAvailable: 2, selector: {}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}}
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: web, namespace: shop}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c, namespace: shop}
spec: {accessModes: [ReadWriteOnce]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h, namespace: shop}
spec: {maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: bare, namespace: shop}
spec: {template: {spec: {containers: []}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  namespace: shop
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u1, controller: true}]
spec: {template: {spec: {containers: []}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 2, template: {metadata: {labels: {app: web}}, spec: {containers: []}}}
---
apiVersion: batch/v1
kind: Job
metadata: {generateName: migrate-}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.argoproj.io}
spec: {versions: [{name: v1alpha1, served: true}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cfg, namespace: shop}
immutable: true
data: {a: four}
";

fn neighbours() -> Needs {
    Needs {
        crd_sleep: true,
        namespace_labels: true,
        budgets: true,
        autoscalers: true,
        services: true,
        workloads: true,
        claims: true,
        ..Needs::default()
    }
}

#[test]
fn neighbours_of_a_namespace_are_those_of_the_manifests() {
    let manifests = manifests("cluster.yaml", NEIGHBOURS).unwrap();
    let shop = facts(&manifests, "shop", neighbours());
    assert_eq!(shop.namespace_labels, Known::Known([("tier".to_owned(), "gold".to_owned())].into()));
    assert_eq!(shop.crd_sleep, Known::Known(true));
    let budgets = shop.budgets.known().unwrap();
    assert_eq!((budgets.len(), budgets[0].min_available.as_deref()), (1, Some("2")), "the last one counts");
    let services = shop.services.known().unwrap();
    assert_eq!((services.len(), services[0].selector.len()), (1, 1), "another group's Service is none");
    assert_eq!(shop.claims.known().unwrap()[0].access_modes, ["ReadWriteOnce"]);
    assert_eq!(shop.autoscalers.known().unwrap()[0].max, 4);
    let workloads = shop.workloads.known().unwrap().iter();
    let workloads: Vec<_> = workloads.map(|workload| (workload.kind.as_str(), workload.name.as_str())).collect();
    assert_eq!(workloads, [("Deployment", "web"), ("ReplicaSet", "bare")]);

    let other = facts(&manifests, "other", neighbours());
    assert_eq!(other.namespace_labels, Known::Known([].into()));
    assert_eq!(
        (other.budgets, other.workloads, other.claims),
        (Known::Known(vec![]), Known::Known(vec![]), Known::Known(vec![]))
    );
    assert_eq!((other.services, other.autoscalers), (Known::Known(vec![]), Known::Known(vec![])));
    assert_eq!(facts(&Manifests::default(), "shop", neighbours()).crd_sleep, Known::Absent);
    assert_eq!(facts(&manifests, "shop", Needs::default()), {
        let server_version = Known::Known(ServerVersion::NEWEST);
        Facts { server_version, ..Facts::unknown(Reason::NotAsked) }
    });
}

#[test]
fn f03_facts_of_configs_without_a_cluster() {
    let manifests = manifests("cluster.yaml", NEIGHBOURS).unwrap();
    let keys = Some(["a", "z"].map(str::to_owned).into());
    let (cfg, gone) = (Reference { keys, ..config_map("cfg") }, config_map("gone"));
    let secret = Reference { source: Source::Secret, ..config_map("s") };
    let configs = vec![cfg.clone(), gone.clone(), secret.clone()];
    let facts = facts(&manifests, "shop", Needs { configs, ..Needs::default() });
    let told =
        ConfigFacts { immutable: true, bytes: 1 + 4, missing_keys: vec!["z".to_owned()], binary_keys: Vec::new() };
    assert_eq!(*facts.config(&cfg), Known::Known(told));
    assert_eq!(*facts.config(&gone), Known::Absent);
    assert_eq!(*facts.config(&secret), Known::Unknown(Reason::NotAllowed));
}

#[test]
fn j02_a_secret_is_digested_only_with_a_key() {
    let manifests = manifests("cluster.yaml", CLUSTER).unwrap();
    let key = DigestKey::new(&(0..32).collect::<Vec<u8>>()).unwrap();
    let secret = Reference { source: Source::Secret, ..config_map("s") };
    let facts = manifests.gather("shop", all("u1"), ServerVersion::NEWEST, Some(&key));
    // HMAC-SHA-256 computed outside of this code.
    let expected = "30e46cd83ecac396b491c38dcc74bf812cc877d045a8ce6d6f6da5439deb737f";
    assert_eq!(facts.digest(&secret), Known::Known(expected.to_owned()));
}

#[test]
fn f02_seventeen_references_are_too_many() {
    let digests: Vec<_> = (0..17).map(|index| config_map(&format!("c{index}"))).collect();
    let facts = facts(&Manifests::default(), "shop", Needs { digests, ..Needs::default() });
    assert_eq!(
        BTreeSet::from_iter(facts.digests.values().map(Known::unknown)),
        BTreeSet::from([Some(Reason::TooMany)])
    );
    assert_eq!(facts.digests.len(), 17);
}

#[test]
fn errors_say_file_line_and_member_and_never_the_value() {
    let error = |name, text| manifests(name, text).err().unwrap();
    let number = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {pin: 4711}\n";
    assert_eq!(
        error("c/s.yaml", number),
        "c/s.yaml:2: Secret default/s: stringData.pin: wrong type; texts that look like numbers or booleans must be quoted"
    );
    let base64 = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {pin: 47-11}\n";
    assert_eq!(error("s.yml", base64), "s.yml:1: Secret default/s: data.pin: not base64");
    assert!(error("a.yaml", "a: 1\nb: [1, 2\nc: 3\n").starts_with("a.yaml:"));
    let json = "{\"apiVersion\": \"v1\"}\n\n{\"kind\": }\n";
    assert_eq!(error("a.json", json), "a.json:3: expected value at line 3 column 10");
    let name = "{}\n {\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"A/b\"}}";
    assert!(error("b.json", name).starts_with("b.json:2: ConfigMap default/A/b: metadata: "));
}

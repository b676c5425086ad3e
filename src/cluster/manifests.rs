//! Manifests that stand for a cluster: what is not among them does not exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use super::documents::Place;
use super::documents::{json_documents, yaml_documents};
use super::name::{is_label, is_subdomain};
use super::object::{self, Config, ConfigObject, Metadata, RevisionObject};
use super::wanted::wanted;
use super::{any, crd, listed};
use crate::config::Source;
use crate::config::digest::DigestKey;
use crate::engine::document;
use crate::engine::facts::{Facts, Known, Needs, Quota, Reason, Revision, RevisionOwner, RevisionStore, ServerVersion};
use crate::engine::kind;
use crate::engine::neighbours::{Labels, Neighbours};

/// Namespace of manifests that name none, as with `kubectl apply`.
const DEFAULT_NAMESPACE: &str = "default";

/// What can be wrong with manifests.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// More than stands for a cluster.
    #[error("{}: more than {limit} of manifests", path.display())]
    TooLarge {
        /// The folder.
        path: PathBuf,
        /// What is allowed.
        limit: &'static str,
    },
    /// No YAML, or no JSON.
    #[error("{place}: {message}")]
    Syntax {
        /// Where the text stops making sense.
        place: Place,
        /// Why.
        message: String,
    },
    /// An object that an API server would refuse.
    #[error("{place}: {object}: {message}")]
    Object {
        /// Where its document starts.
        place: Place,
        /// Kind and name.
        object: String,
        /// Which member, and what is wrong with it; never its value, which may be secret.
        message: String,
    },
}

/// The objects that facts are made of, from any number of files. Other kinds are skipped; of several objects of one
/// name the last counts, as if they had been applied in order.
#[derive(Default)]
pub struct Manifests {
    configs: BTreeMap<(Source, Name), Config>,
    quotas: BTreeMap<Name, Quota>,
    limit_ranges: BTreeMap<Name, bool>,
    revisions: BTreeMap<(&'static str, Name), (String, Revision)>,
    namespaces: BTreeMap<String, Labels>,
    /// By namespace, then kind, name and API group; each holds the one object or, where it counts for nothing, none.
    neighbours: BTreeMap<String, BTreeMap<[String; 3], Neighbours>>,
    crd_sleep: Option<Known<bool>>,
}

/// Namespace and name.
type Name = (String, String);

impl Manifests {
    /// Adds what a file holds: JSON documents where its name ends in `.json`, else YAML documents; `List`s count as their
    /// items.
    ///
    /// # Errors
    /// Text that is no YAML or JSON; an object that an API server would refuse.
    pub fn add(&mut self, path: &Path, text: &[u8]) -> Result<(), Error> {
        let json = path.extension().is_some_and(|extension| extension == "json");
        let documents = if json { json_documents(path, text) } else { yaml_documents(path, text) }?;
        documents
            .into_iter()
            .try_for_each(|(line, value)| self.add_object(&Place { path: path.to_owned(), line }, value))
    }

    /// Adds one object; a `List` counts as its items. `place` is for errors.
    ///
    /// # Errors
    /// An object that an API server would refuse.
    pub fn add_object(&mut self, place: &Place, mut value: Value) -> Result<(), Error> {
        let list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        if list && let Some(Value::Array(items)) = value.get_mut("items").map(Value::take) {
            return items.into_iter().try_for_each(|item| self.add_object(place, item));
        }
        let text = |member: &str| value[member].as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let own = matches!(
            (version.as_str(), kind.as_str()),
            ("v1", "ConfigMap" | "Secret" | "ResourceQuota" | "LimitRange" | "Namespace")
                | ("apps/v1", "ReplicaSet" | "ControllerRevision")
                | ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        );
        let neighbour = kind::lookup(group, &kind).is_some() || (group, kind.as_str()) == ("", "PersistentVolumeClaim");
        if !own && !neighbour {
            return Ok(());
        }
        let metadata: Metadata = read(place, &kind, value["metadata"].clone())?;
        if !own && metadata.name.is_empty() {
            // `generateName`: it is made, not applied.
            return Ok(());
        }
        let namespace = metadata.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        let object = format!("{kind} {namespace}/{}", metadata.name);
        let refuse = |message: String| Error::Object { place: place.clone(), object: object.clone(), message };
        if !is_subdomain(&metadata.name) || !is_label(&namespace) {
            return Err(refuse(
                "metadata: name and namespace must be lower case letters, digits, `-` and `.`".to_owned(),
            ));
        }
        let name = (namespace, metadata.name.clone());
        if let ("ConfigMap" | "Secret", "v1") = (kind.as_str(), version.as_str()) {
            let source = if kind == "Secret" { Source::Secret } else { Source::ConfigMap };
            let config = read::<ConfigObject>(place, &object, value)?.config(source);
            self.configs.insert((source, name), config.map_err(|error| refuse(error.to_string()))?);
            return Ok(());
        }
        let text = value.to_string();
        let document = document::Value::parse(&text).map_err(|error| refuse(error.to_string()))?;
        if neighbour {
            let mut one = Neighbours::default();
            one.add(&document);
            let key = [kind.clone(), name.1.clone(), group.to_owned()];
            self.neighbours.entry(name.0.clone()).or_default().insert(key, one);
        }
        match kind.as_str() {
            "ResourceQuota" => {
                self.quotas.extend(object::quota(&document).map(|quota| (name, quota)));
            }
            "LimitRange" => {
                self.limit_ranges.insert(name, object::sets_defaults(&document));
            }
            "Namespace" => {
                self.namespaces.insert(name.1, object::metadata_labels(&document));
            }
            "CustomResourceDefinition" if name.1 == crd::ROLLOUTS => {
                self.crd_sleep = Some(crd::keeps_sleep(&document));
            }
            "ReplicaSet" | "ControllerRevision" => {
                let stored: RevisionObject<'_> =
                    serde_json::from_str(&text).map_err(|_| refuse("spec or data: not a revision".to_owned()))?;
                if let (Some(owner), Some(revision)) = (metadata.controller(), stored.revision()) {
                    let store = if kind == "ReplicaSet" { REPLICA_SETS } else { CONTROLLER_REVISIONS };
                    let revision = Revision { name: metadata.name.clone(), ..revision };
                    self.revisions.insert((store, name), (owner.to_owned(), revision));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The facts that are needed; all of them are known, except what is asked of Secrets without a key, and of too many
    /// references.
    pub fn gather(&self, namespace: &str, needs: Needs, version: ServerVersion, key: Option<&DigestKey>) -> Facts {
        let mut facts = Facts::unknown(Reason::NotAsked);
        facts.server_version = Known::Known(version);
        if needs.quotas {
            let here = self.quotas.iter().filter(|(name, _)| name.0 == namespace);
            facts.quotas = listed(here.map(|(_, quota)| quota.clone()).collect());
        }
        if needs.limit_range {
            let here = self.limit_ranges.iter().filter(|(name, _)| name.0 == namespace);
            facts.limit_range = any(here.map(|(_, sets_defaults)| *sets_defaults).collect());
        }
        if let Some(owner) = &needs.revisions {
            facts.revisions = listed(self.revisions(namespace, owner));
        }
        if needs.namespace_labels {
            facts.namespace_labels = Known::Known(self.namespaces.get(namespace).cloned().unwrap_or_default());
        }
        if needs.crd_sleep {
            facts.crd_sleep = self.crd_sleep.clone().unwrap_or(Known::Absent);
        }
        self.neighbours(namespace, &needs, &mut facts);
        for ((source, name), wanted) in wanted(needs.digests, needs.configs, &mut facts) {
            let config = match self.configs.get(&(source, (namespace.to_owned(), name))) {
                _ if source == Source::Secret && key.is_none() => Known::Unknown(Reason::NotAllowed),
                Some(config) => Known::Known(config),
                None => Known::Absent,
            };
            wanted.answer(config, namespace, key, &mut facts);
        }
        facts
    }

    fn neighbours(&self, namespace: &str, needs: &Needs, facts: &mut Facts) {
        let here: Vec<&Neighbours> = self.neighbours.get(namespace).into_iter().flat_map(BTreeMap::values).collect();
        fn all<T: Clone>(asked: bool, here: &[&Neighbours], list: impl Fn(&Neighbours) -> &Vec<T>) -> Known<Vec<T>> {
            match asked {
                true => Known::Known(here.iter().flat_map(|one| list(one)).cloned().collect()),
                false => Known::Unknown(Reason::NotAsked),
            }
        }
        facts.budgets = all(needs.budgets, &here, |one| &one.budgets);
        facts.autoscalers = all(needs.autoscalers, &here, |one| &one.autoscalers);
        facts.services = all(needs.services, &here, |one| &one.services);
        facts.workloads = all(needs.workloads, &here, |one| &one.workloads);
        facts.claims = all(needs.claims, &here, |one| &one.claims);
    }

    fn revisions(&self, namespace: &str, owner: &RevisionOwner) -> Vec<Revision> {
        let wanted = match owner.store {
            RevisionStore::ReplicaSets => REPLICA_SETS,
            RevisionStore::ControllerRevisions => CONTROLLER_REVISIONS,
        };
        let all = self.revisions.iter().filter(|((store, name), _)| *store == wanted && name.0 == namespace);
        all.filter(|(_, (uid, _))| *uid == owner.uid).map(|(_, (_, revision))| revision.clone()).collect()
    }
}

const REPLICA_SETS: &str = "ReplicaSet";
const CONTROLLER_REVISIONS: &str = "ControllerRevision";

/// The error names the member and not its value.
fn read<T: DeserializeOwned>(place: &Place, object: &str, value: Value) -> Result<T, Error> {
    serde_path_to_error::deserialize(value).map_err(|error| Error::Object {
        place: place.clone(),
        object: object.to_owned(),
        message: format!("{}: wrong type; texts that look like numbers or booleans must be quoted", error.path()),
    })
}

#[cfg(test)]
mod tests {
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
        let quota = Quota { name: "q".to_owned(), hard: vec!["cpu".to_owned(), "pods".to_owned()] };
        assert_eq!(shop.quotas, Known::Known(vec![quota]));
        assert_eq!(shop.limit_range, Known::Known(()));
        let template = r#"{"spec":{"containers":[{"name":"a"}]}}"#.to_owned();
        assert_eq!(shop.revisions, Known::Known(vec![Revision { name: "web-1".to_owned(), template }]));
        assert_eq!(shop.digest(&config_map("gone")), Known::Absent);
        let secret = Reference { source: Source::Secret, ..config_map("s") };
        assert_eq!(shop.digest(&secret), Known::Unknown(Reason::NotAllowed));

        let default = facts(&manifests, "default", all("u1"));
        assert_eq!(
            (default.quotas, default.limit_range, default.revisions),
            (Known::Absent, Known::Absent, Known::Absent)
        );
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
        let told = ConfigFacts { immutable: true, bytes: 1 + 4, missing_keys: vec!["z".to_owned()] };
        assert_eq!(facts.config(&cfg), Known::Known(told));
        assert_eq!(facts.config(&gone), Known::Absent);
        assert_eq!(facts.config(&secret), Known::Unknown(Reason::NotAllowed));
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
}

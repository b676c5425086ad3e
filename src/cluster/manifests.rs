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
mod tests;

//! Which ConfigMaps and Secrets a pod spec reads (TRAPS F11, F13).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::{Reference, Source};
use crate::engine::document::Value;

/// Published by the control plane into every namespace; its rotation is no change of anybody's configuration.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Name prefix of the volume that admission adds for the service account's token.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// One place of a pod spec that reads a ConfigMap or a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use<'v> {
    /// ConfigMap or Secret.
    pub source: Source,
    /// `metadata.name` of the object, as the author wrote it.
    pub name: &'v str,
    /// The keys that this use names; `None`: the whole object, also where a key is missing or no string, because then
    /// it is unclear what is meant.
    pub keys: Option<BTreeSet<&'v str>>,
    /// Whether its absence is no fault.
    pub optional: bool,
    /// Name of the volume through which it is read; `None`: as environment.
    pub volume: Option<&'v str>,
    place: Place,
}

/// Where a use stands below the pod's `spec`: copied, and made into a path only for a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    list: &'static str,
    index: usize,
    /// The list within the element, and the index there.
    inner: Option<(&'static [&'static str], usize)>,
    members: &'static [&'static str],
}

impl Use<'_> {
    /// Members from the pod template (`spec` is the first) to the use.
    pub fn path(&self) -> Vec<String> {
        let Place { list, index, inner, members } = self.place;
        let mut path = vec!["spec".to_owned(), list.to_owned(), index.to_string()];
        if let Some((lists, index)) = inner {
            path.extend(lists.iter().map(|member| (*member).to_owned()));
            path.push(index.to_string());
        }
        path.extend(members.iter().map(|member| (*member).to_owned()));
        path
    }
}

/// Every place of this pod spec that reads a ConfigMap or a Secret: environment first, then volumes, in their order.
///
/// Read are `env`, `envFrom` and volumes (`configMap`, `secret`, `projected`) of regular containers, init containers and
/// sidecars. Not read are ephemeral containers (they are no part of a template), image pull secrets, service-account
/// tokens with the root CA beside them, and the credentials of storage drivers: the kubelet uses those, not the
/// program.
///
/// Names come as the author wrote them. One that cannot be an object's name stays in the list, because its pods will
/// wait for it; whoever looks references up must not make a URL of it (TRAPS J03).
pub fn uses<'v>(spec: &'v Value<'_>) -> Vec<Use<'v>> {
    let mut uses = Vec::new();
    for list in ["containers", "initContainers"] {
        for (index, container) in spec[list].items().iter().enumerate() {
            for (inner, variable) in container["env"].items().iter().enumerate() {
                let place = |members| Place { list, index, inner: Some((&["env"], inner)), members };
                let from = variable.get("valueFrom");
                let (map, secret) = (from.get("configMapKeyRef"), from.get("secretKeyRef"));
                add(
                    &mut uses,
                    Source::ConfigMap,
                    map,
                    "name",
                    Keys::One,
                    None,
                    place(&["valueFrom", "configMapKeyRef"]),
                );
                add(&mut uses, Source::Secret, secret, "name", Keys::One, None, place(&["valueFrom", "secretKeyRef"]));
            }
            for (inner, from) in container["envFrom"].items().iter().enumerate() {
                let place = |members| Place { list, index, inner: Some((&["envFrom"], inner)), members };
                let (map, secret) = (from.get("configMapRef"), from.get("secretRef"));
                add(&mut uses, Source::ConfigMap, map, "name", Keys::All, None, place(&["configMapRef"]));
                add(&mut uses, Source::Secret, secret, "name", Keys::All, None, place(&["secretRef"]));
            }
        }
    }
    for (index, volume) in spec["volumes"].items().iter().enumerate() {
        let name = text(volume.get("name"));
        if name.starts_with(TOKEN_VOLUME) {
            continue;
        }
        let (volume_name, list) = (Some(name), "volumes");
        let place = |members| Place { list, index, inner: None, members };
        let (map, secret) = (volume.get("configMap"), volume.get("secret"));
        add(&mut uses, Source::ConfigMap, map, "name", Keys::Items, volume_name, place(&["configMap"]));
        add(&mut uses, Source::Secret, secret, "secretName", Keys::Items, volume_name, place(&["secret"]));
        for (inner, source) in volume.at(&["projected", "sources"]).items().iter().enumerate() {
            let place = |members| Place { list, index, inner: Some((&["projected", "sources"], inner)), members };
            let (map, secret) = (source.get("configMap"), source.get("secret"));
            add(&mut uses, Source::ConfigMap, map, "name", Keys::Items, volume_name, place(&["configMap"]));
            add(&mut uses, Source::Secret, secret, "name", Keys::Items, volume_name, place(&["secret"]));
        }
    }
    uses
}

fn add<'v>(
    uses: &mut Vec<Use<'v>>,
    source: Source,
    value: &'v Value<'_>,
    name: &str,
    keys: Keys,
    volume: Option<&'v str>,
    place: Place,
) {
    let name = text(value.get(name));
    if name.is_empty() || (source == Source::ConfigMap && name == ROOT_CA) {
        return;
    }
    let optional = value["optional"].as_bool() == Some(true);
    uses.push(Use { source, name, keys: keys.of(value), optional, volume, place });
}

/// The ConfigMaps, and with `secrets` the Secrets, that this pod spec reads: one reference per object, sorted.
///
/// With `hot_reload` the program follows its files by itself: a volume only counts where it is mounted with a `subPath`,
/// which the kubelet never updates (TRAPS F13).
pub fn references(spec: &Value<'_>, secrets: bool, hot_reload: bool) -> Vec<Reference> {
    let frozen = if hot_reload { frozen_volumes(spec) } else { BTreeSet::new() };
    let mut merged: BTreeMap<(Source, &str), Merged<'_>> = BTreeMap::new();
    for used in uses(spec) {
        let follows = hot_reload && used.volume.is_some_and(|volume| !frozen.contains(volume));
        if follows || (used.source == Source::Secret && !secrets) {
            continue;
        }
        match merged.entry((used.source, used.name)) {
            Entry::Vacant(entry) => {
                entry.insert(Merged { keys: used.keys, optional: used.optional });
            }
            Entry::Occupied(mut entry) => {
                let merged = entry.get_mut();
                merged.optional &= used.optional;
                merged.keys = match (merged.keys.take(), used.keys) {
                    (Some(mut before), Some(more)) => {
                        before.extend(more);
                        Some(before)
                    }
                    _ => None,
                };
            }
        }
    }
    let reference = |((source, name), Merged { keys, optional }): ((Source, &str), Merged<'_>)| Reference {
        source,
        name: name.to_owned(),
        keys: keys.map(|keys| keys.into_iter().map(str::to_owned).collect()),
        optional,
    };
    merged.into_iter().map(reference).collect()
}

/// The uses of one object so far.
struct Merged<'v> {
    keys: Option<BTreeSet<&'v str>>,
    optional: bool,
}

/// Names of the volumes that some container mounts with a `subPath`.
fn frozen_volumes<'v>(spec: &'v Value<'_>) -> BTreeSet<&'v str> {
    let containers = ["containers", "initContainers"].into_iter().flat_map(|list| spec.get(list).items());
    let mounts = containers.flat_map(|container| container.get("volumeMounts").items());
    mounts.filter(|mount| sub_path(mount).is_some()).map(|mount| text(mount.get("name"))).collect()
}

/// The member of a volume mount that picks one file or folder of the volume, and what it picks; empty ones pick nothing.
pub fn sub_path<'v>(mount: &'v Value<'_>) -> Option<(&'static str, &'v str)> {
    let members = ["subPath", "subPathExpr"].into_iter().map(|member| (member, text(mount.get(member))));
    members.into_iter().find(|(_, picked)| !picked.is_empty())
}

/// Where one use says which keys it wants.
enum Keys {
    /// It takes the whole object.
    All,
    /// In `key`.
    One,
    /// In `items[].key`; no items means the whole object.
    Items,
}

impl Keys {
    /// [`Use::keys`].
    fn of<'v>(&self, value: &'v Value<'_>) -> Option<BTreeSet<&'v str>> {
        match self {
            Keys::All => None,
            Keys::One => Some(BTreeSet::from([value["key"].as_str()?])),
            Keys::Items => {
                let items = value["items"].items().iter();
                let keys = items.map(|item| item["key"].as_str()).collect::<Option<BTreeSet<_>>>()?;
                (!keys.is_empty()).then_some(keys)
            }
        }
    }
}

fn text<'v>(value: &'v Value<'_>) -> &'v str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;

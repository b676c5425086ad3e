//! What is out there, written anew: manifests of the mix that public charts and repositories show, one application a
//! file. The baseline harms none of them; the few that it denies are named here, each with the reason.
//!
//! Both test binaries read it: `server` asks offline, `e2e` applies it to a real API server.

pub mod defaults;
pub mod rollout_crd;

use std::path::Path;

use serde_json::Value;

/// One object of the corpus.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The file it stands in: `blog.yaml`.
    pub file: String,
    /// `Deployment/blog`.
    pub id: String,
    /// As its author wrote it.
    pub object: Value,
}

/// A denial of the baseline that is meant.
pub struct Argued {
    /// `Deployment/blog`.
    pub id: &'static str,
    /// The only rule that denies it.
    pub rule: &'static str,
    /// Why its author is better served by a denial than by a rollout. Tests show it where the denial is missing.
    pub why: &'static str,
}

/// Every object that the baseline denies. A `latest` tag is one share in ten of what is out there, so each is argued by
/// what it would do to that very workload.
pub const ARGUED: &[Argued] = &[
    Argued {
        id: "Deployment/alert-bridge",
        rule: "mutable-image-tag",
        why: "its one pod, moved by a drained node, starts whatever was pushed last: alerts stop for no change at all",
    },
    Argued {
        id: "Deployment/build-agent",
        rule: "mutable-image-tag",
        why: "a privileged pod: whoever pushes the tag runs as root on the node",
    },
    Argued {
        id: "Deployment/database-web",
        rule: "mutable-image-tag",
        why: "no tag is the tag latest; a new major version comes with the next restart, next to a database",
    },
    Argued {
        id: "Deployment/inference",
        rule: "mutable-image-tag",
        why: "20 minutes of start and no room for a second pod: a version that does not start cannot be undone by \
              `rollout undo`, for the old revision names the same tag",
    },
    Argued {
        id: "Deployment/mail-catcher",
        rule: "mutable-image-tag",
        why: "the least of them; a tag costs one line, an exception in the policy three",
    },
    Argued {
        id: "Deployment/media",
        rule: "mutable-image-tag",
        why: "a newer version migrates the database on its claim, and the older one cannot read it afterwards",
    },
    Argued {
        id: "Deployment/redirects",
        rule: "no-rollback-history",
        why: "with revisionHistoryLimit 0 there is no `rollout undo`, and a bad image is mended only by whoever finds the \
              old manifest; 1 keeps the list as tidy",
    },
    Argued {
        id: "Deployment/static-site",
        rule: "mutable-image-tag",
        why: "no tag is the tag latest: each replica runs the version of the day its node pulled it",
    },
];

/// Every object of the corpus, by file and then in the order of the file.
pub fn manifests() -> Vec<Manifest> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/corpus");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files.iter().flat_map(|file| read(file)).collect()
}

fn read(path: &Path) -> Vec<Manifest> {
    let file = path.file_name().expect("a file").to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let manifest = |object: Value| Manifest { file: file.clone(), id: id(&object), object };
    objects.into_iter().map(manifest).collect()
}

/// `Deployment/blog`.
pub fn id(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

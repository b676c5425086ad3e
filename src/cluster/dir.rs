//! `--cluster-dir`: a folder of manifests stands for the cluster.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::manifests::{Error, Manifests};
use super::{FactSource, unknown};
use crate::config::digest::DigestKey;
use crate::engine::facts::{Facts, Known, Needs, Reason, ServerVersion};

/// Most files, and most bytes in all of them: the folder is read for every review that asks.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: usize = 64 << 20;

/// A folder of manifests: `*.yaml`, `*.yml` and `*.json`, also in subfolders; names that start with a dot are skipped. It
/// is read again for every review that asks for facts, so that a change counts at once; while it is broken the facts
/// are unknown.
pub struct Dir {
    path: Arc<Path>,
    kube_version: ServerVersion,
    digest_key: Option<DigestKey>,
    last: Mutex<Snapshot>,
}

/// The folder as it was last read.
#[derive(Clone)]
struct Snapshot {
    /// Over paths and contents: a time stamp may stay the same when the content changes.
    hash: [u8; 32],
    manifests: Option<Arc<Manifests>>,
}

impl Dir {
    /// Reads the folder; blocks, so call it before serving. Without a key, digests of Secrets are unknown.
    ///
    /// # Errors
    /// A folder that cannot be read, or manifests that are wrong, with file and line.
    pub fn open(path: PathBuf, kube_version: ServerVersion, digest_key: Option<DigestKey>) -> Result<Self, Error> {
        let files = files(&path)?;
        let last = Snapshot { hash: hash(&files), manifests: Some(Arc::new(parse(&files)?)) };
        Ok(Dir { path: path.into(), kube_version, digest_key, last: Mutex::new(last) })
    }

    /// The manifests as they are now; `None` while they are broken.
    async fn current(&self) -> Option<Arc<Manifests>> {
        // Held while reading, so that reviews wait as tasks and not as threads.
        let mut last = self.last.lock().await;
        let (path, before) = (Arc::clone(&self.path), last.clone());
        let read = tokio::task::spawn_blocking(move || read_again(&path, before)).await.ok()?;
        *last = read;
        last.manifests.clone()
    }
}

impl FactSource for Dir {
    fn gather<'a>(&'a self, namespace: &'a str, needs: Needs, deadline: Instant) -> BoxFuture<'a, Facts> {
        async move {
            let reads = Needs { server_version: false, ..needs.clone() };
            if reads.is_empty() {
                let server_version = Known::Known(self.kube_version);
                return Facts { server_version, ..Facts::unknown(Reason::NotAsked) };
            }
            let reason = match timeout_at(deadline, self.current()).await {
                Ok(Some(manifests)) => {
                    return manifests.gather(namespace, needs, self.kube_version, self.digest_key.as_ref());
                }
                Ok(None) => Reason::Failed,
                Err(_) => Reason::TimedOut,
            };
            Facts { server_version: Known::Known(self.kube_version), ..unknown(needs, reason) }
        }
        .boxed()
    }
}

/// Parses only what changed; says once what is wrong.
fn read_again(path: &Path, before: Snapshot) -> Snapshot {
    let read = files(path);
    // Unreadable hashes like empty: the next readable state differs, unless it is empty, and then it parses to nothing.
    let hash = read.as_deref().map(hash).unwrap_or_default();
    if hash == before.hash {
        return before;
    }
    let manifests = read.and_then(|files| parse(&files));
    match &manifests {
        Ok(_) => tracing::info!(path = %path.display(), "manifests read again"),
        Err(error) => tracing::error!(%error, "manifests are broken; facts are unknown until they are mended"),
    }
    Snapshot { hash, manifests: manifests.ok().map(Arc::new) }
}

fn parse(files: &[(PathBuf, Vec<u8>)]) -> Result<Manifests, Error> {
    let mut manifests = Manifests::default();
    files.iter().try_for_each(|(path, text)| manifests.add(path, text))?;
    Ok(manifests)
}

fn hash(files: &[(PathBuf, Vec<u8>)]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in files.iter().flat_map(|(path, text)| [path.as_os_str().as_encoded_bytes(), text]) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// All manifests below the folder, in the order of their paths.
fn files(root: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, Error> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Unreadable { path, source }
    };
    let mut files = Vec::new();
    let (mut bytes, mut folders) = (0, vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(unreadable(&folder))? {
            let entry = entry.map_err(unreadable(&folder))?;
            let path = entry.path();
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // Not through links: a linked folder may contain itself.
            if entry.file_type().map_err(unreadable(&path))?.is_dir() {
                folders.push(path);
                continue;
            }
            let manifest =
                path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|e| extension == *e));
            if manifest && std::fs::metadata(&path).map_err(unreadable(&path))?.is_file() {
                // No more than one byte too many, however large the file is.
                let mut text = Vec::new();
                let file = std::fs::File::open(&path).map_err(unreadable(&path))?;
                let left = (MAX_BYTES - bytes) as u64 + 1;
                file.take(left).read_to_end(&mut text).map_err(unreadable(&path))?;
                bytes += text.len();
                files.push((path, text));
            }
            if files.len() > MAX_FILES || bytes > MAX_BYTES {
                return Err(Error::TooLarge { path: root.to_owned(), limit: "10000 files or 64 MiB" });
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{Reference, Source};

    fn write(folder: &Path, name: &str, value: &str) {
        let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: cfg}}\ndata: {{a: {value}}}\n");
        std::fs::write(folder.join(name), text).unwrap();
    }

    async fn digest(dir: &Dir) -> Known<String> {
        let reference = Reference { source: Source::ConfigMap, name: "cfg".to_owned(), keys: None, optional: false };
        let needs = Needs { digests: vec![reference.clone()], ..Needs::default() };
        let facts = dir.gather("default", needs, Instant::now() + Duration::from_secs(60)).await;
        assert_eq!(facts.server_version, Known::Known(ServerVersion::NEWEST));
        facts.digest(&reference)
    }

    #[tokio::test]
    async fn a_change_counts_at_once_and_a_broken_file_makes_facts_unknown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("below/..data")).unwrap();
        write(folder.path(), "below/cfg.yaml", "one");
        write(folder.path(), "below/..data/cfg.yaml", "[broken");
        write(folder.path(), "notes.txt", "[broken");
        let dir = Dir::open(folder.path().to_owned(), ServerVersion::NEWEST, None).unwrap();
        let one = digest(&dir).await;
        assert!(one.known().is_some());

        write(folder.path(), "below/cfg.yaml", "two");
        let two = digest(&dir).await;
        assert!(two.known().is_some() && two != one);

        write(folder.path(), "below/cfg.yaml", "[broken");
        assert_eq!(digest(&dir).await, Known::Unknown(Reason::Failed));
        assert_eq!(digest(&dir).await, Known::Unknown(Reason::Failed));

        write(folder.path(), "below/cfg.yaml", "one");
        assert_eq!(digest(&dir).await, one);
        std::fs::remove_file(folder.path().join("below/cfg.yaml")).unwrap();
        assert_eq!(digest(&dir).await, Known::Absent);
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(digest(&dir).await, Known::Unknown(Reason::Failed));
    }

    #[tokio::test]
    async fn nothing_is_read_after_the_deadline() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path().to_owned(), ServerVersion::NEWEST, None).unwrap();
        let needs = Needs { quotas: true, ..Needs::default() };
        // Another review is reading; it never ends.
        let _reading = dir.last.lock().await;
        let facts = dir.gather("default", needs, Instant::now()).await;
        assert_eq!(facts.quotas, Known::Unknown(Reason::TimedOut));
    }

    #[test]
    fn what_is_no_file_is_passed_over_and_a_huge_one_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.yaml")).unwrap();
        std::os::unix::net::UnixListener::bind(folder.path().join("socket.yaml")).unwrap();
        assert_eq!(files(folder.path()).unwrap(), []);
        let huge = std::fs::File::create(folder.path().join("huge.yaml")).unwrap();
        huge.set_len(1 << 40).unwrap();
        let error = files(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("more than 10000 files or 64 MiB of manifests"), "{error}");
    }

    #[test]
    fn a_broken_folder_is_an_error_at_start() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "cfg.yaml", "1");
        let error = Dir::open(folder.path().to_owned(), ServerVersion::NEWEST, None).err().unwrap().to_string();
        assert!(error.contains("cfg.yaml:1: ConfigMap default/cfg: data.a: wrong type"), "{error}");
        let missing = Dir::open(folder.path().join("none"), ServerVersion::NEWEST, None).err().unwrap().to_string();
        assert!(missing.contains("none: cannot be read: "), "{missing}");
    }
}

//! A policy file, reread when its content changes.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::Error;
use crate::policy::error::MAX_BYTES;
use crate::policy::store::{Offer, Store};

/// A policy file. It is looked at by its path and content, so that an editor's replacement and the `..data` symlink of
/// a mounted ConfigMap are seen alike.
#[derive(Debug, Clone)]
pub struct FileSource {
    path: PathBuf,
}

/// What a look at the file found; the error as its message, so that two looks can be compared.
type Look = Result<String, String>;

impl FileSource {
    /// The file at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        FileSource { path: path.into() }
    }

    /// Loads it: for the start.
    ///
    /// # Errors
    /// The file cannot be read, or is no valid policy.
    pub async fn load(&self, store: &Store) -> Result<Offer, Error> {
        let text = self.read().await?;
        Ok(store.offer(&text, &self.path.display().to_string())?)
    }

    /// Looks at it this often and offers what changed. Runs until it is dropped.
    pub async fn watch(&self, store: &Store, every: Duration) {
        let mut watch = Watch::default();
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let look = self.read().await.map_err(|error| error.to_string());
            watch.step(look, store, &self.path.display().to_string());
        }
    }

    async fn read(&self) -> Result<String, Error> {
        let path = || self.path.clone();
        let mut bytes = Vec::new();
        let read = async {
            let file = tokio::fs::File::open(&self.path).await?;
            file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).await
        };
        read.await.map_err(|source| Error::Read { path: path(), source })?;
        if bytes.len() > MAX_BYTES {
            return Err(Error::TooLarge { path: path() });
        }
        String::from_utf8(bytes).map_err(|_| Error::NotText { path: path() })
    }
}

/// Passes on what two looks in a row agree on: a file that is just being written, or replaced, is not there or cut
/// short for a moment, and the beginning of a policy can be a valid, laxer policy.
#[derive(Default)]
struct Watch {
    before: Option<Look>,
}

impl Watch {
    fn step(&mut self, look: Look, store: &Store, origin: &str) {
        if self.before.as_ref() != Some(&look) {
            self.before = Some(look);
            return;
        }
        match look {
            // A refusal was counted, logged and kept for /readyz by the store.
            Ok(text) => drop(store.offer(&text, origin)),
            Err(trouble) => drop(store.fail(&trouble)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str =
        "apiVersion: plimsoll.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec:\n  enforcement: warn\n";
    const BEGINNING: &str = "apiVersion: plimsoll.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec: {}\n";

    #[test]
    fn a_file_in_the_making_is_not_read() {
        let (store, mut watch) = (Store::new(), Watch::default());
        let mut look = |look: Result<&str, &str>| {
            watch.step(look.map(str::to_owned).map_err(str::to_owned), &store, "policy.yaml");
            store.current().map(|policy| policy.enforcement)
        };
        use crate::policy::Enforcement::{Enforce, Warn};
        assert_eq!(look(Ok(WHOLE)), None);
        assert_eq!(look(Ok(WHOLE)), Some(Warn));
        assert_eq!(look(Ok("")), Some(Warn));
        assert_eq!(look(Ok(BEGINNING)), Some(Warn));
        assert_eq!(look(Ok(WHOLE)), Some(Warn));
        assert_eq!(look(Err("gone")), Some(Warn));
        assert_eq!(look(Ok(BEGINNING)), Some(Warn));
        assert_eq!(look(Ok(BEGINNING)), Some(Enforce));
        assert_eq!(store.failures(), 0);
    }
}

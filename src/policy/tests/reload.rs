//! The store and the file source: good policies replace, broken ones change nothing and are told once.

use std::fs;

use super::{said, store, with_spec};
use crate::engine::finding::Action::{Audit, Deny, Warn};
use crate::policy::source::{Error, FileSource};
use crate::policy::store::Offer;

const GOOD: &str = "  rules: {missing-requests: deny}";
const BROKEN: &str = "  rules:\n    missing-pre-stop: {params: {sleepSeconds: \"ten\"}}";

#[test]
fn i14_a_broken_update_keeps_the_last_good_policy() {
    let store = store();
    assert!(store.current().is_none());
    assert!(matches!(store.offer(&with_spec(GOOD), "a.yaml"), Ok(Offer::Loaded(_))));
    let hash = store.current().map(|policy| policy.hash.clone());

    let refusal = store.offer(&with_spec(BROKEN), "a.yaml").err();
    let told = refusal.as_ref().map(ToString::to_string).unwrap_or_default();
    assert_eq!(
        told,
        "a.yaml is no valid policy:\nline 6, column 47: spec.rules.missing-pre-stop.params.sleepSeconds: expected a \
         whole number, 0 or more, found string \"ten\""
    );
    assert_eq!(store.failures(), 1);
    assert_eq!(store.trouble(), Some(told));
    assert_eq!(store.current().map(|policy| policy.hash.clone()), hash);
    assert_eq!(store.current().map(|policy| said(&policy, "missing-requests")), Some((Deny, false)));

    // The source offers it again and again: one failure, told once.
    assert_eq!(store.offer(&with_spec(BROKEN), "a.yaml").err().map(|refusal| refusal.news), Some(false));
    assert_eq!(store.failures(), 1);

    assert!(matches!(store.offer(&with_spec(GOOD), "a.yaml"), Ok(Offer::Unchanged)));
    assert_eq!(store.trouble(), None);

    // Broken once more, after a good one: that is news.
    assert_eq!(store.offer(&with_spec(BROKEN), "a.yaml").err().map(|refusal| refusal.news), Some(true));
    assert_eq!(store.failures(), 2);
}

#[test]
fn a_source_without_text_keeps_the_last_good_policy() {
    let store = store();
    assert!(store.offer(&with_spec(GOOD), "a.yaml").is_ok());
    assert!(store.fail("it is gone"));
    assert!(!store.fail("it is gone"));
    assert_eq!((store.failures(), store.trouble().as_deref()), (1, Some("it is gone")));
    assert!(store.current().is_some());
    assert!(matches!(store.offer(&with_spec("  rules: {missing-requests: warn}"), "a.yaml"), Ok(Offer::Loaded(_))));
    assert_eq!(store.trouble(), None);
    assert_eq!(store.current().map(|policy| said(&policy, "missing-requests")), Some((Warn, false)));
}

#[test]
fn unchanged_text_is_no_reload() {
    let store = store();
    assert!(store.offer(&with_spec(GOOD), "a.yaml").is_ok());
    let before = store.current();
    assert!(matches!(store.offer(&with_spec(GOOD), "a.yaml"), Ok(Offer::Unchanged)));
    let same = before.zip(store.current()).is_some_and(|(before, after)| std::sync::Arc::ptr_eq(&before, &after));
    assert!(same);
}

#[tokio::test]
async fn at_the_start_a_bad_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.yaml");
    let source = FileSource::new(&path);
    let store = store();
    let load = async || source.load(&store).await.map(|_| ()).map_err(|error| error.to_string());
    let missing = load().await.unwrap_err();
    assert!(missing.starts_with(&format!("the policy file {} cannot be read: ", path.display())), "{missing}");
    fs::write(&path, b"\xff\xfe").unwrap();
    assert_eq!(load().await, Err(format!("the policy file {} is not UTF-8; save it as UTF-8", path.display())));
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(matches!(source.load(&store).await, Err(Error::TooLarge { .. })));
    fs::write(&path, with_spec(BROKEN)).unwrap();
    let broken = load().await.unwrap_err();
    assert!(broken.contains("spec.rules.missing-pre-stop.params.sleepSeconds"), "{broken}");
    assert!(store.current().is_none());
    fs::write(&path, with_spec(GOOD)).unwrap();
    assert_eq!(load().await, Ok(()));
    assert!(store.current().is_some());
}

#[tokio::test]
async fn a_file_is_followed_through_replacement_and_symlink_swap() {
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    let dir = tempfile::tempdir().unwrap();
    // As kubelet mounts a ConfigMap: policy.yaml -> ..data/policy.yaml, ..data -> ..1.
    for (version, action) in [("..1", "warn"), ("..2", "deny")] {
        fs::create_dir(dir.path().join(version)).unwrap();
        let text = with_spec(&format!("  rules: {{missing-requests: {action}}}"));
        fs::write(dir.path().join(version).join("policy.yaml"), text).unwrap();
    }
    let swap = |version: &str| {
        symlink(version, dir.path().join("..data_tmp")).unwrap();
        fs::rename(dir.path().join("..data_tmp"), dir.path().join("..data")).unwrap();
    };
    swap("..1");
    let path = dir.path().join("policy.yaml");
    symlink("..data/policy.yaml", &path).unwrap();

    let store = store();
    let source = FileSource::new(&path);
    assert!(source.load(&store).await.is_ok());
    let in_force = || store.current().map(|policy| said(&policy, "missing-requests").0);
    let until = async |wanted: &dyn Fn() -> bool| {
        while !wanted() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let follow = async {
        assert_eq!(in_force(), Some(Warn));
        swap("..2");
        until(&|| in_force() == Some(Deny)).await;

        fs::remove_file(&path).unwrap();
        until(&|| store.trouble().is_some()).await;
        assert_eq!((in_force(), store.failures()), (Some(Deny), 1));

        // As editors save: a new file is renamed over the old one.
        let draft = dir.path().join("policy.yaml~");
        fs::write(&draft, with_spec("  rules: {missing-requests: audit}")).unwrap();
        fs::rename(&draft, &path).unwrap();
        until(&|| in_force() == Some(Audit)).await;
        assert_eq!(store.trouble(), None);
    };
    tokio::select! {
        () = source.watch(&store, Duration::from_millis(1)) => {}
        () = follow => {}
        // Only so that a failure ends.
        () = tokio::time::sleep(Duration::from_secs(60)) => panic!("in force: {:?}, {:?}", in_force(), store.trouble()),
    }
}

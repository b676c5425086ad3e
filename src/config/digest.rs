//! Digests over the content of ConfigMaps and Secrets (TRAPS F07 to F10).
//!
//! Everything that goes into a digest is framed: 8 bytes of length (big endian), then the bytes. So no two contents
//! encode alike. Only content counts: no resource version, label or annotation is ever read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

use super::{Reference, Source};
use crate::engine::facts::{Known, Reason};

/// What stands for a missing object (TRAPS F03).
const ABSENT: &str = "absent";

/// What can be wrong with `--digest-key-file`.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read the digest key from {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A key that can be guessed would make digests of Secrets an oracle.
    #[error("the digest key has {bytes} bytes, at least {min} are needed; make one with `openssl rand 32`", min = DigestKey::MIN_BYTES)]
    TooShort {
        /// Length of the key that was given.
        bytes: usize,
    },
}

/// The key under which digests of Secrets are made; all replicas must have the same. It is never shown.
#[derive(Clone)]
pub struct DigestKey(Hmac<Sha256>);

impl DigestKey {
    /// Fewest bytes that are taken for a key: the output size of SHA-256, as RFC 2104 advises.
    pub const MIN_BYTES: usize = 32;

    /// A key of these bytes, all of them: a final line break belongs to it.
    ///
    /// # Errors
    /// Fewer than [`DigestKey::MIN_BYTES`].
    pub fn new(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.len() < Self::MIN_BYTES {
            return Err(KeyError::TooShort { bytes: bytes.len() });
        }
        // HMAC takes keys of every length; the error exists for other MACs.
        Hmac::new_from_slice(bytes).map(DigestKey).map_err(|_| KeyError::TooShort { bytes: bytes.len() })
    }

    /// Reads the key from a file; blocks, so call it before serving.
    ///
    /// # Errors
    /// A file that cannot be read or holds too few bytes.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let bytes =
            std::fs::read(path).map_err(|source| KeyError::Unreadable { path: path.display().to_string(), source })?;
        DigestKey::new(&bytes)
    }
}

impl std::fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DigestKey(…)")
    }
}

/// Base64 that no API server would have stored.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{member}.{key}: not base64")]
pub struct InvalidBase64 {
    /// `data` or `binaryData`.
    pub member: &'static str,
    /// The key within it.
    pub key: String,
}

/// The content of one ConfigMap or Secret. It may be secret: it can be digested and
/// measured, never read.
pub struct Content {
    /// By key, then member (`data`, `binaryData`): the order of the digest.
    entries: BTreeMap<(String, &'static str), Vec<u8>>,
}

impl Content {
    /// Of a ConfigMap: text and base64.
    ///
    /// # Errors
    /// The first key of `binary_data` that is no base64.
    pub fn config_map(
        data: BTreeMap<String, String>,
        binary_data: BTreeMap<String, String>,
    ) -> Result<Self, InvalidBase64> {
        let mut entries = decode("binaryData", binary_data)?;
        entries.extend(data.into_iter().map(|(key, value)| ((key, "data"), value.into_bytes())));
        Ok(Content { entries })
    }

    /// Of a Secret: base64, and what a manifest gives as `stringData`, which wins over `data` of the same key.
    ///
    /// # Errors
    /// The first key of `data` that is no base64.
    pub fn secret(
        data: BTreeMap<String, String>,
        string_data: BTreeMap<String, String>,
    ) -> Result<Self, InvalidBase64> {
        let mut entries = decode("data", data)?;
        entries.extend(string_data.into_iter().map(|(key, value)| ((key, "data"), value.into_bytes())));
        Ok(Content { entries })
    }

    /// Its digest, 64 hex digits, over the keys that the reference uses; a key that is not there is framed as missing.
    /// A ConfigMap's is SHA-256. A Secret's is HMAC-SHA-256 that also covers the namespace, so that it neither lets
    /// content be guessed nor tells that two namespaces share a Secret; without a key it is unknown.
    pub fn digest(&self, reference: &Reference, namespace: &str, key: Option<&DigestKey>) -> Known<String> {
        let keys = reference.keys.as_ref();
        match (reference.source, key) {
            (Source::ConfigMap, _) => {
                let mut hash = Sha256::new();
                let mut update = |bytes: &[u8]| hash.update(bytes);
                frame(&mut update, &[Source::ConfigMap.as_str(), &reference.name]);
                self.frame(&mut update, keys);
                Known::Known(hex(&hash.finalize()))
            }
            (Source::Secret, Some(DigestKey(mac))) => {
                let mut mac = mac.clone();
                let mut update = |bytes: &[u8]| mac.update(bytes);
                frame(&mut update, &[Source::Secret.as_str(), namespace, &reference.name]);
                self.frame(&mut update, keys);
                Known::Known(hex(&mac.finalize().into_bytes()))
            }
            (Source::Secret, None) => Known::Unknown(Reason::NotAllowed),
        }
    }

    /// Keys and decoded values together, bytes.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|((key, _), value)| (key.len() + value.len()) as u64).sum()
    }

    /// The keys that the reference names and that are not there, sorted; none where it means the whole object.
    pub fn missing_keys(&self, reference: &Reference) -> Vec<String> {
        let there: BTreeSet<&str> = self.entries.keys().map(|(key, _)| key.as_str()).collect();
        let named = reference.keys.iter().flatten();
        named.filter(|key| !there.contains(key.as_str())).cloned().collect()
    }

    /// The keys that the reference names and that stand in `binaryData` alone, sorted.
    pub fn binary_keys(&self, reference: &Reference) -> Vec<String> {
        let there = |key: &str, member| self.entries.contains_key(&(key.to_owned(), member));
        let named = reference.keys.iter().flatten();
        named.filter(|key| there(key, "binaryData") && !there(key, "data")).cloned().collect()
    }

    fn frame(&self, update: &mut impl FnMut(&[u8]), keys: Option<&BTreeSet<String>>) {
        let mut entry = |member: &str, key: &str, value: &[u8]| {
            frame(update, &[member, key]);
            frame(update, &[value]);
        };
        let Some(keys) = keys else {
            self.entries.iter().for_each(|((key, member), value)| entry(member, key, value));
            return;
        };
        for key in keys {
            // An API server never has one key in both members; a folder of manifests may.
            let found = ["binaryData", "data"].map(|member| self.entries.get_key_value(&(key.clone(), member)));
            found.iter().flatten().for_each(|((key, member), value)| entry(member, key, value));
            if found.iter().all(Option::is_none) {
                entry("missing", key, b"");
            }
        }
    }
}

/// The checksum over all references of one workload, 64 hex digits; their order does not matter.
///
/// # Errors
/// The first reference, sorted, whose digest is unknown, and why: a checksum over part of the truth would restart
/// workloads for nothing (TRAPS F12).
pub fn combine(digests: &[(Reference, Known<String>)]) -> Result<String, (Reference, Reason)> {
    let mut sorted: Vec<_> = digests.iter().collect();
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut hash = Sha256::new();
    for (reference, digest) in sorted {
        let digest = match digest {
            Known::Known(digest) => digest,
            Known::Absent => ABSENT,
            Known::Unknown(reason) => return Err((reference.clone(), *reason)),
        };
        frame(&mut |bytes| hash.update(bytes), &[reference.source.as_str(), &reference.name, digest]);
    }
    Ok(hex(&hash.finalize()))
}

fn decode(
    member: &'static str,
    values: BTreeMap<String, String>,
) -> Result<BTreeMap<(String, &'static str), Vec<u8>>, InvalidBase64> {
    let decode = |(key, value): (String, String)| {
        // Go's decoder skips line breaks, which YAML block scalars have.
        let value: String = value.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        match base64::engine::general_purpose::STANDARD.decode(value) {
            Ok(bytes) => Ok(((key, member), bytes)),
            Err(_) => Err(InvalidBase64 { member, key }),
        }
    };
    values.into_iter().map(decode).collect()
}

fn frame<T: AsRef<[u8]>>(update: &mut impl FnMut(&[u8]), parts: &[T]) {
    for part in parts.iter().map(AsRef::as_ref) {
        update(&(part.len() as u64).to_be_bytes());
        update(part);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map(members: &[(&str, &str)]) -> BTreeMap<String, String> {
        members.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn reference(source: Source, name: &str, keys: &[&str]) -> Reference {
        let keys: BTreeSet<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        Reference { source, name: name.to_owned(), keys: (!keys.is_empty()).then_some(keys), optional: false }
    }

    fn of_config_map(data: &[(&str, &str)], binary_data: &[(&str, &str)], keys: &[&str]) -> String {
        let content = Content::config_map(map(data), map(binary_data)).unwrap();
        content.digest(&reference(Source::ConfigMap, "cfg", keys), "ns1", None).known().unwrap().clone()
    }

    fn of_secret(data: &[(&str, &str)], namespace: &str, name: &str, key: &[u8]) -> String {
        let content = Content::secret(map(data), BTreeMap::new()).unwrap();
        let key = DigestKey::new(key).unwrap();
        content.digest(&reference(Source::Secret, name, &[]), namespace, Some(&key)).known().unwrap().clone()
    }

    fn key() -> Vec<u8> {
        (0..32).collect()
    }

    // The expected digests in this module were computed outside of this code, from the framing as documented.
    #[test]
    fn f07_contents_that_join_to_the_same_text_do_not_collide() {
        assert_eq!(
            of_config_map(&[("a", "1;b=2")], &[], &[]),
            "8e70dfee5173a46116a0ce40a486b0b7c12b095d49664b07788ddc8c55ef2ae8"
        );
        assert_eq!(
            of_config_map(&[("b", "2"), ("a", "1")], &[], &[]),
            "9a4dd437c1e254001e64da5ca44af584f11c2510476223d1ca44dd223f632edb"
        );
    }

    #[test]
    fn f08_only_the_keys_used_count_and_a_missing_one_is_seen() {
        assert_eq!(of_config_map(&[("a", "1"), ("b", "2")], &[], &["a"]), of_config_map(&[("a", "1")], &[], &["a"]));
        assert_ne!(of_config_map(&[("a", "1"), ("b", "2")], &[], &[]), of_config_map(&[("a", "1")], &[], &[]));
        assert_eq!(
            of_config_map(&[("a", "1")], &[], &["a", "z"]),
            "f26b0d9ea50e642320635f0dd4e0f8d3149eda8ea22e8806645dd554f8d5b6fb"
        );
        assert_ne!(of_config_map(&[("z", "")], &[], &["z"]), of_config_map(&[], &[], &["z"]));
    }

    #[test]
    fn f03_missing_keys_are_told_and_bytes_are_those_of_the_decoded_content() {
        let content = Content::config_map(map(&[("a", "1"), ("bb", "22")]), map(&[("k", "AAAA")])).unwrap();
        assert_eq!(content.bytes(), (1 + 1) + (2 + 2) + (1 + 3));
        let missing = |keys: &[&str]| content.missing_keys(&reference(Source::ConfigMap, "cfg", keys));
        assert_eq!(missing(&["z", "a", "k", "A"]), ["A", "z"]);
        assert_eq!(missing(&[]), Vec::<String>::new());
    }

    #[test]
    fn f09_base64_is_decoded_and_the_member_is_framed() {
        let once = of_config_map(&[], &[("k", "eA==")], &[]);
        assert_eq!(once, of_config_map(&[], &[("k", "eA\n==\n")], &[]), "line breaks are no content");
        assert_eq!(once, of_config_map(&[], &[("k", "eA==")], &["k"]));
        assert_ne!(once, of_config_map(&[("k", "x")], &[], &[]));
        let invalid = Content::config_map(BTreeMap::new(), map(&[("k", "%")])).err();
        assert_eq!(invalid, Some(InvalidBase64 { member: "binaryData", key: "k".to_owned() }));
    }

    #[test]
    fn f10_a_secrets_digest_depends_on_key_namespace_and_name() {
        let digest = of_secret(&[("k", "eA==")], "ns1", "s", &key());
        assert_eq!(digest, "953029c806dcec67290e45603dac2a674ae9abc12d3002e6c525ab318f7b4dbd");
        assert_eq!(digest, of_secret(&[("k", "eA==")], "ns1", "s", &key()), "two replicas, same key");
        assert_ne!(digest, of_secret(&[("k", "eA==")], "ns2", "s", &key()));
        assert_ne!(digest, of_secret(&[("k", "eA==")], "ns1", "t", &key()));
        assert_ne!(digest, of_secret(&[("k", "eA==")], "ns1", "s", &[7; 32]));
    }

    #[test]
    fn f10_without_a_key_a_secrets_digest_is_unknown() {
        let content = Content::secret(map(&[("k", "eA==")]), BTreeMap::new()).unwrap();
        let digest = content.digest(&reference(Source::Secret, "s", &[]), "ns1", None);
        assert_eq!(digest, Known::Unknown(Reason::NotAllowed));
    }

    #[test]
    fn f10_a_short_key_is_refused_and_no_key_is_shown() {
        let error = DigestKey::new(b"hunter2").unwrap_err().to_string();
        assert_eq!(error, "the digest key has 7 bytes, at least 32 are needed; make one with `openssl rand 32`");
        assert_eq!(format!("{:?}", DigestKey::new(&key()).unwrap()), "DigestKey(…)");
    }

    #[test]
    fn string_data_wins_over_data_as_the_api_server_stores_it() {
        let stored = Content::secret(map(&[("k", "eA==")]), BTreeMap::new()).unwrap();
        let written = Content::secret(map(&[("k", "AAAA")]), map(&[("k", "x")])).unwrap();
        assert!(stored.entries == written.entries);
    }

    #[test]
    fn f03_an_absent_object_has_a_fixed_token_and_order_does_not_matter() {
        let config = (
            reference(Source::ConfigMap, "cfg", &[]),
            Known::Known("8e70dfee5173a46116a0ce40a486b0b7c12b095d49664b07788ddc8c55ef2ae8".to_owned()),
        );
        let secret = (reference(Source::Secret, "s", &[]), Known::Absent);
        let expected = "77d27f9c8a4a11a2e1e37db4342ba8bfba58acc66c5f037d95df6c5f835fae55".to_owned();
        assert_eq!(combine(&[config.clone(), secret.clone()]), Ok(expected.clone()));
        assert_eq!(combine(&[secret, config]), Ok(expected));
    }

    #[test]
    fn f12_one_unknown_reference_makes_the_checksum_unknown() {
        let known = (reference(Source::ConfigMap, "a", &[]), Known::Known("0".repeat(64)));
        let unknown = reference(Source::ConfigMap, "b", &[]);
        let digests = [known, (unknown.clone(), Known::Unknown(Reason::TimedOut))];
        assert_eq!(combine(&digests), Err((unknown, Reason::TimedOut)));
    }

    proptest! {
        #[test]
        fn f07_digests_are_equal_only_where_contents_are(
            a in prop::collection::btree_map("[a=;1]{0,3}", "[a=;1]{0,3}", 0..3),
            b in prop::collection::btree_map("[a=;1]{0,3}", "[a=;1]{0,3}", 0..3),
        ) {
            let digest = |data: &BTreeMap<String, String>| {
                let content = Content::config_map(data.clone(), BTreeMap::new()).unwrap();
                content.digest(&reference(Source::ConfigMap, "cfg", &[]), "ns1", None)
            };
            prop_assert_eq!(digest(&a) == digest(&b), a == b);
        }
    }
}

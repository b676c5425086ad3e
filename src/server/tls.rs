//! The serving certificate: read, checked, and exchanged without a restart (TRAPS I06, I08, I09, I10).
//!
//! Files are polled and compared by content: Secret volumes swap a symlink above the files, of which a file watch sees
//! one deletion and then nothing.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;

use super::metrics::Metrics;

/// Largest file that is read: a chain with its key has some kilobytes.
const MAX_BYTES: u64 = 1 << 20;

/// Below this the log warns at each start and each exchange.
const SOON: i64 = 30 * 24 * 3600;

/// Where the pair is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// PEM: the serving certificate, then its intermediates.
    pub cert: PathBuf,
    /// PEM: its private key.
    pub key: PathBuf,
}

/// Why a pair cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// A file cannot be read.
    #[error("cannot read {path}: {problem}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        problem: String,
    },
    /// A file is not what it should be.
    #[error("{path} holds no usable {expected}: {problem}")]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// What the parser said.
        problem: String,
    },
    /// The two do not belong together.
    #[error("the key in {key} does not belong to the certificate in {cert}: {problem}")]
    Mismatch {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What the check said.
        problem: String,
    },
    /// No API server would accept it.
    #[error("the certificate in {cert} expired {ago} seconds ago: put a new pair in its place")]
    Expired {
        /// The certificate's file.
        cert: PathBuf,
        /// Seconds since its end.
        ago: i64,
    },
}

/// A certificate chain and its key that belong together.
#[derive(Debug, Clone)]
pub struct Pair {
    key: Arc<CertifiedKey>,
    /// Start of its life, seconds since 1970.
    pub not_before: i64,
    /// End of its life, seconds since 1970.
    pub not_after: i64,
    /// DNS names that it is valid for.
    pub dns_names: Vec<String>,
}

/// The bytes of both files; what is compared between two polls.
type Content = Result<(Vec<u8>, Vec<u8>), PairError>;

impl Files {
    /// Reads and checks the pair as it is now.
    ///
    /// # Errors
    /// Anything that would make it useless: unreadable, malformed, mismatched, expired. A pair that is not valid yet is
    /// taken, for it may be our clock that is wrong (TRAPS I09).
    pub fn load(&self, now: SystemTime) -> Result<Pair, PairError> {
        self.check(self.read(), now)
    }

    fn read(&self) -> Content {
        let read = |path: &Path| {
            let unreadable = |error: io::Error| PairError::Unreadable { path: path.into(), problem: error.to_string() };
            let mut bytes = Vec::new();
            fs::File::open(path)
                .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
                .map_err(unreadable)?;
            if bytes.len() as u64 > MAX_BYTES {
                return Err(unreadable(io::Error::other("it has more than 1 MiB; is it the right file?")));
            }
            Ok(bytes)
        };
        Ok((read(&self.cert)?, read(&self.key)?))
    }

    fn check(&self, content: Content, now: SystemTime) -> Result<Pair, PairError> {
        let (cert_pem, key_pem) = content?;
        let malformed =
            |path: &Path, expected, problem: String| PairError::Malformed { path: path.into(), expected, problem };
        let bad_cert = |problem: String| malformed(&self.cert, "PEM certificate", problem);
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&cert_pem)
            .collect::<Result<_, _>>()
            .map_err(|error| bad_cert(error.to_string()))?;
        let leaf = chain.first().ok_or_else(|| bad_cert("there is none".into()))?.clone();
        let key = PrivateKeyDer::from_pem_slice(&key_pem)
            .map_err(|error| malformed(&self.key, "PEM private key", error.to_string()))?;
        let (_, parsed) = x509_parser::parse_x509_certificate(&leaf).map_err(|error| bad_cert(error.to_string()))?;
        let (not_before, not_after) =
            (parsed.validity().not_before.timestamp(), parsed.validity().not_after.timestamp());
        let names = parsed.subject_alternative_name().map_err(|error| bad_cert(error.to_string()))?;
        let names = names.map(|extension| extension.value.general_names.as_slice()).unwrap_or_default();
        let dns_names = names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        });
        let dns_names = dns_names.collect();
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| {
            PairError::Mismatch { cert: self.cert.clone(), key: self.key.clone(), problem: error.to_string() }
        })?;
        let now = unix(now);
        if not_after < now {
            return Err(PairError::Expired { cert: self.cert.clone(), ago: now - not_after });
        }
        Ok(Pair { key: Arc::new(key), not_before, not_after, dns_names })
    }
}

impl Pair {
    /// What a reader of the log should know of this pair: its end is near, it is not valid yet, or it lacks the name
    /// that API servers ask for.
    pub fn doubts(&self, now: SystemTime, service_name: Option<&str>) -> Vec<String> {
        let now = unix(now);
        let mut doubts = Vec::new();
        if self.not_after - now < SOON {
            doubts.push(format!("the serving certificate ends in {} hours: renew it", (self.not_after - now) / 3600));
        }
        if self.not_before > now {
            doubts.push(format!(
                "the serving certificate is valid only in {} seconds: is this machine's clock right?",
                self.not_before - now
            ));
        }
        if let Some(name) = service_name.filter(|name| !self.dns_names.iter().any(|known| covers(known, name))) {
            doubts.push(format!(
                "the serving certificate lacks the DNS name {name}: API servers that call the Service will refuse it"
            ));
        }
        doubts
    }
}

/// Whether a certificate's name, which may start with `*.`, stands for this name.
fn covers(known: &str, name: &str) -> bool {
    match known.strip_prefix("*.") {
        Some(parent) => name.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent)),
        None => known.eq_ignore_ascii_case(name),
    }
}

fn unix(time: SystemTime) -> i64 {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// The pair in use. New handshakes take the newest; connections keep theirs.
#[derive(Debug)]
pub struct Current {
    pair: ArcSwap<CertifiedKey>,
}

impl Current {
    /// Starts with this pair.
    pub fn new(pair: &Pair) -> Arc<Self> {
        Arc::new(Current { pair: ArcSwap::new(pair.key.clone()) })
    }

    fn exchange(&self, pair: &Pair) {
        self.pair.store(pair.key.clone());
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.pair.load_full())
    }
}

/// TLS 1.2 and 1.3, HTTP/1.1 only: API servers speak HTTP/2 to loopback URLs only, and one protocol is enough to drain.
///
/// # Errors
/// The TLS library refuses its own defaults; it should not.
pub fn server_config(current: Arc<Current>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(current);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // API servers resume no sessions; a resumed one would also outlive an exchange of certificates.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// What the poll remembers.
struct Poll {
    files: Files,
    seen: [u8; 32],
}

/// What one poll found.
enum Polled {
    Same,
    New(Result<Pair, PairError>),
}

impl Poll {
    fn now(&mut self, now: SystemTime) -> Polled {
        let content = self.files.read();
        let fingerprint = fingerprint(&content);
        if fingerprint == self.seen {
            return Polled::Same;
        }
        self.seen = fingerprint;
        Polled::New(self.files.check(content, now))
    }
}

fn fingerprint(content: &Content) -> [u8; 32] {
    let mut hasher = Sha256::new();
    match content {
        Ok((cert, key)) => {
            hasher.update((cert.len() as u64).to_be_bytes());
            hasher.update(cert);
            hasher.update(key);
        }
        Err(error) => hasher.update(error.to_string()),
    }
    hasher.finalize().into()
}

/// Looks at the files every `interval` for ever and exchanges the pair when their content changed. A bad pair is logged
/// and counted once, and the good one stays.
pub async fn watch(
    files: Files,
    current: Arc<Current>,
    interval: Duration,
    service_name: Option<String>,
    metrics: Arc<Metrics>,
) {
    // Zero is no content's hash: the first poll looks again at what was loaded at the start, for it may have changed.
    let mut poll = Poll { files, seen: [0; 32] };
    let mut first = true;
    loop {
        let polled = tokio::task::spawn_blocking(move || {
            let polled = poll.now(SystemTime::now());
            (poll, polled)
        });
        let Ok((back, polled)) = polled.await else {
            tracing::error!("the certificate is no longer watched: the look at it panicked");
            return;
        };
        poll = back;
        match polled {
            Polled::Same => {}
            Polled::New(Ok(pair)) => {
                current.exchange(&pair);
                metrics.certificate_not_after.set(pair.not_after);
                if !first {
                    tracing::info!(not_after = pair.not_after, "serving with a new certificate");
                }
                for doubt in pair.doubts(SystemTime::now(), service_name.as_deref()) {
                    tracing::warn!("{doubt}");
                }
            }
            Polled::New(Err(error)) => {
                metrics.certificate_reload_failures.inc();
                tracing::error!(%error, "the new certificate cannot be used, the old one stays");
            }
        }
        first = false;
        tokio::time::sleep(interval).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::mint::{Minted, mint};
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(days: u32) -> SystemTime {
        UNIX_EPOCH + DAY * (20_000 + days)
    }

    fn minted(start: u32) -> Minted {
        mint(&["plimsoll.ops.svc".to_owned(), "127.0.0.1".to_owned()], at(start), DAY * 100).unwrap()
    }

    #[test]
    fn i08_an_expired_pair_is_refused_with_its_age() {
        let folder = tempfile::tempdir().unwrap();
        let files = minted(0).write(folder.path()).unwrap();
        assert!(files.load(at(100)).is_ok());
        let error = files.load(at(101)).unwrap_err();
        assert_eq!(error, PairError::Expired { cert: files.cert.clone(), ago: 86_400 });
    }

    #[test]
    fn i09_minted_an_hour_back_and_not_yet_valid_is_a_doubt_only() {
        let folder = tempfile::tempdir().unwrap();
        let pair = minted(1).write(folder.path()).unwrap().load(at(0)).unwrap();
        assert_eq!(pair.not_before, 20_001 * 86_400 - 3600);
        assert_eq!(pair.not_after, 20_101 * 86_400);
        let doubts = pair.doubts(at(0), None);
        assert_eq!(doubts.len(), 1);
        assert!(doubts[0].contains("valid only in 82800 seconds"), "{doubts:?}");
    }

    #[test]
    fn i10_a_missing_service_name_is_a_doubt() {
        let folder = tempfile::tempdir().unwrap();
        let pair = minted(0).write(folder.path()).unwrap().load(at(0)).unwrap();
        assert!(pair.doubts(at(0), Some("plimsoll.ops.svc")).is_empty());
        let doubts = pair.doubts(at(0), Some("plimsoll.other.svc"));
        assert!(doubts[0].contains("lacks the DNS name plimsoll.other.svc"), "{doubts:?}");
        assert!(covers("*.ops.svc", "plimsoll.ops.svc") && !covers("*.svc", "plimsoll.ops.svc"));
    }

    #[test]
    fn i08_thirty_days_before_the_end_the_log_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let pair = minted(0).write(folder.path()).unwrap().load(at(0)).unwrap();
        assert!(pair.doubts(at(69), None).is_empty());
        assert_eq!(pair.doubts(at(71), None), ["the serving certificate ends in 696 hours: renew it"]);
    }

    #[test]
    fn i06_a_key_of_another_certificate_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let files = minted(0).write(folder.path()).unwrap();
        fs::write(&files.key, minted(0).key).unwrap();
        assert!(matches!(files.load(at(0)), Err(PairError::Mismatch { .. })));
        fs::write(&files.key, "none").unwrap();
        assert!(matches!(files.load(at(0)), Err(PairError::Malformed { expected: "PEM private key", .. })));
        fs::write(&files.cert, "").unwrap();
        assert!(matches!(files.load(at(0)), Err(PairError::Malformed { expected: "PEM certificate", .. })));
        fs::remove_file(&files.cert).unwrap();
        assert!(matches!(files.load(at(0)), Err(PairError::Unreadable { .. })));
        std::os::unix::fs::symlink("/dev/zero", &files.cert).unwrap();
        let error = files.load(at(0)).unwrap_err().to_string();
        assert!(error.ends_with("tls.crt: it has more than 1 MiB; is it the right file?"), "{error}");
    }

    #[test]
    fn i06_each_content_is_looked_at_once_however_often_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let files = minted(0).write(folder.path()).unwrap();
        let mut poll = Poll { files: files.clone(), seen: [0; 32] };
        assert!(matches!(poll.now(at(0)), Polled::New(Ok(_))));
        assert!(matches!(poll.now(at(0)), Polled::Same));
        for _ in 0..3 {
            fs::write(&files.key, minted(0).key).unwrap();
            assert!(matches!(poll.now(at(0)), Polled::New(Err(_))));
            assert!(matches!(poll.now(at(0)), Polled::Same));
            minted(0).write(folder.path()).unwrap();
            assert!(matches!(poll.now(at(0)), Polled::New(Ok(_))));
        }
        fs::remove_file(&files.cert).unwrap();
        assert!(matches!(poll.now(at(0)), Polled::New(Err(_))));
        assert!(matches!(poll.now(at(0)), Polled::Same));
    }

    #[test]
    fn the_private_key_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let files = minted(0).write(folder.path()).unwrap();
        assert_eq!(fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

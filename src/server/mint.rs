//! The one place where certificates are made.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use super::tls::Files;

/// Clocks of other machines may be behind ours (TRAPS I09).
const BACKDATED: Duration = Duration::from_secs(3600);

/// Why no certificate could be made or kept.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// The certificate library refuses, for instance a name that is none.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// A file could not be written.
    #[error("cannot write {path}: {problem}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        problem: io::Error,
    },
}

/// A serving certificate and the authority that signed it, all PEM. The authority's key is not kept.
pub struct Minted {
    /// The authority's certificate, for `caBundle`.
    pub ca: String,
    /// The serving certificate.
    pub cert: String,
    /// Its private key.
    pub key: String,
}

/// Makes an authority and a certificate signed by it for these DNS names and IP addresses, valid from an hour before
/// `now` for `life`.
///
/// # Errors
/// A name that is no DNS name.
pub fn mint(names: &[String], now: SystemTime, life: Duration) -> Result<Minted, MintError> {
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let not_before = epoch + since_epoch.saturating_sub(BACKDATED);
    let not_after = epoch + since_epoch + life;

    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, "plimsoll authority");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    (ca.not_before, ca.not_after) = (not_before, not_after);
    let ca_cert = ca.self_signed(&ca_key)?;

    let key = KeyPair::generate()?;
    let mut leaf = CertificateParams::new(names)?;
    leaf.distinguished_name.push(DnType::CommonName, "plimsoll");
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    (leaf.not_before, leaf.not_after) = (not_before, not_after);
    let cert = leaf.signed_by(&key, &Issuer::from_params(&ca, &ca_key))?;

    Ok(Minted { ca: ca_cert.pem(), cert: cert.pem(), key: key.serialize_pem() })
}

impl Minted {
    /// Writes `ca.crt`, `tls.crt` and `tls.key` (mode 0600) into a folder, which is made if it is not there; each file
    /// is replaced whole.
    ///
    /// # Errors
    /// The folder or a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Files, MintError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |problem| MintError::Write { path, problem }
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let replace = |name: &str, content: &str, mode: u32| {
            let (path, draft) = (folder.join(name), folder.join(format!(".{name}.new")));
            // What a start that was cut short left behind may have another mode.
            let _ = fs::remove_file(&draft);
            let mut file =
                fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft).map_err(failed(&draft))?;
            file.write_all(content.as_bytes()).map_err(failed(&draft))?;
            fs::rename(&draft, &path).map_err(failed(&path))?;
            Ok::<_, MintError>(path)
        };
        replace("ca.crt", &self.ca, 0o644)?;
        Ok(Files { cert: replace("tls.crt", &self.cert, 0o644)?, key: replace("tls.key", &self.key, 0o600)? })
    }
}

//! Certificates of a control plane that lives for one test run.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate authority with its certificate in a file.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The certificate, PEM.
    pub pem: String,
    /// The file that holds it.
    pub file: PathBuf,
}

/// A certificate and its key, PEM files.
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    /// Makes an authority; its files go to `dir`.
    pub fn new(dir: &Path, name: &str) -> Result<Self, String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(|e| e.to_string())?;
        let cert = params.self_signed(&key).map_err(|e| e.to_string())?;
        let file = dir.join(format!("{name}.crt"));
        write(&file, &cert.pem())?;
        Ok(Self { pem: cert.pem(), file, issuer: Issuer::new(params, key) })
    }

    /// A server's certificate for these names and addresses.
    pub fn server(&self, dir: &Path, name: &str, sans: &[&str]) -> Result<Pair, String> {
        let sans: Vec<String> = sans.iter().map(|s| (*s).to_owned()).collect();
        let mut params = CertificateParams::new(sans).map_err(|e| e.to_string())?;
        params.distinguished_name = common_name(name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(dir, name, params)
    }

    /// A client's certificate: to Kubernetes the common name is the user, the
    /// organisation a group.
    pub fn client(&self, dir: &Path, user: &str, group: Option<&str>) -> Result<Pair, String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(dir, &user.replace(':', "-"), params)
    }

    fn sign(&self, dir: &Path, name: &str, params: CertificateParams) -> Result<Pair, String> {
        let key = KeyPair::generate().map_err(|e| e.to_string())?;
        let cert = params.signed_by(&key, &self.issuer).map_err(|e| e.to_string())?;
        let pair = Pair { cert: dir.join(format!("{name}.crt")), key: dir.join(format!("{name}.key")) };
        write(&pair.cert, &cert.pem())?;
        write(&pair.key, &key.serialize_pem())?;
        Ok(pair)
    }
}

/// A key pair that service account tokens are signed with: (private, public).
pub fn signing_key(dir: &Path) -> Result<(PathBuf, PathBuf), String> {
    let key = KeyPair::generate().map_err(|e| e.to_string())?;
    let (private, public) = (dir.join("tokens.key"), dir.join("tokens.pub"));
    write(&private, &key.serialize_pem())?;
    write(&public, &key.public_key_pem())?;
    Ok((private, public))
}

fn common_name(name: &str) -> DistinguishedName {
    let mut dn = DistinguishedName::new();
    dn.push(DnType::CommonName, name);
    dn
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host_fs::read::{Links, read_file};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The files with all root certificates of Debian, Arch, Gentoo and NixOS; Fedora; openSUSE;
/// Alpine. curl and Go look for the same files.
const SYSTEM: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The maximum size of a file of certificates, in bytes. Debian's has 230 KB.
const MAX_ROOTS_BYTES: u64 = 16 << 20;

/// A file of root certificates cannot be read, is malformed, or has none.
#[derive(Debug, thiserror::Error)]
#[error("cannot read root certificates from {}", path.display())]
pub struct RootsError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub source: Box<dyn Error + Send + Sync>,
}

/// Reads the root certificates of the file `named` or else of the system, and also of the file `more`. The result is empty if
/// none of these files exists.
///
/// # Errors
/// [`RootsError`].
pub fn load(named: Option<&Path>, more: Option<&Path>) -> Result<RootCertStore, RootsError> {
    let system = || SYSTEM.map(Path::new).into_iter().find(|path| path.is_file());
    let mut roots = RootCertStore::empty();
    for path in named.or_else(system).into_iter().chain(more) {
        let failed = |source| RootsError { path: path.to_owned(), source };
        if read(path, &mut roots).map_err(failed)? == 0 {
            return Err(failed("it holds none in PEM form".into()));
        }
    }
    Ok(roots)
}

/// Adds the certificates of a PEM file to `roots`, and returns how many were added. Skips unsupported certificates, because the
/// system's file may have some.
fn read(path: &Path, roots: &mut RootCertStore) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let text = read_file(path, Links::Follow, MAX_ROOTS_BYTES)?;
    let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>()?;
    Ok(roots.add_parsable_certificates(certificates).0)
}

/// Returns the TLS configuration of a client: versions 1.2 and 1.3, and no client certificate.
///
/// # Errors
/// The provider of cryptography supports neither version.
pub fn client(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_must_hold_certificates() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("roots.pem");
        assert!(load(Some(&path), None).is_err(), "it is missing");
        for bad in
            ["", "no certificates", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"]
        {
            std::fs::write(&path, bad).unwrap();
            for (named, more) in [(Some(&*path), None), (None, Some(&*path))] {
                let error = load(named, more).unwrap_err();
                assert_eq!(error.path, path, "{bad:?}");
            }
        }
    }
}

//! Which https servers are trusted: the system's root certificates.
//!
//! Not a bundled list: a company's own servers are trusted by what its administrators install, and
//! what they distrust is distrusted here, too. What a file is, its sha256 decides; TLS only keeps
//! others from watching.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use host_fs::read::{Links, read_file};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::error::HttpError;

/// Where distributions keep all root certificates in one file: Debian, Arch, Gentoo and NixOS;
/// Fedora; openSUSE; Alpine. They are the places that curl's and Go's builds look at.
const SYSTEM: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The most bytes of a file of certificates. Debian's has 230 KB.
const MAX_ROOTS_BYTES: u64 = 16 << 20;

/// Reads the root certificates: of the named file, else the system's, and of a file besides. There
/// may be none.
pub(super) fn load(named: Option<&Path>, more: Option<&Path>) -> Result<RootCertStore, HttpError> {
    let system = || SYSTEM.map(Path::new).into_iter().find(|path| path.is_file());
    let mut roots = RootCertStore::empty();
    for path in named.or_else(system).into_iter().chain(more) {
        let failed = |source| {
            let what = format!("cannot read root certificates from {}", path.display());
            HttpError::Untrusted { what, source }
        };
        if read(path, &mut roots).map_err(failed)? == 0 {
            return Err(failed("it holds none in PEM form".into()));
        }
    }
    Ok(roots)
}

/// Reads the certificates of a PEM file and returns how many there are. One that this version does
/// not understand is left out: a system's file may hold some.
fn read(path: &Path, roots: &mut RootCertStore) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let text = read_file(path, Links::Follow, MAX_ROOTS_BYTES)?;
    let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>()?;
    Ok(roots.add_parsable_certificates(certificates).0)
}

/// Returns the TLS configuration of a client: versions 1.2 and 1.3, no client certificate.
pub(super) fn tls(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
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
        assert!(
            matches!(load(Some(&path), None), Err(HttpError::Untrusted { .. })),
            "it is missing"
        );
        for bad in
            ["", "no certificates", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"]
        {
            std::fs::write(&path, bad).unwrap();
            for (named, more) in [(Some(&*path), None), (None, Some(&*path))] {
                assert!(matches!(load(named, more), Err(HttpError::Untrusted { .. })), "{bad:?}");
            }
        }
    }
}

//! Private and public keys.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use box_digest::Digest;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair, UnparsedPublicKey, VerificationAlgorithm,
};
use zeroize::Zeroizing;

use crate::{TrustError, pem};

/// The maximum size of a key's text, in bytes. An Ed25519 key has 119.
pub const MAX_KEY_BYTES: usize = 64 << 10;

/// The bytes of a SubjectPublicKeyInfo before the point of a P-256 key ([RFC 5480](https://www.rfc-editor.org/rfc/rfc5480)),
/// which is not compressed: `04`, x and y. The algorithm begins at byte 2, and the bit string of the point at byte 23.
const P256_PREFIX: [u8; 27] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
];
/// The bytes of a SubjectPublicKeyInfo before an Ed25519 key ([RFC 8410](https://www.rfc-editor.org/rfc/rfc8410)).
const ED25519_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The bytes of a PKCS #8 version 1 before the seed of an Ed25519 key. ring writes version 2, which older programs refuse.
const ED25519_PRIVATE_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The algorithm of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// ECDSA for the curve P-256 with SHA-256. Signatures are ASN.1. cosign's keys are of this kind.
    EcdsaP256,
    /// Ed25519 ([RFC 8032](https://www.rfc-editor.org/rfc/rfc8032)).
    Ed25519,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 2] = [Self::Ed25519, Self::EcdsaP256];

    /// Returns the name on a command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ecdsa-p256",
            Self::Ed25519 => "ed25519",
        }
    }
}

/// A key that verifies signatures.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicKey {
    algorithm: Algorithm,
    /// The SubjectPublicKeyInfo.
    info: Vec<u8>,
}

/// A key that signs. This crate overwrites its copies of the secret after use. The copy that ring makes during a signature is
/// not overwritten.
pub struct PrivateKey {
    /// The PKCS #8 document.
    document: Zeroizing<Vec<u8>>,
    public: PublicKey,
}

impl PublicKey {
    /// Reads a PEM block `PUBLIC KEY` with a SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// The text has no such block, or several, or a key of another algorithm.
    pub fn from_pem(text: &[u8]) -> Result<Self, TrustError> {
        let info = pem::read(text, pem::PUBLIC)?;
        Self::from_info(&info)
    }

    fn from_info(info: &[u8]) -> Result<Self, TrustError> {
        let has = |prefix: &[u8], length| {
            info.strip_prefix(prefix).is_some_and(|point| point.len() == length)
        };
        let algorithm = if has(&P256_PREFIX, 64) {
            Algorithm::EcdsaP256
        } else if has(&ED25519_PREFIX, 32) {
            Algorithm::Ed25519
        } else {
            return Err(TrustError::OtherAlgorithm);
        };
        Ok(Self { algorithm, info: info.to_vec() })
    }

    /// Returns the key as a PEM block `PUBLIC KEY`.
    pub fn to_pem(&self) -> String {
        pem::write(pem::PUBLIC, &self.info).to_string()
    }

    /// Returns the algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the key's name in bundles: the base64 of the SHA-256 of its SubjectPublicKeyInfo, as cosign computes it.
    pub fn hint(&self) -> String {
        BASE64_STANDARD.encode(Digest::of(&self.info).as_bytes())
    }

    /// Checks a signature.
    ///
    /// # Errors
    /// [`TrustError::WrongSignature`].
    pub(crate) fn check(&self, message: &[u8], signature: &[u8]) -> Result<(), TrustError> {
        let (algorithm, prefix): (&dyn VerificationAlgorithm, usize) = match self.algorithm {
            // The key begins with the last byte of the prefix, the mark of a point that is not compressed.
            Algorithm::EcdsaP256 => (&ECDSA_P256_SHA256_ASN1, P256_PREFIX.len() - 1),
            Algorithm::Ed25519 => (&ED25519, ED25519_PREFIX.len()),
        };
        let key = UnparsedPublicKey::new(algorithm, &self.info[prefix..]);
        key.verify(message, signature).map_err(|_| TrustError::WrongSignature)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({:?} {})", self.algorithm, self.hint())
    }
}

impl PrivateKey {
    /// Reads a PEM block `PRIVATE KEY` with an unencrypted PKCS #8 document
    /// ([RFC 5958](https://www.rfc-editor.org/rfc/rfc5958)).
    ///
    /// # Errors
    /// The text has another block, such as an encrypted key, or a key of another algorithm. [`TrustError::help`] has the
    /// command that converts it.
    pub fn from_pem(text: &[u8]) -> Result<Self, TrustError> {
        Self::from_document(pem::read(text, pem::PRIVATE)?)
    }

    fn from_document(document: Zeroizing<Vec<u8>>) -> Result<Self, TrustError> {
        let public = match ecdsa(&document) {
            Ok(pair) => [&P256_PREFIX[..26], pair.public_key().as_ref()].concat(),
            Err(TrustError::OtherAlgorithm) => {
                [&ED25519_PREFIX, ed25519(&document)?.public_key().as_ref()].concat()
            }
            Err(error) => return Err(error),
        };
        Ok(Self { public: PublicKey::from_info(&public)?, document })
    }

    /// Makes a new key from the system's random numbers.
    ///
    /// # Errors
    /// [`TrustError::Signing`] if there are none.
    pub fn generate(algorithm: Algorithm) -> Result<Self, TrustError> {
        let random = SystemRandom::new();
        let document = match algorithm {
            Algorithm::EcdsaP256 => {
                EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random)
                    .map(|it| it.as_ref().to_vec())
            }
            Algorithm::Ed25519 => {
                let mut document = [&ED25519_PRIVATE_PREFIX[..], &[0; 32]].concat();
                let seed = &mut document[ED25519_PRIVATE_PREFIX.len()..];
                random.fill(seed).map(|()| document)
            }
        };
        Self::from_document(Zeroizing::new(document.map_err(|_| TrustError::Signing)?))
    }

    /// Returns the key as a PEM block `PRIVATE KEY`, which must be kept secret.
    pub fn to_pem(&self) -> Zeroizing<String> {
        pem::write(pem::PRIVATE, &self.document)
    }

    /// Returns the public key.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs a message. An ECDSA signature differs each time.
    ///
    /// # Errors
    /// [`TrustError::Signing`] if the system has no random numbers.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, TrustError> {
        match self.public.algorithm {
            Algorithm::EcdsaP256 => {
                let signed = ecdsa(&self.document)?.sign(&SystemRandom::new(), message);
                signed.map(|it| it.as_ref().to_vec()).map_err(|_| TrustError::Signing)
            }
            Algorithm::Ed25519 => Ok(ed25519(&self.document)?.sign(message).as_ref().to_vec()),
        }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {:?})", self.public)
    }
}

fn ecdsa(document: &[u8]) -> Result<EcdsaKeyPair, TrustError> {
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, document, &SystemRandom::new());
    // ring has one error for a document that is damaged, and one that lacks the public key.
    let has = |part: &[u8]| document.windows(part.len()).any(|it| it == part);
    let is_half = has(&P256_PREFIX[2..23]) && !has(&P256_PREFIX[23..]);
    pair.map_err(|error| match rejected(error) {
        TrustError::MalformedKey if is_half => TrustError::NoPublicKey,
        error => error,
    })
}

fn ed25519(document: &[u8]) -> Result<Ed25519KeyPair, TrustError> {
    // A document of version 1, which openssl writes, has no public key to compare. It is computed instead.
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(document).map_err(rejected)
}

/// Returns the reason of ring's error. Its texts are part of its documentation
/// ([`KeyRejected`](https://docs.rs/ring/0.17/ring/error/struct.KeyRejected.html)).
fn rejected(error: ring::error::KeyRejected) -> TrustError {
    if error.to_string() == "WrongAlgorithm" {
        TrustError::OtherAlgorithm
    } else {
        TrustError::MalformedKey
    }
}

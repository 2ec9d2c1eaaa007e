//! The errors of keys, statements and bundles.

use box_digest::Digest;

use crate::keys::MAX_KEY_BYTES;
use crate::statement::Kind;

/// The name of a key's file in advice, if it is not known.
const KEY_FILE: &str = "key.pem";
/// cosign writes private keys only in its own encrypted form, but imports others.
const FROM_COSIGN: &str = "cosign cannot decrypt it into a file. Make a new key, and give it to cosign, too: \
     `cosign import-key-pair --key key8.pem`";

/// Why a key cannot be used, or a bundle is not accepted. No message contains a part of a private key. Messages can contain
/// text of a bundle: print them with [`safe_text::shown`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The text of a key is larger than [`MAX_KEY_BYTES`], or is not text.
    #[error("the key is not a PEM file of at most {MAX_KEY_BYTES} bytes")]
    NoText,
    /// A key has no PEM block of the expected kind. The second text describes what it has instead.
    #[error("the key has no PEM block \"{0}\"{1}")]
    NoBlock(&'static str, String),
    /// A key has several PEM blocks, so it is ambiguous which one is meant.
    #[error("the key has several PEM blocks")]
    SeveralBlocks,
    /// The private key is encrypted by cosign or sigstore.
    #[error("the private key is encrypted by cosign")]
    CosignKey,
    /// The private key is encrypted PKCS #8.
    #[error("the private key is encrypted")]
    EncryptedKey,
    /// The private key is in the form of SEC 1, without the name of its algorithm.
    #[error("the private key is in the form \"EC PRIVATE KEY\", not in PKCS #8")]
    Sec1Key,
    /// A private key was given instead of a public one.
    #[error("it is a private key, and a public key is expected")]
    PrivateForPublic,
    /// The key's algorithm or curve is not one of the two that are supported.
    #[error("the key is neither an ECDSA key for the curve P-256 nor an Ed25519 key")]
    OtherAlgorithm,
    /// The ECDSA private key does not contain its public key, which [RFC 5915](https://www.rfc-editor.org/rfc/rfc5915) makes
    /// optional.
    #[error("the private key does not contain its public key")]
    NoPublicKey,
    /// The key's content is damaged, or its two halves do not belong together.
    #[error("the key is malformed")]
    MalformedKey,
    /// The system has no random numbers, or the library cannot sign.
    #[error("the signature cannot be computed")]
    Signing,
    /// The document of an SBOM is not a JSON object.
    #[error("the SBOM is not a JSON object")]
    NotSpdx,
    /// A bundle is larger than the limit, in bytes.
    #[error("the bundle has more than {0} bytes")]
    TooLarge(usize),
    /// A bundle or its statement does not follow its format. The text describes the error.
    #[error("the {0} is malformed: {1}")]
    Malformed(&'static str, String),
    /// A field of a bundle or of its statement has a value that is not supported.
    #[error("`{field}` is {found}, not {supported:?}")]
    Unsupported {
        /// The field's name in JSON.
        field: &'static str,
        /// The field's value, in quotes.
        found: String,
        /// The only value that is supported.
        supported: &'static str,
    },
    /// The bundle was signed with a certificate. Verifying it needs certificate authorities and a transparency log.
    #[error("the bundle is signed with a certificate, not with a key")]
    Certificate,
    /// The envelope has no signature, or several.
    #[error("the bundle has {0} signatures, not one")]
    Signatures(usize),
    /// The bundle names a key that is not trusted. The text is its hint.
    #[error("the bundle is signed with another key: {0}")]
    OtherKey(String),
    /// The signature was not made by the key over this payload.
    #[error("the signature does not match the payload")]
    WrongSignature,
    /// The statement is about another box.
    #[error("the statement is about {found}, not about the box {expected}")]
    OtherBox {
        /// The digest of the statement's first subject, or a description of the subject that has none.
        found: String,
        /// The digest of the box.
        expected: Digest,
    },
    /// A box has no bundle that is accepted, of the kind that a policy requires.
    #[error("the box has no {} by a trusted key", kind.name())]
    Missing {
        /// The kind that is required.
        kind: Kind,
        /// Why each bundle of the box was not accepted, in their order. Empty if the box has none, or only of other kinds.
        faults: Vec<Self>,
    },
}

impl TrustError {
    /// Returns advice for the user: one or two sentences, with the command to run. `file` is the file of the key as a word of a
    /// shell, if it is known.
    pub fn help(&self, file: Option<&str>) -> Option<String> {
        let key = file.unwrap_or(KEY_FILE);
        let help = match self {
            Self::Sec1Key | Self::EncryptedKey => {
                return Some(format!(
                    "convert it with `openssl pkcs8 -topk8 -nocrypt -in {key} -out key8.pem`, and name key8.pem"
                ));
            }
            // `openssl pkcs8` alone leaves the public key out.
            Self::NoPublicKey => {
                return Some(format!(
                    "add it with `openssl ec -in {key} | openssl pkcs8 -topk8 -nocrypt -out key8.pem`, and name key8.pem"
                ));
            }
            Self::NoBlock("PRIVATE KEY", found) if found.contains("PUBLIC KEY") => {
                "sign with the private key: `boxbuild keygen` writes both, as NAME.key and NAME.pub"
            }
            Self::CosignKey => FROM_COSIGN,
            Self::PrivateForPublic => {
                "keep it secret: a host needs only the public key, which begins with \"-----BEGIN PUBLIC KEY-----\""
            }
            Self::Certificate => {
                "verify it with `cosign verify-blob-attestation` or `gh attestation verify`"
            }
            _ => return None,
        };
        Some(help.to_owned())
    }
}

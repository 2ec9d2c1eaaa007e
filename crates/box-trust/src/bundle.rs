//! Sigstore bundles with one DSSE envelope, signed with a key.
//!
//! The formats are [bundle v0.3](https://docs.sigstore.dev/about/bundle/), which is a protocol buffer in JSON, and
//! [DSSE](https://github.com/secure-systems-lab/dsse/blob/v1.0.2/envelope.md). A field that this module does not know is an
//! error: a field of a bundle is not signed, so whatever it means, an attacker could have added it. Fields of a transparency log
//! are known, and not read: they could prove when the signature was made, and a signature by a trusted key needs no such proof.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::json::{self, Object};
use crate::{PrivateKey, TrustError};

/// The media type of a bundle, in the bundle and in a registry.
pub const BUNDLE_MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// The maximum size of a bundle, in bytes. An SBOM of a box with thousands of packages has some megabytes.
pub const MAX_BUNDLE_BYTES: usize = 16 << 20;

/// The type of the payload: an in-toto statement.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Bundle<'b> {
    #[serde(borrow)]
    media_type: Cow<'b, str>,
    verification_material: Object<Material>,
    #[serde(borrow)]
    dsse_envelope: Option<Object<Envelope<'b>>>,
    #[serde(skip_serializing)]
    message_signature: Option<IgnoredAny>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Material {
    public_key: Option<Object<Hint>>,
    #[serde(skip_serializing)]
    certificate: Option<IgnoredAny>,
    #[serde(skip_serializing)]
    x509_certificate_chain: Option<IgnoredAny>,
    #[serde(rename = "tlogEntries", skip_serializing)]
    _tlog_entries: Option<IgnoredAny>,
    #[serde(rename = "timestampVerificationData", skip_serializing)]
    _timestamps: Option<IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hint {
    hint: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Envelope<'b> {
    /// Most of the bundle, so it is not copied.
    #[serde(borrow)]
    payload: Cow<'b, str>,
    #[serde(borrow)]
    payload_type: Cow<'b, str>,
    signatures: Vec<Object<Signature>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    sig: String,
    /// DSSE's hint for finding the key. It is not signed, and the bundle has another one.
    #[serde(rename = "keyid", skip_serializing)]
    _keyid: Option<String>,
}

/// The content of a bundle, whose signature is not verified yet.
pub(crate) struct Unverified {
    /// The name of the key: see [`PublicKey::hint`](crate::PublicKey::hint).
    pub(crate) hint: String,
    /// The bytes that are signed: see [`encoding`].
    pub(crate) message: Vec<u8>,
    /// The offset of the statement in the message.
    pub(crate) payload: usize,
    pub(crate) signature: Vec<u8>,
}

/// Signs a statement, and returns the bundle. Its bytes depend on the statement and the signature only.
pub(crate) fn sign(payload: &[u8], key: &PrivateKey) -> Result<Vec<u8>, TrustError> {
    let signature = key.sign(&encoding(payload))?;
    let signature = Signature { sig: BASE64_STANDARD.encode(signature), _keyid: None };
    let envelope = Envelope {
        payload: BASE64_STANDARD.encode(payload).into(),
        payload_type: PAYLOAD_TYPE.into(),
        signatures: vec![Object(signature)],
    };
    let public_key = Some(Object(Hint { hint: key.public().hint() }));
    let bundle = Bundle {
        media_type: BUNDLE_MEDIA_TYPE.into(),
        verification_material: Object(Material { public_key, ..Material::default() }),
        dsse_envelope: Some(Object(envelope)),
        message_signature: None,
    };
    let bundle = serde_json::to_vec(&bundle);
    let bundle = bundle.map_err(|error| TrustError::Malformed("bundle", error.to_string()))?;
    check_size(&bundle).map(|()| bundle)
}

/// Returns the bytes that are signed for a payload: DSSE's pre-authentication encoding, for the one type of payload.
pub(crate) fn encoding(payload: &[u8]) -> Vec<u8> {
    let (length, size) = (PAYLOAD_TYPE.len(), payload.len());
    let head = format!("DSSEv1 {length} {PAYLOAD_TYPE} {size} ");
    [head.as_bytes(), payload].concat()
}

fn check_size(bundle: &[u8]) -> Result<(), TrustError> {
    if bundle.len() <= MAX_BUNDLE_BYTES {
        return Ok(());
    }
    Err(TrustError::TooLarge(MAX_BUNDLE_BYTES))
}

/// Reads a bundle.
///
/// # Errors
/// It is no bundle of this version with one signature by a key, over an in-toto statement.
pub(crate) fn read(bundle: &[u8]) -> Result<Unverified, TrustError> {
    check_size(bundle)?;
    let read: Bundle<'_> = json::read("bundle", bundle)?;
    expect("mediaType", &read.media_type, BUNDLE_MEDIA_TYPE)?;
    let hint = read.verification_material.0.hint()?;
    let envelope = match (read.dsse_envelope, read.message_signature) {
        (Some(envelope), None) => envelope.0,
        _ => return Err(malformed("it has no `dsseEnvelope`, or another content, too")),
    };
    expect("payloadType", &envelope.payload_type, PAYLOAD_TYPE)?;
    let [signature] = envelope.signatures.as_slice() else {
        return Err(TrustError::Signatures(envelope.signatures.len()));
    };
    let signature = bytes("sig", &signature.0.sig)?;
    let payload = bytes("payload", &envelope.payload)?;
    let message = encoding(&payload);
    Ok(Unverified { hint, payload: message.len() - payload.len(), message, signature })
}

impl Material {
    /// Returns the name of the key. A bundle has a key or a certificate.
    fn hint(self) -> Result<String, TrustError> {
        let is_certified = self.certificate.is_some() || self.x509_certificate_chain.is_some();
        match self.public_key {
            Some(_) if is_certified => Err(malformed("it has both a key and a certificate")),
            Some(key) => Ok(key.0.hint),
            None if is_certified => Err(TrustError::Certificate),
            None => Err(malformed("`verificationMaterial` has no `publicKey`")),
        }
    }
}

/// Decodes base64 with its padding, of the alphabet with `+` and `/`. Each content has one text.
fn bytes(field: &str, text: &str) -> Result<Vec<u8>, TrustError> {
    BASE64_STANDARD.decode(text).map_err(|_| malformed(&format!("`{field}` is not base64")))
}

/// Checks that a field has the only supported value.
pub(crate) fn expect(
    field: &'static str,
    found: &str,
    supported: &'static str,
) -> Result<(), TrustError> {
    if found == supported {
        return Ok(());
    }
    let found = safe_text::quote(found);
    Err(TrustError::Unsupported { field, found, supported })
}

fn malformed(message: &str) -> TrustError {
    TrustError::Malformed("bundle", message.to_owned())
}

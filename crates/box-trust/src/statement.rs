//! in-toto statements about a box.
//!
//! The format is [Statement v1](https://github.com/in-toto/attestation/blob/v1.1.2/spec/v1/statement.md). The subject is the box
//! digest. A registry's manifest has another digest, which changes if the same box is compressed in another way.

use std::borrow::Cow;

use box_digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bundle::{self, expect};
use crate::json::{self, Object};
use crate::provenance::Provenance;
use crate::{PrivateKey, TrustError};

/// The type of a statement.
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The predicate type of SPDX documents of any version.
const SPDX_ANY: &str = "https://spdx.dev/Document";

/// What a statement says about a box.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The key's owner approves the box. This is what cosign 3 writes for `cosign sign`.
    Signature,
    /// How the box was built: [SLSA provenance v1](https://slsa.dev/spec/v1.1/provenance).
    Provenance,
    /// The packages of the box: an [SPDX](https://spdx.github.io/spdx-spec/v2.3/) document.
    Spdx,
    /// Any other predicate type, such as a test report's.
    Other(String),
}

/// A statement about a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The subject's name, such as the box's name in a registry. It only helps readers: nothing checks it.
    pub name: Option<String>,
    /// The box digest.
    pub digest: Digest,
    /// What the statement says.
    pub kind: Kind,
    /// A JSON object.
    predicate: String,
}

/// A statement in JSON. Fields that are not listed are ignored, as in-toto requires of readers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'d> {
    #[serde(rename = "_type", borrow)]
    kind: Cow<'d, str>,
    subject: Vec<Object<Subject>>,
    #[serde(borrow)]
    predicate_type: Cow<'d, str>,
    #[serde(borrow)]
    predicate: Option<&'d RawValue>,
}

#[derive(Serialize, Deserialize)]
struct Subject {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    digest: Object<SubjectDigest>,
}

#[derive(Serialize, Deserialize)]
struct SubjectDigest {
    sha256: Option<String>,
}

/// The predicate of a signature.
#[derive(Deserialize)]
struct Approval {
    release: Option<u64>,
}

impl Kind {
    /// Returns the predicate type, a URI.
    pub fn predicate_type(&self) -> &str {
        match self {
            Self::Signature => "https://sigstore.dev/cosign/sign/v1",
            Self::Provenance => "https://slsa.dev/provenance/v1",
            Self::Spdx => "https://spdx.dev/Document/v2.3",
            Self::Other(name) => name,
        }
    }

    /// Returns the kind of a predicate type. cosign writes no version for SPDX documents.
    pub fn of(predicate_type: &str) -> Self {
        let known = [Self::Signature, Self::Provenance, Self::Spdx];
        match known.into_iter().find(|it| it.predicate_type() == predicate_type) {
            Some(kind) => kind,
            None if predicate_type == SPDX_ANY => Self::Spdx,
            None => Self::Other(predicate_type.to_owned()),
        }
    }

    /// Returns the name of the kind in messages and reports: `signature`, `provenance`, `sbom`, or the predicate type of another
    /// kind.
    pub fn name(&self) -> &str {
        match self {
            Self::Signature => "signature",
            Self::Provenance => "provenance",
            Self::Spdx => "sbom",
            Self::Other(name) => name,
        }
    }
}

impl Statement {
    /// Makes the statement that its signer approves a box.
    pub fn signature(name: Option<&str>, digest: Digest) -> Self {
        Self::new(name, digest, Kind::Signature, "{}".to_owned())
    }

    /// Makes the statement that its signer approves a box as the release with this number. Later releases have greater numbers.
    pub fn signature_of_release(name: Option<&str>, digest: Digest, release: u64) -> Self {
        Self::new(name, digest, Kind::Signature, format!("{{\"release\":{release}}}"))
    }

    /// Makes the statement of how a box was built.
    ///
    /// # Errors
    /// [`TrustError::Malformed`] if it cannot be written.
    pub fn provenance(
        name: Option<&str>,
        digest: Digest,
        provenance: &Provenance,
    ) -> Result<Self, TrustError> {
        let predicate = serde_json::to_string(&provenance.predicate()).map_err(unwritable)?;
        Ok(Self::new(name, digest, Kind::Provenance, predicate))
    }

    /// Makes the statement of an SBOM, an SPDX 2.3 document in JSON.
    ///
    /// # Errors
    /// [`TrustError::NotSpdx`] if the document is not a JSON object. The object's fields are not checked.
    pub fn spdx(name: Option<&str>, digest: Digest, document: &str) -> Result<Self, TrustError> {
        let read = serde_json::from_str(document).ok().filter(|it: &&RawValue| is_object(it));
        let document = read.ok_or(TrustError::NotSpdx)?.get().to_owned();
        Ok(Self::new(name, digest, Kind::Spdx, document))
    }

    fn new(name: Option<&str>, digest: Digest, kind: Kind, predicate: String) -> Self {
        Self { name: name.map(str::to_owned), digest, kind, predicate }
    }

    /// Returns the number of the release that the box is. `None` if the statement has none.
    pub fn release(&self) -> Option<u64> {
        let read = serde_json::from_str::<Object<Approval>>(&self.predicate).ok();
        read.filter(|_| self.kind == Kind::Signature)?.0.release
    }

    /// Returns the predicate, a JSON object.
    pub fn predicate(&self) -> &str {
        &self.predicate
    }

    /// Returns the statement in JSON, for another program that signs it, such as `cosign attest-blob --statement`.
    ///
    /// # Errors
    /// [`TrustError::Malformed`] if it cannot be written.
    pub fn to_json(&self) -> Result<String, TrustError> {
        let digest = Object(SubjectDigest { sha256: Some(self.digest.hex()) });
        let document = Document {
            kind: STATEMENT_TYPE.into(),
            subject: vec![Object(Subject { name: self.name.clone(), digest })],
            predicate_type: self.kind.predicate_type().into(),
            predicate: Some(serde_json::from_str(&self.predicate).map_err(unwritable)?),
        };
        serde_json::to_string(&document).map_err(unwritable)
    }

    /// Signs the statement. Returns a bundle: see [`verify()`](crate::verify()).
    ///
    /// # Errors
    /// [`TrustError::Signing`] if the system has no random numbers; [`TrustError::TooLarge`] if the predicate is.
    pub fn sign(&self, key: &PrivateKey) -> Result<Vec<u8>, TrustError> {
        bundle::sign(self.to_json()?.as_bytes(), key)
    }

    /// Returns the kind of the statement in the payload of a bundle, which may not be verified.
    ///
    /// # Errors
    /// It is no statement of this version.
    pub(crate) fn kind_of(payload: &[u8]) -> Result<Kind, TrustError> {
        let read: Document<'_> = json::read("statement", payload)?;
        expect("_type", &read.kind, STATEMENT_TYPE)?;
        Ok(Kind::of(&read.predicate_type))
    }

    /// Reads the payload of a bundle, whose signature has been verified.
    ///
    /// # Errors
    /// It is no statement of this version, or has no subject with the box digest `expected`.
    pub(crate) fn read(payload: &[u8], expected: &Digest) -> Result<Self, TrustError> {
        let read: Document<'_> = json::read("statement", payload)?;
        expect("_type", &read.kind, STATEMENT_TYPE)?;
        let predicate = read.predicate.filter(|it| is_object(it));
        let Some(predicate) = predicate else {
            return Err(TrustError::Malformed("statement", "`predicate` is no object".to_owned()));
        };
        let name = subject(read.subject, expected)?;
        let kind = Kind::of(&read.predicate_type);
        Ok(Self { name, digest: *expected, kind, predicate: predicate.get().to_owned() })
    }
}

/// Returns the name of the subject that has the expected digest. A statement is about each of its subjects.
fn subject(
    subjects: Vec<Object<Subject>>,
    expected: &Digest,
) -> Result<Option<String>, TrustError> {
    let hex = expected.hex();
    let first = subjects.first().map(|it| it.0.digest.0.sha256.as_deref());
    let found = match first {
        Some(Some(hex)) => {
            let text = format!("sha256:{hex}");
            text.parse::<Digest>().map_or_else(|_| safe_text::quote(&text), |it| it.to_string())
        }
        Some(None) => "a subject without a SHA-256".to_owned(),
        None => "no subject".to_owned(),
    };
    let is_box = |it: &Object<Subject>| it.0.digest.0.sha256.as_ref() == Some(&hex);
    let subject = subjects.into_iter().find(is_box).map(|it| it.0.name);
    subject.ok_or(TrustError::OtherBox { found, expected: *expected })
}

fn unwritable(error: serde_json::Error) -> TrustError {
    TrustError::Malformed("statement", error.to_string())
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

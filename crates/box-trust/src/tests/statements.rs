//! The JSON of statements.

use box_digest::{AnyDigest, Blake3Digest, Digest};

use super::box_digest;
use crate::{Input, Kind, Provenance, Statement, TrustError};

fn provenance() -> Provenance {
    Provenance {
        boxfile: "agents/Boxfile".to_owned(),
        profile: Some("release".to_owned()),
        inputs: vec![
            Input {
                uri: "docker://docker.io/library/debian:13".to_owned(),
                digest: Digest::from_bytes([1; 32]).into(),
            },
            Input {
                uri: "file:skills/search".to_owned(),
                digest: AnyDigest::Blake3(Blake3Digest::from_bytes([2; 32])),
            },
        ],
        builder: "https://ci.example.org/builder".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

#[test]
fn statements_have_the_fields_of_their_specifications() {
    let digest = box_digest();
    let name = Some("ghcr.io/acme/hello");
    let without_profile = Provenance { profile: None, ..provenance() };
    let all = [
        Statement::signature(None, digest),
        Statement::signature(name, digest),
        Statement::provenance(name, digest, &provenance()).unwrap(),
        Statement::provenance(name, digest, &without_profile).unwrap(),
        Statement::spdx(name, digest, "{\"spdxVersion\": \"SPDX-2.3\"}").unwrap(),
    ];
    let texts = all.map(|it| it.to_json().unwrap());
    insta::assert_snapshot!(texts.join("\n\n"));
}

#[test]
fn a_signature_may_have_the_number_of_a_release() {
    let digest = box_digest();
    let release = Statement::signature_of_release(None, digest, u64::MAX);
    assert_eq!(release.predicate(), "{\"release\":18446744073709551615}");
    assert_eq!(release.release(), Some(u64::MAX));
    assert_eq!(Statement::signature(None, digest).release(), None);
    let other = Statement::spdx(None, digest, "{\"release\": 7}").unwrap();
    assert_eq!(other.release(), None, "only who approves a box says which release it is");
}

#[test]
fn an_sbom_is_an_object() {
    for text in ["", "[]", "null", "\"{}\"", "{", "{} {}", "{\"a\": }"] {
        let error = Statement::spdx(None, box_digest(), text).unwrap_err();
        assert_eq!(error, TrustError::NotSpdx, "{text}");
    }
    let kept = Statement::spdx(None, box_digest(), " {\"a\": [1,\n 2]}\n").unwrap();
    assert_eq!(kept.predicate(), "{\"a\": [1,\n 2]}");
}

#[test]
fn kinds_have_one_predicate_type_each() {
    for kind in [Kind::Signature, Kind::Provenance, Kind::Spdx, Kind::Other("https://a".into())] {
        assert_eq!(Kind::of(kind.predicate_type()), kind);
    }
    assert_eq!(Kind::of("https://spdx.dev/Document"), Kind::Spdx, "cosign's");
    assert_eq!(
        Kind::of("https://slsa.dev/provenance/v0.2"),
        Kind::Other("https://slsa.dev/provenance/v0.2".to_owned()),
    );
}

//! Bundles that are accepted and refused.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use box_digest::Digest;
use serde_json::{Value, json};

use super::{box_digest, private_keys, public_keys, signed};
use crate::{
    Claim, Kind, MAX_BUNDLE_BYTES, PublicKey, Requirement, Statement, TrustError, bundle, claim,
    verify,
};

/// Verifies a bundle with the test's keys. Returns the error.
fn refusal(bundle: &str) -> String {
    verify(bundle.as_bytes(), &public_keys(), &box_digest()).unwrap_err().to_string()
}

/// Signs any payload with the Ed25519 key.
fn sign(payload: &str) -> String {
    String::from_utf8(bundle::sign(payload.as_bytes(), &private_keys()[1]).unwrap()).unwrap()
}

#[test]
fn a_claim_is_read_without_a_key() {
    let key = &private_keys()[0];
    let bundle = Statement::spdx(None, box_digest(), "{}").unwrap().sign(key).unwrap();
    let expected = Claim { hint: key.public().hint(), kind: Kind::Spdx };
    assert_eq!(claim(&bundle).unwrap(), expected);
    let text = String::from_utf8(bundle).unwrap().replace(&expected.hint, "somebody");
    assert_eq!(claim(text.as_bytes()).unwrap().hint, "somebody");
    claim(sign("{}").as_bytes()).unwrap_err();
    claim(b"{}").unwrap_err();
}

#[test]
fn a_bundle_is_accepted_for_its_box_and_key_only() {
    for key in private_keys() {
        let statement = Statement::signature(Some("ghcr.io/acme/hello"), box_digest());
        let bundle = statement.sign(&key).unwrap();
        let trusted = public_keys();
        let verified = verify(&bundle, &trusted, &box_digest()).unwrap();
        assert_eq!((verified.key, &verified.statement), (key.public(), &statement));
        assert_eq!(verified.statement.predicate(), "{}");

        let others: Vec<_> = trusted.iter().filter(|it| *it != key.public()).cloned().collect();
        let error = verify(&bundle, &others, &box_digest()).unwrap_err();
        assert_eq!(error, TrustError::OtherKey(format!("`{}`", key.public().hint())));
        assert!(verify(&bundle, &[], &box_digest()).is_err());
        let other = Digest::of(b"another box");
        let error = verify(&bundle, &trusted, &other).unwrap_err();
        assert_eq!(
            error,
            TrustError::OtherBox { found: box_digest().to_string(), expected: other }
        );
    }
}

#[test]
fn the_bytes_of_a_bundle_do_not_change() {
    insta::assert_snapshot!(signed());
    assert_eq!(signed(), signed());
}

#[test]
fn the_page_shows_a_statement_and_a_bundle() {
    let pages = super::blocks("json").into_iter().map(|it| serde_json::from_str(it).unwrap());
    let [statement, shown]: [Value; 2] = pages.collect::<Vec<_>>().try_into().unwrap();
    let ours = Statement::signature(Some("ghcr.io/acme/hello"), box_digest()).to_json().unwrap();
    assert_eq!(statement, serde_json::from_str::<Value>(&ours).unwrap());

    let mut bundle: Value = serde_json::from_str(&signed()).unwrap();
    for field in ["/dsseEnvelope/payload", "/dsseEnvelope/signatures/0/sig"] {
        let start = shown.pointer(field).unwrap().as_str().unwrap().strip_suffix('…').unwrap();
        let whole = bundle.pointer_mut(field).unwrap();
        assert!(whole.as_str().unwrap().starts_with(start), "{field}");
        *whole = format!("{start}…").into();
    }
    assert_eq!(shown, bundle);
}

/// The attestation that npm's registry made for `sigstore@1.3.0`, in
/// <https://github.com/sigstore/sigstore-go/blob/main/examples/bundle-publish.json>, and its key from the same file. It has an older
/// version of the bundle, and another kind of hint.
#[test]
fn a_signature_that_another_program_made_is_verified() {
    let key = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE1Olb3zMAFFxXKHiIkQO5cJ3Yhl5i6UPp+IhuteBJbuHcA5UogKo0EWtlWwW6KSaKoTNEYL7JlCQiVnkhBktUgg==\n\
        -----END PUBLIC KEY-----\n";
    let payload = r#"{"_type":"https://in-toto.io/Statement/v0.1","subject":[{"name":"pkg:npm/sigstore@1.3.0","digest":{"sha512":"76176ffa33808b54602c7c35de5c6e9a4deb96066dba6533f50ac234f4f1f4c6b3527515dc17c06fbe2860030f410eee69ea20079bd3a2c6f3dcf3b329b10751"}}],"predicateType":"https://github.com/npm/attestation/tree/main/specs/publish/v0.1","predicate":{"name":"sigstore","version":"1.3.0","registry":"https://registry.npmjs.org"}}"#;
    let signature = "MEUCIBnkgYZPKzUrd8ClQYUH3c7AbNe65TAu0U/KcDfRAiSrAiEAusNy2Y5EJ77Kqqym1+PmZQ2wHP8xl467wiBfP4902lE=";
    let key = PublicKey::from_pem(key.as_bytes()).unwrap();
    let signature = BASE64_STANDARD.decode(signature).unwrap();
    key.check(&bundle::encoding(payload.as_bytes()), &signature).unwrap();
    let changed = payload.replace("1.3.0", "1.3.1");
    key.check(&bundle::encoding(changed.as_bytes()), &signature).unwrap_err();
}

/// Returns the test's bundle with a change.
fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut bundle: Value = serde_json::from_str(&signed()).unwrap();
    change(&mut bundle);
    bundle.to_string()
}

#[test]
fn another_form_of_bundle_is_refused_with_its_reason() {
    let replace = |from: &str, to: &str| {
        let text = signed().replace(from, to);
        assert_ne!(text, signed());
        text
    };
    let older = "application/vnd.dev.sigstore.bundle+json;version=0.2";
    let material = |value| changed(|it| it["verificationMaterial"] = value);
    let hint = private_keys()[1].public().hint();
    let signature = json!({"sig": "AAAA"});
    let found = [
        String::new(),
        "[]".to_owned(),
        "null".to_owned(),
        "{}".to_owned(),
        format!("{} ", &signed()[1..]),
        format!("{}{{}}", signed()),
        format!("\u{feff}{}", signed()),
        replace("{\"mediaType\"", "{\"mediaType\":\"\",\"mediaType\""),
        replace("{\"mediaType\"", "{\"more\":1,\"mediaType\""),
        replace("\"mediaType\"", "\"media_type\""),
        replace("{\"hint\"", "{\"hint\":\"\",\"hint\""),
        replace("{\"sig\"", "{\"cert\":\"\",\"sig\""),
        replace("{\"payload\"", "{\"payload\":\"\",\"payload\""),
        changed(|it| it["mediaType"] = older.into()),
        changed(|it| it["mediaType"] = json!(3)),
        material(json!({})),
        material(json!([{"hint": hint}])),
        material(json!({"publicKey": [hint]})),
        material(json!({"publicKey": {"hint": "hunter2"}})),
        material(json!({"certificate": {"rawBytes": ""}})),
        material(json!({"x509CertificateChain": {}})),
        material(json!({"publicKey": {"hint": hint}, "certificate": {}})),
        changed(|it| it["messageSignature"] = json!({})),
        changed(|it| drop(it.as_object_mut().unwrap().remove("dsseEnvelope"))),
        changed(|it| it["dsseEnvelope"]["payloadType"] = "text/plain".into()),
        changed(|it| it["dsseEnvelope"]["payload"] = "e30".into()),
        changed(|it| it["dsseEnvelope"]["payload"] = "e3\n0=".into()),
        changed(|it| it["dsseEnvelope"]["payload"] = "e31=".into()),
        changed(|it| it["dsseEnvelope"]["payload"] = "e30=".into()),
        changed(|it| it["dsseEnvelope"]["signatures"] = json!([])),
        changed(|it| it["dsseEnvelope"]["signatures"] = json!([signature, signature])),
        changed(|it| it["dsseEnvelope"]["signatures"][0]["sig"] = "-_8=".into()),
        changed(|it| it["dsseEnvelope"]["signatures"][0]["sig"] = "".into()),
    ]
    .map(|it| refusal(&it));
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn what_is_not_signed_and_has_no_meaning_is_ignored() {
    for bundle in [
        changed(|it| it["verificationMaterial"]["tlogEntries"] = json!([{"logIndex": "1"}])),
        changed(|it| it["verificationMaterial"]["timestampVerificationData"] = json!({})),
        changed(|it| it["dsseEnvelope"]["signatures"][0]["keyid"] = "another".into()),
        format!("\n{}\n", changed(|_| ()).replace(':', " : ")),
    ] {
        // A media type and a digest have colons, too.
        let bundle = bundle.replace("sha256 : ", "sha256:");
        verify(bundle.as_bytes(), &public_keys(), &box_digest()).unwrap();
    }
}

#[test]
fn a_bundle_that_is_too_large_is_not_read() {
    let text = " ".repeat(MAX_BUNDLE_BYTES) + &signed();
    assert_eq!(refusal(&text), TrustError::TooLarge(MAX_BUNDLE_BYTES).to_string());
    let document = format!("{{\"a\":\"{}\"}}", " ".repeat(MAX_BUNDLE_BYTES));
    let statement = Statement::spdx(None, box_digest(), &document).unwrap();
    let error = statement.sign(&private_keys()[1]).unwrap_err();
    assert_eq!(error, TrustError::TooLarge(MAX_BUNDLE_BYTES));
}

/// The statement of the test's bundle with a change.
fn statement(change: impl FnOnce(&mut Value)) -> String {
    let text = Statement::signature(None, box_digest()).to_json().unwrap();
    let mut statement: Value = serde_json::from_str(&text).unwrap();
    change(&mut statement);
    statement.to_string()
}

#[test]
fn a_signed_payload_must_be_a_statement_about_the_box() {
    let other = Digest::of(b"another box").hex();
    let found = [
        "hello".to_owned(),
        "[]".to_owned(),
        statement(|it| it["_type"] = "https://in-toto.io/Statement/v0.1".into()),
        statement(|it| drop(it.as_object_mut().unwrap().remove("predicate"))),
        statement(|it| it["predicate"] = json!("approved")),
        statement(|it| it["subject"] = json!([])),
        statement(|it| it["subject"] = json!({})),
        statement(|it| it["subject"][0] = json!(["name", {"sha256": box_digest().hex()}])),
        statement(|it| it["subject"][0]["digest"] = json!({})),
        statement(|it| it["subject"][0]["digest"] = json!({"sha512": box_digest().hex()})),
        statement(|it| it["subject"][0]["digest"]["sha256"] = box_digest().to_string().into()),
        statement(|it| it["subject"][0]["digest"]["sha256"] = other.clone().into()),
        statement(|it| {
            it["subject"][0]["digest"]["sha256"] = box_digest().hex().to_uppercase().into();
        }),
        statement(|_| ()).replacen("\"sha256\"", "\"sha256\":\"\",\"sha256\"", 1),
    ]
    .map(|payload| refusal(&sign(&payload)));
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn a_statement_of_another_program_is_accepted() {
    let digests = json!({"sha512": "00", "sha256": box_digest().hex()});
    let subjects = json!([
        {"digest": {"sha256": Digest::of(b"another box").hex()}},
        {"uri": "https://a.example.org", "name": "hello", "digest": digests, "annotations": {}},
    ]);
    let payload = statement(|it| it["subject"] = subjects);
    let bundle = sign(&payload.replacen('{', "{\"more\": 1, ", 1));
    let trusted = public_keys();
    let verified = verify(bundle.as_bytes(), &trusted, &box_digest()).unwrap().statement;
    assert_eq!((verified.name.as_deref(), verified.kind), (Some("hello"), Kind::Signature));
}

#[test]
fn a_requirement_needs_a_signature_and_perhaps_provenance() {
    let [first, second] = private_keys();
    let trusted = public_keys();
    let digest = box_digest();
    let sign = |kind: &str, key| {
        let text = statement(|it| it["predicateType"] = kind.into());
        bundle::sign(text.as_bytes(), key).unwrap()
    };
    let signature = sign(Kind::Signature.predicate_type(), &first);
    let provenance = sign(Kind::Provenance.predicate_type(), &second);
    let sbom = sign(Kind::Spdx.predicate_type(), &first);
    let test = sign("https://example.org/test", &first);
    let check = |provenance, keys, bundles: &[&Vec<u8>]| {
        let requirement = Requirement { keys, provenance, refuse_older: false };
        let bundles = bundles.iter().map(|it| it.as_slice());
        requirement.check(bundles, &digest).map(|it| it.provenance.is_some())
    };
    let all = [&sbom, &test, &provenance, &signature];
    assert_eq!(check(false, &trusted, &all), Ok(false));
    assert_eq!(check(true, &trusted, &all), Ok(true));
    let missing = |kind, faults| Err(TrustError::Missing { kind, faults });
    assert_eq!(check(false, &trusted, &[]), missing(Kind::Signature, vec![]));
    let others = [&sbom, &test, &provenance];
    assert_eq!(check(true, &trusted, &others), missing(Kind::Signature, vec![]), "no approval");
    assert_eq!(check(true, &trusted, &[&signature, &sbom]), missing(Kind::Provenance, vec![]));
    // A stranger's bundles do no harm, and prove nothing.
    let other = TrustError::OtherKey(format!("`{}`", second.public().hint()));
    assert_eq!(check(true, &trusted[..1], &all), missing(Kind::Provenance, vec![other]));
    let broken = b"{".to_vec();
    assert_eq!(check(false, &trusted, &[&broken, &signature]), Ok(false));
    let error = check(false, &trusted, &[&broken]).unwrap_err();
    assert_eq!(error.to_string(), "the box has no signature by a trusted key");
    assert!(matches!(error, TrustError::Missing { faults, .. } if faults.len() == 1));
}

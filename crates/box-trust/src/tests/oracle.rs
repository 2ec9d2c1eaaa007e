//! Compares the verification of bundles with `@sigstore/verify`, the sigstore project's own verifier.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use testbed::Workspace;
use testbed::prerequisites::{Sigstore, Verdict, sigstore};

use super::{box_digest, private_keys, public_keys};
use crate::{Algorithm, PrivateKey, Statement, bundle, verify};

fn oracle() -> Sigstore {
    sigstore(&Workspace::find(), &mut |line| println!("{line}")).unwrap()
}

/// Returns the verdicts of both verifiers: ours, and the oracle's. Each trusts the test's two keys.
fn verdicts(bundles: &[String]) -> Vec<(Verdict, Verdict)> {
    let trusted = public_keys();
    let keys: Vec<_> = trusted.iter().map(|key| (key.hint(), key.to_pem())).collect();
    let others = oracle().verify(&keys, bundles).unwrap();
    assert_eq!(others.len(), bundles.len());
    let ours = bundles.iter().map(|text| {
        let verified = verify(text.as_bytes(), &trusted, &box_digest());
        verified.map(drop).map_err(|error| error.to_string())
    });
    ours.zip(others).collect()
}

/// Returns a bundle with a signature by each of the test's keys.
fn bundles() -> Vec<Value> {
    let statement = Statement::signature(Some("ghcr.io/acme/hello"), box_digest());
    let sign = |key| serde_json::from_slice(&statement.sign(key).unwrap()).unwrap();
    private_keys().iter().map(sign).collect()
}

/// A change of a bundle. It gets the field's old value, such as `payload`, and returns the new one.
type Change = (&'static str, fn(&Value) -> Value);

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Replaces a text in base64.
fn in_base64(value: &Value, from: &str, to: &str) -> Value {
    let content = String::from_utf8(BASE64_STANDARD.decode(text(value)).unwrap()).unwrap();
    assert!(content.contains(from));
    BASE64_STANDARD.encode(content.replace(from, to)).into()
}

const PAYLOAD: &str = "/dsseEnvelope/payload";
const SIGNATURES: &str = "/dsseEnvelope/signatures";
const SIGNATURE: &str = "/dsseEnvelope/signatures/0/sig";
const KEY: &str = "/verificationMaterial/publicKey";
const HINT: &str = "/verificationMaterial/publicKey/hint";

/// Each of them changes one field.
const CHANGES: [Change; 26] = [
    ("/mediaType", |_| "application/json".into()),
    ("/mediaType", |_| "".into()),
    ("/mediaType", |_| Value::Null),
    ("/verificationMaterial", |_| json!({})),
    (KEY, |_| Value::Null),
    (HINT, |old| text(old).replace('=', "").into()),
    (HINT, |old| text(old).to_lowercase().into()),
    (HINT, |_| "".into()),
    // The other key, which is trusted, too.
    (HINT, |old| {
        let hints = public_keys().map(|it| it.hint());
        hints.into_iter().find(|it| it != text(old)).unwrap().into()
    }),
    ("/dsseEnvelope", |_| Value::Null),
    ("/dsseEnvelope/payloadType", |_| "application/vnd.in-toto+jsom".into()),
    ("/dsseEnvelope/payloadType", |_| "".into()),
    (PAYLOAD, |old| in_base64(old, "hello", "hallo")),
    (PAYLOAD, |old| in_base64(old, &box_digest().hex(), &"0".repeat(64))),
    (PAYLOAD, |old| in_base64(old, "Statement/v1", "Statement/v2")),
    (PAYLOAD, |old| in_base64(old, "sign/v1", "sign/v2")),
    (PAYLOAD, |old| in_base64(old, "\"predicate\":{}", "\"predicate\":{ }")),
    (PAYLOAD, |old| in_base64(old, "}}", "}} ")),
    (PAYLOAD, |_| "".into()),
    (SIGNATURES, |_| json!([])),
    (SIGNATURES, |old| json!([old[0], old[0]])),
    (SIGNATURES, |old| json!([old[0], {"sig": "AAAA"}])),
    (SIGNATURE, |old| {
        let mut bytes = BASE64_STANDARD.decode(text(old)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        BASE64_STANDARD.encode(bytes).into()
    }),
    (SIGNATURE, |old| {
        let mut bytes = BASE64_STANDARD.decode(text(old)).unwrap();
        bytes.truncate(bytes.len() - 1);
        BASE64_STANDARD.encode(bytes).into()
    }),
    (SIGNATURE, |old| {
        // Signatures of the two kinds of keys have different lengths; those of ECDSA vary.
        let is_ed25519 = |it: &Value| BASE64_STANDARD.decode(text(it)).unwrap().len() == 64;
        let other = bundles().into_iter().map(|it| it.pointer(SIGNATURE).unwrap().clone());
        other.into_iter().find(|it| is_ed25519(it) != is_ed25519(old)).unwrap()
    }),
    (SIGNATURE, |_| "".into()),
];

#[test]
fn both_verifiers_accept_a_bundle_and_refuse_every_changed_field() {
    assert!(super::PAGE.contains(&format!("{} changes in the test", CHANGES.len())));
    for bundle in bundles() {
        let mut all = vec![bundle.to_string()];
        for (field, change) in CHANGES {
            let mut changed = bundle.clone();
            let value = changed.pointer_mut(field).unwrap();
            *value = change(value);
            assert_ne!(changed, bundle, "{field}");
            all.push(changed.to_string());
        }
        let mut found = verdicts(&all).into_iter();
        assert_eq!(found.next(), Some((Ok(()), Ok(()))), "the unchanged bundle");
        for ((ours, others), text) in found.zip(&all[1..]) {
            assert!(ours.is_err() && others.is_err(), "{ours:?} {others:?} {text}");
        }
    }
}

#[test]
fn both_verifiers_accept_each_kind_of_statement() {
    let [key, _] = private_keys();
    let provenance = crate::Provenance {
        boxfile: "Boxfile".to_owned(),
        profile: None,
        inputs: Vec::new(),
        builder: "https://ci.example.org".to_owned(),
        version: "0.1.0".to_owned(),
    };
    let all = [
        Statement::signature(None, box_digest()),
        Statement::provenance(None, box_digest(), &provenance).unwrap(),
        Statement::spdx(None, box_digest(), "{\"name\": \"ä\"}").unwrap(),
    ];
    let sign = |it: &Statement| String::from_utf8(it.sign(&key).unwrap()).unwrap();
    for verdict in verdicts(&all.each_ref().map(sign)) {
        assert_eq!(verdict, (Ok(()), Ok(())));
    }
}

/// docs/trust.md describes these differences.
#[test]
fn the_differences_between_the_verifiers_are_known() {
    let signed = bundles().remove(1);
    let compact = signed.to_string();
    let with = |field: &str, name: &str, value: Value| {
        let mut changed = signed.clone();
        changed.pointer_mut(field).unwrap()[name] = value;
        changed.to_string()
    };
    let payload = text(signed.pointer(PAYLOAD).unwrap());
    let unpadded = payload.trim_end_matches('=');
    assert_ne!(payload, unpadded);
    let statement = Statement::signature(None, box_digest()).to_json().unwrap();
    let sign = |payload: &str| {
        String::from_utf8(bundle::sign(payload.as_bytes(), &private_keys()[1]).unwrap()).unwrap()
    };
    let entry = json!([{"logIndex": "1"}]);
    let cases = [
        ("an unknown field", with("", "more", json!(1))),
        ("an unknown field of the envelope", with("/dsseEnvelope", "more", json!(1))),
        ("a repeated field", compact.replacen('{', "{\"mediaType\":\"text/plain\",", 1)),
        ("base64 without padding", with("/dsseEnvelope", "payload", unpadded.into())),
        ("base64 with a line end", with("/dsseEnvelope", "payload", format!("{payload}\n").into())),
        ("the version 0.9", compact.replace("v0.3", "v0.9")),
        ("a key and a certificate", with("/verificationMaterial", "certificate", json!({}))),
        ("an entry of a log", with("/verificationMaterial", "tlogEntries", entry)),
        ("another keyid", with("/dsseEnvelope/signatures/0", "keyid", "a".into())),
        ("another box", sign(&statement.replace(&box_digest().hex(), &"0".repeat(64)))),
        ("the statement's version 0.1", sign(&statement.replace("Statement/v1", "Statement/v0.1"))),
        ("no statement", sign("hello")),
    ];
    let found = verdicts(&cases.each_ref().map(|it| it.1.clone()));
    let line = |((name, _), (ours, others)): (&(&str, String), (Verdict, Verdict))| {
        let shown =
            |verdict: Verdict| verdict.map_or_else(|error| error, |()| "accepted".to_owned());
        format!("{name}\n  box-trust: {}\n  @sigstore/verify: {}", shown(ours), shown(others))
    };
    let found: Vec<_> = cases.iter().zip(found).map(line).collect();
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn another_program_reads_generated_keys() {
    let keys = [Algorithm::EcdsaP256, Algorithm::Ed25519, Algorithm::EcdsaP256];
    let keys = keys.map(|it| PrivateKey::generate(it).unwrap());
    let private = keys.each_ref().map(|it| it.to_pem().to_string());
    let public = keys.each_ref().map(|it| it.public().to_pem());
    assert_eq!(oracle().public_keys(&private).unwrap(), public);
}

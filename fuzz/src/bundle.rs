//! The target for the signatures of boxes.

use std::sync::OnceLock;

use box_digest::Digest;
use box_trust::{Kind, PrivateKey, PublicKey, Statement, claim, verify};

/// The key of the tests of box-trust, which signed the seed inputs.
const KEY: &[u8] = include_bytes!("../../crates/box-trust/src/tests/keys/ed25519.pem");
/// The box of the seed inputs.
const BOX: &[u8] = b"box";

fn key() -> &'static PrivateKey {
    static KEYS: OnceLock<PrivateKey> = OnceLock::new();
    KEYS.get_or_init(|| PrivateKey::from_pem(KEY).expect("the key of the tests"))
}

/// Verifies the bytes as a bundle, and signs and verifies them as the document and the name of a statement.
pub fn bundle(bytes: &[u8]) {
    let trusted = [key().public().clone()];
    foreign(bytes, &trusted);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    own(text, &trusted);
    // What is no key is no key in both ways of reading, and the error names no byte of it.
    if let Ok(read) = PublicKey::from_pem(bytes) {
        assert_eq!(PublicKey::from_pem(read.to_pem().as_bytes()).as_ref(), Ok(&read));
    }
}

/// A bundle of a stranger is accepted only if the key has signed its statement, for the box of the statement alone.
fn foreign(bytes: &[u8], trusted: &[PublicKey]) {
    let digest = Digest::of(BOX);
    let Ok(verified) = verify(bytes, trusted, &digest) else { return };
    assert_eq!((verified.statement.digest, verified.bundle), (digest, Digest::of(bytes)));
    let seeds = [None, Some("ghcr.io/acme/hello")];
    let seeds = seeds.map(|name| Statement::signature(name, digest));
    assert!(seeds.contains(&verified.statement), "nobody has signed {:?}", verified.statement);
    verify(bytes, trusted, &Digest::of(b"another box")).expect_err("it is for one box");
    verify(bytes, &[], &digest).expect_err("no key is trusted");
    let claim = claim(bytes).expect("what is verified can be shown");
    assert_eq!((claim.hint, claim.kind), (trusted[0].hint(), Kind::Signature));
}

/// What the key signs is verified, whatever its name and its document are, and has the digest of its box.
fn own(text: &str, trusted: &[PublicKey]) {
    let digest = Digest::of(text.as_bytes());
    let named = Statement::signature(Some(text), digest);
    for statement in [Ok(named), Statement::spdx(None, digest, text)].into_iter().flatten() {
        let bundle = statement.sign(key()).expect("it can be signed");
        let verified = verify(&bundle, trusted, &digest).expect("what was signed is verified");
        assert_eq!(verified.statement, statement);
        verify(&bundle, trusted, &Digest::of(BOX)).expect_err("it is for one box");
    }
}

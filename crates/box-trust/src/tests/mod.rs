//! Tests of several modules together. The keys in `keys/` were made with openssl 3.0 for these tests.

mod bundles;
mod keys;
mod oracle;
mod policies;
mod properties;
mod statements;

use box_digest::Digest;

use crate::{MAX_BUNDLE_BYTES, MAX_KEY_BYTES, MAX_POLICY_BYTES, PrivateKey, PublicKey, Statement};

const P256: &[u8] = include_bytes!("keys/p256.pem");
const P256_PUBLIC: &[u8] = include_bytes!("keys/p256.pub");
const ED25519: &[u8] = include_bytes!("keys/ed25519.pem");
const ED25519_PUBLIC: &[u8] = include_bytes!("keys/ed25519.pub");

/// Returns the private keys of both algorithms.
fn private_keys() -> [PrivateKey; 2] {
    [P256, ED25519].map(|key| PrivateKey::from_pem(key).unwrap())
}

fn public_keys() -> [PublicKey; 2] {
    [P256_PUBLIC, ED25519_PUBLIC].map(|key| PublicKey::from_pem(key).unwrap())
}

fn box_digest() -> Digest {
    Digest::of(b"a box")
}

/// Returns a bundle with a signature by the Ed25519 key, whose text is the same each time.
fn signed() -> String {
    let statement = Statement::signature(Some("ghcr.io/acme/hello"), box_digest());
    String::from_utf8(statement.sign(&private_keys()[1]).unwrap()).unwrap()
}

const PAGE: &str = include_str!("../../../../docs/trust.md");

#[test]
fn the_limits_are_those_of_the_pages() {
    let (bundle, key, policy) =
        (MAX_BUNDLE_BYTES >> 20, MAX_KEY_BYTES >> 10, MAX_POLICY_BYTES >> 20);
    assert!(PAGE.contains(&format!("it has more than {bundle} MiB,")));
    let page = include_str!("../../../../docs/hostile-input.md");
    let limits = format!("at most {bundle} MiB, a key {key} KiB, and a policy {policy} MiB.");
    assert!(page.contains(&limits), "{limits}");
}

/// Returns the blocks of a language in docs/trust.md.
fn blocks(language: &str) -> Vec<&'static str> {
    let parts = PAGE.split("```").skip(1).step_by(2);
    let blocks: Vec<_> = parts.filter_map(|it| it.strip_prefix(language)).collect();
    assert!(!blocks.is_empty());
    blocks
}

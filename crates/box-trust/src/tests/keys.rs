//! Keys of openssl and cosign, and keys that cannot be used.

use std::str;

use super::{ED25519, ED25519_PUBLIC, P256, P256_PUBLIC, private_keys, public_keys};
use crate::{Algorithm, MAX_KEY_BYTES, PrivateKey, PublicKey, TrustError};

const SEC1: &[u8] = include_bytes!("keys/sec1.pem");
const ENCRYPTED: &[u8] = include_bytes!("keys/encrypted.pem");
const P384: &[u8] = include_bytes!("keys/p384.pem");
const P384_PUBLIC: &[u8] = include_bytes!("keys/p384.pub");
const COMPRESSED_PUBLIC: &[u8] = include_bytes!("keys/compressed.pub");
const WITHOUT_PUBLIC: &[u8] = include_bytes!("keys/without-public.pem");

#[test]
fn a_private_key_has_the_public_key_that_openssl_derives() {
    for (private, public) in private_keys().iter().zip(public_keys()) {
        assert_eq!(private.public(), &public);
    }
    for (public, text) in public_keys().iter().zip([P256_PUBLIC, ED25519_PUBLIC]) {
        assert_eq!(public.to_pem().as_bytes(), text, "as openssl writes it");
    }
    for (private, text) in private_keys().iter().zip([P256, ED25519]) {
        assert_eq!(private.to_pem().as_bytes(), text);
    }
    let algorithms = public_keys().map(|it| it.algorithm());
    assert_eq!(algorithms, [Algorithm::EcdsaP256, Algorithm::Ed25519]);
}

/// A key and its hint in a bundle by cosign: `managed-key-happy-path` of
/// <https://github.com/sigstore/sigstore-conformance/tree/main/test/assets/bundle-verify>.
#[test]
fn a_hint_is_the_one_that_cosign_computes() {
    let key = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAExRRST79+PsrRBnGAI4cMu6Omz2Jh\n\
        fwlMW+gIutNKVRaMyS4rQKvgngc5p8UbLj55pVHhIoAxi/SRgURZI0J3Xw==\n\
        -----END PUBLIC KEY-----\n";
    let key = PublicKey::from_pem(key.as_bytes()).unwrap();
    assert_eq!(key.hint(), "TLMsSDfG3ajPsWge+z/vX5T/zluXnmvbkTkwLIV68Tk=");
}

#[test]
fn a_generated_key_is_new_and_can_be_read_again() {
    for algorithm in [Algorithm::EcdsaP256, Algorithm::Ed25519] {
        let keys = [(); 2].map(|()| PrivateKey::generate(algorithm).unwrap());
        assert_ne!(keys[0].public(), keys[1].public());
        let read = PrivateKey::from_pem(keys[0].to_pem().as_bytes()).unwrap();
        assert_eq!(read.public(), keys[0].public());
        assert_eq!(read.public().algorithm(), algorithm);
        let signature = keys[0].sign(b"message").unwrap();
        read.public().check(b"message", &signature).unwrap();
        assert_eq!(read.public().check(b"massage", &signature), Err(TrustError::WrongSignature));
        assert!(keys[1].public().check(b"message", &signature).is_err());
    }
}

#[test]
fn text_around_a_key_and_the_line_ends_of_windows_are_accepted() {
    let text = str::from_utf8(P256).unwrap();
    let around = format!("Bag Attributes\n{}\n# end\n", text.replace('\n', "\r\n"));
    let key = PrivateKey::from_pem(around.as_bytes()).unwrap();
    assert_eq!(key.public(), &public_keys()[0]);
}

/// Returns the error and the help for the text of a private key.
fn private(text: &[u8]) -> String {
    error(PrivateKey::from_pem(text).unwrap_err())
}

fn public(text: &[u8]) -> String {
    error(PublicKey::from_pem(text).unwrap_err())
}

fn error(error: TrustError) -> String {
    error.help(None).map_or(error.to_string(), |help| format!("{error}\n  {help}"))
}

/// Returns a PEM block with some content.
fn block(label: &str) -> Vec<u8> {
    format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n").into_bytes()
}

#[test]
fn a_key_of_another_kind_is_refused_with_advice() {
    let two = [P256, ED25519].concat();
    let found = [
        private(SEC1),
        private(&block("EC PRIVATE KEY")),
        private(ENCRYPTED),
        private(&block("ENCRYPTED SIGSTORE PRIVATE KEY")),
        private(&block("ENCRYPTED COSIGN PRIVATE KEY")),
        private(&block("RSA PRIVATE KEY")),
        private(&block("OPENSSH PRIVATE KEY")),
        private(P256_PUBLIC),
        private(P384),
        private(WITHOUT_PUBLIC),
        private(&two),
        private(b"no key"),
        private(b"\xff"),
        private(&vec![b' '; MAX_KEY_BYTES + 1]),
        public(P256),
        public(SEC1),
        public(&block("ENCRYPTED SIGSTORE PRIVATE KEY")),
        public(&block("CERTIFICATE")),
        public(P384_PUBLIC),
        public(COMPRESSED_PUBLIC),
    ];
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn a_damaged_key_is_refused() {
    let text = str::from_utf8(P256).unwrap();
    let changed = [
        text.replace("-----END PRIVATE KEY-----", ""),
        text.replace("MIGHAgEA", "MIGHAgEA!"),
        text.replace("MIGHAgEA", "MIGHAgE"),
        // The public half of another key.
        text.replace("IJbaQ", "IJbaR"),
        text.replace("IJbaQ", "IJba="),
        // The private half of another key.
        text.replace("VBVTCCohHJDHkN76", "VBVTCCohHJDHkN77"),
        str::from_utf8(ED25519).unwrap().replace("MC4CAQ", "MC4CAA"),
    ];
    for text in changed {
        assert_ne!(text.as_bytes(), P256);
        let error = PrivateKey::from_pem(text.as_bytes()).unwrap_err();
        assert_eq!(error, TrustError::MalformedKey, "{text}");
    }
}

#[test]
fn no_part_of_a_private_key_is_printed() {
    for (key, text) in private_keys().iter().zip([P256, ED25519]) {
        let printed = format!("{key:?} {key:#?}");
        assert!(printed.contains(&key.public().hint()));
        let base64: String = str::from_utf8(text).unwrap().lines().skip(1).take(2).collect();
        let is_printed = |at: usize| printed.contains(&base64[at..at + 6]);
        // The hint is base64, too, and cannot contain six characters of the key by chance.
        assert!(!(0..base64.len() - 24 - 6).any(is_printed), "{printed}");
    }
}

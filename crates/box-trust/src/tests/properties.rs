//! Properties of signatures, and random input.

use box_digest::Digest;
use proptest::prelude::*;

use super::{box_digest, private_keys, public_keys, signed};
use crate::{Policy, PrivateKey, PublicKey, Statement, verify};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_signed_is_verified(name in proptest::option::of(".{0,40}"), box_bytes: [u8; 32], which in 0..2_usize) {
        let digest = Digest::from_bytes(box_bytes);
        let statement = Statement::signature(name.as_deref(), digest);
        let bundle = statement.sign(&private_keys()[which]).unwrap();
        let trusted = public_keys();
        let verified = verify(&bundle, &trusted, &digest).unwrap();
        prop_assert_eq!(verified.key, &trusted[which]);
        prop_assert_eq!(verified.statement, statement);
    }

    #[test]
    fn no_random_text_is_accepted(text in ".{0,300}", bytes: Vec<u8>) {
        for input in [text.as_bytes(), &bytes] {
            prop_assert!(verify(input, &public_keys(), &box_digest()).is_err());
            prop_assert!(PrivateKey::from_pem(input).is_err());
            prop_assert!(PublicKey::from_pem(input).is_err());
        }
        drop(Policy::parse(&text, &mut |_| Err("no file".to_owned())));
    }

    /// A text that is nearly a bundle reaches more code than a random one.
    #[test]
    fn a_cut_or_mixed_bundle_is_refused(from in 0..400_usize, to in 0..400_usize, text in ".{0,8}") {
        let bundle = signed();
        let (from, to) = (from.min(bundle.len()), to.min(bundle.len()));
        let mixed = format!("{}{text}{}", &bundle[..from], &bundle[to..]);
        if let Ok(verified) = verify(mixed.as_bytes(), &public_keys(), &box_digest()) {
            let original = Statement::signature(Some("ghcr.io/acme/hello"), box_digest());
            prop_assert_eq!(verified.statement, original);
        }
    }
}

/// Every byte of a bundle is replaced by each of some others.
#[test]
fn no_changed_byte_is_accepted() {
    let statement = Statement::signature(Some("ghcr.io/acme/hello"), box_digest());
    let trusted = public_keys();
    for key in private_keys() {
        let bundle = statement.sign(&key).unwrap();
        for at in 0..bundle.len() {
            for change in [bundle[at] ^ 1, bundle[at] ^ 0x20, b'A', b'"', b'\\', 0xff, 0] {
                let mut changed = bundle.clone();
                changed[at] = change;
                let is_accepted = verify(&changed, &trusted, &box_digest()).is_ok();
                assert_eq!(is_accepted, changed == bundle, "{}", changed.escape_ascii());
            }
        }
    }
}

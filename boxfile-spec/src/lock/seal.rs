//! The check of an entry: a short seal over all that the entry says.
//!
//! It finds mistakes: a digest changed by hand, a line lost in a merge, an entry copied from
//! another platform's. It does not stop an attacker, who could compute it as well, and need not:
//! who can edit the lock can edit the Boxfile, and what is verified against the content are the
//! digests. Hence a hash of a few lines, FNV-1a with 64 bits, and no dependency.
//!
//! Hashed are, in this order: the lock's epoch; name, kind, source, platform (empty where there is
//! none) and digest as the lock writes them; the size; the number of the layers, and each of them.
//! A number is 8 bytes, little-endian; a text is the number of its bytes, and these.

use super::Entry;

/// Offset basis and prime of 64-bit FNV (draft-eastlake-fnv, section 5).
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Returns the check of an entry in a lock of this epoch: 16 hexadecimal digits.
pub(super) fn seal(epoch: u32, entry: &Entry) -> String {
    let platform = entry.platform.map_or("", |platform| platform.as_str());
    let mut hash = Fnv(BASIS);
    hash.number(u64::from(epoch));
    hash.text(&entry.name);
    hash.text(entry.kind.as_str());
    hash.text(&entry.source);
    hash.text(platform);
    hash.text(&entry.digest.to_string());
    hash.number(entry.size);
    hash.number(entry.layers.len() as u64);
    for layer in &entry.layers {
        hash.text(&layer.to_string());
    }
    format!("{:016x}", hash.0)
}

/// FNV-1a: for each byte an exclusive or, then a multiplication.
struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Platform;
    use crate::lock::{Digest, Kind};

    fn entry() -> Entry {
        Entry {
            name: "agent".to_owned(),
            kind: Kind::Image,
            source: "oci:images/agent".to_owned(),
            platform: Some(Platform::LinuxAmd64),
            digest: Digest::Sha256([1; 32]),
            size: 2,
            layers: vec![Digest::Sha256([3; 32])],
        }
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // Test vectors of draft-eastlake-fnv.
        for (text, expected) in
            [("", BASIS), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            let mut hash = Fnv(BASIS);
            hash.bytes(text.as_bytes());
            assert_eq!(hash.0, expected, "{text}");
        }
    }

    /// A lock that is checked in must still be valid tomorrow: the value may never change.
    #[test]
    fn the_seal_of_an_entry_is_pinned() {
        assert_eq!(seal(1, &entry()), "ab7cd8e75c3a71ae");
    }

    #[test]
    fn texts_that_run_into_each_other_are_told_apart() {
        let moved = Entry { name: "agen".into(), source: "toci:images/agent".into(), ..entry() };
        assert_ne!(seal(1, &moved), seal(1, &entry()));
        let empty = Entry { layers: Vec::new(), ..entry() };
        assert_ne!(seal(1, &empty), seal(1, &entry()));
        assert_ne!(seal(2, &entry()), seal(1, &entry()));
    }
}

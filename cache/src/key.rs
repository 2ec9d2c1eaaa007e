//! Keys of actions: a digest of everything on which an action's result depends.

use std::collections::BTreeMap;
use std::fmt;

use box_digest::{Digest, Hasher, Sha256};

/// The key of an action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionKey(Digest);

impl ActionKey {
    pub(crate) const fn from_digest(digest: Digest) -> Self {
        Self(digest)
    }

    pub(crate) const fn digest(&self) -> Digest {
        self.0
    }

    /// Returns the key as 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.hex()
    }
}

impl fmt::Debug for ActionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

/// Hashes everything on which an action depends.
///
/// Each part is hashed after its length as a 64-bit little-endian number, so that different lists of
/// parts never have the same bytes. The order of the parts matters.
///
/// # Examples
///
/// ```
/// use box_cache::KeyHasher;
///
/// let key = |parts: [&str; 2]| KeyHasher::new("example", 1).text(parts[0]).text(parts[1]).finish();
/// assert_ne!(key(["ab", "c"]), key(["a", "bc"]));
/// ```
#[derive(Debug, Clone)]
pub struct KeyHasher(Hasher<Sha256>);

impl KeyHasher {
    /// Starts the key of a kind of action. `epoch` must change whenever the action produces another output from the same parts.
    pub fn new(action: &str, epoch: u32) -> Self {
        Self(Hasher::default()).part(action.as_bytes()).part(&epoch.to_le_bytes())
    }

    /// Adds a byte string.
    #[must_use]
    pub fn part(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds the UTF-8 bytes of a text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.part(text.as_bytes())
    }

    /// Adds a list: the number of its elements, then each element.
    #[must_use]
    pub fn list<'t>(self, list: impl ExactSizeIterator<Item = &'t str>) -> Self {
        let counted = self.part(&(list.len() as u64).to_le_bytes());
        list.fold(counted, Self::text)
    }

    /// Adds a map: the number of its entries, then each name with its value, in the order of the names.
    #[must_use]
    pub fn map(self, map: &BTreeMap<String, String>) -> Self {
        let counted = self.part(&(map.len() as u64).to_le_bytes());
        map.iter().fold(counted, |key, (name, value)| key.text(name).text(value))
    }

    /// Returns the key of all parts.
    pub fn finish(self) -> ActionKey {
        ActionKey(self.0.digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_parts_are_part_of_the_key() {
        let key = |parts: &[&str]| {
            parts.iter().fold(KeyHasher::new("t", 1), |h, p| h.part(p.as_bytes())).finish()
        };
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["abc"]), key(&["abc", ""]));
        assert_eq!(key(&["a", "b"]), key(&["a", "b"]));
    }

    #[test]
    fn a_map_has_a_beginning_and_an_end() {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let key = |maps: [&[(&str, &str)]; 2]| {
            maps.iter().fold(KeyHasher::new("t", 1), |key, pairs| key.map(&map(pairs))).finish()
        };
        assert_ne!(key([&[("a", "b")], &[]]), key([&[], &[("a", "b")]]));
        assert_ne!(key([&[("a", "b")], &[]]), key([&[("a", "")], &[]]));
    }

    #[test]
    fn the_encoding_is_pinned() {
        let key = KeyHasher::new("decode", 1).part(b"layer").finish();
        let expected = "647bd75772449ab27310f008e7c21357f0ca6b16144e02fe90d99296f9f645c2";
        assert_eq!(key.hex(), expected, "changing this makes every store forget what it holds");
    }
}

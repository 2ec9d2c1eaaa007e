//! Reads and writes indexes of referrers
//! (OCI image-spec v1.1, [Image Index](https://github.com/opencontainers/image-spec/blob/v1.1.1/image-index.md)).
//!
//! A server may send anything, so an index takes little more memory than its text: entries stay text until they are read, one by
//! one, and their number and size are limited.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use box_contract::Descriptor;
use box_contract::manifest::OCI_INDEX_TYPE;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};

use crate::referrers::MAX_REFERRERS;

/// The maximum number of fields of an index.
const MAX_FIELDS: usize = 64;
/// The maximum size of an entry, in bytes.
const MAX_ENTRY: usize = 64 << 10;
/// The maximum number of annotations of an entry.
const MAX_ANNOTATIONS: usize = 64;

/// An index of referrers. Other fields and entries that other clients wrote stay as they are.
#[derive(Debug)]
pub(crate) struct Index {
    fields: BTreeMap<String, Box<RawValue>>,
    /// The first entries: when it is read, at most [`MAX_REFERRERS`].
    pub(crate) manifests: Vec<Box<RawValue>>,
    /// The number of further entries, which are not kept.
    pub(crate) surplus: usize,
}

impl Index {
    pub(crate) fn new() -> Self {
        let fields =
            [("schemaVersion", to_raw_value(&2)), ("mediaType", to_raw_value(OCI_INDEX_TYPE))];
        let fields = fields.into_iter().filter_map(|(key, it)| Some((key.to_owned(), it.ok()?)));
        Self { fields: fields.collect(), manifests: Vec::new(), surplus: 0 }
    }

    /// Reads an index. Returns `None` if it is another document.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let index: Self = serde_json::from_slice(bytes).ok()?;
        let media_type = index.fields.get("mediaType");
        let is_index = |it: &RawValue| {
            serde_json::from_str::<String>(it.get()).is_ok_and(|it| it == OCI_INDEX_TYPE)
        };
        media_type.is_none_or(|it| is_index(it)).then_some(index)
    }

    /// Returns the entries. Those that are no descriptors, or larger than any registry's, are left out.
    pub(crate) fn descriptors(&self) -> Vec<Descriptor> {
        let small = self.manifests.iter().map(|it| it.get()).filter(|it| it.len() <= MAX_ENTRY);
        let read = small.filter_map(|it| serde_json::from_str::<Descriptor>(it).ok());
        read.filter(|it| it.annotations.len() <= MAX_ANNOTATIONS).collect()
    }

    /// Adds the entries whose digests are not there. Returns whether there are any.
    pub(crate) fn add(&mut self, entries: &[Box<RawValue>]) -> bool {
        let before = self.manifests.len();
        let mut known: BTreeSet<_> = self.manifests.iter().map(|it| digest(it)).collect();
        let new = entries.iter().filter(|it| known.insert(digest(it)));
        self.manifests.extend(new.cloned());
        self.manifests.len() > before
    }

    /// Writes the index. Every value of this type can be written.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut fields = self.fields.clone();
        fields.extend(to_raw_value(&self.manifests).ok().map(|it| ("manifests".to_owned(), it)));
        serde_json::to_vec(&fields).unwrap_or_default()
    }
}

/// Returns the digest of an entry, or `None` if it has none.
fn digest(entry: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Entry {
        digest: String,
    }
    serde_json::from_str(entry.get()).ok().map(|it: Entry| it.digest)
}

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Index;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an index")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Index, A::Error> {
        let (mut fields, mut manifests) = (BTreeMap::new(), None);
        while let Some(key) = map.next_key::<String>()? {
            if key == "manifests" {
                manifests = Some(map.next_value::<Entries>()?);
            } else if fields.len() == MAX_FIELDS {
                return Err(A::Error::custom("it has too many fields"));
            } else {
                fields.insert(key, map.next_value()?);
            }
        }
        let Entries(manifests, surplus) =
            manifests.ok_or_else(|| A::Error::missing_field("manifests"))?;
        Ok(Index { fields, manifests, surplus })
    }
}

/// The first entries of an index and the number of the others, or none for `null`, which is an empty list in Go's JSON.
#[derive(Default)]
struct Entries(Vec<Box<RawValue>>, usize);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Entries::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let Entries(mut all, mut surplus) = Entries::default();
        while let Some(entry) = list.next_element::<&RawValue>()? {
            if all.len() < MAX_REFERRERS {
                all.push(entry.to_owned());
            } else {
                surplus += 1;
            }
        }
        Ok(Entries(all, surplus))
    }
}

#[cfg(test)]
mod tests {
    use box_digest::Digest;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_others_wrote_stays_as_it_is() {
        let others = json!({ "digest": "other", "size": 1.5, "x": [null] });
        let before = json!({ "schemaVersion": 2, "manifests": [others, 7], "x": { "y": "z" } });
        let mut index = Index::of(before.to_string().as_bytes()).unwrap();
        let mine = Descriptor::new("a/b", Digest::of(b"mine"), 1);
        let entry = to_raw_value(&mine).unwrap();
        assert!(
            index.add(std::slice::from_ref(&entry)) && !index.add(std::slice::from_ref(&entry))
        );
        assert_eq!(index.descriptors(), std::slice::from_ref(&mine));
        let after: Value = serde_json::from_slice(&index.bytes()).unwrap();
        let mut expected = before;
        expected["manifests"].as_array_mut().unwrap().push(json!(mine));
        assert_eq!(after, expected);
    }

    #[test]
    fn a_hostile_index_takes_little_memory() {
        let zeros = vec![json!(0); 100_000];
        let index = json!({ "manifests": zeros }).to_string();
        let read = Index::of(index.as_bytes()).unwrap();
        assert_eq!((read.manifests.len(), read.surplus), (MAX_REFERRERS, 100_000 - MAX_REFERRERS));
        let fields: serde_json::Map<_, _> =
            (0..=MAX_FIELDS).map(|it| (it.to_string(), json!(0))).collect();
        assert!(Index::of(json!(fields).to_string().as_bytes()).is_none());
        let mut many = Descriptor::new("a/b", Digest::of(b"many"), 1);
        many.annotations =
            (0..=MAX_ANNOTATIONS).map(|it| (it.to_string(), String::new())).collect();
        let mut large = Descriptor::new("a/b", Digest::of(b"large"), 1);
        large.annotations.insert("x".to_owned(), "x".repeat(MAX_ENTRY));
        let small = Descriptor::new("a/b", Digest::of(b"small"), 1);
        let index = json!({ "manifests": [many, large, small] }).to_string();
        assert_eq!(Index::of(index.as_bytes()).unwrap().descriptors(), [small]);
        for no_index in ["{}", "[]", "{\"manifests\":{}}", "{\"manifests\":[],\"mediaType\":null}"]
        {
            assert!(Index::of(no_index.as_bytes()).is_none(), "{no_index}");
        }
        assert!(Index::of(b"{\"manifests\":null}").unwrap().manifests.is_empty());
    }
}

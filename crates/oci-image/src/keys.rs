//! The keys of a document, which must not be near to those that are known.
//!
//! Programs in Go, which are most that read images, take `Layers` for `layers`, and of several the last
//! (`encoding/json`, `Unmarshal`); others know only the exact spelling. A document with both would be
//! two images under one digest, so a key that is a known one but for case is refused, also where the
//! known one is not there. That the same key comes twice is refused where the document is read.

use std::fmt;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};

/// What a document consists of, as far as it is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// Anything: a text, a number, a map whose keys anybody may choose.
    Any,
    /// A list.
    List(&'static Self),
    /// An object, with the keys that are read of it.
    Object(&'static [(&'static str, Self)]),
}

/// A document whose keys are checked when it is read.
pub(super) trait Document: DeserializeOwned {
    /// Its keys, and those of what is in it.
    const SHAPE: Shape;
}

/// Reads a document.
///
/// # Errors
/// Where it does not read, or programs could read it differently.
pub(super) fn read<T: Document>(bytes: &[u8]) -> serde_json::Result<T> {
    let document = serde_json::from_slice(bytes)?;
    T::SHAPE.deserialize(&mut serde_json::Deserializer::from_slice(bytes))?;
    Ok(document)
}

/// Walks through a document and keeps nothing of it.
impl<'de> DeserializeSeed<'de> for Shape {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self {
            Self::Any => deserializer.deserialize_ignored_any(IgnoredAny).map(drop),
            Self::List(_) | Self::Object(_) => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Shape {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "anything",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self::List(element) = self else {
            // serde takes an object's values in their order for the object. Nothing else does.
            return Err(Error::invalid_type(serde::de::Unexpected::Seq, &self));
        };
        while list.next_element_seed(*element)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self::Object(known) = self else {
            return Err(Error::invalid_type(serde::de::Unexpected::Map, &self));
        };
        while let Some(key) = map.next_key::<String>()? {
            let near = known.iter().find(|(name, _)| is_near(&key, name));
            if let Some((name, _)) = near.filter(|(name, _)| key != *name) {
                // The place in the document is put behind this.
                return Err(Error::custom(format_args!(
                    "programs differ in whether {name:?} is meant, so build the image again \
                     without the key {key:?}"
                )));
            }
            map.next_value_seed(near.map_or(Self::Any, |(_, shape)| *shape))?;
        }
        Ok(())
    }
}

/// Tells whether two keys are one but for case. Beside the ASCII letters themselves, Unicode folds two
/// letters to them, the long s and the sign of the kelvin.
fn is_near(key: &str, name: &str) -> bool {
    let folded = key.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    });
    folded.eq(name.chars().map(|letter| letter.to_ascii_lowercase()))
}

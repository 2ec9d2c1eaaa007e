//! Rejects JSON documents with duplicate keys, or with keys that differ from known ones only in case.
//!
//! Go programs, which most readers of images are, accept `Layers` as `layers`, and use the last one of duplicate keys
//! ([`json.Unmarshal`](https://pkg.go.dev/encoding/json#Unmarshal)). Other programs accept the exact spelling only. A document
//! with both keys would be two different images with one digest. So a key that differs from a known one only in case is rejected,
//! even if the known key is absent. A duplicate of a known key, or of a key of a [`Shape::Map`], is rejected too. For example,
//! `{"Layers": []}` and `{"layers": [], "layers": []}` are rejected. A key with the value `null` is treated as absent, because Go
//! writes empty lists and maps as `null`. Unknown keys are ignored.

use std::fmt;

use box_contract::json::fault;
use box_digest::Digest;
use serde::Deserialize;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde_json::{Map, Value, json};

/// The maximum number of elements of a list, or of a map with arbitrary keys. An element takes about 150 bytes of memory, even if
/// it is short in the document.
const MAX_ELEMENTS: usize = 1 << 16;

/// The type of a value in a document, with the keys that are read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// Any value. It is replaced with an empty object.
    Any,
    Text,
    Sha256,
    Number,
    Flag,
    List(&'static Self),
    /// An object with arbitrary keys.
    Map(&'static Self),
    /// An object, and its known keys.
    Object(&'static [Key]),
}

/// A known key.
#[derive(Debug)]
pub(super) struct Key {
    name: &'static str,
    shape: Shape,
    required: bool,
}

/// A key that a document must have.
pub(super) const fn required(name: &'static str, shape: Shape) -> Key {
    Key { name, shape, required: true }
}

/// A key that a document may have.
pub(super) const fn optional(name: &'static str, shape: Shape) -> Key {
    Key { name, shape, required: false }
}

/// A document that is read strictly.
pub(super) trait Document: DeserializeOwned {
    /// The known keys of the document, and their types.
    const SHAPE: Shape;

    /// Adds fields that `Self` requires and a document may omit.
    fn complete(_: &mut Value) {}
}

/// The beginnings of this module's messages, which [`fault`] keeps. They contain no value of a document. The document could be
/// any JSON file of the host.
const OWN: [&str; 3] = ["programs differ in", "a key appears twice", "a list or object has more"];

/// Reads a document.
///
/// # Errors
/// The document is malformed, or ambiguous as the module describes.
pub(super) fn read<T: Document>(bytes: &[u8]) -> Result<T, String> {
    let mut document = walk(bytes, T::SHAPE)?;
    T::complete(&mut document);
    typed(document)
}

/// Converts a document that [`walk`] has returned.
pub(super) fn typed<T: DeserializeOwned>(document: Value) -> Result<T, String> {
    serde_json::from_value(document).map_err(|error| fault(&error, &OWN))
}

/// Returns a document with its known keys only.
///
/// # Errors
/// As for [`read`].
pub(super) fn walk(bytes: &[u8], shape: Shape) -> Result<Value, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let document = shape.deserialize(&mut deserializer).and_then(|document| {
        deserializer.end()?;
        shape.not_null(document)
    });
    document.map_err(|error| fault(&error, &OWN))
}

impl Shape {
    fn not_null<E: Error>(self, value: Value) -> Result<Value, E> {
        match value {
            Value::Null => Err(E::invalid_type(Unexpected::Unit, &self)),
            value => Ok(value),
        }
    }
}

/// Returns a value with its known keys only, and `null` for `null`.
impl<'de> DeserializeSeed<'de> for Shape {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Ok(match self {
            Self::Any => IgnoredAny::deserialize(deserializer).map(|_| json!({}))?,
            Self::Text => Option::<String>::deserialize(deserializer)?.into(),
            Self::Sha256 => sha256(Option::deserialize(deserializer)?)?,
            Self::Number => Option::<u64>::deserialize(deserializer)?.into(),
            Self::Flag => Option::<bool>::deserialize(deserializer)?.into(),
            Self::List(_) | Self::Map(_) | Self::Object(_) => deserializer.deserialize_any(self)?,
        })
    }
}

impl<'de> Visitor<'de> for Shape {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "anything",
            Self::Text => "a string",
            Self::Sha256 => "a digest, \"sha256:\" and 64 lower-case hexadecimal digits",
            Self::Number => "u64",
            Self::Flag => "a boolean",
            Self::List(_) => "a list",
            Self::Map(_) | Self::Object(_) => "an object",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let Self::List(element) = self else {
            // serde's derive also accepts a list of an object's values instead of the object. No other program does.
            return Err(Error::invalid_type(Unexpected::Seq, &self));
        };
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(*element)? {
            values.push(element.not_null(value)?);
            check_count(values.len())?;
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        match self {
            Self::Object(known) => object(known, map),
            Self::Map(shape) => {
                let mut values = Map::new();
                while let Some(key) = map.next_key::<String>()? {
                    if values.contains_key(&key) {
                        return Err(Error::custom("a key appears twice"));
                    }
                    values.insert(key, shape.not_null(map.next_value_seed(*shape)?)?);
                    check_count(values.len())?;
                }
                Ok(values.into())
            }
            _ => Err(Error::invalid_type(Unexpected::Map, &self)),
        }
    }
}

/// Checks that a text is a sha256 digest.
fn sha256<E: Error>(found: Option<String>) -> Result<Value, E> {
    let Some(found) = found else { return Ok(Value::Null) };
    match found.parse::<Digest>() {
        Ok(digest) => Ok(digest.to_string().into()),
        Err(_) => Err(E::invalid_value(Unexpected::Other("a text"), &Shape::Sha256)),
    }
}

fn check_count<E: Error>(count: usize) -> Result<(), E> {
    if count <= MAX_ELEMENTS {
        return Ok(());
    }
    Err(Error::custom(format_args!("a list or object has more than {MAX_ELEMENTS} elements")))
}

fn object<'de, A: MapAccess<'de>>(known: &[Key], mut map: A) -> Result<Value, A::Error> {
    let mut values = Map::new();
    while let Some(found) = map.next_key::<String>()? {
        let Some(key) = known.iter().find(|key| is_near(&found, key.name)) else {
            map.next_value::<IgnoredAny>()?;
            continue;
        };
        if found != key.name {
            // serde_json appends the line and column to the message.
            return Err(Error::custom(format_args!(
                "programs differ in whether the key {found:?} means {:?}",
                key.name
            )));
        }
        if values.contains_key(&found) {
            return Err(Error::duplicate_field(key.name));
        }
        values.insert(found, map.next_value_seed(key.shape)?);
    }
    values.retain(|_, value| !value.is_null());
    match known.iter().find(|key| key.required && !values.contains_key(key.name)) {
        Some(key) => Err(Error::missing_field(key.name)),
        None => Ok(values.into()),
    }
}

/// Returns whether two keys differ at most in case. Besides the ASCII letters, Unicode folds two characters to an ASCII letter:
/// the long s and the Kelvin sign.
fn is_near(key: &str, name: &str) -> bool {
    let folded = key.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    });
    folded.eq(name.chars().map(|letter| letter.to_ascii_lowercase()))
}

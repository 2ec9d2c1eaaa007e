//! Reads JSON objects strictly.

use std::fmt;
use std::marker::PhantomData;

use box_contract::json::fault;
use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::TrustError;

/// A value that must be an object. serde's derived readers also accept a list of the fields' values, which no other reader of
/// bundles does.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Reads `what`, a JSON object. Repeated fields are errors. The type decides whether unknown ones are.
pub(crate) fn read<'de, T: Deserialize<'de>>(
    what: &'static str,
    text: &'de [u8],
) -> Result<T, TrustError> {
    let read = serde_json::from_slice(text).map(|Object(value)| value);
    read.map_err(|error| TrustError::Malformed(what, fault(&error, &[])))
}

//! The keys of the frontmatter that the builder uses, deserialized with serde.
//!
//! A value of the wrong kind is no error here. The caller has the value's key, and can report the expected kind.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer,
    MapAccess, SeqAccess, Visitor,
};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};

use super::{MAX_FRONTMATTER, explain};
use diagnostics::{Diagnostic, Span, Spanned};

/// The maximum nesting depth of collections.
const MAX_DEPTH: usize = 16;

/// The frontmatter.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Frontmatter {
    pub(super) name: Value,
    pub(super) description: Value,
    pub(super) version: Value,
    pub(super) author: Value,
    pub(super) system_prompt: Value,
    pub(super) requires: Value,
    pub(super) tools: Value<Tool>,
    /// A key of agent definitions.
    pub(super) model: Value,
}

/// A tool of the skill.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tool {
    pub(super) script: Value,
    pub(super) bin: Value,
    pub(super) backend: Value<Backend>,
}

/// The program of a tool, as one of the three schemas declares it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Backend {
    #[serde(rename = "type")]
    pub(super) kind: Value,
    pub(super) path: Value,
}

/// A value and its span. The keys of a mapping are deserialized as a `T`.
#[derive(Debug, Default)]
pub(super) struct Value<T = IgnoredAny> {
    pub(super) data: Data<T>,
    pub(super) place: Span,
}

/// The kinds of values.
#[derive(Debug, Default)]
pub(super) enum Data<T> {
    /// The key is absent.
    #[default]
    Absent,
    Null,
    Text(String),
    /// A number or a boolean.
    Other,
    List(Vec<Value<T>>),
    Mapping(Box<Mapping<T>>),
}

/// A mapping. `keys` has all its keys in order, including keys that `T` lacks.
#[derive(Debug, Default)]
pub(super) struct Mapping<T> {
    pub(super) value: T,
    pub(super) keys: Vec<Spanned<String>>,
}

/// Parses the frontmatter. `text` is the file up to the line that ends it; YAML treats the first line, `---`, as the
/// start of a document. A frontmatter without keys is [`Data::Absent`]. If a key occurs twice, returns the error, and
/// the frontmatter with the first value of the key, so that the other keys can still be checked.
pub(super) fn read(text: &str) -> (Option<Value<Frontmatter>>, Option<Diagnostic>) {
    let error = match read_with(text, DuplicateKeyPolicy::Error) {
        Ok(frontmatter) => return (Some(frontmatter), None),
        Err(error) => error,
    };
    let is_duplicate = matches!(error, serde_saphyr::Error::DuplicateMappingKey { .. });
    let rest = is_duplicate.then(|| read_with(text, DuplicateKeyPolicy::FirstWins).ok()).flatten();
    (rest, Some(explain::error(&error, text)))
}

fn read_with(
    text: &str,
    duplicate_keys: DuplicateKeyPolicy,
) -> Result<Value<Frontmatter>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 0,
            max_aliases: 0,
            max_depth: MAX_DEPTH,
            // The length of the text already limits these two.
            max_nodes: MAX_FRONTMATTER,
            max_events: 4 * MAX_FRONTMATTER,
        },
        duplicate_keys: duplicate_keys,
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    };
    let read: Result<Option<_>, _> = serde_saphyr::from_str_with_options(text, options);
    read.map(Option::unwrap_or_default)
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Value<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let read = serde_saphyr::Spanned::<Data<T>>::deserialize(value)?;
        let span = read.referenced.span();
        let bytes = |count: Option<u64>| count.and_then(|count| count.try_into().ok()).unwrap_or(0);
        let place = Span::at(bytes(span.byte_offset()), bytes(span.byte_len()));
        Ok(Self { data: read.value, place })
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Data<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(DataVisitor(PhantomData))
    }
}

struct DataVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for DataVisitor<T> {
    type Value = Data<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Data<T>, E> {
        Ok(Data::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Data<T>, E> {
        Ok(Data::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Data<T>, E> {
        Ok(Data::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Data<T>, E> {
        Ok(Data::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Data<T>, E> {
        Ok(Data::Other)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Data<T>, E> {
        Ok(Data::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Data<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Data::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Data<T>, A::Error> {
        let mut keys = Vec::new();
        let value = T::deserialize(MapAccessDeserializer::new(Recorder { map, keys: &mut keys }))?;
        Ok(Data::Mapping(Box::new(Mapping { value, keys })))
    }
}

/// Forwards a mapping to a struct's deserializer, and records the keys.
struct Recorder<'k, A> {
    map: A,
    keys: &'k mut Vec<Spanned<String>>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Recorder<'_, A> {
    type Error = A::Error;

    /// A key that is not a string, such as a number, is recorded as an empty string.
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(key) = self.map.next_key::<Value>()? else { return Ok(None) };
        let value = match key.data {
            Data::Text(text) => text,
            _ => String::new(),
        };
        let field = seed.deserialize(value.as_str().into_deserializer())?;
        self.keys.push(Spanned { value, span: key.place });
        Ok(Some(field))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

//! The keys of the frontmatter that a box is built from, as serde reads them.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer,
    MapAccess, Visitor,
};
use serde_saphyr::options::{MergeKeyPolicy, NonFiniteFloatPolicy};

use super::{MAX_SKILL_MD, explain};
use crate::{Diagnostic, Span};

/// How deep collections may be nested.
const MAX_DEPTH: usize = 16;

/// The error of a key without a value, which [`explain`] puts into words.
pub(super) const NO_VALUE: &str = "no value";

/// The frontmatter.
#[derive(Debug, Deserialize)]
pub(super) struct Frontmatter {
    #[serde(default, deserialize_with = "given")]
    pub(super) name: Option<Text>,
    #[serde(default, deserialize_with = "given")]
    pub(super) system_prompt: Option<Text>,
    #[serde(default, deserialize_with = "given")]
    pub(super) requires: Option<Vec<Text>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) tools: Option<Vec<Mapping<Tool>>>,
}

/// A tool that the skill brings.
#[derive(Debug, Deserialize)]
pub(super) struct Tool {
    #[serde(default, deserialize_with = "given")]
    pub(super) script: Option<Text>,
    #[serde(default, deserialize_with = "given")]
    pub(super) bin: Option<Text>,
    #[serde(default, deserialize_with = "given")]
    pub(super) backend: Option<Backend>,
}

/// The program that a tool of the second generation runs.
#[derive(Debug, Deserialize)]
pub(super) struct Backend {
    #[serde(rename = "type")]
    pub(super) kind: BackendKind,
    #[serde(default, deserialize_with = "given")]
    pub(super) path: Option<Text>,
}

/// How a backend runs; only a binary can be a file of the skill.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BackendKind {
    Binary,
    Http,
    Script,
}

/// A text and its place in the YAML.
pub(super) type Text = serde_saphyr::Spanned<String>;

/// A mapping, with all its keys in order, also those that `T` does not have.
#[derive(Debug)]
pub(super) struct Mapping<T> {
    pub(super) value: T,
    pub(super) keys: Vec<Text>,
}

/// Reads the start of a file up to the end of its frontmatter; YAML takes the first line, `---`, for
/// the start of a document.
pub(super) fn read(text: &str) -> Result<Mapping<Frontmatter>, Diagnostic> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 0,
            max_aliases: 0,
            max_depth: MAX_DEPTH,
            // The length of the text bounds these.
            max_nodes: MAX_SKILL_MD,
            max_events: 4 * MAX_SKILL_MD,
        },
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        no_schema: true,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| explain::error(&error, text))
}

/// Returns the place of a text.
pub(super) fn place(text: &Text) -> Span {
    let span = text.referenced.span();
    let bytes = |count: Option<u64>| count.and_then(|count| count.try_into().ok()).unwrap_or(0);
    Span::at(bytes(span.byte_offset()), bytes(span.byte_len()))
}

/// Reads the value of a key that has one: unlike for serde's `Option`, null is an error.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(value: D) -> Result<Option<T>, D::Error> {
    let value = Option::<T>::deserialize(value)?;
    value.map(Some).ok_or_else(|| D::Error::custom(NO_VALUE))
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Mapping<T> {
    fn deserialize<D: Deserializer<'de>>(mapping: D) -> Result<Self, D::Error> {
        mapping.deserialize_map(MappingVisitor(PhantomData))
    }
}

struct MappingVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for MappingVisitor<T> {
    type Value = Mapping<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let mut keys = Vec::new();
        let value = T::deserialize(MapAccessDeserializer::new(Recorder { map, keys: &mut keys }))?;
        Ok(Mapping { value, keys })
    }
}

/// Hands a mapping on to the reader of a struct, and records the keys.
struct Recorder<'k, A> {
    map: A,
    keys: &'k mut Vec<Text>,
}

/// A key: one that is no text, such as a number, is no key of ours.
#[derive(Deserialize)]
#[serde(untagged)]
enum Key {
    Text(String),
    Other(IgnoredAny),
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Recorder<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(key) = self.map.next_key::<serde_saphyr::Spanned<Key>>()? else { return Ok(None) };
        let value = match key.value {
            Key::Text(text) => text,
            Key::Other(_) => String::new(),
        };
        let field = seed.deserialize(value.as_str().into_deserializer())?;
        self.keys.push(Text { value, referenced: key.referenced, defined: key.defined });
        Ok(Some(field))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

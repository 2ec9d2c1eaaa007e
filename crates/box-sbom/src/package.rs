//! A package that a database names.

use box_tree::listing::NamedOrigin;

/// The most characters of a name or a version.
const WORD_MAX: usize = 256;

/// A package that a database names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package<'a> {
    /// Which sort of database: `deb`, `apk`, `pypi` or `npm`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) version: String,
    /// The package URL.
    pub(super) purl: String,
    /// The license as the package declares it.
    pub(super) license: Option<String>,
    /// The database's file.
    pub(super) path: Vec<u8>,
    /// What brought it into the box.
    pub(super) origin: Option<NamedOrigin<'a>>,
}

/// Tells whether a name or version is one that a package can have. The bounds of the databases
/// differ; none has a space or anything that is not in ASCII.
pub(super) fn is_word(text: &str) -> bool {
    (1..=WORD_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

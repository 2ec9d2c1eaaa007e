//! From the text of a lock to its entries: TOML through serde, and the rules that serde cannot know.
//!
//! A lock comes with a stranger's checkout. Its length is bounded, and so is its nesting: the `toml`
//! crate bounds brackets and the parts of a dotted key by 80 each, but not their product, and drops
//! what it has read by recursion. A lock has no use for dotted keys, so they are refused before
//! anything is parsed.

use std::collections::HashMap;
use std::ops::Range;

use box_digest::AnyDigest;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;
use toml::de::{DeTable, Deserializer, Error, ValueDeserializer};
use toml_parser::lexer::TokenKind;

use super::{FORMAT_VERSION, Lock, LockEntry, MAX_TEXT, PinKind};
use crate::cursor::lines;
use crate::diagnostic::{invisible, quote, shown};
use crate::{Diagnostic, Platform, Span};

/// The command that repairs any lock: it needs nothing of the old one.
const REBUILD: &str = "run `boxbuild update` to resolve everything again";

/// The versions of the format that are read.
const READ_VERSIONS: std::ops::RangeInclusive<u32> = 1..=FORMAT_VERSION;

/// How the lines begin that `git merge` and `jj` leave in a file with conflicts. In TOML, no line of
/// a lock begins so.
const CONFLICT_MARKERS: [&str; 4] = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];

/// The fields after the `version`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    epoch: u32,
    #[serde(default, rename = "entry")]
    entries: Vec<RawEntry>,
}

/// A [`LockEntry`] as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    name: Spanned<String>,
    kind: PinKind,
    source: Spanned<String>,
    platform: Option<Platform>,
    digest: AnyDigest,
    size: u64,
    #[serde(default)]
    layers: Vec<AnyDigest>,
    /// Of version 1.
    #[serde(rename = "check")]
    _check: Option<IgnoredAny>,
}

/// See [`Lock::parse`].
pub(super) fn read(text: &str) -> Result<Lock, Diagnostic> {
    Diagnostic::check_length(text, MAX_TEXT, REBUILD)?;
    check_conflicts(text)?;
    check_depth(text)?;
    let mut table =
        DeTable::parse(text).map_err(|error| malformed("the lock is not TOML", &error))?;
    check_version(table.get_mut())?;
    let body = Body::deserialize(Deserializer::from(table))
        .map_err(|error| malformed("malformed lock", &error))?;
    check_entries(&body.entries)?;
    let mut entries: Vec<LockEntry> = body.entries.into_iter().map(RawEntry::into_entry).collect();
    entries.sort_unstable_by(|one, other| one.key().cmp(&other.key()));
    Ok(Lock { epoch: body.epoch, entries })
}

/// Returns the first line that a merge with conflicts left in a text.
pub(super) fn conflict(text: &str) -> Option<Range<usize>> {
    let conflicted = |line: &str| CONFLICT_MARKERS.iter().any(|marker| line.starts_with(marker));
    let (start, line) = lines(text).find(|(_, line)| conflicted(line))?;
    Some(start..start + line.trim_end().len())
}

/// Refuses the text of a merge that was not finished.
fn check_conflicts(text: &str) -> Result<(), Diagnostic> {
    let Some(place) = conflict(text) else { return Ok(()) };
    let help =
        format!("{REBUILD}, or take one side (`git checkout --ours`) and run `boxbuild lock`");
    let message = "the lock has an unresolved merge conflict";
    Err(error(message, &place, "left by the merge").with_help(help))
}

/// Refuses a text with dotted keys, which could be nested too deep.
fn check_depth(text: &str) -> Result<(), Diagnostic> {
    let mut tokens = toml_parser::Source::new(text).lex();
    let Some(dot) = tokens.find(|token| token.kind() == TokenKind::Dot) else { return Ok(()) };
    let place = dot.span().start()..dot.span().end();
    Err(error("malformed lock: a `.` outside of quotes", &place, "a lock has no dotted keys"))
}

/// Takes the version out of the table, and refuses an unknown one: without it, no other field has a
/// meaning.
fn check_version(table: &mut DeTable<'_>) -> Result<(), Diagnostic> {
    let Some(value) = table.remove("version") else {
        return Err(error("malformed lock: missing field `version`", &(0..0), ""));
    };
    let place = value.span();
    let version = u32::deserialize(ValueDeserializer::from(value))
        .map_err(|error| malformed("malformed lock", &error))?;
    if READ_VERSIONS.contains(&version) {
        return Ok(());
    }
    let known = format!("this boxbuild writes version {FORMAT_VERSION}");
    if version < *READ_VERSIONS.start() {
        return Err(error(format!("no lock has version {version}"), &place, known));
    }
    let help = format!("use that boxbuild, or {REBUILD}, in version {FORMAT_VERSION}");
    Err(error("the lock was written by a newer boxbuild", &place, known).with_help(help))
}

/// Refuses names and sources that are not what they look like, and entries of one key.
fn check_entries(entries: &[RawEntry]) -> Result<(), Diagnostic> {
    let mut earlier = HashMap::new();
    for entry in entries {
        check_visible("name", &entry.name)?;
        check_visible("source", &entry.source)?;
        let key = (entry.name.get_ref(), entry.platform);
        if let Some(first) = earlier.insert(key, entry.name.span()) {
            let name = quote(entry.name.get_ref());
            let platform = entry.platform.map(|it| format!(" for {it}")).unwrap_or_default();
            let message = format!("the lock has two entries {name}{platform}");
            return Err(error(message, &entry.name.span(), "here again")
                .with_label(span(&first), "first here")
                .with_help("delete one of the two, and run `boxbuild lock`"));
        }
    }
    Ok(())
}

/// Refuses a text that a terminal or a review would show as another.
fn check_visible(field: &str, text: &Spanned<String>) -> Result<(), Diagnostic> {
    let Some(c) = invisible(text.get_ref()) else { return Ok(()) };
    let message = format!("`{field}` contains the invisible character U+{:04X}", u32::from(c));
    Err(error(message, &text.span(), "not what it looks like"))
}

impl RawEntry {
    fn into_entry(self) -> LockEntry {
        let Self { kind, platform, digest, size, layers, .. } = self;
        let (name, source) = (self.name.into_inner(), self.source.into_inner());
        LockEntry { name, kind, source, platform, digest, size, layers }
    }
}

/// Returns the diagnostic of what serde or the TOML parser refuses. Its message can quote the file.
fn malformed(what: &str, cause: &Error) -> Diagnostic {
    const LONGEST: usize = 300;
    let mut message: String = cause.message().chars().take(LONGEST).collect();
    if message.len() < cause.message().len() {
        message.push('…');
    }
    error(format!("{what}: {}", shown(&message)), &cause.span().unwrap_or(0..0), "")
        .with_help(format!("undo the edit, or {REBUILD}"))
}

fn error(message: impl Into<String>, place: &Range<usize>, label: impl Into<String>) -> Diagnostic {
    Diagnostic::new(message, span(place), label).with_help(REBUILD)
}

fn span(place: &Range<usize>) -> Span {
    Span::between(place.start, place.end)
}

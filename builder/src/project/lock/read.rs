//! Parses a lock: TOML through serde, and rules that serde cannot check.
//!
//! A lock can be hostile, because it comes with a checkout. Its size is bounded, and so is its nesting: the `toml`
//! crate limits brackets and the parts of a dotted key to 80 each, but not their product, and drops the parsed value
//! recursively. A lock needs no dotted keys, so they are refused before the text is parsed.

use std::collections::HashMap;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error, ValueDeserializer};
use toml_parser::lexer::TokenKind;

use super::{FORMAT_VERSION, Lock, LockEntry, PinKind, REBUILD};
use box_contract::Platform;
use boxfile_spec::toml_faults;
use diagnostics::Sink;
use diagnostics::edited::{conflict, hidden_characters};
use diagnostics::{Diagnostic, Diagnostics, Span};
use diagnostics::{invisible, named_invisible};
use safe_text::{quote, shown};

/// The versions of the format that can be read.
const READ_VERSIONS: std::ops::RangeInclusive<u32> = 1..=FORMAT_VERSION;

/// The fields of the lock itself. Each entry is read separately.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    epoch: u32,
    #[serde(default, rename = "entry")]
    _entries: Vec<IgnoredAny>,
}

/// See [`Lock::parse`].
pub(super) fn read(text: &str) -> Result<Lock, Diagnostics> {
    check_conflicts(text)?;
    check_hidden(text)?;
    check_depth(text)?;
    let mut table = DeTable::parse(text).map_err(|error| not_toml(text, &error))?;
    check_version(table.get_mut())?;
    let sink = Sink::default();
    let items = table.get_ref().get("entry").and_then(|items| items.get_ref().as_array());
    let items = items.into_iter().flatten().cloned();
    let entries: Vec<Spanned<LockEntry>> =
        items.filter_map(|item| sink.attempt(|| entry(item))).collect();
    let head = Spanned::new(table.span(), DeValue::Table(table.into_inner()));
    let head: Option<Head> = sink.check(fields(head, "the lock"));
    check_unique(&entries, &sink);
    let errors = Diagnostics::new(sink.into_found());
    let Some(Head { epoch, .. }) = head.filter(|_| errors.is_none()) else {
        return Err(errors.unwrap_or_else(|| error("malformed lock", &(0..0), "").into()));
    };
    let mut entries: Vec<LockEntry> = entries.into_iter().map(Spanned::into_inner).collect();
    entries.sort_unstable_by(|one, other| one.key().cmp(&other.key()));
    Ok(Lock { epoch, entries })
}

/// Returns the errors of a text that is not TOML: the errors that a Boxfile with the same faults has, or else `first`.
fn not_toml(text: &str, first: &Error) -> Diagnostics {
    let place = first.span().unwrap_or(0..0);
    let message = format!("the lock is not TOML: {}", shown(first.message()));
    let repair = |fault: Diagnostic| {
        let help = fault.help().map_or_else(String::new, |help| format!("{help}\nor "));
        fault.with_help(format!("{help}{REBUILD}"))
    };
    let faults = toml_faults(text).into_iter().map(repair).collect();
    Diagnostics::new(faults).unwrap_or_else(|| error(message, &place, "").into())
}

/// Reads an entry, with the span of its name. Name and source must have no invisible characters.
fn entry(mut item: Spanned<DeValue<'_>>) -> Result<Spanned<LockEntry>, Diagnostic> {
    let value = |field| item.get_ref().get(field);
    let name = value("name").and_then(|name| name.get_ref().as_str());
    let owner = name.map_or("an entry".to_owned(), |name| format!("the entry {}", quote(name)));
    let [name, source] = ["name", "source"].map(|it| value(it).map_or(0..0, Spanned::span));
    if let DeValue::Table(table) = item.get_mut() {
        // The checksum of version 1.
        table.remove("check");
    }
    let entry: LockEntry = fields(item, &owner)?;
    check_visible("name", &entry.name, &name)?;
    check_visible("source", &entry.source, &source)?;
    Ok(Spanned::new(name, entry))
}

/// Reads the fields of a table. Errors name the table as `owner`, such as `the lock`.
fn fields<T: DeserializeOwned>(table: Spanned<DeValue<'_>>, owner: &str) -> Result<T, Diagnostic> {
    let fields = table.get_ref().as_table().into_iter().flatten();
    let places: Vec<_> = fields.map(|(key, value)| (key.to_string(), value.span())).collect();
    T::deserialize(ValueDeserializer::from(table)).map_err(|cause| {
        let at = cause.span().unwrap_or(0..0);
        let around = |(_, place): &&(String, Range<usize>)| {
            place.start <= at.start && at.end <= place.end && !at.is_empty()
        };
        let wrong = places.iter().find(around);
        let wrong = wrong.and_then(|(key, _)| Some((key, value_of(key)?)));
        let cause: String = cause.message().chars().take(300).collect();
        let message = match wrong {
            Some((key, value)) => format!("`{key}` of {owner} must be {value}"),
            None => format!("{owner} is malformed: {cause}"),
        };
        error(message, &at, "")
    })
}

/// Describes the values that a field may have.
fn value_of(field: &str) -> Option<String> {
    let fixed = match field {
        "kind" => return Some(format!("one of {}", PinKind::ALL.map(PinKind::name).join(", "))),
        "platform" => return Some(Platform::ALL.map(Platform::name).join(" or ")),
        "epoch" => "a whole number of at most 32 bits",
        "entry" => "a list of tables, each of which begins with `[[entry]]`",
        "name" | "source" => "a string",
        "digest" => "a digest: `sha256:` or `blake3:` and 64 lower-case hexadecimal digits",
        "size" => "a whole number",
        "layers" => "a list of digests: `sha256:` and 64 lower-case hexadecimal digits",
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// Refuses a text with conflict markers.
fn check_conflicts(text: &str) -> Result<(), Diagnostic> {
    // No line of a valid lock begins with a conflict marker.
    let Some(place) = conflict(text).map(|it| it.offset..it.end()) else { return Ok(()) };
    let help =
        format!("{REBUILD}, or take one side (`git checkout --ours`) and run `boxbuild lock`");
    let message = "the lock has an unresolved merge conflict";
    Err(error(message, &place, "left by the merge").with_help(help))
}

/// Refuses a text with characters that hide other text, also in comments.
fn check_hidden(text: &str) -> Result<(), Diagnostics> {
    let found = hidden_characters(text, None).into_iter();
    let found = found.map(|it| it.with_help(format!("remove the character, or {REBUILD}")));
    Diagnostics::new(found.collect()).map_or(Ok(()), Err)
}

/// Refuses a text with dotted keys, which could be nested too deeply.
fn check_depth(text: &str) -> Result<(), Diagnostic> {
    let mut tokens = toml_parser::Source::new(text).lex();
    let Some(dot) = tokens.find(|token| token.kind() == TokenKind::Dot) else { return Ok(()) };
    let place = dot.span().start()..dot.span().end();
    Err(error("malformed lock: a `.` outside of quotes", &place, "a lock has no dotted keys"))
}

/// Removes the version from the table, and refuses an unknown version. The other fields have a meaning only with a
/// known version.
fn check_version(table: &mut DeTable<'_>) -> Result<(), Diagnostic> {
    let Some(value) = table.remove("version") else {
        return Err(error("the lock has no `version`", &(0..0), ""));
    };
    let place = value.span();
    let version = u32::deserialize(ValueDeserializer::from(value))
        .map_err(|_| error("`version` must be a whole number", &place, ""))?;
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

/// Reports entries with the same name and platform.
fn check_unique(entries: &[Spanned<LockEntry>], sink: &Sink) {
    let mut earlier = HashMap::new();
    for entry in entries {
        let (name, platform) = entry.get_ref().key();
        let Some(first) = earlier.insert((name, platform), entry.span()) else { continue };
        let platform = platform.map(|it| format!(" for {it}")).unwrap_or_default();
        let message = format!("the lock has two entries {}{platform}", quote(name));
        sink.report(
            error(message, &entry.span(), "here again")
                .with_label(span(&first), "first here")
                .with_help("delete one of the two, and run `boxbuild lock`"),
        );
    }
}

/// Refuses a text that a terminal or a review would show differently.
fn check_visible(field: &str, text: &str, place: &Range<usize>) -> Result<(), Diagnostic> {
    let Some(c) = invisible(text) else { return Ok(()) };
    let message = format!("`{field}` contains {}", named_invisible(c));
    Err(error(message, place, "not what it looks like"))
}

fn error(message: impl Into<String>, place: &Range<usize>, label: impl Into<String>) -> Diagnostic {
    Diagnostic::new(message, span(place), label).with_help(format!("undo the edit, or {REBUILD}"))
}

fn span(place: &Range<usize>) -> Span {
    Span::between(place.start, place.end)
}

//! From the text of a lock to its entries.

use super::document::document;
use super::found::{self, Found};
use super::parts::{self, Part};
use super::table::{ANEW, Table};
use super::{FORMAT_VERSION, Lock, MAX_TEXT, compare, conflict};
use crate::sink::Sink;
use crate::{Diagnostic, Diagnostics, Span, Spanned};

/// How many errors of a file are reported: more would only say that it is ruined.
pub(super) const MOST_ERRORS: usize = 100;

/// See [`Lock::parse`].
pub(super) fn read(text: &str) -> Result<Lock, Diagnostics> {
    if text.len() > MAX_TEXT {
        return Err(too_long(text.len()).into());
    }
    if let Some(conflict) = conflict::find(text) {
        return Err(conflict.into());
    }
    let (head, entries) = parts::cut(text);
    let sink = Sink::default();
    let epoch = read_head(head, text, &sink)?;
    let all = read_entries(entries, text, &sink);
    compare::twice(&all, &sink);
    if let Some(epoch) = &epoch {
        compare::misfits(&all, epoch, &sink);
    }
    match (epoch, sink.into_diagnostics()) {
        (Some(epoch), None) => Ok(assemble(epoch.value, all)),
        (_, Some(errors)) => Err(first_of(errors)),
        (None, None) => Err(unexplained().into()),
    }
}

fn assemble(epoch: u32, all: Vec<Found>) -> Lock {
    let mut entries: Vec<_> = all.into_iter().map(|found| found.entry).collect();
    entries.sort_by(|a, b| a.key().cmp(&b.key()));
    Lock { epoch, entries }
}

fn first_of(errors: Diagnostics) -> Diagnostics {
    let first = errors.into_iter().take(MOST_ERRORS).collect();
    Diagnostics::new(first).unwrap_or_else(|| unexplained().into())
}

/// Reads the epoch. What is wrong with the version is returned as an error, for without it nothing
/// else in the file has a meaning; all other errors go to the sink.
fn read_head(part: Part<'_>, text: &str, sink: &Sink) -> Result<Option<Spanned<u32>>, Diagnostic> {
    let Some(fields) = sink.check(document(part, text)) else { return Ok(None) };
    let place = Span::between(0, 0);
    let table = Table { fields: &fields, part, owner: "the lock", place };
    known_version(&table)?;
    table.report_unknown(&["version", "epoch", "entry"], sink);
    if let Some(entry) = table.optional("entry") {
        sink.report(not_a_header(entry.span));
    }
    let epoch = || {
        let field = table.required("epoch")?;
        Ok(Spanned { value: field.number()?, span: field.span })
    };
    Ok(sink.check(epoch()))
}

fn known_version(head: &Table<'_>) -> Result<(), Diagnostic> {
    let field = head.required("version")?;
    let version: u32 = field.number()?;
    if version == FORMAT_VERSION {
        return Ok(());
    }
    let known = format!("this boxbuild reads and writes version {FORMAT_VERSION}");
    Err(if version > FORMAT_VERSION {
        Diagnostic::new("the lock was written by a newer boxbuild", field.span, known)
            .with_help(format!("use that boxbuild, or {ANEW} in version {FORMAT_VERSION}"))
    } else {
        let message = format!("no lock has version {version}");
        Diagnostic::new(message, field.span, known).with_help(ANEW)
    })
}

fn read_entries<'s>(parts: impl Iterator<Item = Part<'s>>, text: &str, sink: &Sink) -> Vec<Found> {
    let mut all = Vec::new();
    let mut broken = 0;
    for part in parts {
        let fields = sink.check(document(part, text));
        match fields.and_then(|fields| found::read(&fields, part, sink)) {
            Some(found) => all.push(found),
            None => broken += 1,
        }
        if broken == MOST_ERRORS {
            break;
        }
    }
    all
}

/// Stands for entries in a form other than the one that boxbuild writes.
pub(super) fn not_a_header(span: Span) -> Diagnostic {
    Diagnostic::new("an entry does not start with `[[entry]]`", span, "not an entry")
        .with_help(ANEW)
}

fn too_long(length: usize) -> Diagnostic {
    let message = format!("the lock has {length} bytes, which is more than {MAX_TEXT}");
    Diagnostic::new(message, Span::between(0, 0), "not read").with_help(ANEW)
}

/// Stands for an error that was found and not reported: a defect of this crate, not of the file.
fn unexplained() -> Diagnostic {
    let message = "the lock cannot be read, and the reason is unknown";
    Diagnostic::new(message, Span::between(0, 0), "")
        .with_help("report this as a defect of boxbuild")
}

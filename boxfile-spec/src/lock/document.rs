//! From a part of the lock's text to a TOML table.

use std::ops::Range;

use toml::de::DeTable;

use super::nesting;
use super::parts::Part;
use super::table::ANEW;
use crate::diagnostic::quote;
use crate::{Diagnostic, Source, Sources};

/// Reads a part of `text`, the whole lock.
///
/// # Errors
/// The first one: what follows it in the same part could be its consequence.
pub(super) fn document<'s>(part: Part<'s>, text: &str) -> Result<DeTable<'s>, Diagnostic> {
    if let Some(offset) = nesting::excess(part.text) {
        let most = nesting::MOST;
        let message = format!("nested too deep: more than {most} brackets and dots");
        let place = part.span(&(offset..offset + 1));
        return Err(Diagnostic::new(message, place, "not read further").with_help(ANEW));
    }
    DeTable::parse(part.text).map(toml::Spanned::into_inner).map_err(|error| {
        let place = error.span().unwrap_or(0..0);
        let span = part.span(&place);
        let (line, _) = Sources::single(Source::new("", text)).location(span);
        let reason = reason(part.text, place).unwrap_or_else(|| error.message().to_owned());
        Diagnostic::new(format!("line {line} is not TOML: {reason}"), span, "")
            .with_help(format!("undo the edit, or {ANEW}"))
    })
}

/// Says what is wrong where the `toml` crate names only what it tried last.
fn reason(text: &str, place: Range<usize>) -> Option<String> {
    let (before, from) = text.split_at_checked(place.start)?;
    let line = from.split(['\n', '\r']).next()?;
    let value = before.trim_end_matches([' ', '\t']).ends_with('=');
    if value && line.trim_start().is_empty() {
        return Some("a value is missing behind the `=`".to_owned());
    }
    let bare = value && line.starts_with(|c: char| c.is_alphabetic());
    let word = text.get(place).filter(|word| bare && !word.is_empty())?;
    Some(format!("the text {} needs quotes", quote(word)))
}

//! `.env` files: a list of environment variables with their values.
//!
//! The syntax is the common subset of container tools. A construct that these tools interpret differently is an error.
//!
//! ```text
//! file     = { [ blanks ] [ entry ] [ blanks comment ] line-end }
//! entry    = [ "export" blanks ] name "=" value
//! name     = ( letter | "_" ) { letter | digit | "_" }              ASCII only
//! value    = unquoted | single | double
//! unquoted = characters up to the end of the line, or up to blanks and `#`; does not begin with
//!            a blank, `'` or `"`; trailing blanks are removed; may be empty
//! single   = "'" characters "'"        `\'` is `'`; all other characters are literal, including `\`
//! double   = '"' characters '"'        `\n` `\r` `\t` `\\` `\"` `\$` are escapes; others are an error
//! comment  = "#" characters
//! blanks   = spaces and tabs
//! line-end = LF | CR LF | the end of the file
//! ```
//!
//! At the start of a line, a comment needs no blanks before `#`. A quoted value may span several lines, and only a
//! comment may follow it. **Variables are never expanded**: `$NAME` and `${NAME}` are literal in every kind of value. A
//! `\` in an unquoted value is literal, too. A name without `=` is an error; some tools take its value from their
//! environment. A byte order mark at the start of the file is skipped. Hidden characters are errors everywhere,
//! including comments.
//!
//! # Examples
//! ```
//! let variables = checkout::dotenv::parse("PORT=8080\nGREETING='Hello, $USER'  # literal\n").unwrap();
//! assert_eq!(variables["PORT"].value, "8080");
//! assert_eq!(variables["GREETING"].value, "Hello, $USER");
//! assert!(checkout::dotenv::parse("PORT = 8080\n").is_err());
//! ```

mod quoted;
mod secrets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use secrets::secrets;

use box_contract::rules;
use diagnostics::ErrorTable;
use diagnostics::Sink;
use diagnostics::cursor::{BYTE_ORDER_MARK, Cursor};
use diagnostics::edited::{hidden_characters, unmerged};
use diagnostics::{Diagnostic, Diagnostics, Span, Spanned};

/// The syntax errors of `.env` files.
pub(crate) const ERRORS: ErrorTable = ErrorTable::new(include_str!("errors.md"));

/// The maximum length of a `.env` file in bytes: 1 MiB.
pub const MAX_DOTENV: usize = 1 << 20;

/// The variables by name. A span covers the whole assignment, beginning with the name.
pub type Variables = BTreeMap<String, Spanned<String>>;

/// Parses the text of a `.env` file.
///
/// # Errors
/// Returns all errors, sorted by position. The text after an unclosed quote is not parsed.
pub fn parse(text: &str) -> Result<Variables, Diagnostics> {
    let help = "an environment holds short values only; put files into images and skills";
    Diagnostic::check_length(text, MAX_DOTENV, help)?;
    let hidden = hidden_characters(text, None).into_iter().map(|it| {
        it.with_help("remove it; a value that needs it can be written in the Boxfile, as `env`, with an escape")
    });
    if let Some(found) = Diagnostics::new(hidden.collect()) {
        return Err(found);
    }
    let mut variables = Variables::new();
    let errors = Sink::default();
    let mut cursor = Cursor::new(text);
    cursor.eat(BYTE_ORDER_MARK);
    while cursor.peek().is_some() && !errors.is_full() {
        if let Some((name, value)) = errors.check(entry(&mut cursor)).flatten() {
            if let Some(first) = variables.get(&name) {
                errors.report(Diagnostic::twice(&name, first.span, value.span));
            } else {
                variables.insert(name, value);
            }
        }
        cursor.skip_until(|c| c == '\n');
        cursor.bump();
    }
    match Diagnostics::new(errors.into_found()) {
        None => Ok(variables),
        Some(errors) => Err(unmerged(text).map_or(errors, Diagnostics::from)),
    }
}

const BLANKS: [char; 2] = [' ', '\t'];

fn skip_blanks(cursor: &mut Cursor<'_>) {
    while cursor.eat_class(|c| BLANKS.contains(&c)) {}
}

/// Returns the rest of the line, without its end.
fn rest_of_line<'t>(cursor: &Cursor<'t>) -> &'t str {
    let line = cursor.rest().lines().next().unwrap_or_default();
    line.strip_suffix('\r').unwrap_or(line)
}

type Assignment = (String, Spanned<String>);

/// Parses a line up to its comment or end. Returns `None` if it has no assignment.
fn entry(cursor: &mut Cursor<'_>) -> Result<Option<Assignment>, Diagnostic> {
    skip_blanks(cursor);
    let line = rest_of_line(cursor);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    if line.strip_prefix("export").is_some_and(|rest| rest.starts_with(BLANKS)) {
        cursor.eat("export");
        skip_blanks(cursor);
    }
    let start = cursor.at();
    let name = name(cursor)?;
    let value = match cursor.peek() {
        Some('\'') => quoted::single(cursor)?,
        Some('"') => quoted::double(cursor)?,
        _ => unquoted(cursor, &name)?,
    };
    let span = Span::between(start, cursor.at());
    end_of_entry(cursor)?;
    Ok(Some((name, Spanned { value, span })))
}

/// Parses a name and the following `=`.
fn name(cursor: &mut Cursor<'_>) -> Result<String, Diagnostic> {
    let start = cursor.at();
    let line = rest_of_line(cursor);
    let Some((name, _)) = line.split_once('=') else {
        // The line may be part of a secret, so the message must not quote it.
        return Err(ERRORS.at("no-value", Span::at(start, line.trim_end().len())));
    };
    let trimmed = name.trim_end();
    let span = Span::between(start, start + name.len());
    if rules::is_variable(trimmed) && trimmed != name {
        return Err(ERRORS.about("before", trimmed, span));
    }
    if name.is_empty() {
        return Err(ERRORS.at("no-name", span));
    }
    if !rules::is_variable(name) {
        return Err(ERRORS.at("bad-name", span));
    }
    cursor.eat(name);
    cursor.eat("=");
    Ok(name.to_owned())
}

fn unquoted(cursor: &mut Cursor<'_>, name: &str) -> Result<String, Diagnostic> {
    let line = rest_of_line(cursor);
    let comment =
        line.match_indices('#').map(|(at, _)| at).find(|at| line[..*at].ends_with(BLANKS));
    let value = line[..comment.unwrap_or(line.len())].trim_end_matches(BLANKS);
    if value.starts_with(BLANKS) {
        return Err(ERRORS.about("after", name, Span::at(cursor.at(), value.len())));
    }
    cursor.eat(value);
    Ok(value.to_owned())
}

/// Checks that nothing but a comment follows on the line.
fn end_of_entry(cursor: &mut Cursor<'_>) -> Result<(), Diagnostic> {
    let before = cursor.at();
    skip_blanks(cursor);
    let (start, line) = (cursor.at(), rest_of_line(cursor));
    if line.is_empty() || (start > before && line.starts_with('#')) {
        return Ok(());
    }
    let span = Span::at(start, line.trim_end().len());
    Err(ERRORS.at("trailing", span))
}

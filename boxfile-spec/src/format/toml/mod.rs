//! The layout of a Boxfile in TOML.

mod layout;
mod token;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

/// Formats a Boxfile in TOML. Returns `None` for a text that has no layout: it has a malformed text
/// or comment, brackets that do not match or are nested more than 64 deep, or a line end or comma
/// that TOML does not allow at its position. Every Boxfile that parses has a layout.
///
/// - Tables and keys are not indented. One blank line precedes a table, or the comment
///   directly above its name.
/// - One space is on each side of a `=`, none in a name: `a.b = 1`, `[a.b]`.
/// - An array or inline table on one line stays on it: `[1, 2]`, `{ a = 1, b = 2 }`. Over several
///   lines, each element is on a separate line, indented by four spaces and with a comma at its
///   end.
/// - Comments stay in their positions. If consecutive lines of one indentation end with comments,
///   the comments are aligned, except after lines wider than 80 columns, lines with brackets, and
///   headers.
/// - Blank lines are kept, at most one in a row, except at the start and end of a table, of an
///   array and of the file.
/// - No white space ends a line, and every line ends with a line feed. The content of a text is
///   not changed.
///
/// Formatting a formatted text changes nothing. The time is proportional to the length of the
/// source.
#[must_use]
pub fn format_toml(source: &str) -> Option<String> {
    let tokens = token::tokens(source)?;
    let broken = token::broken(&tokens)?;
    Some(layout::lay_out(&tokens, &broken)?.finish(source))
}

//! The layout of a Boxfile in TOML.

mod layout;
mod token;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

/// Formats a Boxfile in TOML; returns nothing for a text that has no layout: with a malformed text
/// or comment, brackets that do not match or lie more than 64 deep, or a line end or comma where
/// TOML has none. Every Boxfile that parses has one.
///
/// - Tables and keys are not indented. One blank line precedes a table, or the comment
///   directly above its name.
/// - One space stands on each side of a `=`, none in a name: `a.b = 1`, `[a.b]`.
/// - An array or inline table on one line stays there: `[1, 2]`, `{ a = 1, b = 2 }`. Over several
///   lines, each element has its own, indented by four spaces and with a comma at its end.
/// - Comments stay where they are. Those that end consecutive lines of one indentation begin in
///   one column, but for lines wider than 80 columns, of brackets, or with a table's name.
/// - Blank lines stay, one in a row, but for those at the start and end of a table, of an array and
///   of the file.
/// - No white space ends a line, and every line ends with a line feed. The inside of a text is
///   not touched, whatever it holds.
///
/// Formatting twice gives the same as once. The time is proportional to the length of the source.
#[must_use]
pub fn format_toml(source: &str) -> Option<String> {
    let tokens = token::tokens(source)?;
    let broken = token::broken(&tokens)?;
    Some(layout::lay_out(&tokens, &broken)?.finish(source))
}

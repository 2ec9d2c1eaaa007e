//! The layout of a Boxfile in KDL.

mod joins;
mod layout;
mod token;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

/// Formats a Boxfile in KDL 2; returns nothing for a text that has no layout: with an unclosed text
/// or comment, braces that do not match, blocks more than 64 deep, a `/-` in front of nothing, or
/// a backslash that ends a word. Every Boxfile that parses has one, unless such a backslash is
/// commented out by `/-`.
///
/// - A block is indented by four spaces, its `{` ends the line of its declaration, and its `}` has
///   a line of its own; an empty block is `{}`.
/// - Every declaration has its own line; semicolons go. Between the parts of a declaration is one
///   space, around the `=` of a property and after `/-` none.
/// - Comments stay where they are. Those that end consecutive lines of one indentation begin in
///   one column, but for lines wider than 80 columns and lines with braces.
/// - A line that is continued with `\` is indented by one more step.
/// - Blank lines stay, one in a row, but for those at the start and end of a block and of the file.
/// - No white space ends a line, and every line ends with a line feed. The inside of a text is
///   not touched, whatever it holds.
///
/// Formatting twice gives the same as once. The time is proportional to the length of the source.
#[must_use]
pub fn format_kdl(source: &str) -> Option<String> {
    let tokens = joins::resolve(token::tokens(source)?);
    Some(layout::lay_out(&tokens)?.finish(source))
}

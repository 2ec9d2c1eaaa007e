//! The layout of a Boxfile in KDL.

mod joins;
mod layout;
mod token;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

/// Formats a Boxfile in KDL 2. Returns `None` for a text that has no layout: it has an unclosed
/// text or comment, braces that do not match, blocks more than 64 deep, a `/-` in front of nothing,
/// or a backslash that ends a word. A Boxfile that parses has none of these, with one exception:
/// the backslash may be in a part that `/-` comments out.
///
/// - A block is indented by four spaces. Its `{` ends the line of its declaration, and its `}` is
///   alone on a line. An empty block is `{}`.
/// - Every declaration is on a separate line, and semicolons are removed. One space separates the
///   parts of a declaration; none surrounds the `=` of a property or follows `/-`.
/// - Comments stay in their positions. If consecutive lines of one indentation end with comments,
///   the comments are aligned, except after lines wider than 80 columns and lines with braces.
/// - A line that is continued with `\` is indented by one more step.
/// - Blank lines are kept, at most one in a row, except at the start and end of a block and of
///   the file.
/// - No white space ends a line, and every line ends with a line feed. The content of a text is
///   not changed.
///
/// Formatting a formatted text changes nothing. The time is proportional to the length of the
/// source.
///
/// # Examples
/// ```
/// let source = "agent{image   \"oci:images/agent\";port 4088}";
/// let formatted = boxfile_spec::format_kdl(source).expect("the text has a layout");
/// assert_eq!(formatted, "agent {\n    image \"oci:images/agent\"\n    port 4088\n}\n");
/// assert_eq!(boxfile_spec::format_kdl(&formatted), Some(formatted));
/// ```
#[must_use]
pub fn format_kdl(source: &str) -> Option<String> {
    let tokens = joins::resolve(token::tokens(source)?);
    Some(layout::lay_out(&tokens)?.finish(source))
}

//! The layout of a Boxfile: what `boxbuild fmt` writes.
//!
//! There is one layout and nothing to configure. White space, line ends, semicolons (KDL) and the
//! commas after last elements (TOML) are the formatter's; everything else stays, in its order
//! and as it is written: every comment, every text, every number.
//!
//! Both formatters work on tokens and not on a tree, so that nothing can get lost that a tree does
//! not hold. A text whose tokens cannot be told apart, such as one with an open quote, has no
//! layout: it is refused, not guessed at. What the declarations mean plays no part, so that a
//! Boxfile with unknown names or bad values can be formatted, too.
//!
//! ```
//! let source = "agent{image   \"oci:images/agent\";port 4088}";
//! let formatted = boxfile_spec::format_kdl(source).expect("the text has a layout");
//! assert_eq!(formatted, "agent {\n    image \"oci:images/agent\"\n    port 4088\n}\n");
//! assert_eq!(boxfile_spec::format_kdl(&formatted), Some(formatted));
//! ```

mod kdl;
mod page;
mod toml;

pub use kdl::format_kdl;
pub use toml::format_toml;

use diagnostics::{Source, Syntax};

/// Formats a Boxfile in the syntax that it is written in; see [`format_kdl`] and [`format_toml`].
#[must_use]
pub fn format(source: &Source) -> Option<String> {
    match source.syntax {
        Syntax::Kdl => format_kdl(&source.text),
        Syntax::Toml => format_toml(&source.text),
    }
}

//! The layout of a Boxfile, as `boxbuild fmt` writes it.
//!
//! There is one layout, without configuration. The formatter may change white space, line ends,
//! semicolons (KDL) and the commas after last elements (TOML). Everything else is kept in its order
//! and spelling: every comment, every text, every number.
//!
//! Both formatters work on tokens and not on a tree, so that they lose nothing that a tree leaves
//! out. A text that cannot be split into tokens, for example one with an unclosed quote, has no
//! layout and is refused. The meaning of the declarations is not examined, so a Boxfile with
//! unknown names or wrong values can be formatted, too.

mod kdl;
mod page;
mod toml;

pub use kdl::format_kdl;
pub use toml::format_toml;

use diagnostics::{Source, Syntax};

/// Formats a Boxfile in its syntax; see [`format_kdl`] and [`format_toml`].
#[must_use]
pub fn format(source: &Source) -> Option<String> {
    match source.syntax {
        Syntax::Kdl => format_kdl(&source.text),
        Syntax::Toml => format_toml(&source.text),
    }
}

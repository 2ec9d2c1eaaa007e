//! What the parts of the schema are called in documents for people.

use super::{Count, Kind, Merge};
use crate::units::show_size;

impl Kind {
    /// Says what a value must be: `a size from 4MiB to 64GiB`.
    pub(super) fn words(self) -> String {
        match self {
            Self::Integer { least, most } => format!("a whole number from {least} to {most}"),
            Self::Size { least, most } => {
                format!("a size from {} to {}", show_size(least), show_size(most))
            }
            plain => plain.plain_words().to_owned(),
        }
    }

    const fn plain_words(self) -> &'static str {
        match self {
            Self::Json => "a text that is JSON",
            Self::Name => "a name",
            Self::Path => "a path of the checkout",
            Self::AnyPath => "a path",
            Self::LaunchPath => "a path, relative to where the box is launched",
            Self::Absolute => "an absolute path",
            Self::GuestPath => "a path of the guest",
            Self::Duration => "a duration",
            Self::Truth => "true or false",
            Self::Sha256 => "a sha256",
            Self::SocketUrl => "a ws or wss URL",
            Self::Image => "a reference to an image",
            Self::PathOrUrl => "a path of the checkout, or an http or https URL",
            Self::User => "`USER` or `USER:GROUP`",
            Self::Hostname => "a host name without dots",
            Self::Variable => "the name of a variable",
            Self::Glob => "a pattern of paths",
            Self::Peer => "a domain, an address or a network",
            Self::Tool => "the name of a tool",
            Self::OneOf(_) => "a word of the list below",
            Self::Text | Self::Integer { .. } | Self::Size { .. } => "a text",
        }
    }
}

impl Count {
    /// Says how often a declaration may stand in its block.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Required => "exactly once",
            Self::Optional => "at most once",
            Self::Keyed => "any number of times, each time with another first argument",
            Self::Repeatable => "any number of times",
        }
    }
}

impl Merge {
    /// Says what happens to a declaration that a base file has, too.
    pub(super) const fn words(self, count: Count) -> &'static str {
        match (self, count) {
            (Self::Replace, _) => "replaces the base's as a whole",
            (Self::Combine, Count::Keyed) => {
                "joins the base's: one with the same first argument is combined with it"
            }
            (Self::Combine, Count::Repeatable) => {
                "joins the base's: a variable replaces the one of its name"
            }
            (Self::Combine, _) => "is combined with the base's",
        }
    }
}

//! Names of the parts of the schema in documents for people.

use super::{Count, Kind, Merge};
use crate::units::show_size;

impl Kind {
    /// Says what a value must be: `a size from 4MiB to 64GiB`.
    pub(super) fn words(self) -> String {
        let plain = match self {
            Self::Integer { least, most } => {
                return format!("a whole number from {least} to {most}");
            }
            Self::Size { least, most } => {
                return format!("a size from {} to {}", show_size(least), show_size(most));
            }
            Self::Text | Self::Filled | Self::HttpPath | Self::GrpcService => "a string",
            Self::Json => "a string of JSON",
            Self::Name => "a name",
            Self::Path | Self::BakedPath => "a path of the checkout",
            Self::Kernel => "`lean`, `krunfw` or a path",
            Self::LaunchPath => "a path, relative to where the box is launched",
            Self::FilePlace | Self::WorkDir => "an absolute path",
            Self::GuestPath | Self::MountPoint | Self::SecretPath => "a path of the guest",
            Self::Duration | Self::Seconds => "a duration",
            Self::Truth => "true or false",
            Self::Sha256 => "a sha256",
            Self::SocketUrl => "a ws or wss URL",
            Self::Image => "a reference to an image",
            Self::PathOrUrl => "a path of the checkout, or an http or https URL",
            Self::User => "`USER` or `USER:GROUP`",
            Self::Mode => "a mode in octal digits",
            Self::Hostname => "a host name without dots",
            Self::Variable => "the name of a variable",
            Self::Glob => "a pattern of paths",
            Self::Peer => "a domain, an address or a network",
            Self::Tool => "the name of a tool",
            Self::Capabilities => "names of capabilities with spaces between",
            Self::OneOf(_) => "a word of the list below",
        };
        plain.to_owned()
    }
}

impl Count {
    /// Says how often a declaration can be given in its block.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Required => "Required.",
            Self::Optional => "Optional.",
            Self::Keyed => "Repeatable, each time with a different first argument.",
            Self::Repeatable => "Repeatable.",
        }
    }
}

impl Merge {
    /// Says what happens to a declaration that a base file has, too.
    pub(super) const fn words(self, count: Count) -> &'static str {
        match (self, count) {
            (Self::Replace, _) => "Overrides the base file.",
            (Self::Combine, Count::Keyed) => {
                "Merges with the base file; those with the same first argument are combined."
            }
            (Self::Combine, Count::Repeatable) => {
                "Merges with the base file; a variable overrides the one of its name."
            }
            (Self::Combine, _) => "Merges with the base file.",
        }
    }
}

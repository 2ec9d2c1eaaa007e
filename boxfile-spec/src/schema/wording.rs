//! Describes kinds, repetition and merging for the reference and the JSON Schema.

use super::{Count, Declaration, Kind, Merge, PUBLISH};
use crate::units::show_size;

impl Kind {
    /// Describes the values of the kind: `a size from 4MiB to 64GiB`.
    pub(super) fn description(self) -> String {
        match self {
            Self::Integer { least, most } => format!("a whole number from {least} to {most}"),
            Self::Size { least, most } => {
                format!("a size from {} to {}", show_size(least), show_size(most))
            }
            _ => self.form().0.to_owned(),
        }
    }

    /// Returns a description of the values, and the name of their rule in the JSON Schema. A rule without a definition
    /// in the schema, such as `filled`, is written out by [`super::json`].
    pub(super) const fn form(self) -> (&'static str, &'static str) {
        match self {
            Self::Text | Self::NonEmptyText | Self::HttpPath | Self::GrpcService => {
                ("a string", "text")
            }
            Self::Json => ("a string of JSON", "filled"),
            Self::Name => ("a name", "name"),
            Self::Path | Self::BakedPath => ("a path of the checkout", "filled"),
            Self::Kernel => ("`lean`, `krunfw` or a path", "filled"),
            Self::LaunchPath => {
                ("a path relative to the directory in which the box is launched", "filled")
            }
            Self::FilePlace | Self::WorkDir => ("an absolute path", "absolute-path"),
            Self::GuestPath | Self::MountPoint | Self::SecretPath => {
                ("a path of the guest", "guest-path")
            }
            Self::Integer { .. } => ("a whole number", "integer"),
            Self::Size { .. } => ("a size", "size"),
            Self::Duration | Self::Seconds => ("a duration", "duration"),
            Self::Bool => ("true or false", "truth"),
            Self::Sha256 => ("a sha256", "sha256"),
            Self::SocketUrl => ("a ws or wss URL", "socket-url"),
            Self::ServiceUrl => ("an https URL", "filled"),
            Self::McpUrl => ("an https URL, or an http URL of the loopback", "filled"),
            Self::Header => ("the name of a header", "filled"),
            Self::HeaderPrefix => ("a string of printable ASCII", "text"),
            Self::Request => ("a method and a path", "filled"),
            Self::Image => ("a reference to an image", "filled"),
            Self::PathOrUrl => ("a path of the checkout, or an http or https URL", "filled"),
            Self::User => ("`USER` or `USER:GROUP`", "user"),
            Self::Mode => ("a mode in octal digits", "mode"),
            Self::Hostname => ("a host name without dots", "hostname"),
            Self::Variable => ("the name of a variable", "variable"),
            Self::Glob => ("a pattern of paths", "glob"),
            Self::Peer => ("a domain, an address or a network", "peer"),
            Self::Tool => ("the name of a tool", "filled"),
            Self::Capabilities => ("names of capabilities, separated by spaces", "filled"),
            Self::OneOf(_) => ("a word of the list below", "word"),
        }
    }
}

impl Count {
    /// Describes how often a declaration can be given in its block.
    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::Required => "Required.",
            Self::Optional => "Optional.",
            Self::Keyed => "Repeatable, each time with a different first argument.",
            Self::Repeatable => "Repeatable.",
        }
    }
}

impl Declaration {
    /// Describes how the declaration is merged with the declaration of a base file.
    pub(super) fn merging(&self) -> &'static str {
        if self.name == PUBLISH.name {
            "Those of the base file are kept; a port overrides the base's same port of the same component."
        } else {
            self.merge.description(self.count)
        }
    }
}

impl Merge {
    /// Describes how a declaration is merged with the declaration of a base file.
    const fn description(self, count: Count) -> &'static str {
        match (self, count) {
            (Self::Replace, Count::Repeatable) => "Those of the base file are kept.",
            (Self::Replace, Count::Keyed) => {
                "Merges with the base file; a declaration overrides the base's with the same first argument."
            }
            (Self::Replace, _) => "Overrides the base file.",
            (Self::Combine, Count::Keyed) => {
                "Merges with the base file; declarations with the same first argument are combined."
            }
            (Self::Combine, Count::Repeatable) => {
                "Merges with the base file; a variable overrides the base's variable of the same name."
            }
            (Self::Combine, _) => "Merges with the base file.",
        }
    }
}

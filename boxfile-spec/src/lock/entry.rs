//! One thing that a Boxfile names, and what it was when it was last resolved.

use std::fmt;
use std::str::FromStr;

use super::Digest;
use crate::Platform;

/// What one declaration stood for when it was last resolved.
///
/// Nothing in it depends on the machine that resolved it: a path is here as the Boxfile writes it.
/// Which fields go with which kind is for the builder to observe; a lock holds whatever it is given.
/// It is read back, though, only where name and source are without control characters and other
/// invisible ones, as every path and reference of a Boxfile is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What `boxbuild update NAME` takes: `agent`, `business`, `binary`, `kernel`, `init`,
    /// `skill:NAME`, `env:PATH`; for what a profile declares otherwise, with the profile in front:
    /// `ci@agent`. That is unambiguous: a profile's name has neither `:` nor `@`, and of the other
    /// names only those have an `@` that have a `:` before it. With the platform it is the entry's
    /// key.
    pub name: String,
    /// What sort of thing it is.
    pub kind: Kind,
    /// The reference, URL or path as the Boxfile writes it; empty where it writes none: for init,
    /// and for a kernel that the builder chose.
    pub source: String,
    /// The platform that it is for; nothing for what serves all platforms ([`Kind::has_platform`]).
    pub platform: Option<Platform>,
    /// The digest of the content: of an image its manifest's, of a skill its tree's.
    pub digest: Digest,
    /// The content's size in bytes.
    pub size: u64,
    /// The digests of an image's layers, lowest first; empty for all other kinds.
    pub layers: Vec<Digest>,
}

impl Entry {
    /// Returns what tells entries apart, and gives their order: names by their bytes, and of one
    /// name the entry for all platforms first.
    pub fn key(&self) -> (&str, Option<Platform>) {
        (&self.name, self.platform)
    }
}

/// What sort of thing an entry pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `image`: an OCI image.
    Image,
    /// `binary`: a program that is a file of the checkout.
    Binary,
    /// `url`: a program that is fetched.
    Url,
    /// `skill`: a skill's directory.
    Skill,
    /// `env-file`: a file of environment variables.
    EnvFile,
    /// `kernel`: the kernel that the box boots.
    Kernel,
    /// `init`: the program that the guest starts first.
    Init,
}

impl Kind {
    /// Every kind, in their order.
    pub const ALL: [Self; 7] = [
        Self::Image,
        Self::Binary,
        Self::Url,
        Self::Skill,
        Self::EnvFile,
        Self::Kernel,
        Self::Init,
    ];

    /// Returns the kind as the lock writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Binary => "binary",
            Self::Url => "url",
            Self::Skill => "skill",
            Self::EnvFile => "env-file",
            Self::Kernel => "kernel",
            Self::Init => "init",
        }
    }

    /// Tells whether such a thing is for one platform; a skill or a file of variables serves all.
    pub const fn has_platform(self) -> bool {
        !matches!(self, Self::Skill | Self::EnvFile)
    }
}

/// Writes [`Kind::as_str`].
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error of a text that names no [`Kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownKind;

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a kind is one of {}", Kind::ALL.map(Kind::as_str).join(", "))
    }
}

impl std::error::Error for UnknownKind {}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(UnknownKind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_its_text() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for text in ["", "Image", "env_file", "extends"] {
            assert_eq!(text.parse::<Kind>(), Err(UnknownKind), "{text}");
        }
    }

    #[test]
    fn what_holds_machine_code_has_a_platform() {
        let without: Vec<Kind> =
            Kind::ALL.into_iter().filter(|kind| !kind.has_platform()).collect();
        assert_eq!(without, [Kind::Skill, Kind::EnvFile]);
    }
}

//! One thing that a Boxfile names, and what it was when it was last resolved.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use crate::{Platform, Sha256};

/// The pin of one declaration, as it was last resolved.
///
/// Nothing in it depends on the machine that resolved it: a path is here as the Boxfile writes it.
/// Which fields go with which kind is up to the builder; a lock holds whatever it is given. It is
/// read back only if name and source have no control characters or other invisible ones, which no
/// path or reference of a Boxfile has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What `boxbuild update NAME` takes: `agent`, `business`, `binary`, `kernel`, `init`,
    /// `skill:NAME`, `env:PATH`; for what a profile declares differently, with the profile in front:
    /// `ci@agent`. That is unambiguous: a profile's name has neither `:` nor `@`, and of the other
    /// names only those have an `@` that have a `:` before it. With the platform it is the entry's
    /// key.
    pub name: String,
    /// The sort of thing it is.
    pub kind: Kind,
    /// The reference, URL or path as the Boxfile writes it; empty where it writes none: for init,
    /// and for a kernel that the builder chose.
    pub source: String,
    /// The platform that it is for; `None` for what serves all platforms ([`Kind::has_platform`]).
    pub platform: Option<Platform>,
    /// The digest of the content: of an image its manifest's, of a skill its tree's.
    pub digest: Digest,
    /// The content's size in bytes.
    pub size: u64,
    /// The digests of an image's layers, lowest first; empty for all other kinds.
    pub layers: Vec<Digest>,
}

impl Entry {
    /// Returns the layers that another entry lacks, lowest first.
    pub fn layers_not_in(&self, other: &Self) -> Vec<Digest> {
        self.layers.iter().filter(|layer| !other.layers.contains(layer)).copied().collect()
    }

    /// Returns what identifies an entry in a lock and orders it: names by their bytes, and of one
    /// name the entry for all platforms first.
    pub fn key(&self) -> (&str, Option<Platform>) {
        (&self.name, self.platform)
    }
}

/// The sort of thing that an entry pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

    /// Returns whether such a thing is for one platform; a skill or a file of variables serves all.
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

/// The digest of some content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Digest {
    /// The sha256 of a file, or of an image's manifest: `sha256:` and 64 hexadecimal digits.
    Sha256([u8; 32]),
    /// The BLAKE3 of a directory's tree: `blake3:` and 64 hexadecimal digits.
    Blake3([u8; 32]),
}

/// Writes the algorithm, a colon and 64 lower-case hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(bytes) => write!(f, "sha256:{}", Sha256(*bytes)),
            // Of the same length, and written the same way.
            Self::Blake3(bytes) => write!(f, "blake3:{}", Sha256(*bytes)),
        }
    }
}

/// The error of a text that is not a [`Digest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedDigest;

impl fmt::Display for MalformedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest must be `sha256:` or `blake3:` and 64 lower-case hex digits")
    }
}

impl std::error::Error for MalformedDigest {}

impl FromStr for Digest {
    type Err = MalformedDigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (algorithm, digits) = text.split_once(':').ok_or(MalformedDigest)?;
        let Sha256(bytes) = digits.parse().map_err(|_| MalformedDigest)?;
        match algorithm {
            "sha256" => Ok(Self::Sha256(bytes)),
            "blake3" => Ok(Self::Blake3(bytes)),
            _ => Err(MalformedDigest),
        }
    }
}

/// Deserializes from what [`Digest`] is displayed as.
impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(DigestVisitor)
    }
}

/// Parses inside of the deserializer, which then knows the place of a malformed element of a list.
struct DigestVisitor;

impl Visitor<'_> for DigestVisitor {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Digest, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_machine_code_has_a_platform() {
        for kind in [Kind::Image, Kind::Binary, Kind::Url, Kind::Kernel, Kind::Init] {
            assert!(kind.has_platform());
        }
        assert!(!Kind::Skill.has_platform() && !Kind::EnvFile.has_platform());
    }

    #[test]
    fn other_texts_are_no_digest() {
        let digits = "0123456789abcdef".repeat(4);
        let upper = digits.to_uppercase();
        for text in [
            "",
            "sha256:",
            &digits,
            &format!("sha512:{digits}"),
            &format!("SHA256:{digits}"),
            &format!("sha256:{upper}"),
            &format!("sha256:{digits}0"),
            &format!("sha256:{}", &digits[1..]),
            &format!(" sha256:{digits}"),
            &format!("sha256:{}é", &digits[2..]),
        ] {
            assert_eq!(text.parse::<Digest>(), Err(MalformedDigest), "{text}");
        }
    }

    #[test]
    fn layers_that_another_entry_lacks() {
        let entry = |layers: &[u8]| Entry {
            name: "agent".to_owned(),
            kind: Kind::Image,
            source: String::new(),
            platform: None,
            digest: Digest::Sha256([0; 32]),
            size: 0,
            layers: layers.iter().map(|byte| Digest::Sha256([*byte; 32])).collect(),
        };
        let (old, new) = (entry(&[1, 2, 3]), entry(&[1, 4, 5]));
        assert_eq!(new.layers_not_in(&old), entry(&[4, 5]).layers);
        assert_eq!(old.layers_not_in(&new), entry(&[2, 3]).layers);
        assert_eq!(entry(&[2, 1]).layers_not_in(&entry(&[1, 2])), []);
    }

    proptest! {
        #[test]
        fn a_digest_reads_back(bytes: [u8; 32]) {
            for digest in [Digest::Sha256(bytes), Digest::Blake3(bytes)] {
                prop_assert_eq!(digest.to_string().parse(), Ok(digest));
            }
        }
    }
}

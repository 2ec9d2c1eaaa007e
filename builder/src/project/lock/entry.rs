//! An entry of the lock, which pins one declaration of a Boxfile.

use std::fmt;

use box_contract::named_enum;
use box_digest::{AnyDigest, Digest};
use serde::Deserialize;

use box_contract::Platform;

/// The pin of one declaration, as of its last resolution.
///
/// No field depends on the host that resolved the declaration: a path is as the Boxfile has it. The builder decides
/// which fields a kind has, and a lock stores them unchecked. An entry can be read back only if name and source have no
/// control characters or other invisible characters, which no path or reference of a Boxfile has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockEntry {
    /// The NAME of `boxbuild update NAME`: `agent`, `business`, `binary`, `kernel`, `init`, `skill:NAME`, `env:PATH`,
    /// `file:PATH`. If a profile declares the same name differently, the profile's name is in front: `ci@agent`. The
    /// prefix is unambiguous: a profile's name has neither `:` nor `@`, and other names have an `@` only after a `:`.
    /// Name and platform are the entry's key.
    pub name: String,
    /// The kind of the declaration.
    pub kind: PinKind,
    /// The reference, URL or path as the Boxfile has it. Empty for init, and for a kernel that the builder chose.
    pub source: String,
    /// The platform of the entry. `None` if the entry applies to all platforms ([`PinKind::has_platform`]).
    pub platform: Option<Platform>,
    /// The digest of the content: for an image, of its manifest; for a skill or a baked file, of its tree.
    pub digest: AnyDigest,
    /// The content's size in bytes.
    pub size: u64,
    /// The digests of an image's layers, lowest first; empty for all other kinds.
    #[serde(default)]
    pub layers: Vec<Digest>,
}

impl LockEntry {
    /// Returns the layers that another entry lacks, lowest first.
    pub fn layers_not_in(&self, other: &Self) -> Vec<Digest> {
        self.layers.iter().filter(|layer| !other.layers.contains(layer)).copied().collect()
    }

    /// Returns the key of an entry, by which a lock is sorted: by the bytes of the name, and then the entry for all
    /// platforms first.
    pub fn key(&self) -> (&str, Option<Platform>) {
        (&self.name, self.platform)
    }
}

named_enum! {
    /// The kind of declaration that an entry pins.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum PinKind {
        /// An OCI image.
        Image "image",
        /// A program that is a file of the checkout.
        Binary "binary",
        /// A program that is downloaded.
        Url "url",
        /// A skill's directory.
        Skill "skill",
        /// An environment file.
        EnvFile "env-file",
        /// A file or directory that is baked into a component's root.
        File "file",
        /// The kernel that the box boots.
        Kernel "kernel",
        /// The program that the guest starts first.
        Init "init",
    }
}

impl PinKind {
    /// Returns whether entries of this kind are for one platform. A skill or a file applies to all platforms.
    pub const fn has_platform(self) -> bool {
        !matches!(self, Self::Skill | Self::EnvFile | Self::File)
    }
}

/// Writes [`PinKind::name`].
impl fmt::Display for PinKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_machine_code_has_a_platform() {
        for kind in [PinKind::Image, PinKind::Binary, PinKind::Url, PinKind::Kernel, PinKind::Init]
        {
            assert!(kind.has_platform());
        }
        for kind in [PinKind::Skill, PinKind::EnvFile, PinKind::File] {
            assert!(!kind.has_platform());
        }
    }

    #[test]
    fn layers_that_another_entry_lacks() {
        let entry = |layers: &[u8]| LockEntry {
            name: "agent".to_owned(),
            kind: PinKind::Image,
            source: String::new(),
            platform: None,
            digest: Digest::from_bytes([0; 32]).into(),
            size: 0,
            layers: layers.iter().map(|byte| Digest::from_bytes([*byte; 32])).collect(),
        };
        let (old, new) = (entry(&[1, 2, 3]), entry(&[1, 4, 5]));
        assert_eq!(new.layers_not_in(&old), entry(&[4, 5]).layers);
        assert_eq!(old.layers_not_in(&new), entry(&[2, 3]).layers);
        assert_eq!(entry(&[2, 1]).layers_not_in(&entry(&[1, 2])), []);
    }
}

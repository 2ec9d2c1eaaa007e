//! The entries of a directory in a running component: [`Builtin::List`](super::Builtin::List).

use serde::{Deserialize, Serialize};

/// The answer, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// The entries, sorted by name.
    pub entries: Vec<ListedEntry>,
    /// Whether the directory has more than [`MAX_LISTED`] entries, of which any are listed.
    pub truncated: bool,
}

/// How many entries a [`Listing`] has.
pub const MAX_LISTED: usize = 10_000;

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedEntry {
    /// The name, with U+FFFD instead of invalid UTF-8.
    pub name: String,
    /// The bytes of the name, if they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_bytes: Option<Vec<u8>>,
    /// The type of the file.
    #[serde(rename = "type")]
    pub kind: ListedKind,
    /// The size in bytes. That of a symbolic link is the length of its target.
    pub size: u64,
    /// The permissions: the last twelve bits of the mode.
    pub mode: u32,
    /// The modification time in seconds since 1970.
    pub mtime: i64,
    /// The target of a symbolic link, with U+FFFD instead of invalid UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListedKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device of characters.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A type that this version does not know.
    Unknown,
}

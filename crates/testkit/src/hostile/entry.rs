//! Parses and displays the expected outcome of a case.

use std::fmt;

use box_digest::Blake3Digest;

use super::bytes::unescape;

/// The expected outcome of a case, for one or for two layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// A tree of these entries, sorted.
    Tree(Vec<Entry>),
    /// An error whose message begins with this text.
    Refused(String),
}

/// An entry of an expected tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path, without a leading or trailing slash.
    pub path: Vec<u8>,
    /// The type, with its data.
    pub node: Node,
    /// The permission bits with set-uid, set-gid and sticky.
    pub mode: u16,
    /// The user and group ids of the owner.
    pub owner: (u32, u32),
    /// The modification time, in seconds since 1970.
    pub mtime: i64,
    /// The extended attributes, sorted.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The type of an entry, with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A directory. Its entries are separate.
    Directory,
    /// A file with this content.
    File(Vec<u8>),
    /// A symbolic link with this target.
    Symlink(Vec<u8>),
    /// A hard link to the inode at this path.
    Same(Vec<u8>),
    /// A character device with its major and minor number.
    Char(u32, u32),
    /// A block device with its major and minor number.
    Block(u32, u32),
    /// A named pipe, without data.
    Fifo,
}

impl Expected {
    /// Returns the entries of the tree as lines, with the BLAKE3 of each file instead of its content.
    pub fn lines(&self) -> Option<Vec<String>> {
        let Self::Tree(entries) = self else { return None };
        let hashed = |entry: &Entry| match &entry.node {
            Node::File(content) => {
                let hash = Blake3Digest::of(content).as_bytes().to_vec();
                Entry { node: Node::File(hash), ..entry.clone() }.to_string()
            }
            _ => entry.to_string(),
        };
        Some(entries.iter().map(hashed).collect())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.escape_ascii();
        match &self.node {
            // A hard link has the attributes of the first name.
            Node::Same(first) => return write!(f, "h:{path}={}", first.escape_ascii()),
            Node::Directory => write!(f, "d:{path}"),
            Node::File(content) => write!(f, "f:{path}={}", content.escape_ascii()),
            Node::Symlink(target) => write!(f, "l:{path}={}", target.escape_ascii()),
            Node::Char(major, minor) => write!(f, "c:{path}={major},{minor}"),
            Node::Block(major, minor) => write!(f, "b:{path}={major},{minor}"),
            Node::Fifo => write!(f, "p:{path}"),
        }?;
        write!(f, " {:o} {}:{} {}", self.mode, self.owner.0, self.owner.1, self.mtime)?;
        self.xattrs.iter().try_for_each(|(name, value)| {
            write!(f, " {}={}", name.escape_ascii(), value.escape_ascii())
        })
    }
}

/// Parses an entry of an expected tree.
pub(super) fn entry(word: &str) -> Entry {
    let mut parts = word.split('[');
    let (kind, rest) = parts.next().and_then(|it| it.split_once(':')).expect("KIND:PATH");
    let (path, value) = rest.split_once('=').unwrap_or((rest, ""));
    let value = unescape(value);
    let numbers = || {
        let text = String::from_utf8_lossy(&value).into_owned();
        let (major, minor) = text.split_once(',').expect("MAJOR,MINOR");
        (major.parse().expect("a major number"), minor.parse().expect("a minor number"))
    };
    let (node, mode) = match kind {
        "d" => (Node::Directory, 0o755),
        "l" => (Node::Symlink(value), 0o777),
        "h" => (Node::Same(value), 0),
        "p" => (Node::Fifo, 0o644),
        "c" => (Node::Char(numbers().0, numbers().1), 0o644),
        "b" => (Node::Block(numbers().0, numbers().1), 0o644),
        _ => (Node::File(value), 0o644),
    };
    let path = unescape(path);
    let mut entry = Entry { path, node, mode, owner: (0, 0), mtime: 0, xattrs: Vec::new() };
    parts.for_each(|part| attribute(&mut entry, part.trim_end_matches(']')));
    entry
}

fn attribute(entry: &mut Entry, pair: &str) {
    let (key, value) = pair.split_once('=').expect("[KEY=VALUE]");
    match key {
        "mode" => entry.mode = u16::from_str_radix(value, 8).expect("an octal mode"),
        "uid" => entry.owner.0 = value.parse().expect("an owner"),
        "gid" => entry.owner.1 = value.parse().expect("a group"),
        "mtime" => entry.mtime = value.parse().expect("seconds"),
        name => {
            let name = name.strip_prefix("x.").expect("[x.NAME=VALUE]");
            entry.xattrs.push((name.as_bytes().to_vec(), unescape(value)));
        }
    }
}

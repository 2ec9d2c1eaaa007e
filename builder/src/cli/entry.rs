//! Entries of a tree, for people and as data.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_inspect::diff::Entry;
use box_tree::listing::NamedOrigin;
use boxfile_spec::shown;
use serde::Serialize;

/// A path as data. One that is not UTF-8 is there twice: readable, and without loss.
#[derive(Debug, Serialize)]
pub(crate) struct PathData {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_base64: Option<String>,
}

impl PathData {
    pub(crate) fn of(path: &[u8]) -> Self {
        Self { path: String::from_utf8_lossy(path).into_owned(), path_base64: lossless(path) }
    }
}

/// An entry as data: docs/inspecting.md describes it.
#[derive(Debug, Serialize)]
pub(crate) struct EntryData<'a> {
    r#type: &'static str,
    mode: String,
    uid: u32,
    gid: u32,
    mtime: i64,
    mtime_nsec: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blake3: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    xattrs: Vec<XattrData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<LinksData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<NamedOrigin<'a>>,
}

/// An extended attribute as data.
#[derive(Debug, Serialize)]
struct XattrData<'a> {
    name: Cow<'a, str>,
    value_base64: String,
}

/// The names of an inode as data.
#[derive(Debug, Serialize)]
struct LinksData {
    names: usize,
    #[serde(flatten)]
    first: PathData,
}

impl<'a> EntryData<'a> {
    pub(crate) fn of(entry: &Entry<'a>) -> Self {
        let meta = &entry.inode.meta;
        let xattr = |(name, value): (&'a Vec<u8>, &'a Vec<u8>)| XattrData {
            name: String::from_utf8_lossy(name),
            value_base64: BASE64_STANDARD.encode(value),
        };
        let links = |first| LinksData { names: entry.names, first: PathData::of(first) };
        Self {
            r#type: entry.inode.type_name(),
            mode: format!("{:04o}", meta.mode),
            uid: meta.uid,
            gid: meta.gid,
            mtime: meta.mtime,
            mtime_nsec: meta.mtime_nsec,
            size: entry.inode.content().map(|content| content.size),
            blake3: entry.inode.content().map(|content| content.hash.hex()),
            target: entry.inode.target().map(String::from_utf8_lossy),
            target_base64: entry.inode.target().and_then(lossless),
            device: entry.inode.device(),
            xattrs: meta.xattrs.iter().map(xattr).collect(),
            links: entry.first_name.map(links),
            origin: entry.origin,
        }
    }
}

fn lossless(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).is_err().then(|| BASE64_STANDARD.encode(bytes))
}

/// Shows bytes of a name in one line, where nothing can move the cursor.
pub(crate) fn shown_bytes(bytes: &[u8]) -> String {
    shown(&String::from_utf8_lossy(bytes))
}

/// Shows where an entry came from.
pub(crate) fn origin(entry: &Entry<'_>) -> String {
    entry.origin.map_or_else(|| "this host".to_owned(), |origin| shown(&origin.to_string()))
}

/// Shows type and permissions as `ls` does.
pub(crate) fn permissions(entry: &Entry<'_>) -> String {
    let kind = match entry.inode.type_name() {
        "directory" => 'd',
        "symlink" => 'l',
        "char-device" => 'c',
        "block-device" => 'b',
        "fifo" => 'p',
        _ => '-',
    };
    let mode = entry.inode.meta.mode;
    let bits = (0..9).zip("rwx".chars().cycle());
    let letters = bits.map(|(bit, letter)| if mode & (0o400 >> bit) != 0 { letter } else { '-' });
    let mut text: Vec<char> = std::iter::once(kind).chain(letters).collect();
    for (special, at, letter) in [(0o4000, 3, 's'), (0o2000, 6, 's'), (0o1000, 9, 't')] {
        if mode & special != 0 {
            text[at] = if text[at] == 'x' { letter } else { letter.to_ascii_uppercase() };
        }
    }
    text.into_iter().collect()
}

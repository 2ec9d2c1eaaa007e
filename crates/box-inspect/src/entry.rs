//! Formats entries of a tree as text and as JSON.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use safe_text::shown;
use serde_json::{Value, json};

use crate::diff::{Entry, FirstName};

/// Adds the fields whose value is not null to an object.
pub fn with_fields<const N: usize>(mut object: Value, fields: [(&str, Value); N]) -> Value {
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
        object[name] = value;
    }
    object
}

/// Returns a path as JSON: `path`, and `path_base64` if the path is not UTF-8.
pub fn path_json(path: &[u8]) -> Value {
    let readable = json!({ "path": String::from_utf8_lossy(path) });
    with_fields(readable, [("path_base64", json!(lossless(path)))])
}

/// Adds the fields of an entry to an object, as [docs/json.md](../../../docs/json.md) describes.
pub fn entry_json(object: Value, entry: &Entry<'_>) -> Value {
    let (inode, meta, content) = (entry.inode, &entry.inode.meta, entry.inode.content());
    let xattr = |(name, value): (&Vec<u8>, &Vec<u8>)| {
        let name = String::from_utf8_lossy(name);
        json!({ "name": name, "value_base64": BASE64_STANDARD.encode(value) })
    };
    let xattrs: Vec<Value> = meta.xattrs.iter().map(xattr).collect();
    let links = |first: FirstName<'_>| {
        with_fields(path_json(&first.path()), [("names", json!(entry.names))])
    };
    let fields = [
        ("type", json!(inode.type_name())),
        ("mode", json!(format!("{:04o}", meta.mode))),
        ("uid", json!(meta.uid)),
        ("gid", json!(meta.gid)),
        ("mtime", json!(meta.mtime)),
        ("mtime_nsec", json!(meta.mtime_nsec)),
        ("size", json!(content.map(|it| it.size))),
        ("blake3", json!(content.map(|it| it.hash.hex()))),
        ("target", json!(inode.target().map(String::from_utf8_lossy))),
        ("target_base64", json!(inode.target().and_then(lossless))),
        ("device", json!(inode.device())),
        ("xattrs", json!((!xattrs.is_empty()).then_some(xattrs))),
        ("links", json!(entry.first_name.map(links))),
        ("origin", json!(entry.origin)),
    ];
    with_fields(object, fields)
}

fn lossless(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).is_err().then(|| BASE64_STANDARD.encode(bytes))
}

/// Formats a name in one line, with control characters escaped.
pub fn shown_bytes(bytes: &[u8]) -> String {
    shown(&String::from_utf8_lossy(bytes))
}

/// Formats the origin of an entry. An entry without an origin is from this host.
pub fn origin(entry: &Entry<'_>) -> String {
    entry.origin.map_or_else(|| "this host".to_owned(), |origin| shown(&origin.to_string()))
}

/// Formats type and permissions as `ls` does, e.g. `-rwxr-xr-x`.
pub fn permissions(entry: &Entry<'_>) -> String {
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

//! Lists a directory tree as one line of JSON per entry.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use box_digest::{Blake3Digest, hex};
use box_init::error::InitError;
use serde_json::{Map, Value, json};

/// Calls `emit` with the line of `root` and of each entry below it, in the bytewise order of their paths. The paths are
/// relative to `root`, which is `/`. The lines of hard links to the same inode have the same `first_name`, the first path.
///
/// # Errors
/// If reading the tree fails, with the path in the error, or if `emit` fails.
pub fn walk(
    root: &Path,
    emit: &mut impl FnMut(String) -> Result<(), InitError>,
) -> Result<(), InitError> {
    let mut first_names = HashMap::new();
    for path in all_paths(root)? {
        let line = line(root, &path, &mut first_names);
        emit(Value::Object(line.map_err(|error| failed(&path, error))?).to_string())?;
    }
    Ok(())
}

/// The first path of each inode with several hard links, by inode number.
type FirstNames = HashMap<u64, String>;

fn line(root: &Path, path: &Path, first_names: &mut FirstNames) -> io::Result<Map<String, Value>> {
    let metadata = path.symlink_metadata()?;
    let name = shown(root, path);
    let mut entry = describe(path, &metadata)?;
    if !metadata.is_dir() && metadata.nlink() > 1 {
        let first = first_names.entry(metadata.ino()).or_insert_with(|| name.clone());
        entry.insert("first_name".to_owned(), json!(first));
    }
    entry.insert("path".to_owned(), json!(name));
    Ok(entry)
}

/// Returns `path` relative to `root`, with a leading `/`, as escaped text.
fn shown(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path).as_os_str().as_bytes();
    escape(&[b"/", relative].concat())
}

/// Returns the paths of `root` and of all entries below it, sorted bytewise.
fn all_paths(root: &Path) -> Result<Vec<PathBuf>, InitError> {
    let mut found = vec![root.to_path_buf()];
    // An explicit stack, because a deep tree would overflow the call stack.
    let mut pending = found.clone();
    while let Some(directory) = pending.pop() {
        list_directory(&directory, &mut found, &mut pending)
            .map_err(|error| failed(&directory, error))?;
    }
    found.sort_unstable_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    Ok(found)
}

fn list_directory(
    directory: &Path,
    found: &mut Vec<PathBuf>,
    pending: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in directory.read_dir()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            pending.push(entry.path());
        }
        found.push(entry.path());
    }
    Ok(())
}

fn failed(path: &Path, error: io::Error) -> InitError {
    InitError::new(format!("list {}", path.display()), error)
}

fn describe(path: &Path, metadata: &Metadata) -> io::Result<Map<String, Value>> {
    let kind = kind(metadata.file_type());
    let mut entry = Map::new();
    let mut put = |key: &str, value: Value| drop(entry.insert(key.to_owned(), value));
    put("type", json!(kind));
    put("ino", json!(metadata.ino()));
    put("mode", json!(metadata.mode() & 0o7777));
    put("uid", json!(metadata.uid()));
    put("gid", json!(metadata.gid()));
    put("mtime", json!(metadata.mtime()));
    put("mtime_nsec", json!(metadata.mtime_nsec()));
    put("nlink", json!(metadata.nlink()));
    put("xattrs", json!(xattrs(path)?));
    match kind {
        "file" => {
            put("size", json!(metadata.len()));
            put("blake3", json!(Blake3Digest::of_reader(File::open(path)?)?.0.hex()));
        }
        "symlink" => {
            put("target", json!(escape(path.read_link()?.as_os_str().as_bytes())));
        }
        "char" | "block" => put("rdev", json!(device(metadata.rdev()))),
        _ => {}
    }
    Ok(entry)
}

fn kind(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "dir",
        kind if kind.is_file() => "file",
        kind if kind.is_symlink() => "symlink",
        kind if kind.is_char_device() => "char",
        kind if kind.is_block_device() => "block",
        kind if kind.is_fifo() => "fifo",
        _ => "socket",
    }
}

/// Splits a device number of the C library into major and minor (makedev(3)).
const fn device(number: u64) -> [u64; 2] {
    let major = (number >> 8) & 0xfff | (number >> 32) & !0xfff;
    let minor = number & 0xff | (number >> 12) & !0xff;
    [major, minor & 0xffff_ffff]
}

/// Reads the extended attributes of `path`, without following a symbolic link. The values are in hexadecimal.
fn xattrs(path: &Path) -> io::Result<BTreeMap<String, String>> {
    // Asks for the size first: most files have no attributes, and a buffer for the longest list would take most of the time.
    let mut names = vec![0; rustix::fs::llistxattr_query(path)?];
    let length = rustix::fs::llistxattr(path, &mut names)?;
    let mut found = BTreeMap::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; rustix::fs::lgetxattr_query(path, name)?];
        let length = rustix::fs::lgetxattr(path, name, &mut value)?;
        found.insert(escape(name), hex(&value[..length]));
    }
    Ok(found)
}

/// Returns `bytes` as text. Control characters, backslashes and invalid UTF-8 become `\xNN`.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || character == '\\' {
                let mut encoded = [0; 4];
                character
                    .encode_utf8(&mut encoded)
                    .bytes()
                    .for_each(|byte| push_hex(&mut text, byte));
            } else {
                text.push(character);
            }
        }
        chunk.invalid().iter().for_each(|byte| push_hex(&mut text, *byte));
    }
    text
}

fn push_hex(text: &mut String, byte: u8) {
    text.push_str(&format!("\\x{byte:02x}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_are_safe_and_distinct() {
        assert_eq!(escape("/é b\"".as_bytes()), "/é b\"");
        assert_eq!(escape(b"a\xff\n\\x41"), "a\\xff\\x0a\\x5cx41");
        assert_eq!(escape("\u{85}".as_bytes()), "\\xc2\\x85");
    }

    #[test]
    fn device_numbers_are_split_as_makedev_joins_them() {
        assert_eq!(device(0x0103), [1, 3]);
        // The layout of device numbers in makedev(3) on Linux.
        let number = (0x12345 & !0xfff) << 32 | (0x345 << 8) | (0x6789a & !0xff) << 12 | 0x9a;
        assert_eq!(device(number), [0x12345, 0x6789a]);
    }

    #[test]
    fn a_tree_is_listed_in_order_without_following_links() {
        let root = std::env::temp_dir().join(format!("list-init-{}", std::process::id()));
        fs::create_dir_all(root.join("b")).unwrap();
        fs::write(root.join("b/inner"), "abc").unwrap();
        fs::write(root.join("b-"), "").unwrap();
        fs::hard_link(root.join("b/inner"), root.join("c")).unwrap();
        symlink("b", root.join("a")).unwrap();
        let mut lines = Vec::new();
        walk(&root, &mut |line| {
            lines.push(serde_json::from_str::<Value>(&line).unwrap());
            Ok(())
        })
        .unwrap();
        fs::remove_dir_all(&root).unwrap();
        let paths: Vec<_> = lines.iter().map(|line| line["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["/", "/a", "/b", "/b-", "/b/inner", "/c"]);
        assert_eq!((&lines[1]["type"], &lines[1]["target"]), (&json!("symlink"), &json!("b")));
        assert_eq!((&lines[4]["size"], &lines[4]["type"]), (&json!(3), &json!("file")));
        assert_eq!(lines[4]["blake3"], Blake3Digest::of(b"abc").hex());
        assert_eq!((&lines[2]["nlink"], &lines[2]["first_name"]), (&json!(2), &Value::Null));
        for line in &lines[4..] {
            assert_eq!((&line["nlink"], &line["first_name"]), (&json!(2), &json!("/b/inner")));
        }
    }
}

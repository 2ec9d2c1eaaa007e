//! Compares two listings, entry by entry and field by field.

use std::collections::BTreeSet;

use crate::listing::{Entry, Listing};

/// One difference between two listings: the path, the field, and both values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) path: String,
    pub(crate) field: &'static str,
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

/// Returns all differences between two listings.
pub(crate) fn differences(ours: &Listing, theirs: &Listing) -> Vec<Difference> {
    let paths: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let mut found = Vec::new();
    for path in paths {
        let mut note = |field, ours, theirs| {
            let path = String::from_utf8_lossy(path).into_owned();
            found.push(Difference { path, field, ours, theirs });
        };
        match (ours.get(path), theirs.get(path)) {
            (Some(ours), Some(theirs)) if ours == theirs => {}
            (Some(ours), Some(theirs)) => entry_differences(ours, theirs, note),
            (Some(ours), None) => note("presence", format!("{:?}", ours.kind), "-".to_owned()),
            (None, Some(theirs)) => note("presence", "-".to_owned(), format!("{:?}", theirs.kind)),
            (None, None) => {}
        }
    }
    found
}

fn entry_differences(
    ours: &Entry,
    theirs: &Entry,
    mut note: impl FnMut(&'static str, String, String),
) {
    let mut check = |field, ours: &dyn std::fmt::Debug, theirs: &dyn std::fmt::Debug| {
        let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
        if ours != theirs {
            note(field, ours, theirs);
        }
    };
    check("type", &ours.kind, &theirs.kind);
    check("mode", &Octal(ours.mode), &Octal(theirs.mode));
    check("uid", &ours.uid, &theirs.uid);
    check("gid", &ours.gid, &theirs.gid);
    check("mtime", &ours.mtime, &theirs.mtime);
    check("size", &ours.size, &theirs.size);
    check("target", &text(&ours.target), &text(&theirs.target));
    check("xattrs", &ours.xattrs, &theirs.xattrs);
    check("device", &ours.device, &theirs.device);
    check("content", &ours.content, &theirs.content);
    check("hard links", &text(&ours.first_name), &text(&theirs.first_name));
}

/// Escapes bytes so that different bytes give different texts.
fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

struct Octal(u32);

impl std::fmt::Debug for Octal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::Kind;
    use crate::{ours, theirs};
    use testkit::images::{Compression, Config, Image, Layer};

    fn image() -> Image {
        let layer = Layer::new()
            .dir("./", 0o755)
            .dir("etc", 0o755)
            .mtime(1_700_000_000)
            .owner(10, 20)
            .file("etc/file", 0o644, "content")
            .xattr("user.note", "value")
            .record("mtime", "1700000000.123456789")
            .hardlink("etc/link", "etc/file")
            .file("etc/other", 0o644, "content")
            .symlink("etc/symlink", "file")
            .device("null", 0o666, 1, 3)
            .fifo("pipe", 0o600);
        Image::new(Config::default()).with(layer.to_tar())
    }

    fn fields(found: Vec<Difference>) -> Vec<(String, &'static str)> {
        found.into_iter().map(|it| (it.path, it.field)).collect()
    }

    #[test]
    fn every_field_that_is_altered_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        image().write_layout(directory.path(), "latest", Compression::None).unwrap();
        let ours = ours::listing(&ours::tree(directory.path(), "latest").unwrap());
        let theirs = theirs::unpacked(directory.path(), "latest").unwrap();
        assert_eq!(differences(&ours, &theirs), []);
        assert_eq!(ours.len(), 8);
        // Changes one entry of our listing, and returns the fields that are then reported as different.
        let bite = |path: &str, alter: fn(&mut Entry)| {
            let mut altered = ours.clone();
            alter(altered.get_mut(path.as_bytes()).unwrap());
            fields(differences(&altered, &theirs))
        };
        type Alter = fn(&mut Entry);
        let alterations: [(&str, &'static str, Alter); 12] = [
            ("/etc/other", "type", |entry| entry.kind = Kind::Fifo),
            ("/etc/other", "mode", |entry| entry.mode ^= 0o4000),
            ("/etc", "mode", |entry| entry.mode ^= 0o1000),
            ("/etc/symlink", "uid", |entry| entry.uid += 1),
            ("/null", "gid", |entry| entry.gid += 1),
            ("/pipe", "mtime", |entry| entry.mtime.0 += 1),
            ("/etc/file", "mtime", |entry| entry.mtime.1 -= 1),
            ("/etc/file", "size", |entry| entry.size += 1),
            ("/etc/symlink", "target", |entry| entry.target.push(b'/')),
            ("/etc/file", "xattrs", |entry| drop(entry.xattrs.pop_first())),
            ("/null", "device", |entry| entry.device = (3, 1)),
            ("/etc/other", "content", |entry| entry.content = None),
        ];
        for (path, field, alter) in alterations {
            assert_eq!(bite(path, alter), [(path.to_owned(), field)]);
        }
        let lonely = bite("/etc/link", |entry| entry.first_name = b"/etc/link".to_vec());
        assert_eq!(lonely, [("/etc/link".to_owned(), "hard links")], "a copy is no hard link");
        let joined = bite("/etc/other", |entry| entry.first_name = b"/etc/file".to_vec());
        assert_eq!(joined, [("/etc/other".to_owned(), "hard links")], "equal is not the same");
    }

    #[test]
    fn what_only_one_has_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        image().write_layout(directory.path(), "latest", Compression::None).unwrap();
        let ours = ours::listing(&ours::tree(directory.path(), "latest").unwrap());
        for path in ["/", "/etc/link", "/pipe"] {
            let mut altered = ours.clone();
            altered.remove(path.as_bytes());
            let expected = [(path.to_owned(), "presence")];
            assert_eq!(fields(differences(&altered, &ours)), expected);
            assert_eq!(fields(differences(&ours, &altered)), expected);
        }
    }
}

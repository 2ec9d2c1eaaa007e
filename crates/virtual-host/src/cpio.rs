//! An initramfs archive
//! ([initramfs buffer format](https://docs.kernel.org/driver-api/early-userspace/buffer-format.html)).
//!
//! Inode numbers follow the order of the entries, all times are zero, and root owns all files. So equal declarations
//! give equal bytes.
//!
//! Large files with the same content and mode are hard links to one file: each box has the same kernel, for example, whose blobs then
//! take memory once, and are hashed once, because a receipt of a hashed file has its inode.

use std::collections::{BTreeMap, BTreeSet};

use box_digest::Blake3Digest;

const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;
/// The size from which equal files are linked, in bytes.
const LARGE: usize = 1 << 20;

/// An archive in the "newc" form, under construction.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    inode: u32,
    made: BTreeSet<String>,
    /// The inodes of the large files, by their mode and content.
    large: BTreeMap<(u32, Blake3Digest), u32>,
}

/// The fields of an entry that differ.
struct Entry<'a> {
    name: &'a str,
    inode: u32,
    mode: u32,
    links: u32,
    content: &'a [u8],
}

impl Archive {
    /// Adds a directory and its ancestors, if they were not added before.
    pub(crate) fn dir(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if !path.is_empty() && self.made.insert(path.to_owned()) {
            self.parents_of(path);
            self.add(path, DIRECTORY | 0o755, &[]);
        }
    }

    /// Adds a regular file. No-op if the path was added before.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.leaf(path, FILE | mode, content);
    }

    /// Adds a symbolic link. No-op if the path was added before.
    pub(crate) fn symlink(&mut self, path: &str, target: &str) {
        self.leaf(path, SYMLINK | 0o777, target.as_bytes());
    }

    /// Ends the archive and returns its bytes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.write(&Entry { name: "TRAILER!!!", inode: 0, mode: 0, links: 1, content: &[] });
        self.bytes
    }

    fn leaf(&mut self, path: &str, mode: u32, content: &[u8]) {
        let path = path.trim_matches('/');
        if self.made.insert(path.to_owned()) {
            self.parents_of(path);
            self.add(path, mode, content);
        }
    }

    fn parents_of(&mut self, path: &str) {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.dir(folder);
        }
    }

    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.inode += 1;
        let mut entry = Entry { name, inode: self.inode, mode, links: 1, content };
        if content.len() >= LARGE {
            // The kernel looks for the other names of an inode if its first entry has more than one link.
            entry.links = 2;
            let inode = self.large.entry((mode, Blake3Digest::of(content)));
            entry.inode = *inode.or_insert(self.inode);
            if entry.inode != self.inode {
                entry.content = &[];
            }
        }
        self.write(&entry);
    }

    fn write(&mut self, entry: &Entry<'_>) {
        let &Entry { name, inode, mode, links, content } = entry;
        let size = u32::try_from(content.len()).expect("a file of an initramfs is below 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("a path is below 4 GiB");
        let fields = [inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    use std::process::{Command, Stdio};

    fn sample() -> Vec<u8> {
        let mut archive = Archive::default();
        archive.file("/a/b/file", 0o755, b"odd");
        archive.symlink("/a/link", "b/file");
        archive.dir("/a/b");
        archive.file("/a/b/file", 0o644, b"too late");
        archive.finish()
    }

    /// Unpacks an archive with an independent reader.
    fn unpacked(archive: &[u8]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let mut cpio = Command::new("busybox")
            .args(["cpio", "-id"])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("busybox is missing; run: apt-get install busybox-static");
        cpio.stdin.take().unwrap().write_all(archive).unwrap();
        assert!(cpio.wait().unwrap().success());
        directory
    }

    #[test]
    fn an_independent_reader_sees_what_was_added() {
        let directory = unpacked(&sample());
        assert_eq!(std::fs::read(directory.path().join("a/link")).unwrap(), b"odd");
    }

    #[test]
    fn large_files_with_the_same_content_and_mode_are_one_file() {
        let (kernel, other) = (vec![1; LARGE], vec![2; LARGE]);
        let mut archive = Archive::default();
        let files =
            [("a/one", 0o644, &kernel), ("b/two", 0o644, &kernel), ("c/program", 0o755, &kernel)];
        for (path, mode, content) in files.into_iter().chain([("d/other", 0o644, &other)]) {
            archive.file(path, mode, content);
        }
        let bytes = archive.finish();
        assert_eq!(bytes.len() >> 20, 3);
        let directory = unpacked(&bytes);
        let inode = |path| std::fs::metadata(directory.path().join(path)).unwrap().ino();
        assert_eq!(inode("a/one"), inode("b/two"));
        for path in ["c/program", "d/other"] {
            assert_ne!(inode("a/one"), inode(path), "{path}");
        }
        for (path, content) in [("b/two", kernel), ("d/other", other)] {
            assert!(std::fs::read(directory.path().join(path)).unwrap() == content, "{path}");
        }
    }

    #[test]
    fn parents_come_first_and_each_path_once() {
        let bytes = sample();
        let names: Vec<_> = [&b"a\0"[..], b"a/b\0", b"a/b/file\0", b"a/link\0", b"TRAILER!!!\0"]
            .iter()
            .map(|name| bytes.windows(name.len()).position(|window| window == *name).unwrap())
            .collect();
        assert!(names.is_sorted());
        assert_eq!(bytes.windows(6).filter(|window| window == b"070701").count(), 5);
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(&bytes[..22], b"07070100000001000041ed");
    }
}

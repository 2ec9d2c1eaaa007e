//! A layer: its declaration, and its tar stream
//! ([OCI image layers](https://github.com/opencontainers/image-spec/blob/main/layer.md)).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use box_digest::Digest;

use super::tar_entry::{Entry, Kind};
use crate::{FileError, Result};

/// The declared entries of a layer, in the order of writing.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    entries: Vec<Entry>,
    /// The additional records of entries' extended headers, by the index of the entry.
    records: BTreeMap<usize, Vec<(String, Vec<u8>)>>,
    uid: u64,
    gid: u64,
    mtime: u64,
}

impl Layer {
    /// Starts a layer. Its entries belong to root and have the modification time 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the owner of the next entries.
    #[must_use]
    pub fn owner(mut self, uid: u64, gid: u64) -> Self {
        (self.uid, self.gid) = (uid, gid);
        self
    }

    /// Sets the modification time of the next entries, in seconds since 1970.
    #[must_use]
    pub fn mtime(mut self, seconds: u64) -> Self {
        self.mtime = seconds;
        self
    }

    /// Adds a directory with these permission bits.
    #[must_use]
    pub fn dir(self, path: &str, mode: u32) -> Self {
        self.add(&format!("{}/", path.trim_end_matches('/')), mode, Kind::Dir)
    }

    /// Adds a regular file.
    #[must_use]
    pub fn file(self, path: &str, mode: u32, content: impl Into<Vec<u8>>) -> Self {
        self.add(path, mode, Kind::File(content.into()))
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn symlink(self, path: &str, target: &str) -> Self {
        self.add(path, 0o777, Kind::Symlink(target.into()))
    }

    /// Adds a hard link to the earlier entry `target`, with its mode. The current owner should be that of `target`, because both
    /// names have one inode.
    #[must_use]
    pub fn hardlink(self, path: &str, target: &str) -> Self {
        let target = target.trim_start_matches('/');
        let mode = self.entries.iter().find(|e| e.name == target.as_bytes()).map(|e| e.mode);
        self.add(path, mode.unwrap_or(0o644), Kind::Hardlink(target.into()))
    }

    /// Adds a whiteout, which deletes the path `path` of the lower layers.
    #[must_use]
    pub fn whiteout(self, path: &str) -> Self {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.add(&format!("{folder}/.wh.{name}"), 0o644, Kind::File(Vec::new()))
    }

    /// Adds an opaque whiteout, which hides the content of the directory `path` in the lower layers.
    #[must_use]
    pub fn opaque(self, path: &str) -> Self {
        let path = path.trim_end_matches('/');
        self.add(&format!("{path}/.wh..wh..opq"), 0o644, Kind::File(Vec::new()))
    }

    /// Adds a character device.
    #[must_use]
    pub fn device(self, path: &str, mode: u32, major: u32, minor: u32) -> Self {
        self.add(path, mode, Kind::CharDevice(major, minor))
    }

    /// Adds a named pipe.
    #[must_use]
    pub fn fifo(self, path: &str, mode: u32) -> Self {
        self.add(path, mode, Kind::Fifo)
    }

    /// Adds an extended attribute to the last entry.
    #[must_use]
    pub fn xattr(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        if let Some(entry) = self.entries.last_mut() {
            entry.xattrs.push((name.to_owned(), value.into()));
        }
        self
    }

    /// Adds a record to the extended header of the last entry, such as `mtime=-1.5`, which takes precedence over the
    /// header's field.
    #[must_use]
    pub fn record(mut self, key: &str, value: impl Into<Vec<u8>>) -> Self {
        let last = self.entries.len().saturating_sub(1);
        self.records.entry(last).or_default().push((key.to_owned(), value.into()));
        self
    }

    /// Adds an entry unchanged and without any checks.
    #[must_use]
    pub fn entry(mut self, entry: Entry) -> Self {
        self.entries.push(entry);
        self
    }

    /// Returns whether there is an entry with this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name.as_bytes())
    }

    /// Returns the layer's tar stream.
    pub fn to_tar(&self) -> LayerTar {
        let mut tar = Vec::new();
        for (number, entry) in self.entries.iter().enumerate() {
            entry.append_to(&mut tar, self.records.get(&number).map_or(&[], Vec::as_slice));
        }
        tar.resize(tar.len() + 1024, 0);
        LayerTar::from(tar)
    }

    fn add(self, path: &str, mode: u32, kind: Kind) -> Self {
        let name = path.trim_start_matches('/').into();
        let (uid, gid, mtime) = (self.uid, self.gid, self.mtime);
        self.entry(Entry { name, kind, mode, uid, gid, mtime, xattrs: Vec::new() })
    }
}

/// The tar stream of a layer. Clones share their memory, and images with clones of one layer have the same blob for it.
#[derive(Debug, Clone)]
pub struct LayerTar(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tar: Vec<u8>,
    gzip: OnceLock<Vec<u8>>,
    #[cfg(feature = "zstd")]
    zstd: OnceLock<Vec<u8>>,
}

impl From<Vec<u8>> for LayerTar {
    fn from(tar: Vec<u8>) -> Self {
        Self(Arc::new(Shared {
            tar,
            gzip: OnceLock::new(),
            #[cfg(feature = "zstd")]
            zstd: OnceLock::new(),
        }))
    }
}

impl LayerTar {
    /// Reads an existing tar file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self::from(std::fs::read(path).map_err(FileError::about("read", path))?))
    }

    /// Returns the bytes of the tar stream.
    pub fn bytes(&self) -> &[u8] {
        &self.0.tar
    }

    /// Returns the digest of the uncompressed stream.
    pub fn diff_id(&self) -> Digest {
        Digest::of(&self.0.tar)
    }

    /// Returns the stream compressed with gzip. The gzip header has no time and no file name.
    pub fn gzip(&self) -> &[u8] {
        self.0.gzip.get_or_init(|| compress(&self.0.tar))
    }

    /// Returns the stream compressed with zstd.
    #[cfg(feature = "zstd")]
    pub fn zstd(&self) -> &[u8] {
        let compress = || zstd::encode_all(self.bytes(), 3).expect("writing to memory cannot fail");
        self.0.zstd.get_or_init(compress)
    }
}

fn compress(tar: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(tar).and_then(|()| encoder.finish()).expect("writing to memory cannot fail")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Lists a layer as the crate `tar` reads it: name, type, link target, xattrs and content.
    fn listing(layer: &Layer) -> Vec<String> {
        let tar = layer.to_tar();
        let mut archive = tar::Archive::new(tar.bytes());
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            let pax = entry.pax_extensions().unwrap().into_iter().flatten();
            let keys: Vec<_> =
                pax.map(|record| record.unwrap().key().unwrap().to_owned()).collect();
            let header = entry.header();
            format!(
                "{} {:?} {:o} {}:{} {} {:?} {keys:?} {content}",
                String::from_utf8_lossy(&entry.path_bytes()),
                header.entry_type(),
                header.mode().unwrap(),
                header.uid().unwrap(),
                header.gid().unwrap(),
                header.mtime().unwrap(),
                entry.link_name_bytes().map(|name| String::from_utf8_lossy(&name).into_owned()),
            )
        });
        entries.collect()
    }

    #[test]
    fn every_kind_of_entry_is_read_back() {
        let layer = Layer::new()
            .dir("/etc/", 0o755)
            .owner(1000, 3_000_000)
            .mtime(7)
            .file("/etc/motd", 0o4644, "Hello")
            .xattr("user.a", "b")
            .record("mtime", "-1.5")
            .hardlink("/etc/motd2", "/etc/motd")
            .symlink("/etc/link", "../x")
            .whiteout("/etc/old")
            .opaque("/etc")
            .device("/null", 0o666, 1, 3)
            .fifo("/pipe", 0o600);
        assert_eq!(
            listing(&layer),
            [
                "etc/ Directory 755 0:0 0 None [] ",
                "etc/motd Regular 4644 1000:3000000 7 None [\"SCHILY.xattr.user.a\", \"mtime\"] Hello",
                "etc/motd2 Link 4644 1000:3000000 7 Some(\"etc/motd\") [] ",
                "etc/link Symlink 777 1000:3000000 7 Some(\"../x\") [] ",
                "etc/.wh.old Regular 644 1000:3000000 7 None [] ",
                "etc/.wh..wh..opq Regular 644 1000:3000000 7 None [] ",
                "null Char 666 1000:3000000 7 None [] ",
                "pipe Fifo 600 1000:3000000 7 None [] ",
            ]
        );
    }

    #[test]
    fn long_names_and_targets_survive() {
        let name = "d/".repeat(120) + "file";
        let lines = listing(&Layer::new().file(&name, 0o644, "x").symlink("link", &name));
        assert!(lines[0].starts_with(&format!("{name} Regular")), "{}", lines[0]);
        assert!(lines[1].contains(&format!("Some(\"{name}\")")), "{}", lines[1]);
    }

    #[test]
    fn a_hostile_name_is_written_as_it_is() {
        let layer = Layer::new().entry(Entry {
            name: b"/../../etc/passwd".to_vec(),
            kind: Kind::File(Vec::new()),
            mode: 0,
            uid: 0,
            gid: 0,
            mtime: 0,
            xattrs: Vec::new(),
        });
        assert!(layer.to_tar().bytes().starts_with(b"/../../etc/passwd\0"));
    }

    #[test]
    fn compression_is_lossless_and_leaves_no_time() {
        let tar = Layer::new().file("a", 0o644, "a".repeat(1000)).to_tar();
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(tar.gzip()).read_to_end(&mut back).unwrap();
        assert_eq!(back, tar.bytes());
        assert_eq!(tar.gzip()[4..8], [0; 4]);
        #[cfg(feature = "zstd")]
        assert_eq!(zstd::decode_all(tar.zstd()).unwrap(), tar.bytes());
        assert_eq!(tar.diff_id(), Digest::of(&back));
    }
}

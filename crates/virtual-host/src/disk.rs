//! The virtual host's disks: files that QEMU emulates as non-volatile memory (NVDIMM).
//!
//! Memory answers at once. A disk that QEMU reads in the background would answer when the real host is ready, so that two
//! runs would not take the same virtual time.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use box_digest::Blake3Digest;
use erofs_writer::{ContentSource, ImageBuilder, Meta, Node, NodeId};

use crate::initramfs::sorted_children;
use crate::plan::CONTENT;
use crate::scratch::Scratch;
use crate::{HostError, Result};

/// The size of a memory device must be a multiple of this number of bytes.
const GRANULE: u64 = 2 << 20;
/// The default size of the disk for the result, in MiB. The file is sparse.
pub(crate) const RESULT_MIB: u32 = 512;

/// A file or a directory to pack.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A file, or a directory with all its content.
    Whole(PathBuf),
    /// Files: the path of each file on the disk, and its path on the real host.
    Files(Vec<(PathBuf, PathBuf)>),
}

/// A file that can be attached as a disk.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) content: Scratch,
    pub(crate) size: u64,
    pub(crate) writable: bool,
}

/// Makes the empty disk for the result, of `mib` MiB.
pub(crate) fn for_result(mib: u32) -> Result<Disk> {
    let (content, size) = (Scratch::new()?, u64::from(mib) << 20);
    content.file().set_len(size).map_err(HostError::file("resize", &content.path()))?;
    Ok(Disk { content, size, writable: true })
}

/// Packs a file, a directory or several files as a read-only disk with EROFS.
pub(crate) fn pack(from: &Source) -> Result<Disk> {
    let failed = |error| HostError::Pack { path: from.path().to_owned(), source: error };
    let mut image = ImageBuilder::new(meta(0o755)).map_err(failed)?;
    let mut files = Files::default();
    match from {
        Source::Whole(path) => files.add_whole(&mut image, path)?,
        Source::Files(named) => files.add_named(&mut image, named)?,
    }
    let content = Scratch::new()?;
    let mut out = BufWriter::new(content.file());
    image.write(&mut out, &mut files).map_err(failed)?;
    out.flush().map_err(HostError::file("write", &content.path()))?;
    drop(out);
    let size = pad(content.file()).map_err(HostError::file("resize", &content.path()))?;
    Ok(Disk { content, size, writable: false })
}

fn pad(file: &File) -> io::Result<u64> {
    let size = file.metadata()?.len().next_multiple_of(GRANULE);
    file.set_len(size).map(|()| size)
}

fn meta(mode: u16) -> Meta {
    Meta { mode, ..Meta::default() }
}

/// The packed files: the path of each on the real host, by the digest of its content.
#[derive(Default)]
struct Files {
    paths: HashMap<Blake3Digest, PathBuf>,
}

impl Source {
    /// Returns the path for messages: the packed file or directory, or the first of several files.
    fn path(&self) -> &Path {
        match self {
            Self::Whole(path) => path,
            Self::Files(named) => named.first().map_or(Path::new(""), |(_, now)| now),
        }
    }
}

impl Files {
    fn add_whole(&mut self, image: &mut ImageBuilder, path: &Path) -> Result<()> {
        let (root, source) =
            (image.root(), fs::canonicalize(path).map_err(HostError::file("find", path))?);
        if source.is_dir() {
            return self.add_children(image, root, &source);
        }
        self.add(image, root, &source, CONTENT.as_bytes())
    }

    /// Adds each file under its name, and the directories of the name: for `a/b/c`, the directories `a` and `a/b`.
    fn add_named(&mut self, image: &mut ImageBuilder, named: &[(PathBuf, PathBuf)]) -> Result<()> {
        let mut directories = HashMap::from([(PathBuf::new(), image.root())]);
        for (name, now) in named {
            let failed = |error| HostError::Pack { path: now.clone(), source: error };
            let mut above: Vec<_> = name.ancestors().skip(1).collect();
            above.reverse();
            for directory in above {
                if directories.contains_key(directory) {
                    continue;
                }
                let to = directories[directory.parent().unwrap_or(Path::new(""))];
                let added = image.add(meta(0o755), Node::Directory).map_err(failed)?;
                let last = directory.file_name().unwrap_or_default();
                image.link(to, last.as_bytes(), added).map_err(failed)?;
                directories.insert(directory.to_owned(), added);
            }
            let to = directories[name.parent().unwrap_or(Path::new(""))];
            self.add(image, to, now, name.file_name().unwrap_or_default().as_bytes())?;
        }
        Ok(())
    }

    fn add_children(&mut self, image: &mut ImageBuilder, to: NodeId, source: &Path) -> Result<()> {
        let children = sorted_children(source)?;
        for child in children {
            let name = child.file_name().unwrap_or_default().to_owned();
            self.add(image, to, &child, name.as_bytes())?;
        }
        Ok(())
    }

    /// Adds the file, directory or symbolic link `source` to the directory `to`, under `name`.
    fn add(
        &mut self,
        image: &mut ImageBuilder,
        to: NodeId,
        source: &Path,
        name: &[u8],
    ) -> Result<()> {
        let metadata = fs::symlink_metadata(source).map_err(HostError::file("read", source))?;
        let mode = u16::try_from(metadata.permissions().mode() & 0o7777).unwrap_or_default();
        let node = self.node(source, &metadata)?;
        let is_directory = node == Node::Directory;
        let failed = |error| HostError::Pack { path: source.to_owned(), source: error };
        let added = image.add(meta(mode), node).map_err(failed)?;
        image.link(to, name, added).map_err(failed)?;
        if is_directory { self.add_children(image, added, source) } else { Ok(()) }
    }

    fn node(&mut self, source: &Path, metadata: &fs::Metadata) -> Result<Node> {
        if metadata.is_dir() {
            return Ok(Node::Directory);
        }
        if metadata.is_symlink() {
            let target = fs::read_link(source).map_err(HostError::file("read", source))?;
            return Ok(Node::Symlink { target: target.into_os_string().as_bytes().to_vec() });
        }
        if !metadata.is_file() {
            let what = source.display().to_string();
            return Err(HostError::malformed(what, "it is neither a file, a directory nor a link"));
        }
        let file = File::open(source).map_err(HostError::file("open", source))?;
        let (content, size) =
            Blake3Digest::of_reader(file).map_err(HostError::file("read", source))?;
        self.paths.insert(content, source.to_owned());
        Ok(Node::File { size, content })
    }
}

impl ContentSource for Files {
    fn copy(&mut self, content: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
        let path = self.paths.get(content).ok_or(io::ErrorKind::NotFound)?;
        io::copy(&mut File::open(path)?, out).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_named_files_only_these_are_packed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        fs::create_dir(at("blobs")).unwrap();
        fs::write(at("blobs/wanted"), "content").unwrap();
        fs::write(at("blobs/stray"), vec![1; 8 << 20]).unwrap();
        let size = |source| pack(&source).unwrap().size;
        assert!(size(Source::Whole(directory.path().to_owned())) > 8 << 20);
        let files = ["a/b/one", "a/two", "three"].map(|it| (it.into(), at("blobs/wanted")));
        assert_eq!(size(Source::Files(files.to_vec())), GRANULE);
    }
}

//! The emulated machine's disks: files that it sees as non-volatile memory (NVDIMM).
//!
//! A disk that is memory answers at once. A disk that the emulator reads in the background would
//! answer when the real machine happens to be ready, and no two runs would take the same time.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use box_digest::Blake3Digest;
use erofs_writer::{Contents, ImageBuilder, Meta, Node, NodeId};

use crate::initramfs::sorted_children;
use crate::plan::CONTENT;
use crate::scratch::Scratch;
use crate::{HostError, Result};

/// Memory devices have sizes that are a multiple of this many bytes.
const GRANULE: u64 = 2 << 20;
/// The usual room for a result, in MiB. The file is sparse.
pub(crate) const RESULT_MIB: u32 = 512;

/// A file or a directory to pack.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// The only files of the directory that are packed, by their paths in it; `None` for all.
    pub(crate) only: Option<Vec<PathBuf>>,
}

/// A file that is ready to be one of the machine's disks.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) content: Scratch,
    pub(crate) size: u64,
    pub(crate) writable: bool,
}

/// Makes the empty disk on which the result is left, with room for so many MiB.
pub(crate) fn for_result(mib: u32) -> Result<Disk> {
    let (content, size) = (Scratch::new()?, u64::from(mib) << 20);
    content.file().set_len(size).map_err(HostError::file("resize", &content.path()))?;
    Ok(Disk { content, size, writable: true })
}

/// Packs a file or a directory as a read-only EROFS image.
pub(crate) fn pack(from: &Source) -> Result<Disk> {
    let source = fs::canonicalize(&from.path).map_err(HostError::file("find", &from.path))?;
    let failed = |error| HostError::Pack { path: source.clone(), source: error };
    let mut image = ImageBuilder::new(meta(0o755)).map_err(failed)?;
    let root = image.root();
    let only = from.only.as_ref().map(|only| only.iter().map(|it| source.join(it)).collect());
    let mut files = Files { only, ..Files::default() };
    if source.is_dir() {
        files.add_children(&mut image, root, &source)?;
    } else {
        files.add(&mut image, root, &source, CONTENT.as_bytes())?;
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

/// The files of an image, by their content.
#[derive(Default)]
struct Files {
    paths: HashMap<Blake3Digest, PathBuf>,
    /// As in [`Source`], but with the source's own path before each.
    only: Option<Vec<PathBuf>>,
}

impl Files {
    /// Returns whether a file, or a file below a directory, is to be packed.
    fn is_wanted(&self, path: &Path) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|it| it.starts_with(path)))
    }

    fn add_children(&mut self, image: &mut ImageBuilder, to: NodeId, source: &Path) -> Result<()> {
        let mut children = sorted_children(source)?;
        children.retain(|child| self.is_wanted(child));
        for child in children {
            let name = child.file_name().unwrap_or_default().to_owned();
            self.add(image, to, &child, name.as_bytes())?;
        }
        Ok(())
    }

    /// Adds a file, a directory or a symbolic link under a name to a directory.
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

impl Contents for Files {
    fn copy(&mut self, content: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
        let path = self.paths.get(content).ok_or(io::ErrorKind::NotFound)?;
        io::copy(&mut File::open(path)?, out).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_directory_only_the_wanted_files_are_packed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        fs::create_dir(path.join("blobs")).unwrap();
        fs::write(path.join("blobs/wanted"), "content").unwrap();
        fs::write(path.join("blobs/stray"), vec![1; 8 << 20]).unwrap();
        let size = |only| pack(&Source { path: path.clone(), only }).unwrap().size;
        assert!(size(None) > 8 << 20);
        assert_eq!(size(Some(vec![PathBuf::from("blobs/wanted")])), GRANULE);
    }
}

//! An agent that is one file: a program of the checkout, or one that was downloaded.
//!
//! It becomes a tree with the file as `/agent/bin/agent` (A3S Box, layout of `/agent`), executable
//! for all, owned by root, of the year 1970. The file's bytes go to the store unread but for their
//! hashes, and the blob is the tree's pack: memory does not grow with the file.

mod error;
mod program;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use box_cache::Store;
use box_digest::{Blake3, Digest, Hasher};
use box_tree::{Content, Inode, Leaf, Meta, Origin, Tree};
use host_fs::FileError;
use host_fs::read::{Links, open_regular};

use crate::checkout::real;
use crate::pack::ContentMap;
pub use error::{BinaryError, ProgramError};
pub use program::{Machine, Program, inspect};

/// Where the file is in the agent's root.
pub const AGENT_PATH: &str = "/agent/bin/agent";
/// The most bytes that the file may have.
const BINARY_MAX: u64 = 2 << 30;

/// An agent's binary. Its bytes are in the store.
#[derive(Debug)]
pub struct Binary {
    /// A root with the file in it, and nothing else.
    pub tree: Tree,
    /// The file's content as the tree names it.
    pub content: Content,
    /// The file's sha256: the name of its blob.
    pub sha256: Digest,
    /// How it starts, and what must be in the agent's root for that.
    pub program: Program,
}

impl Binary {
    /// Adds the place of the file's bytes.
    pub fn add_to(&self, contents: &mut ContentMap) {
        contents.add(self.sha256, &[(self.content, 0)]);
    }

    /// Puts the file into a root that has more, in the place of what is there.
    pub(crate) fn put_into(&self, root: &mut Tree) {
        place(root, self.content);
    }
}

/// Reads a binary of a checkout and copies it into the store. `path` is relative to the checkout.
///
/// # Errors
/// [`BinaryError`]. A file that turns out to be no program stays in the store, as a blob that
/// nothing names.
pub fn from_checkout(
    checkout: &Path,
    path: &Path,
    machine: Machine,
    store: &Store,
) -> Result<Binary, BinaryError> {
    let file = open(checkout, path)?;
    let name = path.display().to_string();
    if file.metadata().map_err(FileError::of("read", path))?.len() > BINARY_MAX {
        return Err(BinaryError::TooLarge { name });
    }
    let mut writer = store.writer()?;
    // One byte more than allowed shows that the file grew.
    let copied = copy(&mut file.take(BINARY_MAX + 1), &mut writer);
    let content = copied.map_err(|failure| match failure {
        CopyError::Read(error) => FileError::of("read", path)(error),
        CopyError::Write(error) => FileError::of("store", path)(error),
    })?;
    if content.size > BINARY_MAX {
        return Err(BinaryError::TooLarge { name });
    }
    let (blob, _) = writer.commit()?;
    binary(blob, content, &name, machine, store)
}

/// Takes a binary from the store. `name` is what an error calls it, such as its URL.
///
/// # Errors
/// [`BinaryError`].
pub fn from_store(
    blob: &Digest,
    name: &str,
    machine: Machine,
    store: &Store,
) -> Result<Binary, BinaryError> {
    let mut hashed = Hashed { file: store.open_blob(blob)?, hasher: Hasher::default() };
    let (found, _) =
        Digest::of_reader(&mut hashed).map_err(FileError::of("read the stored copy of", name))?;
    if found != *blob {
        // Says what is wrong with the blob, and where it lies.
        store.verify(blob)?;
    }
    let content = content(&hashed.hasher);
    if content.size > BINARY_MAX {
        return Err(BinaryError::TooLarge { name: name.to_owned() });
    }
    binary(*blob, content, name, machine, store)
}

fn binary(
    blob: Digest,
    content: Content,
    name: &str,
    machine: Machine,
    store: &Store,
) -> Result<Binary, BinaryError> {
    let program = inspect(&store.open_blob(&blob)?, machine)
        .map_err(|source| BinaryError::Program { name: name.to_owned(), source })?;
    Ok(Binary { tree: tree(content), content, sha256: blob, program })
}

/// Makes the tree with the file at [`AGENT_PATH`].
fn tree(content: Content) -> Tree {
    let mut tree = Tree::default();
    place(&mut tree, content);
    tree
}

fn place(tree: &mut Tree, content: Content) {
    let agent = tree.ensure_directory(Tree::ROOT, b"agent");
    let bin = tree.ensure_directory(agent, b"bin");
    let file = Inode::leaf(Meta::root_owned(0o755), Leaf::File(content)).from(Origin::Program);
    let file = tree.add(file);
    tree.link(bin, b"agent", file);
}

/// Opens a regular file of a checkout.
///
/// # Errors
/// [`BinaryError`] where it is none, or does not lie in the checkout.
pub fn open(checkout: &Path, path: &Path) -> Result<File, BinaryError> {
    if path.is_absolute() {
        return Err(BinaryError::Absolute(path.to_owned()));
    }
    let file = real(&checkout.join(path)).map_err(FileError::of("read", path))?;
    if !file.starts_with(real(checkout).map_err(FileError::of("read", path))?) {
        return Err(BinaryError::Outside(path.to_owned()));
    }
    // The path has no links any more; one that is there now was put there meanwhile.
    Ok(open_regular(&file, Links::Refuse).map_err(FileError::of("read", path))?)
}

/// Which side of a copy failed.
enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

/// Copies and hashes what a reader gives.
fn copy(from: &mut impl Read, to: &mut impl Write) -> Result<Content, CopyError> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                hasher.update(&buffer[..length]);
                to.write_all(&buffer[..length]).map_err(CopyError::Write)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(CopyError::Read(error)),
        }
    }
    Ok(content(&hasher))
}

fn content(hasher: &Hasher<Blake3>) -> Content {
    Content { hash: hasher.digest(), size: hasher.count() }
}

/// A file that is hashed while it is read.
struct Hashed {
    file: File,
    hasher: Hasher<Blake3>,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        self.hasher.update(&buffer[..length]);
        Ok(length)
    }
}

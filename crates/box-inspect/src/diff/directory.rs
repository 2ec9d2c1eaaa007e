//! The tree of a directory of this host. Symbolic links are never followed.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use box_digest::Blake3Digest;
use box_tree::listing::{Listing, Origins};
use box_tree::{Content, Inode, InodeId, Kind, Leaf, Meta, Tree};
use host_fs::FileError;
use host_fs::read::{Links, ReadError, open_regular};
use rayon::prelude::*;
use rustix::fs::{lgetxattr, llistxattr, llistxattr_query, major, minor};

use super::{Side, SideKind};

/// The attribute that the host's security policy adds to every file.
const OF_THE_HOST: &[u8] = b"security.selinux";
/// The limits of Linux for a list of names and for a value: `XATTR_LIST_MAX` and `XATTR_SIZE_MAX`
/// in [limits.h](https://github.com/torvalds/linux/blob/master/include/uapi/linux/limits.h).
const MAX_XATTR: usize = 64 << 10;

impl Side {
    /// Takes a directory and all entries below it.
    ///
    /// # Errors
    /// [`FileError`] for an entry that cannot be read.
    pub fn of_directory(path: &Path) -> Result<Self, FileError> {
        let mut walk = Walk::default();
        walk.run(path)?;
        let listing = Listing { tree: walk.tree, origins: Origins::default() };
        Ok(Self::new(SideKind::Directory, listing, Vec::new()))
    }
}

/// How many files are collected before they are hashed in parallel. Their paths are in memory.
const BATCH: usize = 4096;

#[derive(Default)]
struct Walk {
    tree: Tree,
    /// The inodes with several names, by device and inode number.
    linked: HashMap<(u64, u64), InodeId>,
    /// The regular files that are not hashed yet.
    files: Vec<(InodeId, PathBuf)>,
}

impl Walk {
    fn run(&mut self, path: &Path) -> Result<(), FileError> {
        let of_root = fs::metadata(path).map_err(failed(path))?;
        self.tree.inode_mut(Tree::ROOT).meta = meta(path, &of_root)?;
        // Share the path of a directory between its entries, to save memory.
        let mut pending: Vec<(Rc<Path>, _, _)> =
            vec![(Rc::from(path), OsString::new(), Tree::ROOT)];
        while let Some((above, name, id)) = pending.pop() {
            let directory = if id == Tree::ROOT { above } else { Rc::from(above.join(name)) };
            for entry in fs::read_dir(&directory).map_err(failed(&directory))? {
                let name = entry.map_err(failed(&directory))?.file_name();
                let child = self.add(&directory.join(&name))?;
                self.tree.link(id, name.as_bytes(), child);
                if self.tree.inode(child).names().is_some() {
                    pending.push((Rc::clone(&directory), name, child));
                }
            }
        }
        self.hash()
    }

    /// Adds the entry at a path. If it is another name of an inode that was added before, returns that inode.
    fn add(&mut self, path: &Path) -> Result<InodeId, FileError> {
        let found = fs::symlink_metadata(path).map_err(failed(path))?;
        let number = (found.dev(), found.ino());
        if let Some(id) = self.linked.get(&number) {
            return Ok(*id);
        }
        let kind = kind(path, &found)?;
        let inode = Inode { kind, ..Inode::directory(meta(path, &found)?) };
        let id = self.tree.add(inode);
        if found.nlink() > 1 && !found.is_dir() {
            self.linked.insert(number, id);
        }
        if found.is_file() {
            self.files.push((id, path.to_owned()));
        }
        if self.files.len() >= BATCH {
            self.hash()?;
        }
        Ok(id)
    }

    /// Hashes the collected files.
    fn hash(&mut self) -> Result<(), FileError> {
        let hash = |(id, path): &(InodeId, PathBuf)| Ok((*id, content(path)?));
        let hashed: Vec<Result<_, FileError>> = self.files.par_iter().map(hash).collect();
        self.files.clear();
        for hashed in hashed {
            let (id, content) = hashed?;
            self.tree.inode_mut(id).kind = Kind::Leaf(Leaf::File(content));
        }
        Ok(())
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    FileError::of("read", path)
}

fn kind(path: &Path, found: &Metadata) -> Result<Kind, FileError> {
    let (kind, device) = (found.file_type(), found.rdev());
    Ok(Kind::Leaf(if kind.is_dir() {
        return Ok(Kind::Directory(BTreeMap::new()));
    } else if kind.is_file() {
        // A placeholder, which `Walk::hash` replaces.
        Leaf::File(Content { hash: Blake3Digest::from_bytes([0; 32]), size: 0 })
    } else if kind.is_symlink() {
        Leaf::Symlink(fs::read_link(path).map_err(failed(path))?.into_os_string().into_vec())
    } else if kind.is_char_device() {
        Leaf::CharDevice(major(device), minor(device))
    } else if kind.is_block_device() {
        Leaf::BlockDevice(major(device), minor(device))
    } else if kind.is_fifo() {
        Leaf::Fifo
    } else {
        let reason = "it is a socket, which neither a box nor an image can have";
        return Err(failed(path)(io::Error::other(reason)));
    }))
}

fn meta(path: &Path, found: &Metadata) -> Result<Meta, FileError> {
    Ok(Meta {
        mode: u16::try_from(found.mode() & 0o7777).unwrap_or_default(),
        uid: found.uid(),
        gid: found.gid(),
        mtime: found.mtime(),
        mtime_nsec: u32::try_from(found.mtime_nsec()).unwrap_or_default(),
        xattrs: xattrs(path).map_err(|error| failed(path)(error.into()))?,
    })
}

/// Reads the extended attributes, without following a symbolic link.
fn xattrs(path: &Path) -> rustix::io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut found = BTreeMap::new();
    match llistxattr_query(path) {
        // The file system has no extended attributes.
        Ok(0) | Err(rustix::io::Errno::NOTSUP) => return Ok(found),
        length => length?,
    };
    let mut names = vec![0; MAX_XATTR];
    let length = llistxattr(path, &mut names[..])?;
    let names = names[..length].split(|byte| *byte == 0);
    for name in names.filter(|name| !name.is_empty() && *name != OF_THE_HOST) {
        let mut value = vec![0; MAX_XATTR];
        let length = lgetxattr(path, name, &mut value[..])?;
        found.insert(name.to_vec(), value[..length].to_vec());
    }
    Ok(found)
}

/// Hashes a file. Fails if the path is no longer a regular file.
fn content(path: &Path) -> Result<Content, FileError> {
    let file = open_regular(path, Links::Refuse).map_err(|error| match error {
        ReadError::NotRegular => failed(path)(io::Error::other("it changes while it is read")),
        error => failed(path)(error.into()),
    })?;
    Content::of_reader(file).map_err(failed(path))
}

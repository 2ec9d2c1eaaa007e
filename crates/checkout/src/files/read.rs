//! Reads files into a tree.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use box_tree::{Content, Inode, InodeId, Leaf, Meta, Tree};
use host_fs::FileError;
use host_fs::checkout::{Directory, Entry, is_repository};
use host_fs::read::{ReadError, read_open};

use super::{Files, FilesError, MAX_BYTES};
use crate::files::together::{CONTENT, COPIES, DIRECTORY, ENTRY, MemoryBudget};

/// Reads a file or a directory into a tree.
pub(crate) struct Reader<'r> {
    pub(crate) files: Files,
    /// The path that the caller asked for, for error messages.
    root: &'r Path,
    /// The number of bytes read.
    bytes: u64,
    together: &'r mut MemoryBudget,
}

impl<'r> Reader<'r> {
    pub(crate) fn new(root: &'r Path, together: &'r mut MemoryBudget) -> Self {
        let files = Files { tree: Tree::default(), data: BTreeMap::new() };
        Self { files, root, bytes: 0, together }
    }

    /// Charges memory to the limit for all files together.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), FilesError> {
        self.together.take(self.root, bytes)
    }

    /// Charges memory for an entry. `text` is the length of its name or link target in bytes.
    pub(crate) fn take_entry(&mut self, text: usize) -> Result<(), FilesError> {
        self.take(ENTRY + COPIES * text)
    }

    /// Reads all entries of an open directory into the directory `into` of the tree.
    pub(crate) fn directory(
        &mut self,
        path: &Path,
        open: &Directory<'_>,
        into: InodeId,
    ) -> Result<(), FilesError> {
        for name in self.names(path, open)? {
            let path = path.join(&name);
            let entry = open.entry(&name).map_err(FileError::of("read", &path))?;
            let inode = self.entry(&path, entry)?;
            if self.files.tree.inode(inode).names().is_none_or(|names| !names.is_empty()) {
                self.files.tree.link(into, name.as_bytes(), inode);
            }
        }
        Ok(())
    }

    /// Returns the sorted names of a directory, except repositories such as `.git`. Charges memory for an entry of each
    /// name.
    fn names(&mut self, path: &Path, open: &Directory<'_>) -> Result<Vec<OsString>, FilesError> {
        let mut names = Vec::new();
        for name in open.names().map_err(FileError::of("read", path))? {
            let name = name.map_err(FileError::of("read", path))?;
            if !is_repository(&name) {
                self.take_entry(name.len())?;
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn entry(&mut self, path: &Path, entry: Entry<'_>) -> Result<InodeId, FilesError> {
        match entry {
            Entry::Directory(open) => {
                self.take(DIRECTORY)?;
                let inode = self.files.tree.add(Inode::directory(Meta::root_owned(0o755)));
                self.directory(path, &open, inode)?;
                Ok(inode)
            }
            Entry::Link(target) => {
                self.take(COPIES * target.len())?;
                let link = Leaf::Symlink(target.into_vec());
                Ok(self.files.tree.add(Inode::leaf(Meta::root_owned(0o777), link)))
            }
            Entry::File(file) => self.file(path, &file),
            Entry::Special => Err(FilesError::Special(path.to_owned())),
        }
    }

    /// Reads an open file.
    pub(crate) fn file(&mut self, path: &Path, file: &File) -> Result<InodeId, FilesError> {
        let failed = |error| FileError::of("read", path)(error);
        let own = MAX_BYTES - self.bytes;
        let data = match read_open(file, own.min(self.together.left())) {
            Ok(data) => data,
            Err(ReadError::TooLong { limit, .. }) => {
                let error =
                    if limit < own { FilesError::TooLargeTogether } else { FilesError::TooLarge };
                return Err(error(self.root.to_owned()));
            }
            Err(error) => return Err(failed(error.into()).into()),
        };
        let is_executable = file.metadata().map_err(failed)?.permissions().mode() & 0o100 != 0;
        let mode = if is_executable { 0o755 } else { 0o644 };
        self.bytes += data.len() as u64;
        let content = Content::of(&data);
        if !data.is_empty() && !self.files.data.contains_key(&content) {
            self.take(CONTENT + data.len())?;
        }
        self.files.data.insert(content, data);
        Ok(self.files.tree.add(Inode::leaf(Meta::root_owned(mode), Leaf::File(content))))
    }
}

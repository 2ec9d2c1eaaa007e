//! Reads files and directories of a checkout into a tree.

mod read;
mod together;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use box_tree::{Content, InodeId, Tree};
use host_fs::checkout::{Bounds, Directory};
use host_fs::{FileError, checkout};

use read::Reader;
use together::DIRECTORY;
pub use together::{MAX_TOGETHER, MemoryBudget};

/// The maximum size of a file, or of all files of one directory together, in bytes. They are read into memory.
const MAX_BYTES: u64 = 64 << 20;

/// Files of a checkout, read into memory.
#[derive(Debug)]
pub struct Files {
    /// The tree. All entries belong to root and have the time of the Unix epoch.
    pub tree: Tree,
    /// The files' bytes by content digest.
    pub data: BTreeMap<Content, Vec<u8>>,
}

/// A file or directory of a checkout, read into memory.
#[derive(Debug)]
pub struct Source {
    /// The file, or the contents of the directory.
    pub files: Files,
    /// The root of the tree, if the source is a directory. Otherwise the file, which is the only entry of the tree.
    pub named: InodeId,
}

/// Why files of a checkout cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum FilesError {
    /// The path leads out of the checkout through a symbolic link.
    #[error("{} leads out of the checkout", .0.display())]
    Outside(PathBuf),
    /// The path is not a directory.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The directory contains no file, and version control would not keep it.
    #[error("{} has no file in it", .0.display())]
    Empty(PathBuf),
    /// The directory contains a device, a pipe or a socket.
    #[error("{} is neither a file nor a directory nor a link", .0.display())]
    Special(PathBuf),
    /// The files are too large.
    #[error("{} has more than {} MiB", .0.display(), MAX_BYTES >> 20)]
    TooLarge(PathBuf),
    /// The files of a box together take too much memory. The path is the first one that exceeds the limit.
    #[error(
        "with {}, all files and skills together take more than {} MiB of memory",
        .0.display(),
        MAX_TOGETHER >> 20
    )]
    TooLargeTogether(PathBuf),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Files {
    /// Returns the total size of the distinct file contents, in bytes.
    pub fn size(&self) -> u64 {
        self.data.values().map(|data| data.len() as u64).sum()
    }
}

/// Reads all entries of a directory of a checkout.
///
/// # Errors
/// Returns [`FilesError`] if an entry is unreadable, unsupported or too large.
pub fn directory(
    checkout: &Bounds,
    path: &Path,
    together: &mut MemoryBudget,
) -> Result<Files, FilesError> {
    let open = open_directory(checkout, path)?;
    let mut reader = Reader::new(path, together);
    reader.take_entry(0)?;
    reader.take(DIRECTORY)?;
    reader.directory(path, &open, Tree::ROOT)?;
    Ok(reader.files)
}

/// Reads a file or a directory of a checkout. A directory must contain a file.
///
/// # Errors
/// Returns [`FilesError`] if an entry is unreadable, unsupported or too large.
pub fn any(
    checkout: &Bounds,
    path: &Path,
    together: &mut MemoryBudget,
) -> Result<Source, FilesError> {
    if path.is_dir() {
        let files = directory(checkout, path, together)?;
        let is_empty = files.tree.inode(Tree::ROOT).names().is_none_or(BTreeMap::is_empty);
        let source = Source { files, named: Tree::ROOT };
        return if is_empty { Err(FilesError::Empty(path.to_owned())) } else { Ok(source) };
    }
    let file = checkout::open(checkout, path).map_err(FileError::of("read", path))?;
    let mut reader = Reader::new(path, together);
    reader.take_entry(0)?;
    let named = reader.file(path, &file)?;
    let tree = &mut reader.files.tree;
    tree.link(Tree::ROOT, b"file", named);
    // A directory is never read with this mode. So the tree's digest differs from the digest of a directory with one
    // file named `file`.
    tree.inode_mut(Tree::ROOT).meta.mode = 0;
    Ok(Source { files: reader.files, named })
}

/// Opens a directory of the checkout. Symbolic links in its path are followed, but must not lead out of the checkout.
///
/// # Errors
/// Returns [`FilesError`] if the path is no directory or leads out of the checkout.
pub fn open_directory<'b>(checkout: &'b Bounds, path: &Path) -> Result<Directory<'b>, FilesError> {
    if !path.is_dir() {
        return Err(FilesError::NotADirectory(path.to_owned()));
    }
    let open = checkout::open_directory(checkout, path).map_err(FileError::of("read", path))?;
    open.ok_or_else(|| FilesError::Outside(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Returns the mode and the size of the file or directory at a path.
    fn named(checkout: &Path, path: &str) -> Result<(u16, u64), FilesError> {
        let mut together = MemoryBudget::default();
        let Source { files, named } = any(&checkout.into(), &checkout.join(path), &mut together)?;
        Ok((files.tree.inode(named).meta.mode, files.size()))
    }

    #[test]
    fn a_file_or_a_directory_is_read() {
        let checkout = tempfile::tempdir().unwrap();
        let at = |path: &str| checkout.path().join(path);
        fs::create_dir_all(at("conf/none")).unwrap();
        fs::write(at("conf/a"), "a").unwrap();
        fs::write(at("conf/b"), "bb").unwrap();
        fs::set_permissions(at("conf/b"), fs::Permissions::from_mode(0o700)).unwrap();
        symlink("conf/b", at("link")).unwrap();
        for (path, expected) in
            [("conf", (0o755, 3)), ("conf/a", (0o644, 1)), ("conf/b", (0o755, 2))]
        {
            assert_eq!(named(checkout.path(), path).unwrap(), expected, "{path}");
        }
        assert_eq!(named(checkout.path(), "link").unwrap(), (0o755, 2), "what the link leads to");
        fs::create_dir(at("alone")).unwrap();
        fs::write(at("alone/file"), "a").unwrap();
        let bounds = Bounds::from(checkout.path());
        let read = |path: &str| any(&bounds, &at(path), &mut MemoryBudget::default()).unwrap();
        let digest = |path: &str| read(path).files.tree.digest();
        assert_ne!(digest("conf/a"), digest("alone"), "a file, and a directory with that file");
        assert_eq!(digest("conf/a"), digest("alone/file"));
        let names = read("conf").files.tree.inode(Tree::ROOT).names().unwrap().len();
        assert_eq!(names, 2, "without `none`");
    }

    #[test]
    fn files_have_a_bound_together() {
        let checkout = tempfile::tempdir().unwrap();
        let path = checkout.path().join("one");
        fs::File::create(&path).unwrap().set_len(MAX_BYTES).unwrap();
        let mut together = MemoryBudget::default();
        let mut read = || any(&checkout.path().into(), &path, &mut together);
        let fitting = MAX_TOGETHER / MAX_BYTES - 1;
        (0..fitting).for_each(|_| drop(read().unwrap()));
        let error = read().unwrap_err().to_string();
        let expected = "one, all files and skills together take more than 256 MiB of memory";
        assert!(error.ends_with(expected), "{error}");
    }

    #[test]
    fn what_no_checkout_has_is_refused_by_its_name() {
        let outer = tempfile::tempdir().unwrap();
        let checkout = outer.path().join("checkout");
        fs::create_dir_all(checkout.join("empty/also")).unwrap();
        fs::create_dir(checkout.join("special")).unwrap();
        let _socket = UnixListener::bind(checkout.join("special/socket")).unwrap();
        fs::write(outer.path().join("secret"), "").unwrap();
        symlink("..", checkout.join("out")).unwrap();
        symlink("nowhere", checkout.join("dead")).unwrap();
        for (path, expected) in [
            ("empty", "empty has no file in it"),
            ("special", "special/socket is neither a file nor a directory nor a link"),
            ("special/socket", "cannot read special/socket: it is not a regular file"),
            ("out", "out leads out of the checkout"),
            (
                "out/secret",
                "cannot read out/secret: it leads out of the checkout, through a symbolic link",
            ),
            ("dead", "cannot read dead: it is a symbolic link that leads nowhere"),
        ] {
            let error = named(&checkout, path).unwrap_err();
            let source = std::error::Error::source(&error).map(|it| format!(": {it}"));
            let shown = format!("{error}{}", source.unwrap_or_default());
            assert_eq!(shown.replace(&format!("{}/", checkout.display()), ""), expected);
        }
    }

    #[test]
    fn as_many_bytes_are_read_as_a_checkout_may_have() {
        let checkout = tempfile::tempdir().unwrap();
        let at = |path: &str| checkout.path().join(path);
        fs::create_dir(at("large")).unwrap();
        for (name, size) in [("one", MAX_BYTES), ("large/a", MAX_BYTES), ("large/b", 1)] {
            fs::File::create(at(name)).unwrap().set_len(size).unwrap();
        }
        assert_eq!(named(checkout.path(), "one").unwrap().1, MAX_BYTES);
        for path in ["large", "more"] {
            fs::File::create(at("more")).unwrap().set_len(MAX_BYTES + 1).unwrap();
            let error = named(checkout.path(), path).unwrap_err().to_string();
            assert!(error.ends_with(&format!("{path} has more than 64 MiB")), "{error}");
        }
    }
}

//! Publishing: giving a finished file or directory its name, so that a crash at any moment leaves
//! the old one or the new one, and nothing that another program put there is lost.
//!
//! A draft is made beside its destination under the name `.boxbuild-` and 16 hexadecimal digits, and
//! filled there. Then:
//!
//! 1. everything in it is flushed to the disk, files before the directories that name them;
//! 2. one `renameat2` gives it its name: with `RENAME_NOREPLACE` where nothing is there, with
//!    `RENAME_EXCHANGE` where a directory is to be replaced, with neither for a file that replaces
//!    another;
//! 3. the directory that holds the name is flushed;
//! 4. what came out of an exchange is checked by the caller and removed, or exchanged back.
//!
//! **Locks.** Every draft holds a `flock(2)` as long as the process that makes it lives. A directory
//! keeps it under its final name until its publisher has finished, and whoever replaces a directory
//! locks it before. So publishers of one destination take turns for the exchange and the check, and
//! wait for nobody's filling.
//!
//! **Leftovers.** A killed process leaves a draft whose lock is free; the next publisher beside it
//! removes it. While a directory may be what was at the destination and is not checked yet, its name
//! ends in a tag of the destination and `-old`; such a leftover is removed by publishers of the same
//! destination only, and only if it passes the same check. Where the file system has no such locks
//! (NFS), nothing is ever taken for a leftover.

mod directory;
mod file;
mod flush;
mod inside;
mod parent;
mod sweep;

pub use directory::{DirectoryDraft, PublishError, Swap};
pub use file::FileDraft;
pub use flush::create_directories;
pub use inside::{new_directories, new_file};
pub use parent::{flush_names, open_directory, parent_of};
pub use sweep::sweep;

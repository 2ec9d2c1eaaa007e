//! Publishing: renaming a finished file or directory to its destination, so that a crash at any moment leaves the old
//! one or the new one, and no data of other programs is lost.
//!
//! A draft is made beside its destination, for example as `.boxbuild-0123456789abcdef`, and filled there. Then:
//!
//! 1. All its files are flushed to the disk, before the directories that contain them.
//! 2. One [renameat2](https://man7.org/linux/man-pages/man2/rename.2.html) moves it to the destination: with
//!    `RENAME_NOREPLACE` if the destination does not exist, with `RENAME_EXCHANGE` to replace a directory, and with
//!    neither to replace a file.
//! 3. The parent directory is flushed.
//! 4. After an exchange, the caller checks the old directory, which is then removed or exchanged back.
//!
//! **Locks.** A publisher locks its draft with [flock(2)](https://man7.org/linux/man-pages/man2/flock.2.html) until it has
//! finished or its process ends. The lock stays when the draft gets its final name. A publisher also locks the old
//! directory before replacing it. So publishers of one destination take turns for the exchange and the check, but fill
//! their drafts at the same time.
//!
//! **Leftovers.** A killed process leaves a draft whose lock is free. The next publisher in the same directory removes it. While
//! a draft's name may refer to an old directory that is not checked yet, the name ends in a tag of the destination
//! and `-old`. Only publishers of the same destination remove such a leftover, and only if it passes their check. If
//! the file system does not support locks (NFS), no leftover is removed.

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

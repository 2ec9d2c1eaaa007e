//! The memory limit for all files that are read for a box.

use std::path::Path;

use box_tree::memory;

use super::FilesError;

/// The maximum memory of all files of one box, including its skills, in bytes. The files stay in memory until the box
/// is written.
pub const MAX_TOGETHER: u64 = 256 << 20;

/// The memory of an entry in bytes, without its name. The entry is in the checkout's tree, which exists until the box
/// is written, and in the box's tree. For example, half a million empty files take 620 bytes each at the peak of a
/// build.
pub(crate) const ENTRY: usize = memory::LEAF + 300;
/// The additional memory of a directory in bytes: in the checkout's tree, in the box's tree and in the written file
/// system.
pub(crate) const DIRECTORY: usize = memory::DIRECTORY + 300;
/// The additional memory of a file with content in bytes, without the content itself.
pub(crate) const CONTENT: usize = memory::CONTENT + 160;
/// The number of copies of each name and link target: in the checkout's tree, in the box's tree and in the written file
/// system.
pub(crate) const COPIES: usize = 3;

/// The memory that is left for all files that are read for one box. A read is bounded by it, so that the memory never
/// exceeds the limit.
#[derive(Debug)]
pub struct MemoryBudget {
    left: u64,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::of(MAX_TOGETHER)
    }
}

impl MemoryBudget {
    /// Creates a counter with a limit of `left` bytes.
    pub(crate) const fn of(left: u64) -> Self {
        Self { left }
    }

    /// Returns the remaining bytes.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Charges memory for data that is read from a path.
    pub(crate) fn take(&mut self, path: &Path, bytes: usize) -> Result<(), FilesError> {
        let left = self.left.checked_sub(bytes as u64);
        self.left = left.ok_or_else(|| FilesError::TooLargeTogether(path.to_owned()))?;
        Ok(())
    }

    /// Charges memory again for a path that was read before. `bytes` is the amount of the earlier charge.
    ///
    /// # Errors
    /// Returns [`FilesError::TooLargeTogether`] if the limit is exceeded.
    pub fn again(&mut self, path: &Path, bytes: u64) -> Result<(), FilesError> {
        self.take(path, usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Charges memory for the parent directories of `place`, the box's path for the files of `path`. Existing
    /// directories are charged, too.
    ///
    /// # Errors
    /// Returns [`FilesError::TooLargeTogether`] if the limit is exceeded.
    pub fn place(&mut self, path: &Path, place: &str) -> Result<(), FilesError> {
        let directories = place.matches('/').count();
        let each = memory::LEAF + memory::DIRECTORY;
        self.take(path, directories.saturating_mul(each).saturating_add(place.len()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::files::any;

    const ROOM: u64 = 1 << 20;

    /// Reads a path until the limit is exceeded. Returns the number of successful reads.
    fn read_until_full(checkout: &Path, path: &str) -> u64 {
        let (mut together, path) = (MemoryBudget::of(ROOM), checkout.join(path));
        for count in 0..2 * ROOM {
            match any(&checkout.into(), &path, &mut together) {
                Ok(_) => {}
                Err(FilesError::TooLargeTogether(named)) if named == path => return count,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("there is no bound");
    }

    #[test]
    fn what_has_no_bytes_takes_memory_too() {
        let checkout = tempfile::tempdir().unwrap();
        let at = |path: &str| checkout.path().join(path);
        fs::create_dir_all(at("files")).unwrap();
        fs::create_dir_all(at("links")).unwrap();
        fs::create_dir_all(at("directories/a/b/c/d/e/f/g/h")).unwrap();
        fs::write(at("directories/a/b/c/d/e/f/g/h/file"), "").unwrap();
        for number in 0..100 {
            fs::write(at(&format!("files/{number:03}")), "").unwrap();
            symlink("t".repeat(1000), at(&format!("links/{number:03}"))).unwrap();
        }
        let times = |memory: usize| ROOM / memory as u64;
        let counts =
            ["files", "links", "directories"].map(|it| read_until_full(checkout.path(), it));
        let names = COPIES * 3;
        assert_eq!(counts[0], times(ENTRY + DIRECTORY + 100 * (ENTRY + names)));
        assert_eq!(counts[1], times(ENTRY + DIRECTORY + 100 * (ENTRY + names + COPIES * 1000)));
        let last = ENTRY + COPIES * "file".len();
        assert_eq!(counts[2], times(last + 9 * (ENTRY + DIRECTORY) + 8 * COPIES));
        assert_eq!(counts, [15, 2, 65]);
    }

    #[test]
    fn data_is_counted_before_it_is_read() {
        let checkout = tempfile::tempdir().unwrap();
        let path = checkout.path().join("large");
        fs::File::create(&path).unwrap().set_len(ROOM / 2).unwrap();
        assert_eq!(read_until_full(checkout.path(), "large"), 1, "the entry takes memory, too");
        let mut together = MemoryBudget::of(ROOM / 4);
        any(&checkout.path().into(), &path, &mut together).unwrap_err();
        // Equal files of one directory are in memory only once.
        fs::create_dir(checkout.path().join("equal")).unwrap();
        for name in ["a", "b", "c"] {
            fs::write(checkout.path().join("equal").join(name), vec![b'x'; 200 << 10]).unwrap();
        }
        let mut together = MemoryBudget::of(ROOM);
        any(&checkout.path().into(), &checkout.path().join("equal"), &mut together).unwrap();
        assert!(together.left() > ROOM - (210 << 10), "{}", together.left());
    }

    #[test]
    fn a_name_too_many_is_not_kept() {
        let checkout = tempfile::tempdir().unwrap();
        for number in 0..1000 {
            fs::write(checkout.path().join(format!("{number:03}")), "").unwrap();
        }
        let mut together = MemoryBudget::of(100 << 10);
        let read = crate::files::directory(&checkout.path().into(), checkout.path(), &mut together);
        assert!(matches!(read, Err(FilesError::TooLargeTogether(path)) if path == checkout.path()));
    }

    #[test]
    fn the_page_says_what_is_charged() {
        let page = include_str!("../../../../docs/hostile-input.md").replace('\n', " ");
        let made = memory::LEAF + memory::DIRECTORY;
        for text in [
            format!("{} MiB of memory", MAX_TOGETHER >> 20),
            format!("{ENTRY} bytes for each file, directory and link"),
            format!("{CONTENT} more for a file with content, {DIRECTORY} more for a directory"),
            format!("{made} for each directory in the path at which a `file` is put"),
        ] {
            assert!(page.contains(&text), "docs/hostile-input.md does not have: {text}");
        }
    }

    #[test]
    fn a_place_takes_memory_for_its_directories() {
        let (path, place) = (Path::new("a"), "/d".repeat(1000));
        let mut together = MemoryBudget::of(ROOM);
        assert!(together.place(path, "/usr/share/a").is_ok());
        let message = together.place(path, &place).unwrap_err().to_string();
        assert_eq!(
            message,
            "with a, all files and skills together take more than 256 MiB of memory"
        );
    }
}

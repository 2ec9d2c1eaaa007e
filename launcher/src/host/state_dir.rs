//! Directories in the state directory whose entries the user names: `boxes`, `volumes` and `snapshots`.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use host_fs::OsError;
use host_fs::read::{Links, read_file};
use host_fs::trust::{Stranger, Trusted, open_private};
use nix::fcntl::{AT_FDCWD, OFlag};
use serde::de::DeserializeOwned;

/// The greatest length of a name, in bytes.
pub(crate) const MAX_NAME: usize = 63;
/// The file of an entry with its record.
pub(crate) const RECORD: &str = "record.json";
/// The greatest size of the record of a volume or a snapshot, in bytes.
const MAX_RECORD: u64 = 64 << 10;
/// The file that is locked while entries are added or removed.
const LOCK: &str = ".lock";
/// How long [`lock`] waits for another command that has the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// The help for a name that [`is_entry_name`] refuses.
pub const ENTRY_NAME_FORM: &str =
    "use letters, digits, `_`, `.` and `-`, at most 63, the first one a letter or a digit";

/// Returns whether a box, a volume or a snapshot can have this name: see [`ENTRY_NAME_FORM`].
pub fn is_entry_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=MAX_NAME).contains(&text.len())
        && text.bytes().all(inner)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// Checks that the nearest existing ancestor of `path` belongs to this user or to root, and that no other user can
/// replace its entries. There are three reasons. If root created files in a user's directory, that user could not use
/// them. Another user's link may lead anywhere. The directories below the ancestor are used by path, so a user who can
/// rename one could make this process remove files of another directory.
///
/// # Errors
/// [`ErrorKind::PermissionDenied`], and errors of the operating system.
pub fn check_owner(path: &Path) -> Result<(), OsError> {
    let there = |it: &&Path| fs::symlink_metadata(it).is_ok();
    let Some(nearest) = path.ancestors().find(there) else { return Ok(()) };
    let denied = |reason| Err(io::Error::new(ErrorKind::PermissionDenied, reason));
    let found = match Trusted::this_user().untrusted_replacer(nearest) {
        Ok(Some(Stranger::Owner(_))) => denied("it belongs to another user"),
        Ok(Some(_)) => denied("another user can change it"),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    found.map_err(OsError::file("use", nearest))
}

/// Reads the record of a volume or a snapshot.
///
/// # Errors
/// The reason why the entry is damaged.
pub(crate) fn read_record<T: DeserializeOwned>(directory: &Path) -> Result<T, String> {
    let bytes = read_file(&directory.join(RECORD), Links::Refuse, MAX_RECORD);
    let bytes = bytes.map_err(|error| format!("cannot read its record: {error}"))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("its record is malformed: {error}"))
}

/// Creates a missing directory, with access for this user alone.
///
/// # Errors
/// Errors of the operating system, and of [`check_owner`].
pub(crate) fn make(directory: &Path) -> Result<(), OsError> {
    check_owner(directory)?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(OsError::file("make", directory))
}

/// Locks a directory until the result is dropped, so that other commands do not change its entries. Refuses the
/// directory if other users can change it or its parent.
///
/// # Errors
/// [`ErrorKind::ResourceBusy`] if another command has the lock for 5 s, and errors of the operating system.
pub(crate) fn lock(directory: &Path) -> Result<File, OsError> {
    for used in [directory.parent(), Some(directory)].into_iter().flatten() {
        let opened = open_private(AT_FDCWD, used);
        opened.map_err(OsError::file("use", used))?;
    }
    let path = directory.join(LOCK);
    let file = private_file(&path).map_err(OsError::file("make", &path))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                let held = io::Error::new(ErrorKind::ResourceBusy, "another boxlaunch holds it");
                return Err(OsError::file("lock", &path)(held));
            }
            Err(TryLockError::Error(error)) => return Err(OsError::file("lock", &path)(error)),
        }
    }
}

/// Returns the names in a directory that [`is_entry_name`] accepts. For example, it does not return `.lock`.
///
/// # Errors
/// Errors of the operating system.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>, OsError> {
    let list = || -> io::Result<Vec<String>> {
        let names = fs::read_dir(directory)?;
        let names = names.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    };
    let mut names = list().map_err(OsError::file("list", directory))?;
    names.retain(|name| is_entry_name(name));
    Ok(names)
}

/// Opens a file to read and write it. Creates a missing file with access for this user alone.
///
/// # Errors
/// Errors of the operating system.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlag::O_NOFOLLOW.bits()).open(path)
}

/// Removes `path` with the function `remove`. A path that is already absent is not an error.
///
/// # Errors
/// Errors of the operating system.
pub(crate) fn absent(
    path: &Path,
    remove: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), OsError> {
    match remove(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(OsError::file("remove", path)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    /// Fails if root creates a directory in another user's directory, or through a link to one.
    #[test]
    fn another_users_directory_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (own, other) = (dir.path().join("own"), dir.path().join("other"));
        fs::create_dir(&own).unwrap();
        make(&own.join("volumes")).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&other, dir.path().join("link")).unwrap();
        // Only root can change the owner of a directory.
        if chown(&other, Some(54_321), None).is_ok() {
            for path in [other.join("volumes"), dir.path().join("link/volumes")] {
                let error = make(&path).unwrap_err().to_string();
                assert!(error.ends_with("it belongs to another user"), "{error}");
                assert!(!path.exists());
            }
        }
    }

    /// Fails if another user could rename the state, or if the state of a user whose private group may write to `~/.local` were
    /// refused.
    #[test]
    fn a_directory_whose_entries_others_can_rename_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for (mode, is_safe) in [(0o775, true), (0o1777, true), (0o777, false)] {
            let parent = dir.path().join(format!("{mode:o}"));
            fs::create_dir(&parent).unwrap();
            fs::set_permissions(&parent, Permissions::from_mode(mode)).unwrap();
            assert_eq!(make(&parent.join("boxes")).is_ok(), is_safe, "{mode:o}");
            assert_eq!(parent.join("boxes").exists(), is_safe, "{mode:o}");
        }
    }

    #[test]
    fn the_form_of_names_is_described_as_it_is() {
        let described: String = ENTRY_NAME_FORM.chars().filter(char::is_ascii_digit).collect();
        assert_eq!(described, MAX_NAME.to_string());
        let form = ENTRY_NAME_FORM.strip_prefix("use ").unwrap();
        let page = include_str!("../../../docs/volumes.md").replace('\n', " ");
        assert!(page.contains(&format!("A name has {form}.")), "docs/volumes.md");
        assert!(is_entry_name(&"a".repeat(MAX_NAME)) && !is_entry_name(&"a".repeat(MAX_NAME + 1)));
    }
}

//! The entries of a directory, for `boxlaunch ls`.

use std::ffi::CStr;
use std::io::Write;
use std::path::Path;

use box_contract::wire::{ListedEntry, ListedKind, Listing, MAX_LISTED};
use box_copy::at_path;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, StatxFlags, openat, readlinkat, statx,
};
use rustix::io::Errno;

/// The greatest sum of the lengths of names and targets, in bytes. The component's memory has them.
const MAX_NAMES: usize = 1 << 20;

/// Writes the [`Listing`] of the directory at `path`.
///
/// # Errors
/// The reason, as text.
pub(super) fn report(path: &Path, mut answer: impl Write) -> Result<(), String> {
    let listing = list(path).map_err(|errno| at_path(path, errno.into()).to_string())?;
    let answered = serde_json::to_vec(&listing).map_err(|error| error.to_string())?;
    answer.write_all(&answered).map_err(|error| error.to_string())
}

fn list(path: &Path) -> Result<Listing, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = openat(CWD, path, flags, Mode::empty())?;
    let (mut listing, mut room) = (Listing::default(), MAX_NAMES);
    for found in Dir::read_from(&directory)? {
        let found = found?;
        let name = found.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if listing.entries.len() == MAX_LISTED {
            listing.truncated = true;
            break;
        }
        // Another program may have removed it in the meantime, or its directory permits no look at it.
        let Some(entry) = entry(&directory, name) else { continue };
        room = room.saturating_sub(entry.name.len() + entry.target.as_ref().map_or(0, String::len));
        if room == 0 {
            listing.truncated = true;
            break;
        }
        listing.entries.push(entry);
    }
    listing.entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listing)
}

/// Returns an entry. `None` if it is gone. An entry that cannot be examined has an unknown type.
fn entry(directory: impl std::os::fd::AsFd, name: &CStr) -> Option<ListedEntry> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let seen = match statx(&directory, name, flags, StatxFlags::BASIC_STATS) {
        Err(Errno::NOENT) => return None,
        seen => seen.ok(),
    };
    let mode = seen.map_or(0, |it| u32::from(it.stx_mode));
    let kind = seen.map_or(ListedKind::Unknown, |_| kind(FileType::from_raw_mode(mode)));
    let target = match kind {
        // Another program may have replaced it in the meantime.
        ListedKind::Symlink => readlinkat(&directory, name, Vec::new()).ok(),
        _ => None,
    };
    Some(ListedEntry {
        name: name.to_string_lossy().into_owned(),
        name_bytes: name.to_str().is_err().then(|| name.to_bytes().to_vec()),
        kind,
        size: seen.map_or(0, |it| it.stx_size),
        mode: mode & 0o7777,
        mtime: seen.map_or(0, |it| it.stx_mtime.tv_sec),
        target: target.map(|it| it.to_string_lossy().into_owned()),
    })
}

const fn kind(of: FileType) -> ListedKind {
    match of {
        FileType::RegularFile => ListedKind::File,
        FileType::Directory => ListedKind::Directory,
        FileType::Symlink => ListedKind::Symlink,
        FileType::CharacterDevice => ListedKind::CharDevice,
        FileType::BlockDevice => ListedKind::BlockDevice,
        FileType::Fifo => ListedKind::Fifo,
        FileType::Socket => ListedKind::Socket,
        FileType::Unknown => ListedKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn each_entry_has_its_name_its_type_and_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &[u8]| dir.path().join(OsStr::from_bytes(name));
        fs::write(at(b"b"), "123").unwrap();
        fs::set_permissions(at(b"b"), fs::Permissions::from_mode(0o4750)).unwrap();
        fs::create_dir(at(b"c")).unwrap();
        symlink("nowhere", at(b"a")).unwrap();
        fs::write(at(b"d\xFF"), "").unwrap();
        let mut answer = Vec::new();
        report(dir.path(), &mut answer).unwrap();
        let listing: Listing = serde_json::from_slice(&answer).unwrap();
        let names: Vec<_> = listing.entries.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d\u{fffd}"]);
        let [link, file, directory, odd] = listing.entries.try_into().unwrap();
        assert_eq!((link.kind, link.target.as_deref()), (ListedKind::Symlink, Some("nowhere")));
        assert_eq!((file.kind, file.size, file.mode), (ListedKind::File, 3, 0o4750));
        assert_eq!((directory.kind, directory.target), (ListedKind::Directory, None));
        assert_eq!((file.name_bytes, odd.name_bytes), (None, Some(b"d\xFF".to_vec())));
        assert!(!listing.truncated && file.mtime > 1_600_000_000);
    }

    #[test]
    fn what_is_no_directory_is_named() {
        let error = report(Path::new("/dev/null"), Vec::new()).unwrap_err();
        assert_eq!(error, "/dev/null: Not a directory (os error 20)");
    }
}

//! The directories above a store: whoever can change one of them can put another store in its place, or an older one of the same user.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use host_fs::trust::Trusted;

use crate::StoreError;
use crate::error::IoContext;

/// The user who owns the files of all users that a user namespace does not have
/// ([user_namespaces(7)](https://man7.org/linux/man-pages/man7/user_namespaces.7.html)), and the users of this namespace.
const OVERFLOW: &str = "/proc/sys/kernel/overflowuid";
const MAP: &str = "/proc/self/uid_map";
/// The number of users in a namespace that has all of them.
const ALL: &str = "4294967295";

/// Refuses a store that another user could replace: all directories above it are examined, on the way that `root` names and on the one
/// without links. Missing ones are accepted.
///
/// # Errors
/// [`StoreError::Replaceable`], and errors of the operating system.
pub(crate) fn check(root: &Path) -> Result<(), StoreError> {
    let named = std::path::absolute(root).context("find", root)?;
    let (real, trusted) = (real_parent(&named), trusted());
    let real = real.iter().flat_map(|it| it.ancestors());
    let mut found: Vec<PathBuf> = Vec::new();
    for above in named.ancestors().skip(1).chain(real) {
        if !found.iter().any(|it| it == above) && is_replaceable(&trusted, above)? {
            found.push(above.to_owned());
        }
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(StoreError::Replaceable { root: root.to_owned(), above: found }),
    }
}

/// Returns the directory in which a path is, without links. If the path does not exist, returns the nearest one that does.
fn real_parent(path: &Path) -> Option<PathBuf> {
    match path.canonicalize() {
        Ok(real) => real.parent().map(Path::to_owned),
        Err(_) => path.ancestors().skip(1).find_map(|it| it.canonicalize().ok()),
    }
}

/// Returns whether another user can replace what is in a directory.
fn is_replaceable(trusted: &Trusted, directory: &Path) -> Result<bool, StoreError> {
    match trusted.untrusted_replacer(directory) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        found => Ok(found.context("examine", directory)?.is_some()),
    }
}

/// Returns this user and root. In a user namespace, root may be one of the users that the namespace does not have: all of these are
/// trusted, because they have the same number.
fn trusted() -> Trusted {
    let mut trusted = Trusted::this_user();
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    if !has_all_users(&read(MAP)) {
        trusted.users.extend(read(OVERFLOW).trim().parse::<u32>());
    }
    trusted
}

/// Returns whether a map of users has all of them, as outside of user namespaces.
fn has_all_users(map: &str) -> bool {
    map.lines().any(|line| line.split_whitespace().nth(2) == Some(ALL))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;
    use crate::collect::Collector;
    use crate::{Base, Store, StoredBoxes};

    /// Returns the directories because of which each way to open a store refuses it, relative to `base`.
    fn refused(base: &Path, root: &Path) -> Option<String> {
        let of = |error: StoreError| match error {
            StoreError::Replaceable { above, .. } => {
                let above = above.iter().map(|it| it.strip_prefix(base).unwrap().to_str().unwrap());
                above.collect::<Vec<_>>().join(" ")
            }
            other => panic!("{other}"),
        };
        let all = [
            Store::open(root).err(),
            StoredBoxes::open(root).err(),
            Base::open(root).err(),
            Collector::open(root).err(),
        ];
        let all = all.map(|it| it.map(of));
        assert!(all.windows(2).all(|it| it[0] == it[1]), "{all:?}");
        all[0].clone()
    }

    #[test]
    fn a_store_in_a_directory_that_another_user_can_change_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let root = base.join("theirs/deep/store");
        drop(Store::open(&root).unwrap());
        let theirs = base.join("theirs");
        let set = |mode| fs::set_permissions(&theirs, Permissions::from_mode(mode)).unwrap();
        for mode in [0o777, 0o757] {
            set(mode);
            assert_eq!(refused(&base, &root).as_deref(), Some("theirs"), "{mode:o}");
            let new = base.join("theirs/none/store");
            assert!(matches!(Store::open(&new), Err(StoreError::Replaceable { .. })));
            assert!(!base.join("theirs/none").exists(), "nothing is made there");
        }
        for mode in [0o755, 0o1777, 0o700] {
            set(mode);
            assert_eq!(refused(&base, &root), None, "{mode:o}");
        }
        fs::set_permissions(base.join("theirs/deep"), Permissions::from_mode(0o777)).unwrap();
        set(0o777);
        assert_eq!(refused(&base, &root).as_deref(), Some("theirs/deep theirs"), "all are named");
        fs::set_permissions(base.join("theirs/deep"), Permissions::from_mode(0o755)).unwrap();
        set(0o755);
        // Only root can give a directory away.
        if chown(&theirs, Some(54_321), None).is_ok() {
            assert_eq!(refused(&base, &root).as_deref(), Some("theirs"));
        }
    }

    #[test]
    fn a_link_in_such_a_directory_leads_to_no_store() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        drop(Store::open(&base.join("mine/store")).unwrap());
        fs::create_dir(base.join("open")).unwrap();
        symlink(base.join("mine"), base.join("open/link")).unwrap();
        assert_eq!(refused(&base, &base.join("open/link/store")), None);
        fs::set_permissions(base.join("open"), Permissions::from_mode(0o777)).unwrap();
        let of_link = refused(&base, &base.join("open/link/store"));
        assert_eq!(of_link.as_deref(), Some("open"));
    }

    #[test]
    fn a_namespace_with_fewer_users_is_known() {
        assert!(has_all_users("         0          0 4294967295\n"));
        assert!(!has_all_users("0 1000 1\n1 100000 65536\n") && !has_all_users(""));
    }
}

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

/// A directory with one destination in it, which has a file `text` with the content `old`.
struct Room {
    directory: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        let room = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(room.to()).unwrap();
        fs::write(room.to().join("text"), "old").unwrap();
        room
    }

    fn to(&self) -> PathBuf {
        self.directory.path().join("destination")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.to().join("text")).unwrap()
    }

    /// Starts a directory whose file `text` has the content `new`.
    fn draft(&self) -> DirectoryDraft {
        let draft = DirectoryDraft::beside(&self.to(), 0o777).unwrap();
        fs::write(draft.path().join("text"), "new").unwrap();
        draft
    }

    /// Counts the entries: the destination and leftovers.
    fn count(&self) -> usize {
        fs::read_dir(self.directory.path()).unwrap().count()
    }
}

fn anything(_: &Path) -> Result<(), PublishError> {
    Ok(())
}

/// Accepts directories that have no file but `text`.
fn only_text(path: &Path) -> Result<(), PublishError> {
    let mut names = fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name());
    if names.all(|name| name == "text") {
        return Ok(());
    }
    Err(PublishError::Exists { path: path.to_owned(), what: None })
}

#[test]
fn what_is_there_is_replaced() {
    let room = Room::new();
    assert_eq!(room.draft().finish_over(anything).unwrap(), Swap::Atomic);
    assert_eq!((room.text().as_str(), room.count()), ("new", 1));
}

#[test]
fn where_nothing_is_the_directory_appears() {
    let room = Room::new();
    for over in [false, true] {
        fs::remove_dir_all(room.to()).unwrap();
        let draft = room.draft();
        match over {
            true => assert_eq!(draft.finish_over(anything).unwrap(), Swap::Atomic),
            false => draft.finish_new().unwrap(),
        }
        assert_eq!((room.text().as_str(), room.count()), ("new", 1));
    }
}

#[test]
fn what_is_there_is_not_replaced_by_a_new_directory() {
    let room = Room::new();
    let error = room.draft().finish_new().unwrap_err();
    assert!(matches!(error, PublishError::Exists { path, .. } if path == room.to()));
    assert_eq!((room.text().as_str(), room.count()), ("old", 1));
}

#[test]
fn what_was_put_there_meanwhile_is_kept() {
    let room = Room::new();
    let calls = Cell::new(0);
    let refuses = |path: &Path| {
        calls.set(calls.get() + 1);
        assert_eq!(room.text(), "new", "the check comes after the exchange");
        only_text(path)
    };
    let draft = room.draft();
    fs::write(room.to().join("notes"), "precious").unwrap();
    assert!(matches!(draft.finish_over(refuses), Err(PublishError::Exists { .. })));
    assert_eq!((room.text().as_str(), room.count(), calls.get()), ("old", 1, 1));
    assert_eq!(fs::read(room.to().join("notes")).unwrap(), b"precious");
}

#[test]
fn what_was_put_there_meanwhile_is_kept_where_nothing_can_be_exchanged() {
    let room = Room::new();
    fs::write(room.to().join("notes"), "precious").unwrap();
    assert!(room.draft().replace_in_steps(&only_text).is_err());
    assert_eq!((room.text().as_str(), room.count()), ("old", 1));
    fs::remove_file(room.to().join("notes")).unwrap();
    let mut draft = room.draft();
    assert_eq!(draft.replace_in_steps(&only_text).unwrap(), Some(Swap::InSteps));
    assert_eq!(room.text(), "new");
}

#[test]
fn what_cannot_be_put_back_is_kept_and_named() {
    let room = Room::new();
    let draft = room.draft();
    // Another program makes a directory there while the destination does not exist.
    let meanwhile = |path: &Path| {
        fs::create_dir(room.to()).unwrap();
        fs::write(room.to().join("text"), "theirs").unwrap();
        Err(PublishError::Exists { path: path.to_owned(), what: None })
    };
    let mut draft = draft;
    let error = draft.replace_in_steps(&meanwhile).unwrap_err();
    drop(draft);
    let PublishError::NotRestored { kept, .. } = error else { panic!("{error}") };
    assert_eq!(fs::read(kept.join("text")).unwrap(), b"old");
    assert_eq!((room.text().as_str(), room.count()), ("theirs", 2));
}

#[test]
fn a_removed_destination_is_no_obstacle() {
    let room = Room::new();
    let draft = room.draft();
    fs::remove_dir_all(room.to()).unwrap();
    draft.finish_over(anything).unwrap();
    assert_eq!((room.text().as_str(), room.count()), ("new", 1));
}

#[test]
fn a_file_or_link_at_the_destination_stays() {
    let room = Room::new();
    for make in [
        |path: &Path| fs::write(path, "a file").unwrap(),
        |path: &Path| symlink("nowhere", path).unwrap(),
    ] {
        fs::remove_dir_all(room.to()).or_else(|_| fs::remove_file(room.to())).unwrap();
        make(&room.to());
        let before = fs::symlink_metadata(room.to()).unwrap().ino();
        assert!(room.draft().finish_over(anything).is_err());
        assert_eq!(fs::symlink_metadata(room.to()).unwrap().ino(), before);
        assert_eq!(room.count(), 1);
    }
}

#[test]
fn many_publishers_of_one_destination_all_succeed() {
    let room = Room::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    room.draft().finish_over(only_text).unwrap();
                    assert_eq!(room.text(), "new");
                }
            });
        }
    });
    assert_eq!((room.text().as_str(), room.count()), ("new", 1));
}

#[test]
fn leftovers_of_killed_processes_are_removed_and_nothing_else() {
    let room = Room::new();
    let at = |name: &str| room.directory.path().join(name);
    // Neither has a lock: the processes that made them have ended.
    let aside = |number: u8, last: &str| {
        DraftName::aside(&format!(".boxbuild-000000000000000{number}"), OsStr::new(last))
    };
    let left = [".boxbuild-0000000000000001", &aside(2, "destination")];
    for name in left {
        for mode in [0o555, 0o311, 0] {
            let closed = at(name).join(format!("closed-{mode}"));
            fs::create_dir_all(closed.join("inner")).unwrap();
            fs::set_permissions(closed, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    fs::write(at(".boxbuild-0000000000000003"), "a file").unwrap();
    let (precious, others) = (aside(5, "destination"), aside(6, "another"));
    let kept = [".boxbuild-notes", ".boxbuild-0000000000000004", &precious, &others];
    fs::create_dir(at(kept[0])).unwrap();
    symlink("destination", at(kept[1])).unwrap();
    fs::create_dir(at(kept[2])).unwrap();
    fs::write(at(kept[2]).join("notes"), "precious").unwrap();
    fs::create_dir(at(kept[3])).unwrap();
    // This draft is still in use.
    let other = room.draft();
    // Only a check can decide about a directory that may have been at the destination.
    let judged = |path: &Path| match path.join("notes").exists() {
        true => Err(PublishError::Exists { path: path.to_owned(), what: None }),
        false => Ok(()),
    };
    room.draft().finish_over(judged).unwrap();
    for name in kept {
        assert!(fs::symlink_metadata(at(name)).is_ok(), "{name}");
    }
    assert_eq!(room.count(), 1 + kept.len() + 1);
    drop(other);
    assert_eq!(room.count(), 1 + kept.len());
    assert_eq!(room.text(), "new");
}

#[test]
fn an_error_names_the_destination() {
    let room = Room::new();
    for (parent, text) in [
        ("none", "No such file or directory (os error 2)"),
        ("destination/text", "Not a directory (os error 20)"),
    ] {
        let to = room.directory.path().join(parent).join("there");
        let error = DirectoryDraft::beside(&to, 0o700).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot write {}", to.display()));
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), text);
    }
}

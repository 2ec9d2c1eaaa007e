use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::Duration;

use host_fs::OsError;
use nix::unistd::geteuid;

use super::*;

/// Volumes in a new state directory.
struct Fixture {
    state: tempfile::TempDir,
    volumes: Volumes,
}

impl Fixture {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let volumes = Volumes::new(state.path());
        Self { state, volumes }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.state.path().join(NAME).join(name)
    }

    fn all(&self) -> (Vec<VolumeState>, Vec<VolumeError>) {
        self.volumes.all().unwrap()
    }

    /// Waits until the volume is released. A process that another test starts inherits the lock until its call of
    /// execve(2).
    fn is_free(&self, name: &str) -> bool {
        (0..10_000).any(|_| {
            thread::sleep(Duration::from_millis(1));
            !self.volumes.find(name).unwrap().in_use
        })
    }
}

fn place(text: &str) -> VolumePlace {
    text.parse().unwrap()
}

/// Returns the error of a call that must fail, and must not fail with [`VolumeError::Os`].
fn fails<T: std::fmt::Debug>(result: Result<T, VolumeError>) -> VolumeError {
    match result.unwrap_err() {
        VolumeError::Os(error) => panic!("{error}"),
        error => error,
    }
}

#[test]
fn a_volume_is_made_once_sparse_and_for_this_user() {
    let made = Fixture::new();
    made.volumes.create("work", 8 << 20).unwrap();
    let error = fails(made.volumes.create("work", 8 << 20));
    assert!(matches!(error, VolumeError::Exists(_)), "{error}");
    let found = made.volumes.find("work").unwrap();
    assert_eq!((found.name.as_str(), found.size_bytes, found.in_use), ("work", 8 << 20, false));
    assert_eq!((&found.user, found.used_ms), (&None, None));
    assert!(found.allocated_bytes < 1 << 20, "{found:?}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&found.disk), mode(&made.path("work"))), (0o600, 0o700));
    assert_eq!(mode(&made.path("")), 0o700);
}

#[test]
fn names_and_sizes_have_bounds() {
    let made = Fixture::new();
    for name in ["", ".", "..", "../x", ".lock", "a/b", "a b"] {
        assert!(matches!(fails(made.volumes.create(name, 8 << 20)), VolumeError::BadName(_)));
        assert!(matches!(fails(made.volumes.find(name)), VolumeError::Missing(_)));
        assert!(matches!(fails(made.volumes.remove(name)), VolumeError::Missing(_)));
    }
    for size in [0, MIN_SIZE - 1, MAX_SIZE + 1] {
        assert!(matches!(fails(made.volumes.create("a", size)), VolumeError::BadSize(_)));
    }
    made.volumes.create("least", MIN_SIZE).unwrap();
    made.volumes.create("most", MAX_SIZE).unwrap();
    assert_eq!(made.all().0.len(), 2);
}

#[test]
fn a_volume_belongs_to_one_box_at_a_time() {
    let made = Fixture::new();
    let first = made.volumes.take(&place("work:/w"), "one").unwrap();
    assert_eq!((first.size_bytes(), first.guest.as_str()), (DEFAULT_SIZE, "/w"));
    assert!(first.is_new());
    let error = fails(made.volumes.take(&place("work:/w"), "two"));
    assert_eq!(error.to_string(), "the volume work is used by the box one");
    let error = fails(made.volumes.remove("work"));
    assert!(matches!(error, VolumeError::InUse { by: Some(by), .. } if by == "one"));
    // `find` and `all` do not release the lock.
    assert!(made.volumes.find("work").unwrap().in_use);
    assert!(made.all().0[0].in_use);
    assert!(matches!(
        fails(made.volumes.take(&place("work:/w"), "two")),
        VolumeError::InUse { .. }
    ));
    drop(first);
    assert!(made.is_free("work"));
    let second = made.volumes.take(&place("work:/w"), "two").unwrap();
    assert!(!second.is_new());
    assert_eq!(made.volumes.find("work").unwrap().user.as_deref(), Some("two"));
}

/// The author of a box chooses its name. So the name alone gives it no volume that somebody else has made.
#[test]
fn a_box_that_declares_a_volume_gets_none_that_was_made_by_other_means() {
    let made = Fixture::new();
    let declared = |name: &str| VolumePlace {
        declared: true,
        new_bytes: 8 << 20,
        ..place(&format!("{name}:/data"))
    };
    let take = |place: &VolumePlace| made.volumes.take(place, "box").map(drop);
    made.volumes.create("work.data", 8 << 20).unwrap();
    take(&place("work.more:/data")).unwrap();
    for name in ["work.data", "work.more"] {
        let error = fails(take(&declared(name)));
        assert!(matches!(error, VolumeError::NotDeclared { .. }), "{error}");
        assert!(made.is_free(name));
        take(&place(&format!("{name}:/data"))).unwrap();
    }
    take(&declared("app.data")).unwrap();
    assert!(made.is_free("app.data"));
    take(&declared("app.data")).unwrap();
    // The copy of a volume belongs to no other box.
    fs::create_dir(made.path("other.data")).unwrap();
    for file in ["record.json", DISK] {
        fs::copy(made.path("app.data").join(file), made.path("other.data").join(file)).unwrap();
    }
    assert!(matches!(fails(take(&declared("other.data"))), VolumeError::NotDeclared { .. }));
}

#[test]
fn a_box_of_another_origin_gets_no_volume_that_a_box_of_its_name_has_made() {
    let made = Fixture::new();
    let claimed = |origin: &str, content: &str| {
        let digest = box_digest::Digest::of(content.as_bytes());
        let claim = Some(Claim::new([origin.to_owned()], &digest, None));
        VolumePlace { declared: true, new_bytes: 8 << 20, claim, ..place("app.home:/root") }
    };
    let (own, stranger) = (claimed("/me/Boxfile", "1"), claimed("x.example/app", "2"));
    let origin = || made.volumes.find("app.home").unwrap().origin;
    drop(made.volumes.take(&stranger, "app").unwrap());
    assert!(
        made.is_free("app.home") && origin().is_none(),
        "a VM that did not start makes no claim"
    );
    for _ in 0..2 {
        made.volumes.check(&own).unwrap();
        made.volumes.take(&own, "app").unwrap().note_use().unwrap();
        assert!(made.is_free("app.home"));
    }
    assert_eq!(origin().as_deref(), Some("/me/Boxfile"));
    let refused = made.volumes.take(&stranger, "app").map(drop);
    for error in [made.volumes.check(&stranger), refused] {
        let expected = "the volume app.home has the files of another box, of /me/Boxfile, and this box is of x.example/app";
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
    drop(made.volumes.take(&place("app.home:/root"), "app").unwrap());
    assert!(made.volumes.check(&stranger).is_err(), "an explicit use gives it to no origin");
    assert!(made.is_free("app.home"));
    drop(made.volumes.take(&claimed("/me/Boxfile", "3"), "app").unwrap());
}

#[test]
fn a_box_whose_machine_did_not_start_is_not_who_had_it_last() {
    let made = Fixture::new();
    let used = || {
        let found = made.volumes.find("work").unwrap();
        (found.user, found.used_ms.is_some())
    };
    let take = |name: &str| made.volumes.take(&place("work:/w"), name).unwrap();
    drop(take("zero"));
    assert!(made.is_free("work"));
    assert_eq!(used(), (None, false));
    let first = take("one");
    first.note_use().unwrap();
    drop(first);
    assert!(made.is_free("work"));
    assert_eq!(used(), (Some("one".to_owned()), true));
    let second = take("two");
    assert_eq!(used().0.as_deref(), Some("two"));
    let error = fails(made.volumes.remove("work"));
    assert!(matches!(error, VolumeError::InUse { by: Some(by), .. } if by == "two"));
    drop(second);
    assert_eq!(used(), (Some("one".to_owned()), true));
}

/// If a supervisor is killed, its VMM process ends a little later and keeps the disk locked until then.
#[test]
fn a_machine_that_inherits_the_disk_keeps_it_after_its_supervisor() {
    let made = Fixture::new();
    let volume = made.volumes.take(&place("work:/w"), "one").unwrap();
    let machines = volume.disk.try_clone().unwrap();
    drop(volume);
    assert!(made.volumes.find("work").unwrap().in_use);
    let ends = std::thread::spawn(move || {
        sleep(PATIENCE / 5);
        drop(machines);
    });
    made.volumes.take(&place("work:/w"), "two").unwrap();
    ends.join().unwrap();
}

#[test]
fn what_is_on_a_volume_goes_with_it_and_not_before() {
    let made = Fixture::new();
    let volume = made.volumes.take(&place("work:/w"), "one").unwrap();
    std::os::unix::fs::FileExt::write_all_at(&volume.disk, b"kept", 4 << 20).unwrap();
    drop(volume);
    let volume = made.volumes.take(&place("work:/w"), "two").unwrap();
    let mut read = [0; 4];
    std::os::unix::fs::FileExt::read_exact_at(&volume.disk, &mut read, 4 << 20).unwrap();
    assert_eq!(&read, b"kept");
    drop(volume);
    made.volumes.remove("work").unwrap();
    assert!(!made.path("work").exists());
    assert!(matches!(fails(made.volumes.find("work")), VolumeError::Missing(_)));
    assert!(matches!(fails(made.volumes.remove("work")), VolumeError::Missing(_)));
}

#[test]
fn a_removal_that_was_killed_is_finished() {
    let made = Fixture::new();
    made.volumes.create("work", 8 << 20).unwrap();
    fs::remove_file(made.path("work/disk")).unwrap();
    let (found, unreadable) = made.all();
    assert!(found.is_empty() && unreadable.is_empty(), "{found:?} {unreadable:?}");
    assert!(matches!(fails(made.volumes.find("work")), VolumeError::Missing(_)));
    made.volumes.create("work", 16 << 20).unwrap();
    assert_eq!(made.volumes.find("work").unwrap().size_bytes, 16 << 20);
}

/// A volume that cannot be examined may be intact, so it must not be created again.
#[test]
fn a_volume_that_cannot_be_looked_at_stays() {
    let made = Fixture::new();
    made.volumes.create("other", 8 << 20).unwrap();
    // A symbolic link to itself, because root could examine anything else.
    std::os::unix::fs::symlink("work", made.path("work")).unwrap();
    let refused = [
        made.volumes.create("work", 8 << 20).unwrap_err(),
        made.volumes.take(&place("work:/w"), "one").unwrap_err(),
        made.volumes.find("work").unwrap_err(),
        made.volumes.remove("work").unwrap_err(),
    ];
    for error in refused {
        assert!(
            matches!(error, VolumeError::Os(OsError::File { action: "look at", .. })),
            "{error}"
        );
    }
    assert!(made.path("work").is_symlink());
    // A dangling link is a disk that cannot be opened, not a missing disk.
    fs::remove_file(made.path("other/disk")).unwrap();
    std::os::unix::fs::symlink("none", made.path("other/disk")).unwrap();
    assert!(made.volumes.take(&place("other:/w"), "one").is_err());
    assert!(made.path("other/disk").is_symlink());
}

#[test]
fn a_copy_of_a_volume_has_the_name_of_its_directory() {
    let made = Fixture::new();
    made.volumes.create("work", 8 << 20).unwrap();
    fs::create_dir(made.path("copy")).unwrap();
    for file in ["disk", "record.json"] {
        fs::copy(made.path("work").join(file), made.path("copy").join(file)).unwrap();
    }
    let names = || made.all().0.into_iter().map(|it| it.name).collect::<Vec<_>>();
    assert_eq!(names(), ["copy", "work"]);
    // Earlier versions of boxlaunch write `name`, and do not write `taker`.
    let record =
        "{\"name\":\"work\",\"size_bytes\":8388608,\"created_ms\":1,\"box\":\"one\",\"used_ms\":2}";
    fs::write(made.path("copy/record.json"), record).unwrap();
    assert_eq!(names(), ["copy", "work"]);
    let copy = made.volumes.find("copy").unwrap();
    assert_eq!((copy.user.as_deref(), copy.used_ms), (Some("one"), Some(2)));
}

#[test]
fn a_damaged_volume_is_not_used_and_can_be_removed() {
    let made = Fixture::new();
    let reason = |made: &Fixture| match fails(made.volumes.take(&place("work:/w"), "one")) {
        VolumeError::Damaged { reason, .. } => reason,
        other => panic!("{other}"),
    };
    for (damage, expected) in [
        ("record.json", "its record is malformed"),
        ("disk", "its disk has 8388609 bytes, and was made with 8388608"),
    ] {
        made.volumes.create("work", 8 << 20).unwrap();
        let file = File::options().append(true).open(made.path("work").join(damage)).unwrap();
        io::Write::write_all(&mut &file, b"x").unwrap();
        assert!(reason(&made).starts_with(expected), "{}", reason(&made));
        made.volumes.remove("work").unwrap();
    }
    made.volumes.create("work", 8 << 20).unwrap();
    fs::remove_file(made.path("work/record.json")).unwrap();
    assert!(reason(&made).starts_with("cannot read its record"));
    made.volumes.create("other", 8 << 20).unwrap();
    let (found, unreadable) = made.all();
    assert_eq!(found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["other"]);
    let output: Vec<_> = unreadable.iter().map(ToString::to_string).collect();
    assert_eq!(output.len(), 1);
    assert!(
        output[0].starts_with("the volume work is damaged: cannot read its record"),
        "{output:?}"
    );
}

#[test]
fn a_directory_that_others_can_change_is_not_used() {
    let made = Fixture::new();
    made.volumes.create("work", 8 << 20).unwrap();
    fs::set_permissions(made.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    let refused = made.volumes.take(&place("work:/w"), "one").unwrap_err();
    assert!(matches!(refused, VolumeError::Os(OsError::File { action: "use", .. })), "{refused}");
}

/// Only root can change the owner of a disk to a VM's user.
#[test]
fn a_disk_that_a_machines_user_had_is_this_users_again() {
    let made = Fixture::new();
    made.volumes.create("work", 8 << 20).unwrap();
    let disk = made.path("work/disk");
    if std::os::unix::fs::chown(&disk, Some(0x7000_0001), Some(0x7000_0001)).is_err() {
        return;
    }
    let _volume = made.volumes.take(&place("work:/w"), "one").unwrap();
    assert_eq!(fs::metadata(disk).unwrap().uid(), geteuid().as_raw());
}

fn refused(text: &str) -> String {
    text.parse::<VolumePlace>().unwrap_err()
}

#[test]
fn a_place_is_a_name_and_a_path() {
    let parsed = place("my.work-1:/var/work");
    assert_eq!((parsed.volume.as_str(), parsed.guest.as_str()), ("my.work-1", "/var/work"));
    assert_eq!(place("work:/a/").guest, "/a");
    for bad in ["work", "work:", "work:w", "work:/", "work:/a//", "work:/a//b", "work:/a/../b"] {
        let output = refused(bad);
        assert!(
            output.starts_with(FORM) || output.contains("absolute path without"),
            "{bad}: {output}"
        );
    }
    assert_eq!(refused("./dir:/w"), FORM);
    assert!(refused("-x:/w").contains("cannot be the name of a volume"));
    assert!(refused("work:/w:ro").contains("always writable"));
    for (bad, has) in [("/proc/x", "/proc"), ("/dev", "/dev"), ("/a3s", "/a3s/skills")] {
        assert!(refused(&format!("work:{bad}")).ends_with(has), "{bad}");
    }
}

const FORM: &str = "write NAME:/path";

#[test]
fn a_volume_is_named_once() {
    let [a, b] = ["a:/a", "a:/b"].map(place);
    assert_eq!(check_once(std::slice::from_ref(&a)), Ok(()));
    assert_eq!(check_once(&[a, b]).unwrap_err(), "the volume a is named twice");
}

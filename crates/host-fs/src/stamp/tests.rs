use std::fs;
use std::io::Write;

use rustix::fs::{MemfdFlags, Timespec, Timestamps, futimens, memfd_create};

use super::*;

/// Returns a file on a tmpfs, which exists on every host.
fn in_memory() -> File {
    File::from(memfd_create("stamp", MemfdFlags::CLOEXEC).unwrap())
}

fn later() -> SystemTime {
    SystemTime::now() + Duration::from_secs(60)
}

/// Returns the stamp of a file that changed at this time.
fn changed_at(seconds: i64, nanoseconds: i64) -> Stamp {
    let since_epoch =
        Duration::new(seconds.try_into().unwrap(), u32::try_from(nanoseconds).unwrap());
    Stamp {
        text: String::new(),
        changed: UNIX_EPOCH + since_epoch,
        wait: if nanoseconds == 0 { TWO_SECONDS } else { TWO_TICKS },
        lasting: true,
    }
}

#[test]
fn a_record_holds_until_the_file_changes() {
    let mut file = in_memory();
    file.write_all(b"bytes").unwrap();
    let before = Stamp::of(&file).unwrap();
    let line = before.record(&file, later()).unwrap();
    assert!(Stamp::of(&file).unwrap().is_recorded(&line));
    assert!(!before.is_recorded(""));
    std::thread::sleep(TWO_TICKS);
    file.set_len(0).unwrap();
    file.write_all(b"other").unwrap();
    assert_ne!(Stamp::of(&file).unwrap(), before);
    assert!(!Stamp::of(&file).unwrap().is_recorded(&line));
}

#[test]
fn times_that_are_set_back_do_not_hide_a_change() {
    let mut file = in_memory();
    file.write_all(b"bytes").unwrap();
    let (before, found) = (Stamp::of(&file).unwrap(), file.metadata().unwrap());
    std::thread::sleep(TWO_TICKS);
    std::os::unix::fs::FileExt::write_all_at(&file, b"BYTES", 0).unwrap();
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(found.atime(), found.atime_nsec()),
        last_modification: time(found.mtime(), found.mtime_nsec()),
    };
    futimens(&file, &times).unwrap();
    assert_eq!(file.metadata().unwrap().modified().unwrap(), found.modified().unwrap());
    assert_ne!(Stamp::of(&file).unwrap(), before);
}

#[test]
fn a_file_that_just_changed_has_no_record() {
    let fresh = changed_at(1_000, 500);
    let since = |milliseconds| fresh.changed + Duration::from_millis(milliseconds);
    assert!(!fresh.is_settled(since(0)));
    assert!(!fresh.is_settled(since(19)));
    assert!(fresh.is_settled(since(20)));
    // A clock that was set back.
    assert!(!fresh.is_settled(fresh.changed - TWO_SECONDS));
    let file = in_memory();
    let stamp = Stamp::of(&file).unwrap();
    assert_eq!(stamp.record(&file, stamp.changed + TWO_TICKS / 2), None);
}

#[test]
fn a_time_in_whole_seconds_needs_two_of_them() {
    let coarse = changed_at(1_000, 0);
    let since = |milliseconds| coarse.changed + Duration::from_millis(milliseconds);
    assert!(!coarse.is_settled(since(1_000)));
    assert!(!coarse.is_settled(since(1_999)));
    assert!(coarse.is_settled(since(2_000)));
}

#[test]
fn a_file_system_that_is_not_trusted_gives_no_record() {
    let file = File::open("/proc/self/status").unwrap();
    let stamp = Stamp::of(&file).unwrap();
    assert_eq!(stamp.record(&file, later()), None);
    assert!(!stamp.is_recorded(&stamp.text));
}

#[test]
fn an_anonymous_device_is_bound_to_boot_and_mount() {
    let file = in_memory();
    assert_eq!(major(file.metadata().unwrap().dev()), 0);
    let line = Stamp::of(&file).unwrap().record(&file, later()).unwrap();
    let boot = fs::read_to_string(BOOT_ID).unwrap();
    let parts: Vec<&str> = line.split(' ').collect();
    assert_eq!((parts.len(), parts[5]), (7, boot.trim()));
    assert!(parts[6].parse::<u64>().unwrap() > 0);
    assert!(!Stamp::of(&file).unwrap().is_recorded(&parts[..5].join(" ")));
}

#[test]
fn a_copy_has_a_stamp_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let stamp = |name: &str| {
        let path = dir.path().join(name);
        fs::write(&path, "bytes").unwrap();
        Stamp::of(&File::open(path).unwrap()).unwrap()
    };
    assert_ne!(stamp("one"), stamp("two"));
}

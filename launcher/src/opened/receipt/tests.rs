use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;

const DIGEST: Digest = Digest::from_bytes([9; 32]);

struct Fixture {
    dir: tempfile::TempDir,
    receipts: Receipts,
    file: File,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let receipts = Receipts::new(&dir.path().join("state"));
        // Every host supports stamps of a file in memory.
        let flags = nix::sys::memfd::MFdFlags::MFD_CLOEXEC;
        let mut file = File::from(nix::sys::memfd::memfd_create("blob", flags).unwrap());
        file.write_all(b"bytes").unwrap();
        Self { dir, receipts, file }
    }

    fn stamp(&self) -> Stamp {
        Stamp::of(&self.file).unwrap()
    }

    fn note(&self) -> Result<(), host_fs::OsError> {
        let later = SystemTime::now() + Duration::from_secs(60);
        self.receipts.note(&DIGEST, self.stamp().record(&self.file, later).unwrap())
    }

    fn holds(&self) -> bool {
        self.receipts.holds(&DIGEST, &self.stamp())
    }

    fn directory(&self) -> PathBuf {
        self.dir.path().join("state/verified")
    }

    fn receipt(&self) -> PathBuf {
        self.directory().join(DIGEST.hex())
    }
}

#[test]
fn a_receipt_holds_until_the_file_changes() {
    let mut fixture = Fixture::new();
    assert!(!fixture.holds());
    fixture.note().unwrap();
    assert!(fixture.holds());
    assert!(!fixture.receipts.holds(&Digest::from_bytes([8; 32]), &fixture.stamp()));
    std::thread::sleep(Duration::from_millis(20));
    fixture.file.write_all(b" and more").unwrap();
    assert!(!fixture.holds());
}

#[test]
fn several_files_of_one_digest_are_remembered() {
    let fixture = Fixture::new();
    fixture.receipts.note(&DIGEST, "another file".to_owned()).unwrap();
    fixture.note().unwrap();
    fixture.note().unwrap();
    let directory = fixture.receipts.directory().unwrap();
    assert_eq!(lines(&directory, &DIGEST.hex(), Kind::Blob).len(), 2);
    assert!(fixture.holds());
}

#[test]
fn the_directory_is_private_and_old_lines_go() {
    let fixture = Fixture::new();
    for number in 0..40 {
        fixture.receipts.note(&DIGEST, format!("line {number}")).unwrap();
    }
    let lines = lines(&fixture.receipts.directory().unwrap(), &DIGEST.hex(), Kind::Blob);
    assert_eq!((lines.len(), lines[0].as_str()), (MAX_LINES, "line 24"));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&fixture.directory()), mode(&fixture.receipt())), (0o700, 0o600));
    assert_eq!(fs::read_dir(fixture.directory()).unwrap().count(), 1);
}

#[test]
fn a_receipt_that_is_not_a_small_text_file_proves_nothing() {
    let fixture = Fixture::new();
    fixture.note().unwrap();
    let (path, text) = (fixture.receipt(), fs::read(fixture.receipt()).unwrap());
    fs::write(&path, [0xff; 64]).unwrap();
    assert!(!fixture.holds());
    fs::write(&path, [text.clone(), vec![b'\n'; 5000]].concat()).unwrap();
    assert!(!fixture.holds());
    // Opening this pipe would wait forever.
    fs::remove_file(&path).unwrap();
    mkfifo(&path, Mode::S_IRWXU).unwrap();
    assert!(!fixture.holds());
    fs::remove_file(&path).unwrap();
    fs::write(fixture.dir.path().join("elsewhere"), text).unwrap();
    symlink(fixture.dir.path().join("elsewhere"), &path).unwrap();
    assert!(!fixture.holds());
    // The next receipt replaces the file, and does not write through a link.
    fixture.note().unwrap();
    assert!(fixture.holds() && !path.is_symlink());
}

#[test]
fn a_receipt_that_another_user_can_change_proves_nothing() {
    let fixture = Fixture::new();
    fixture.note().unwrap();
    for (mode, holds) in [(0o620, false), (0o602, false), (0o644, true)] {
        fs::set_permissions(fixture.receipt(), Permissions::from_mode(mode)).unwrap();
        assert_eq!(fixture.holds(), holds, "{mode:o}");
    }
}

#[test]
fn notes_leave_nothing_but_the_receipt() {
    let fixture = Fixture::new();
    fixture.note().unwrap();
    // The draft of a process that was killed.
    fs::write(fixture.directory().join(".boxbuild-0123456789abcdef"), "half").unwrap();
    fixture.note().unwrap();
    assert_eq!(fs::read_dir(fixture.directory()).unwrap().count(), 1);
}

#[test]
fn a_state_directory_that_others_can_change_is_not_used() {
    let fixture = Fixture::new();
    fixture.note().unwrap();
    let state = fixture.dir.path().join("state");
    for directory in [&state, &fixture.directory()] {
        for mode in [0o777, 0o720, 0o702] {
            fs::set_permissions(directory, Permissions::from_mode(mode)).unwrap();
            assert!(!fixture.holds(), "{} {mode:o}", directory.display());
            assert!(fixture.note().is_err(), "{} {mode:o}", directory.display());
        }
        fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
        assert!(fixture.holds());
    }
}

#[test]
fn a_state_directory_that_is_a_link_is_not_used() {
    let fixture = Fixture::new();
    fixture.note().unwrap();
    let (state, moved) = (fixture.dir.path().join("state"), fixture.dir.path().join("moved"));
    fs::rename(&state, &moved).unwrap();
    symlink(&moved, &state).unwrap();
    assert!(!fixture.holds());
    assert!(fixture.note().is_err());
    fs::remove_file(&state).unwrap();
    fs::rename(&moved, &state).unwrap();
    assert!(fixture.holds());
    fs::rename(fixture.directory(), &moved).unwrap();
    symlink(&moved, fixture.directory()).unwrap();
    assert!(!fixture.holds());
}

#[test]
fn the_receipt_of_a_box_holds_for_all_its_files_in_their_order() {
    let [one, other] = [Fixture::new(), Fixture::new()];
    let later = SystemTime::now() + Duration::from_secs(60);
    let record = |it: &Fixture| it.stamp().record(&it.file, later).unwrap();
    let receipts = &one.receipts;
    let holds = |of: &[&Fixture]| {
        receipts.holds_box(&DIGEST, &of.iter().map(|it| it.stamp()).collect::<Vec<_>>())
    };
    assert!(!holds(&[&one, &other]));
    receipts.note_box(&DIGEST, &[record(&one), record(&other)]).unwrap();
    assert!(holds(&[&one, &other]));
    for wrong in [&[&other, &one][..], &[&one], &[&one, &other, &other], &[]] {
        assert!(!holds(wrong), "{}", wrong.len());
    }
    assert!(!receipts.holds(&DIGEST, &one.stamp()), "it is none of a blob with the same digest");
    (0..9).for_each(|it| receipts.note_box(&DIGEST, &[format!("copy {it}")]).unwrap());
    assert!(!holds(&[&one, &other]), "the oldest copy goes");
}

#[test]
fn the_receipt_of_the_largest_box_is_read() {
    let fixture = Fixture::new();
    let later = SystemTime::now() + Duration::from_secs(60);
    let record = fixture.stamp().record(&fixture.file, later).unwrap();
    let long = "9".repeat(200 - record.len().min(200)) + &record;
    (0..MAX_COPIES).for_each(|copy| {
        let mut records = vec![record.clone(); 257];
        records[0].clone_from(&long);
        records[copy].push('x');
        fixture.receipts.note_box(&DIGEST, &records).unwrap();
    });
    fixture.receipts.note_box(&DIGEST, &vec![record; 257]).unwrap();
    assert!(fixture.receipts.holds_box(&DIGEST, &vec![fixture.stamp(); 257]));
}

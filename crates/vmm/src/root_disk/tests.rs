#![allow(unsafe_code)]

use std::fs;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;

use imago::file::File as ImageFile;
use imago::vmdk::Vmdk;
use imago::{
    DynStorage, FormatAccess, FormatDriverBuilder as _, PermissiveImplicitOpenGate, Storage as _,
    StorageOpenOptions, SyncFormatAccess,
};
use nix::libc;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use proptest::prelude::*;

use super::*;

proptest! {
    /// The line of each part has exactly the expected form, for arbitrary descriptor numbers and sizes.
    #[test]
    fn a_descriptor_has_nothing_but_numbers_of_its_parts(
        parts in proptest::collection::vec((any::<RawFd>(), any::<u64>()), 2..300)
    ) {
        let parts: Vec<_> = parts.into_iter().map(|(fd, size)| Part { fd, size }).collect();
        let is_right = |it: &Part| it.fd >= 0 && it.size > 0 && it.size.is_multiple_of(512);
        let whole: Vec<_> = parts.iter().map(|it| Part { fd: it.fd & i32::MAX, size: (it.size | 512) & !511 }).collect();
        prop_assert_eq!(descriptor(&parts).is_ok(), parts.iter().all(is_right));
        let text = descriptor(&whole).unwrap();
        let lines: Vec<_> = text.strip_prefix(HEADER).unwrap().lines().collect();
        prop_assert_eq!(lines.len(), whole.len());
        for (line, part) in lines.iter().zip(&whole) {
            let words: Vec<_> = line.split(|c: char| c.is_ascii_digit()).filter(|it| !it.is_empty()).collect();
            prop_assert_eq!(words, ["RDONLY ", " FLAT \"/proc/self/fd/", "\" "]);
            let numbers: Vec<u64> = line.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok()).collect();
            prop_assert_eq!(numbers, [part.size / 512, part.fd.cast_unsigned().into(), 0]);
        }
    }
}

#[test]
fn the_text_is_the_one_that_is_written_down() {
    let parts = [Part { fd: 7, size: 1 << 20 }, Part { fd: 300, size: 4096 }];
    assert_eq!(
        descriptor(&parts).unwrap(),
        "# Disk DescriptorFile\nversion=1\nCID=ffffffff\nparentCID=ffffffff\n\
         createType=\"custom\"\nRDONLY 2048 FLAT \"/proc/self/fd/7\" 0\n\
         RDONLY 8 FLAT \"/proc/self/fd/300\" 0\n"
    );
}

#[test]
fn one_part_is_a_raw_disk_and_none_is_no_disk() {
    let one = RootDisk::of(&[Part { fd: 5, size: 7 }]).unwrap();
    assert!(matches!(one, RootDisk::File(path) if path.ends_with("self/fd/5")));
    assert!(RootDisk::of(&[]).is_err());
}

#[test]
fn nobody_can_change_a_descriptor() {
    let file = File::from(sealed("text").unwrap());
    let path = fd_path(file.as_raw_fd());
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o444);
    assert!((&file).write_all(b"x").is_err() && file.set_len(0).is_err());
    assert!(
        file.set_len(9).is_err() && fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::empty())).is_err()
    );
    // Root can open it for writing, but the write fails.
    if let Ok(mut again) = File::options().write(true).open(&path) {
        assert!(again.write_all(b"x").is_err());
    }
    let mut text = String::new();
    File::open(&path).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
}

/// Makes `count` files of different lengths. Returns the files, the parts that describe them, and the files' bytes,
/// concatenated.
fn parts(count: usize) -> (Vec<File>, Vec<Part>, Vec<u8>) {
    let contents = (0..count).map(|it| {
        let number = u8::try_from(it % 251).unwrap();
        testkit::test_box::segment(number, 1 + it % 3)
    });
    let contents: Vec<_> = contents.collect();
    let file = |bytes: &Vec<u8>| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    };
    let files: Vec<_> = contents.iter().map(file).collect();
    let parts = files.iter().zip(&contents);
    let parts = parts.map(|(file, bytes)| Part { fd: file.as_raw_fd(), size: bytes.len() as u64 });
    let parts = parts.collect();
    (files, parts, contents.concat())
}

/// Opens a descriptor in the same way as libkrun (`Block::new` in its `virtio/block/device.rs`).
fn opened(disk: &RootDisk) -> io::Result<SyncFormatAccess<Box<dyn DynStorage>>> {
    let RootDisk::Extents(path) = disk else { panic!("{disk:?}") };
    drop(File::open(path)?);
    let options = StorageOpenOptions::new().write(false).filename(path).direct(false);
    let file = ImageFile::open_sync(options)?;
    let vmdk =
        Vmdk::<Box<dyn DynStorage>, std::sync::Arc<FormatAccess<_>>>::builder(Box::new(file));
    SyncFormatAccess::new(vmdk.open_sync(PermissiveImplicitOpenGate::default())?)
}

/// Returns whether libkrun's reader sees the parts as one disk with the bytes `whole`, and reads across their borders.
fn reads_the_whole(disk: &RootDisk, whole: &[u8]) -> io::Result<bool> {
    let disk = opened(disk)?;
    let mut found = vec![0; whole.len()];
    disk.read(&mut found[..], 0)?;
    let mut over = vec![0; 4096 + 1024];
    disk.read(&mut over[..], 3584)?;
    Ok(disk.size() == whole.len() as u64 && found == whole && over == whole[3584..][..over.len()])
}

#[test]
fn libkruns_reader_finds_the_parts_one_after_another() {
    for count in [2, 3, 255] {
        let (_files, parts, whole) = parts(count);
        let disk = RootDisk::of(&parts).unwrap();
        assert!(reads_the_whole(&disk, &whole).unwrap(), "{count}");
    }
}

/// Returns whether the disk can be opened, and a file without a Landlock rule cannot.
fn is_confined(disk: &RootDisk, whole: &[u8]) -> bool {
    File::open("/etc/passwd").is_err() && reads_the_whole(disk, whole).is_ok_and(|it| it)
}

/// The jail allows opening a disk with the maximum number of parts.
#[test]
fn a_disk_of_255_parts_is_opened_behind_landlock_and_the_filter() {
    let (_files, parts, whole) = parts(255);
    let blobs: Vec<_> = parts.iter().map(|it| it.fd).collect();
    // SAFETY: the child's memory is usable after fork(3), and the child takes no lock of this program.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 7));
        }
        ForkResult::Child => {
            let disk = RootDisk::of(&parts).unwrap();
            nix::sys::prctl::set_no_new_privs().ok();
            let code = match crate::jail::fenced(&blobs) {
                Err(_) => 1,
                Ok(()) if is_confined(&disk, &whole) => 7,
                Ok(()) => 2,
            };
            // SAFETY: `_exit` runs no code of this program.
            unsafe { libc::_exit(code) }
        }
    }
}

/// Starts a VM with `disk` and an invalid kernel, so that it does not boot. Returns libkrun's log.
fn log_of_a_start(disk: &RootDisk) -> String {
    let (mut log, end) = io::pipe().unwrap();
    let kernel = tempfile::NamedTempFile::new().unwrap();
    // SAFETY: the child's memory is usable after fork(3), and the child takes no lock of this program.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => {
            drop(end);
            let mut text = String::new();
            log.read_to_string(&mut text).unwrap();
            waitpid(child, None).unwrap();
            text
        }
        ForkResult::Child => {
            nix::unistd::dup2_stderr(&end).ok();
            crate::krun::log_to_stderr().ok();
            let started = Vm::new(1, 256).and_then(|mut vm| {
                vm.set_kernel(kernel.path())?;
                disk.attach(&mut vm)?;
                Err::<(), _>(vm.start())
            });
            nix::unistd::write(io::stderr(), format!("{started:?}").as_bytes()).ok();
            // SAFETY: `_exit` runs no code of this program.
            unsafe { libc::_exit(0) }
        }
    }
}

#[test]
fn libkrun_takes_a_machine_with_extents() {
    const REFUSED: &str = "Error configuring virtio-blk";
    let (_files, mut parts, _) = parts(2);
    let started = |parts: &[Part]| log_of_a_start(&RootDisk::of(parts).unwrap());
    let log = started(&parts);
    assert!(log.contains("krun_start_enter") && !log.contains(REFUSED), "{log}");
    parts[1].fd = RawFd::MAX;
    let log = started(&parts);
    assert!(log.contains(REFUSED), "{log}");
}

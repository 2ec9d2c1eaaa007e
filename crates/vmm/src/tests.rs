use super::*;
use std::fs;
use std::fs::File;
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::child::STACK;
use crate::enter::map_init;
use crate::jail::{Layer, Missing, Policy, Terms};
use crate::krun::Vm;
use box_layout::OpenBox;
use testkit::test_box::{TestBox, config};

/// A program that runs until it is killed, with any argument.
const PATIENT: &str = "/usr/bin/yes";

/// Waits until the VMM process has executed [`PATIENT`].
fn await_exec(vmm: &Vmm) {
    let name = |id: &str| fs::read_to_string(format!("/proc/{id}/comm")).unwrap();
    while name(&vmm.pid().to_string()) != "yes\n" {
        std::thread::yield_now();
    }
}

#[test]
fn the_process_has_the_blobs_and_nothing_else() {
    let made = TestBox::new(&config());
    let opened = OpenBox::open(made.path()).unwrap();
    let other = File::open(made.path().join("index.json")).unwrap();
    let vmm = Vmm::spawn(Path::new(PATIENT), &opened, &[], None).unwrap();
    await_exec(&vmm);
    let proc = PathBuf::from(format!("/proc/{}", vmm.pid()));
    let inherited = |fd: RawFd| fs::read_link(proc.join(format!("fd/{fd}"))).ok();
    for blob in opened.boot_blobs() {
        assert_eq!(inherited(blob.file.as_raw_fd()), Some(blob.path.clone()));
    }
    // The program's loader, which opens libraries, may have reused the number.
    let others = fs::canonicalize(made.path().join("index.json")).unwrap();
    assert_ne!(inherited(other.as_raw_fd()), Some(others));
    let environment = format!("{STACK}\0");
    assert_eq!(fs::read_to_string(proc.join("environ")).unwrap(), environment);
    assert_eq!(fs::read(proc.join("cmdline")).unwrap(), b"/usr/bin/yes\0vmm\0");
    let flags = |file| FdFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFD).unwrap());
    assert!(opened.boot_blobs().all(|blob| flags(&blob.file) == FdFlag::FD_CLOEXEC));
}

#[test]
fn the_process_ends_with_its_handle() {
    let made = TestBox::new(&config());
    let vmm =
        Vmm::spawn(Path::new(PATIENT), &OpenBox::open(made.path()).unwrap(), &[], None).unwrap();
    let proc = PathBuf::from(format!("/proc/{}", vmm.pid()));
    assert!(proc.exists());
    drop(vmm);
    assert!(!proc.exists());
}

#[test]
fn a_configuration_reads_back_and_is_sent_once() {
    let made = TestBox::new(&config());
    let opened = OpenBox::open(made.path()).unwrap();
    let sent = VmmConfig {
        size: config().plan.vm,
        blobs: BlobFds::of(&opened),
        config: String::from_utf8(opened.config_bytes.clone()).unwrap(),
        disks: Vec::new(),
        volumes: Vec::new(),
        roots_disk: Some(RootsDisk { fd: 7, is_kept: true }),
        largest_disk: 0,
        nonce: Nonce::random().unwrap(),
        agent: Some(4088),
        shared_network: Some(9),
        has_network: true,
        has_mounts: true,
        shares_together: false,
        jail: Terms {
            shares: Vec::new(),
            policy: Policy::Require,
            runtime: "/run/b".into(),
            is_root: true,
            ids: None,
            missing: vec![Missing::new(Layer::ControlGroup, "x")],
        },
    };
    let json = serde_json::to_string(&sent).unwrap();
    let read: VmmConfig = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), json);
    assert!(json.contains(sent.nonce.text()));
    assert_eq!(read.config.as_bytes(), opened.config_bytes);
    assert_eq!(read.blobs.rootfs.len(), 3);
    let mut vmm = Vmm::spawn(Path::new(PATIENT), &opened, &[], None).unwrap();
    vmm.configure(&sent).unwrap();
    vmm.go();
    assert!(vmm.configure(&sent).unwrap_err().to_string().contains("has been started"));
}

#[test]
fn init_is_mapped_with_the_size_that_the_box_names() {
    let made = TestBox::new(&config());
    let opened = OpenBox::open(made.path()).unwrap();
    let blobs = BlobFds::of(&opened);
    let init = fs::read(&opened.init.path).unwrap();
    assert_eq!(map_init(&blobs).unwrap(), init);
    let refused = |size| {
        File::options().write(true).open(&opened.init.path).unwrap().set_len(size).unwrap();
        map_init(&blobs).unwrap_err().to_string()
    };
    for size in [3, 1 << 40] {
        let expected = format!("has {size} bytes, but its manifest says {}", init.len());
        let refused = refused(size);
        assert!(refused.contains(&expected), "{refused}");
    }
}

#[test]
fn libkrun_takes_the_first_root() {
    let mut vm = Vm::new(1, 256).unwrap();
    add_first_root(&mut vm, b"init", b"{}", ("nonce", false)).unwrap();
}

#[test]
fn a_configuration_of_noise_is_refused() {
    for noise in ["", "{}", "[1,2", "\0"] {
        let error = enter(noise.as_bytes()).to_string();
        assert!(error.starts_with("cannot read the configuration"), "{error}");
    }
}

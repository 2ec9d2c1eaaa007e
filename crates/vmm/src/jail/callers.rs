//! Names a caller of each system call that the filter allows, so that no call is allowed without a reason.
//!
//! If the caller is a crate, a test searches the crate's source, from which this program is built, for the call. The
//! test fails if, for example, a new version of libkrun no longer makes a call.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use nix::libc::{self, c_long};
use serde_json::Value;
use testbed::{Workspace, program};

use super::calls::{CALLS, DISK_CALLS, NETWORK_CALLS, SHARE_CALLS, WRITABLE_SHARE_CALLS};

/// The code that makes a system call.
#[derive(Debug, Clone, Copy)]
enum Caller {
    /// A crate: its name, a file of it, and text in that file.
    In(&'static str, &'static str, &'static str),
    /// Rust's standard library, and what it makes the call for.
    Std(&'static str),
    /// The C library of the released program (musl), and what it makes the call for.
    Musl(&'static str),
    /// The C library of a program for a distribution (glibc), and what it makes the call for.
    Glibc(&'static str),
    /// The kernel, which makes the process issue the call, and what for.
    Kernel(&'static str),
    /// No caller is known. The call permits nothing that the named call, which is allowed too, does not permit.
    Same(&'static str),
}

use Caller::{Glibc, In, Kernel, Musl, Same, Std};

/// The number of allowed calls without a known caller. It must not grow.
const WITHOUT_CALLER: usize = 2;

const FILES: &str = "src/virtio/file_traits.rs";
const PORT: &str = "src/virtio/console/port_io.rs";
const VSOCK: &str = "src/virtio/vsock/unix.rs";
const SHARE: &str = "src/virtio/fs/linux/passthrough.rs";
const EPOLL: &str = "src/linux/epoll.rs";
const THREADS: &str = "starts a thread";

/// Returns the caller with this text in libkrun's virtio-fs device.
const fn share(text: &'static str) -> Caller {
    In("krun-devices", SHARE, text)
}

/// Returns the caller with this text in libkrun's vsock sockets.
const fn vsock(text: &'static str) -> Caller {
    In("krun-devices", VSOCK, text)
}

const CALLERS: &[(c_long, Caller)] = &[
    (libc::SYS_read, In("krun-devices", PORT, "libc::read(fd")),
    (libc::SYS_readv, In("krun-devices", FILES, "readv(self.as_raw_fd()")),
    (libc::SYS_pread64, In("krun-devices", FILES, "pread64(")),
    (libc::SYS_preadv, In("imago", "src/file.rs", "libc::preadv(")),
    (libc::SYS_write, In("vm-memory", "src/io.rs", "libc::write(fd")),
    (libc::SYS_writev, In("krun-devices", FILES, "writev(self.as_raw_fd()")),
    (libc::SYS_close, Std("drops a file")),
    (libc::SYS_dup, In("krun-devices", PORT, "dup(")),
    (libc::SYS_fcntl, vsock("FcntlArg::F_SETFL(")),
    (libc::SYS_fstat, In("krun-devices", "src/virtio/block/device.rs", "disk_file.metadata()")),
    (libc::SYS_fstatfs, In("imago", "src/file.rs", "libc::fstatfs(")),
    (libc::SYS_lseek, Std("asks for the offset of a file that it reads to the end")),
    (libc::SYS_fsync, In("imago", "src/file.rs", "libc::fsync(")),
    (libc::SYS_ioctl, In("kvm-ioctls", "src/ioctls/vcpu.rs", "KVM_RUN()")),
    (libc::SYS_open, Musl("opens a file")),
    (libc::SYS_openat, Glibc("opens a file")),
    (libc::SYS_stat, Musl("examines a path")),
    (libc::SYS_newfstatat, Glibc("examines a path")),
    (libc::SYS_statx, Std("examines a file")),
    (libc::SYS_unlink, In("krun-vmm", "src/vmm_config/vsock.rs", "remove_file(")),
    (libc::SYS_poll, In("krun-devices", PORT, "poll(&mut poll_fds")),
    (libc::SYS_ppoll, Same("poll")),
    (libc::SYS_epoll_create1, In("krun-utils", EPOLL, "epoll_create1(EPOLL_CLOEXEC)")),
    (libc::SYS_epoll_ctl, In("krun-utils", EPOLL, "epoll_ctl(")),
    (libc::SYS_epoll_wait, Glibc("waits for the events of krun-utils")),
    (libc::SYS_epoll_pwait, Musl("waits for the events of krun-utils")),
    (libc::SYS_eventfd2, In("vmm-sys-util", "src/linux/eventfd.rs", "eventfd(0, flag)")),
    (libc::SYS_nanosleep, Musl("sleeps")),
    (libc::SYS_clock_nanosleep, Glibc("sleeps")),
    (libc::SYS_clock_gettime, In("krun-utils", "src/time.rs", "libc::clock_gettime(")),
    (libc::SYS_restart_syscall, Kernel("continues a sleep that a stop has interrupted")),
    (libc::SYS_socket, vsock("socket(")),
    (libc::SYS_connect, vsock("connect(")),
    (libc::SYS_bind, vsock("bind(")),
    (libc::SYS_listen, vsock("listen(&fd")),
    (libc::SYS_accept, vsock("accept(self.fd")),
    (libc::SYS_accept4, Same("accept")),
    (libc::SYS_sendto, vsock("send(")),
    (libc::SYS_recvfrom, vsock("recv(")),
    (libc::SYS_shutdown, vsock("shutdown(self.fd")),
    (libc::SYS_mmap, In("vm-memory", "src/mmap/unix.rs", "libc::mmap(")),
    (libc::SYS_mprotect, Musl("puts a guard below the stack of a thread")),
    (libc::SYS_munmap, Std("gives back memory, and the stack of a thread")),
    (libc::SYS_mremap, Std("makes a large vector larger")),
    (libc::SYS_madvise, In("krun-devices", "src/virtio/balloon/device.rs", "libc::madvise(")),
    (libc::SYS_brk, Musl("asks for memory")),
    (libc::SYS_clone, Std(THREADS)),
    (libc::SYS_futex, Std("waits for a lock")),
    (libc::SYS_sched_yield, In("crossbeam-utils", "src/backoff.rs", "yield_now()")),
    (libc::SYS_sched_getaffinity, Glibc("counts processors, for the parts of its memory")),
    (libc::SYS_set_robust_list, Glibc(THREADS)),
    (libc::SYS_rseq, Glibc(THREADS)),
    (libc::SYS_gettid, Std("names the thread that panics")),
    (libc::SYS_getpid, Glibc("raises a signal")),
    (libc::SYS_prctl, Std("names a thread")),
    (libc::SYS_prlimit64, Glibc("asks how large a stack may be")),
    (libc::SYS_getrandom, Std("seeds a hash map")),
    (libc::SYS_rt_sigaction, In("krun-vmm", "src/linux/vstate.rs", "register_signal_handler(")),
    (libc::SYS_rt_sigprocmask, Musl(THREADS)),
    (libc::SYS_rt_sigreturn, Kernel("returns from a signal's handler")),
    (libc::SYS_sigaltstack, Std("gives a thread a stack for its overflow")),
    (libc::SYS_tkill, Musl("interrupts a virtual CPU")),
    (libc::SYS_tgkill, Glibc("interrupts a virtual CPU")),
    (libc::SYS_exit, Std("ends a thread")),
    (libc::SYS_exit_group, Std("ends the program")),
    (libc::SYS_pwrite64, In("krun-devices", FILES, "pwrite64(")),
    (libc::SYS_pwritev, In("imago", "src/file.rs", "libc::pwritev(")),
    (libc::SYS_fallocate, In("imago", "src/file.rs", "libc::fallocate(")),
    (libc::SYS_capget, In("caps", "src/base.rs", "capget(")),
    (libc::SYS_umask, share("libc::umask(")),
    (libc::SYS_getuid, share("libc::getuid()")),
    (libc::SYS_getgid, share("libc::getgid()")),
    (libc::SYS_geteuid, share("libc::geteuid")),
    (libc::SYS_getegid, share("libc::getegid")),
    (libc::SYS_getdents64, share("libc::SYS_getdents64")),
    (libc::SYS_readlinkat, share("libc::readlinkat(")),
    (libc::SYS_fgetxattr, share("libc::fgetxattr(")),
    (libc::SYS_lgetxattr, share("libc::lgetxattr(")),
    (libc::SYS_flistxattr, share("libc::flistxattr(")),
    (libc::SYS_llistxattr, share("libc::llistxattr(")),
    (libc::SYS_ftruncate, share("libc::ftruncate(")),
    (libc::SYS_copy_file_range, share("libc::copy_file_range(")),
    (libc::SYS_fdatasync, share("libc::fdatasync(")),
    (libc::SYS_mkdirat, share("libc::mkdirat(")),
    (libc::SYS_mknodat, share("libc::mknodat(")),
    (libc::SYS_symlinkat, share("libc::symlinkat(")),
    (libc::SYS_linkat, share("libc::linkat(")),
    (libc::SYS_unlinkat, share("libc::unlinkat(")),
    (libc::SYS_renameat2, share("libc::SYS_renameat2")),
    (libc::SYS_fchmod, share("libc::fchmod(")),
    (libc::SYS_fchmodat, share("libc::fchmodat(")),
    (libc::SYS_utimensat, share("libc::utimensat(")),
    (libc::SYS_fsetxattr, share("libc::fsetxattr(")),
    (libc::SYS_lsetxattr, share("libc::lsetxattr(")),
    (libc::SYS_fremovexattr, share("libc::fremovexattr(")),
    (libc::SYS_lremovexattr, share("libc::lremovexattr(")),
    (libc::SYS_fchownat, share("libc::fchownat(")),
    (libc::SYS_setresuid, share("libc::SYS_setresuid")),
    (libc::SYS_setresgid, share("libc::SYS_setresgid")),
    (libc::SYS_setsockopt, In("krun-devices", "src/virtio/net/unixstream.rs", "sockopt::SndBuf")),
];

/// Returns the paths of the `Cargo.toml` of this program's crates, by the names of the crates. A crate with several
/// versions has several paths.
fn sources() -> BTreeMap<String, Vec<PathBuf>> {
    let mut cargo = Workspace::find().cargo();
    // Without the filter, cargo needs the crates of all platforms, which nothing has downloaded on a new machine.
    let filter = ["--filter-platform", "x86_64-unknown-linux-gnu"];
    cargo.args(["metadata", "--format-version", "1", "--offline"]).args(filter);
    let metadata = program::run(&mut cargo);
    let metadata: Value = serde_json::from_slice(&metadata.unwrap()).unwrap();
    let mut found = BTreeMap::<String, Vec<PathBuf>>::new();
    for package in metadata["packages"].as_array().unwrap() {
        let [name, manifest] = ["name", "manifest_path"].map(|it| package[it].as_str().unwrap());
        found.entry(name.to_owned()).or_default().push(PathBuf::from(manifest));
    }
    found
}

#[test]
fn each_call_that_is_let_through_has_a_caller() {
    let lists = [CALLS, DISK_CALLS, SHARE_CALLS, WRITABLE_SHARE_CALLS, NETWORK_CALLS];
    let listed: BTreeSet<_> = lists.into_iter().flatten().map(|(call, _)| *call).collect();
    let named: BTreeSet<_> = CALLERS.iter().map(|(call, _)| *call).collect();
    assert_eq!(named.len(), CALLERS.len(), "a call has two callers");
    let without: Vec<_> = listed.difference(&named).collect();
    assert!(
        without.is_empty(),
        "these are let through, and nobody is said to make them: {without:?}"
    );
    let left: Vec<_> = named.difference(&listed).collect();
    assert!(left.is_empty(), "these have a caller, and are not let through: {left:?}");
    let same = CALLERS.iter().filter(|(_, caller)| matches!(caller, Same(_))).count();
    assert!(same <= WITHOUT_CALLER, "{same} calls have no caller");
    let is_said = |caller: &Caller| match caller {
        In(..) => true,
        Std(reason) | Musl(reason) | Glibc(reason) | Kernel(reason) | Same(reason) => {
            !reason.is_empty()
        }
    };
    assert!(CALLERS.iter().all(|(_, caller)| is_said(caller)));
}

#[test]
fn the_callers_are_in_the_sources() {
    let sources = sources();
    for (call, caller) in CALLERS {
        let In(name, file, text) = caller else { continue };
        let has = |manifest: &PathBuf| {
            let source = fs::read_to_string(manifest.with_file_name(file));
            source.is_ok_and(|source| source.contains(text))
        };
        let versions = sources.get(*name).unwrap_or_else(|| panic!("no crate {name}"));
        assert!(versions.iter().any(has), "call {call}: no {text:?} in {name}/{file}");
    }
}

//! The system calls of a VMM process.
//!
//! Most calls of the list are from traces of boxes that start, run commands, copy files, and end. The others are from
//! the source of libkrun 1.19.7, imago, and Rust's standard library: from code that runs only on Intel processors, with
//! glibc instead of musl, when memory is returned to the host, or in a panic.
//!
//! A call that is not listed kills the process. One test makes each unlisted call. Another test starts boxes.

use nix::libc::{self, c_long};

/// A condition on the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// No condition.
    Any,
    /// The low 32 bits of the argument with this index equal one of the values.
    OneOf(u8, &'static [u32]),
    /// The argument with this index is a null pointer: all of its 64 bits are 0.
    Null(u8),
    /// None of these bits is set in the argument with this index.
    Without(u8, u32),
}

use Rule::{Any, Null, OneOf, Without};

/// The flags with which both C libraries start a thread.
const THREAD: u32 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID)
    .cast_unsigned();
/// A further flag, which musl sets. Linux has ignored it for twenty years.
const DETACHED: u32 = libc::CLONE_DETACHED.cast_unsigned();
const EXECUTABLE: u32 = libc::PROT_EXEC.cast_unsigned();
/// The flags with which open(2) makes or truncates a file. The VMM makes only sockets, and not with `open`.
const MAKES_FILES: u32 =
    (libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned();
/// The flag for out-of-band data, which caused a use-after-free in the kernel's Unix sockets
/// ([CVE-2025-38236](https://nvd.nist.gov/vuln/detail/CVE-2025-38236)).
const OUT_OF_BAND: u32 = libc::MSG_OOB.cast_unsigned();

/// The requests of ioctl(2): [KVM's](https://docs.kernel.org/virt/kvm/api.html), in the order of a VM's start, and
/// `FIONBIO`, with which Rust's standard library makes a socket non-blocking.
const REQUESTS: &[u32] = &[
    0xae00,      // KVM_GET_API_VERSION
    0xae03,      // KVM_CHECK_EXTENSION
    0xae01,      // KVM_CREATE_VM
    0xae04,      // KVM_GET_VCPU_MMAP_SIZE
    0xc008_ae05, // KVM_GET_SUPPORTED_CPUID
    0xc004_ae02, // KVM_GET_MSR_INDEX_LIST
    0x4020_ae46, // KVM_SET_USER_MEMORY_REGION
    0xae47,      // KVM_SET_TSS_ADDR
    0x4068_aea3, // KVM_ENABLE_CAP
    0xae41,      // KVM_CREATE_VCPU
    0x4008_ae90, // KVM_SET_CPUID2
    0x4008_ae89, // KVM_SET_MSRS
    0x4090_ae82, // KVM_SET_REGS
    0x41a0_ae8d, // KVM_SET_FPU
    0x8138_ae83, // KVM_GET_SREGS
    0x4138_ae84, // KVM_SET_SREGS
    0x8400_ae8e, // KVM_GET_LAPIC
    0x4400_ae8f, // KVM_SET_LAPIC
    0x4040_ae79, // KVM_IOEVENTFD
    0x4020_ae76, // KVM_IRQFD
    0x4008_ae6a, // KVM_SET_GSI_ROUTING
    0xae80,      // KVM_RUN
    0x5421,      // FIONBIO
];

/// The commands of fcntl(2).
const COMMANDS: &[u32] = &[
    libc::F_GETFD.cast_unsigned(),
    libc::F_SETFD.cast_unsigned(),
    libc::F_GETFL.cast_unsigned(),
    libc::F_SETFL.cast_unsigned(),
    libc::F_DUPFD_CLOEXEC.cast_unsigned(),
];

/// The calls of every VMM process, each with its rule.
pub(super) const CALLS: &[(c_long, Rule)] = &[
    // Open descriptors.
    (libc::SYS_read, Any),
    (libc::SYS_readv, Any),
    (libc::SYS_pread64, Any),
    (libc::SYS_preadv, Any),
    (libc::SYS_write, Any),
    (libc::SYS_writev, Any),
    (libc::SYS_close, Any),
    (libc::SYS_dup, Any),
    (libc::SYS_fcntl, OneOf(1, COMMANDS)),
    (libc::SYS_fstat, Any),
    (libc::SYS_fstatfs, Any),
    (libc::SYS_lseek, Any),
    // For a volume that the guest flushes, and for any disk if the VM's start fails.
    (libc::SYS_fsync, Any),
    (libc::SYS_ioctl, OneOf(1, REQUESTS)),
    // The files of the box, and the device of KVM.
    (libc::SYS_open, Without(1, MAKES_FILES)),
    (libc::SYS_openat, Without(2, MAKES_FILES)),
    (libc::SYS_stat, Any),
    (libc::SYS_newfstatat, Any),
    (libc::SYS_statx, Any),
    // When the VM ends, libkrun tries to remove its sockets, which Landlock refuses.
    (libc::SYS_unlink, Any),
    // Waiting.
    (libc::SYS_poll, Any),
    (libc::SYS_ppoll, Any),
    (libc::SYS_epoll_create1, Any),
    (libc::SYS_epoll_ctl, Any),
    (libc::SYS_epoll_wait, Any),
    (libc::SYS_epoll_pwait, Any),
    (libc::SYS_eventfd2, Any),
    (libc::SYS_nanosleep, Any),
    (libc::SYS_clock_nanosleep, Any),
    (libc::SYS_clock_gettime, Any),
    (libc::SYS_restart_syscall, Any),
    // The sockets of vsock.
    (libc::SYS_socket, OneOf(0, &[libc::AF_UNIX.cast_unsigned()])),
    (libc::SYS_connect, Any),
    (libc::SYS_bind, Any),
    (libc::SYS_listen, Any),
    (libc::SYS_accept, Any),
    (libc::SYS_accept4, Any),
    (libc::SYS_sendto, Without(3, OUT_OF_BAND)),
    (libc::SYS_recvfrom, Without(3, OUT_OF_BAND)),
    (libc::SYS_shutdown, Any),
    // Memory, which must never become executable.
    (libc::SYS_mmap, Without(2, EXECUTABLE)),
    (libc::SYS_mprotect, Without(2, EXECUTABLE)),
    (libc::SYS_munmap, Any),
    (libc::SYS_mremap, Any),
    (libc::SYS_madvise, Any),
    (libc::SYS_brk, Any),
    // Threads.
    (libc::SYS_clone, OneOf(0, &[THREAD, THREAD | DETACHED])),
    (libc::SYS_futex, Any),
    (libc::SYS_sched_yield, Any),
    (libc::SYS_sched_getaffinity, Any),
    (libc::SYS_set_robust_list, Any),
    (libc::SYS_rseq, Any),
    (libc::SYS_gettid, Any),
    (libc::SYS_getpid, Any),
    (libc::SYS_prctl, OneOf(0, &[libc::PR_SET_NAME.cast_unsigned(), PR_SET_VMA])),
    (libc::SYS_prlimit64, Null(2)),
    (libc::SYS_getrandom, Any),
    // Signals: for interrupting the virtual CPUs, and for a panic.
    (libc::SYS_rt_sigaction, Any),
    (libc::SYS_rt_sigprocmask, Any),
    (libc::SYS_rt_sigreturn, Any),
    (libc::SYS_sigaltstack, Any),
    (libc::SYS_tkill, Any),
    (libc::SYS_tgkill, OneOf(0, &[SELF])),
    // Exit.
    (libc::SYS_exit, Any),
    (libc::SYS_exit_group, Any),
];

/// The additional calls of a VMM process that has writable disks.
pub(super) const DISK_CALLS: &[(c_long, Rule)] = &[
    (libc::SYS_pwrite64, Any),
    (libc::SYS_pwritev, Any),
    // For blocks that the guest discards.
    (libc::SYS_fallocate, Any),
];

/// The additional calls of a VMM process that serves directories of the host.
pub(super) const SHARE_CALLS: &[(c_long, Rule)] = &[
    (libc::SYS_capget, Any),
    (libc::SYS_umask, Any),
    (libc::SYS_getuid, Any),
    (libc::SYS_getgid, Any),
    (libc::SYS_geteuid, Any),
    (libc::SYS_getegid, Any),
    (libc::SYS_getdents64, Any),
    (libc::SYS_readlinkat, Any),
    (libc::SYS_fgetxattr, Any),
    (libc::SYS_lgetxattr, Any),
    (libc::SYS_flistxattr, Any),
    (libc::SYS_llistxattr, Any),
];

/// The additional calls of a VMM process that serves writable directories.
pub(super) const WRITABLE_SHARE_CALLS: &[(c_long, Rule)] = &[
    (libc::SYS_openat, Any),
    (libc::SYS_pwrite64, Any),
    (libc::SYS_pwritev, Any),
    (libc::SYS_fallocate, Any),
    (libc::SYS_ftruncate, Any),
    (libc::SYS_copy_file_range, Any),
    (libc::SYS_fdatasync, Any),
    (libc::SYS_mkdirat, Any),
    (libc::SYS_mknodat, Any),
    (libc::SYS_symlinkat, Any),
    (libc::SYS_linkat, Any),
    (libc::SYS_unlinkat, Any),
    (libc::SYS_renameat2, Any),
    (libc::SYS_fchmod, Any),
    (libc::SYS_fchmodat, Any),
    (libc::SYS_utimensat, Any),
    (libc::SYS_fsetxattr, Any),
    (libc::SYS_lsetxattr, Any),
    (libc::SYS_fremovexattr, Any),
    (libc::SYS_lremovexattr, Any),
    (libc::SYS_fchownat, Any),
    (libc::SYS_setresuid, Any),
    (libc::SYS_setresgid, Any),
];

/// The additional call of a VMM process that has a network device: it sets the size of the send buffer.
pub(super) const NETWORK_CALLS: &[(c_long, Rule)] =
    &[(libc::SYS_setsockopt, OneOf(2, &[libc::SO_SNDBUF.cast_unsigned()]))];

/// The calls that the filter turns into successful no-ops: all files that the guest makes belong to the one user that
/// this process runs as, whatever owner the guest asks for.
pub(super) const IDLE_CALLS: &[c_long] =
    &[libc::SYS_fchownat, libc::SYS_setresuid, libc::SYS_setresgid];

/// The calls that set a mode, each with the index of the argument that is the mode. A call fails with EPERM if its mode
/// has a bit of [`SET_ID_BITS`]: a program that the guest makes must not run as its owner on the host.
pub(super) const MODE_CALLS: &[(c_long, u8)] = &[
    (libc::SYS_openat, 3),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknodat, 2),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
];

/// The calls that make links and special files, each with the index of its first unused argument. A call fails with EPERM unless
/// this argument is [`PERMIT`](super::links::PERMIT): only `links` makes such calls.
pub(super) const LINK_CALLS: &[(c_long, u8)] = &[(libc::SYS_symlinkat, 3), (libc::SYS_mknodat, 4)];

/// The bits of a mode that make a program run as another user or group.
pub(super) const SET_ID_BITS: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// `openat` has a mode if its flags, the argument with index 2, contain one of these.
pub(super) const MODE_FLAGS: [u32; 2] =
    [libc::O_CREAT.cast_unsigned(), (libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned()];

/// `PR_SET_VMA` (`linux/prctl.h`), with which newer C libraries name their memory.
const PR_SET_VMA: u32 = 0x5356_4d41;
/// A placeholder that the filter replaces with the id of its process.
pub(super) const SELF: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_counts_them() {
        let document = include_str!("../../../../docs/security.md");
        let is_new = |(call, _): &&(c_long, Rule)| {
            CALLS.iter().chain(SHARE_CALLS).all(|(listed, _)| listed != call)
        };
        let writing = WRITABLE_SHARE_CALLS.iter().filter(is_new).count();
        let requests = REQUESTS.iter().filter(|it| **it >> 8 & 0xff == 0xae).count();
        for text in [format!("| {} system calls", CALLS.len()), format!("the {requests} requests")]
            .into_iter()
            .chain([
                format!("{} more where a box has disks", DISK_CALLS.len()),
                format!("{} more where it is shown directories", SHARE_CALLS.len()),
                format!("{writing} where it may write to them"),
                format!("and {} where it shares the host's network", NETWORK_CALLS.len()),
            ])
        {
            assert!(document.contains(&text), "{text}");
        }
    }
}

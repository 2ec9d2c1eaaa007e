//! The verdict on each system call. The filter (`program.rs`) and the end of `docs/security.md` are generated from this
//! table.

use super::calls::Docker::{self, Allows, Needs, Refuses, Restricts};
use super::calls::Row;
use super::calls::Verdict::{
    self, Absent, Allowed, ByCloneFlags, ByFamily, ByPersonality, ByRequest, Refused,
};
use super::reasons::*;

/// Every call of Linux 6.12 and 6.13 for x86-64, by number
/// ([syscall_64.tbl](https://github.com/torvalds/linux/blob/v6.12/arch/x86/entry/syscalls/syscall_64.tbl)). Other
/// numbers have the verdict [`Verdict::Absent`]. Docker's verdicts are from `seccomp/default.json` in
/// [moby/profiles](https://github.com/moby/profiles), June 2026.
pub(crate) const CALLS: &[Row] = &[
    run(
        0,
        "read write open close stat fstat lstat poll lseek mmap mprotect munmap brk \
         rt_sigaction rt_sigprocmask rt_sigreturn",
    ),
    row(16, "ioctl", ByRequest, Allows, REQUESTS),
    run(
        17,
        "pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore \
         madvise shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm setitimer \
         getpid sendfile",
    ),
    row(41, "socket", ByFamily, Restricts, FAMILIES),
    run(
        42,
        "connect accept sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname \
         getpeername",
    ),
    row(53, "socketpair", ByFamily, Allows, FAMILIES),
    run(54, "setsockopt getsockopt"),
    row(56, "clone", ByCloneFlags, Restricts, NEW_NAMESPACES),
    run(
        57,
        "fork vfork execve exit wait4 kill uname semget semop semctl shmdt msgget msgsnd \
         msgrcv msgctl fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir \
         fchdir rename mkdir rmdir creat link unlink symlink readlink chmod fchmod chown \
         fchown lchown umask gettimeofday getrlimit getrusage sysinfo times",
    ),
    row(101, "ptrace", Allowed, Allows, TRACING),
    run(102, "getuid"),
    row(103, "syslog", Refused, Needs("SYS_ADMIN"), MESSAGES),
    run(
        104,
        "getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid setreuid \
         setregid getgroups setgroups setresuid getresuid setresgid getresgid getpgid \
         setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo \
         rt_sigsuspend sigaltstack utime mknod",
    ),
    row(134, "uselib", Absent, Refuses, OLD),
    row(135, "personality", ByPersonality, Restricts, PERSONALITIES),
    row(136, "ustat", Absent, Refuses, OLD),
    run(137, "statfs fstatfs"),
    row(139, "sysfs", Absent, Refuses, OLD),
    run(
        140,
        "getpriority setpriority sched_setparam sched_getparam sched_setscheduler \
         sched_getscheduler sched_get_priority_max sched_get_priority_min \
         sched_rr_get_interval mlock munlock mlockall munlockall",
    ),
    row(153, "vhangup", Refused, Needs("SYS_TTY_CONFIG"), HANG_UP),
    row(154, "modify_ldt", Absent, Allows, SEGMENTS),
    row(155, "pivot_root", Refused, Refuses, MOUNTS),
    row(156, "_sysctl", Absent, Refuses, GONE),
    run(157, "prctl arch_prctl"),
    row(159, "adjtimex", Refused, Allows, CLOCK),
    run(160, "setrlimit"),
    row(161, "chroot", Allowed, Needs("SYS_CHROOT"), CHROOT),
    run(162, "sync"),
    row(163, "acct", Refused, Needs("SYS_PACCT"), RECORDS),
    row(164, "settimeofday", Refused, Needs("SYS_TIME"), CLOCK),
    row(165, "mount umount2", Refused, Needs("SYS_ADMIN"), MOUNTS),
    row(167, "swapon swapoff", Refused, Refuses, SWAP),
    row(169, "reboot", Refused, Needs("SYS_BOOT"), REBOOT),
    row(170, "sethostname setdomainname", Refused, Needs("SYS_ADMIN"), NAMES),
    row(172, "iopl ioperm", Refused, Needs("SYS_RAWIO"), DEVICES),
    row(174, "create_module", Absent, Refuses, GONE),
    row(175, "init_module delete_module", Refused, Needs("SYS_MODULE"), KERNEL),
    row(177, "get_kernel_syms query_module", Absent, Refuses, GONE),
    row(179, "quotactl", Refused, Needs("SYS_ADMIN"), QUOTAS),
    row(180, "nfsservctl getpmsg putpmsg afs_syscall tuxcall security", Absent, Refuses, GONE),
    run(
        186,
        "gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr \
         llistxattr flistxattr removexattr lremovexattr fremovexattr tkill time futex \
         sched_setaffinity sched_getaffinity set_thread_area io_setup io_destroy io_getevents \
         io_submit io_cancel get_thread_area",
    ),
    row(212, "lookup_dcookie", Absent, Needs("SYS_ADMIN"), GONE),
    run(213, "epoll_create"),
    row(214, "epoll_ctl_old epoll_wait_old", Absent, Allows, GONE),
    run(
        216,
        "remap_file_pages getdents64 set_tid_address restart_syscall semtimedop fadvise64 \
         timer_create timer_settime timer_gettime timer_getoverrun timer_delete",
    ),
    row(227, "clock_settime", Refused, Needs("SYS_TIME"), CLOCK),
    run(
        228,
        "clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill \
         utimes",
    ),
    row(236, "vserver", Absent, Refuses, GONE),
    row(237, "mbind set_mempolicy get_mempolicy", Absent, Needs("SYS_NICE"), NODES),
    run(240, "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr"),
    row(246, "kexec_load", Refused, Refuses, KERNEL),
    run(247, "waitid"),
    row(248, "add_key request_key keyctl", Refused, Refuses, KEYS),
    run(251, "ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch"),
    row(256, "migrate_pages", Absent, Refuses, NODES),
    run(
        257,
        "openat mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat \
         symlinkat readlinkat fchmodat faccessat pselect6 ppoll",
    ),
    row(272, "unshare", Refused, Needs("SYS_ADMIN"), NAMESPACES),
    run(273, "set_robust_list get_robust_list splice tee sync_file_range vmsplice"),
    row(279, "move_pages", Absent, Refuses, NODES),
    run(
        280,
        "utimensat epoll_pwait signalfd timerfd_create eventfd fallocate timerfd_settime \
         timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 \
         preadv pwritev rt_tgsigqueueinfo",
    ),
    row(298, "perf_event_open", Refused, Needs("SYS_ADMIN"), MEASURING),
    run(299, "recvmmsg"),
    row(300, "fanotify_init", Refused, Needs("SYS_ADMIN"), WATCHING),
    run(301, "fanotify_mark prlimit64"),
    row(303, "name_to_handle_at", Refused, Allows, HANDLES),
    row(304, "open_by_handle_at", Refused, Needs("DAC_READ_SEARCH"), HANDLES),
    row(305, "clock_adjtime", Refused, Allows, CLOCK),
    run(306, "syncfs sendmmsg"),
    row(308, "setns", Refused, Needs("SYS_ADMIN"), NAMESPACES),
    run(309, "getcpu"),
    row(310, "process_vm_readv process_vm_writev", Allowed, Allows, TRACING),
    row(312, "kcmp", Refused, Needs("SYS_PTRACE"), OTHERS),
    row(313, "finit_module", Refused, Needs("SYS_MODULE"), KERNEL),
    run(314, "sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create"),
    row(320, "kexec_file_load", Refused, Refuses, KERNEL),
    row(321, "bpf", Refused, Needs("SYS_ADMIN"), BPF),
    run(322, "execveat"),
    row(323, "userfaultfd", Refused, Refuses, PAGE_FAULTS),
    run(
        324,
        "membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc \
         pkey_free statx io_pgetevents rseq",
    ),
    row(335, "uretprobe", Absent, Allows, PROBE),
    run(424, "pidfd_send_signal"),
    row(425, "io_uring_setup io_uring_enter io_uring_register", Refused, Refuses, RING),
    row(
        428,
        "open_tree move_mount fsopen fsconfig fsmount fspick",
        Refused,
        Needs("SYS_ADMIN"),
        MOUNTS,
    ),
    run(434, "pidfd_open"),
    row(435, "clone3", Absent, Refuses, CLONE3),
    run(436, "close_range openat2"),
    row(438, "pidfd_getfd", Refused, Needs("SYS_PTRACE"), OTHERS),
    run(439, "faccessat2"),
    row(440, "process_madvise", Refused, Needs("SYS_PTRACE"), OTHERS),
    run(441, "epoll_pwait2"),
    row(442, "mount_setattr", Refused, Needs("SYS_ADMIN"), MOUNTS),
    row(443, "quotactl_fd", Refused, Needs("SYS_ADMIN"), QUOTAS),
    run(
        444,
        "landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret \
         process_mrelease futex_waitv",
    ),
    row(450, "set_mempolicy_home_node", Absent, Needs("SYS_NICE"), NODES),
    run(
        451,
        "cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue statmount \
         listmount",
    ),
    row(
        459,
        "lsm_get_self_attr lsm_set_self_attr lsm_list_modules",
        Refused,
        Needs("SYS_ADMIN"),
        SECURITY_MODULES,
    ),
    run(462, "mseal setxattrat getxattrat listxattrat removexattrat"),
];

/// Returns a row of calls that are allowed here and by Docker.
const fn run(first: u32, names: &'static str) -> Row {
    row(first, names, Allowed, Allows, "")
}

const fn row(
    first: u32,
    names: &'static str,
    verdict: Verdict,
    docker: Docker,
    reason: &'static str,
) -> Row {
    Row { first, names, verdict, docker, reason }
}

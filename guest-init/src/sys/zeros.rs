//! Harmless system calls for the tests' hostile program. Their arguments are zeros, or are numbers and not pointers.

use nix::errno::Errno;
use nix::libc;

/// Declares the calls, with their numbers.
macro_rules! calls {
    ($($name:ident = $number:ident,)*) => {
        /// A call that has no effect if all of its arguments are zero. Its error shows whether the call is allowed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is named after its call")]
        pub enum Call { $($name,)* }

        impl Call {
            const fn number(self) -> libc::c_long {
                match self {
                    $(Self::$name => libc::$number,)*
                }
            }
        }
    };
}

calls! {
    Acct = SYS_acct,
    AddKey = SYS_add_key,
    Adjtimex = SYS_adjtimex,
    Bpf = SYS_bpf,
    Clone3 = SYS_clone3,
    FanotifyInit = SYS_fanotify_init,
    Fsopen = SYS_fsopen,
    IoUringSetup = SYS_io_uring_setup,
    Ioperm = SYS_ioperm,
    Iopl = SYS_iopl,
    Kcmp = SYS_kcmp,
    KexecLoad = SYS_kexec_load,
    Keyctl = SYS_keyctl,
    MountSetattr = SYS_mount_setattr,
    MoveMount = SYS_move_mount,
    NameToHandleAt = SYS_name_to_handle_at,
    OpenByHandleAt = SYS_open_by_handle_at,
    OpenTree = SYS_open_tree,
    PerfEventOpen = SYS_perf_event_open,
    PidfdGetfd = SYS_pidfd_getfd,
    Quotactl = SYS_quotactl,
    RequestKey = SYS_request_key,
    Settimeofday = SYS_settimeofday,
    Swapon = SYS_swapon,
    Syslog = SYS_syslog,
    Userfaultfd = SYS_userfaultfd,
    Vhangup = SYS_vhangup,
}

/// Makes a call with zeros as arguments.
///
/// # Errors
/// The kernel's error, or the filter's.
pub fn call_with_zeros(call: Call) -> nix::Result<()> {
    // SAFETY: the calls of the list write only through pointers, and the kernel returns EFAULT for a null pointer. None
    // of them maps, unmaps or protects memory.
    let result = unsafe { libc::syscall(call.number(), 0_u64, 0_u64, 0_u64, 0_u64, 0_u64, 0_u64) };
    Errno::result(result).map(drop)
}

/// A kind of System V IPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemV {
    /// Shared memory.
    Memory,
    /// Semaphores.
    Semaphores,
    /// A message queue.
    Messages,
}

/// Looks up the IPC object with a key. With `make`, makes it if it is missing, accessible to every user.
///
/// # Errors
/// The kernel's error. `ENOENT` if the object does not exist and `make` is `false`.
pub fn get(kind: SystemV, key: i32, make: bool) -> nix::Result<()> {
    let flags = if make { libc::IPC_CREAT | 0o666 } else { 0 };
    let size = usize::from(make);
    let result = match kind {
        // SAFETY: the call takes numbers only.
        SystemV::Memory => unsafe { libc::shmget(key, size, flags) },
        // SAFETY: as above.
        SystemV::Semaphores => unsafe { libc::semget(key, i32::from(make), flags) },
        // SAFETY: as above.
        SystemV::Messages => unsafe { libc::msgget(key, flags) },
    };
    Errno::result(result).map(drop)
}

//! The system calls that no safe wrapper covers. All unsafe code of the crate is here.
//!
//! JUSTIFICATION: PID 1 needs `clone3` into a cgroup, capabilities, seccomp, the time stamp counter and the terminals
//! of commands. Neither the standard library nor `nix` offers them. Each function is safe to call from a process with
//! one thread. Every process of init has one thread, except that a bridge starts threads and afterwards calls only
//! [`accept`], which is safe with threads, and that the process of `cap_http` starts threads and calls none of them.
#![allow(unsafe_code)]

pub mod mounts;
#[cfg(test)]
pub(crate) mod probe;
pub mod terminal;
pub mod zeros;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use nix::NixPath as _;
use nix::errno::Errno;
use nix::libc;
use nix::sched::CloneFlags;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockFlag, accept4, recvmsg};
use nix::unistd::Pid;

/// The exit status of a forked process whose code panicked.
const PANICKED: i32 = 125;

/// Reads the CPU's time stamp counter.
pub fn time_stamp_counter() -> u64 {
    // SAFETY: RDTSC reads a register and touches no memory; every x86-64 CPU has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Sends a signal. Unlike `nix`, supports real-time signals. Ignores errors: the process may have ended, and the number
/// may not be a signal's.
pub fn send_signal(pid: Pid, number: i32) {
    // SAFETY: kill(2) takes two numbers and touches no memory of this process.
    let _ = unsafe { libc::kill(pid.as_raw(), number) };
}

/// The first version of the kernel's `struct clone_args` with the field `cgroup`
/// ([clone(2)](https://man7.org/linux/man-pages/man2/clone.2.html)): `CLONE_ARGS_SIZE_VER2` in
/// `include/uapi/linux/sched.h`.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// `CLONE_INTO_CGROUP`, which does not fit the C `int` of `nix`'s flags.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Forks the calling process. The child runs `body` and exits with the returned status.
///
/// With `cgroup`, an open directory of cgroup v2, the child starts in that cgroup, so all of its resources are charged
/// to it. Moving the child later through `cgroup.procs` would also cost an RCU grace period.
///
/// # Examples
///
/// ```
/// use box_init::sys::fork;
/// use nix::sched::CloneFlags;
/// use nix::sys::wait::{WaitStatus, waitpid};
///
/// let child = fork(CloneFlags::empty(), None, || 7)?;
/// assert_eq!(waitpid(child, None)?, WaitStatus::Exited(child, 7));
/// # Ok::<(), nix::Error>(())
/// ```
///
/// # Errors
/// The kernel's error. `EAGAIN` if the cgroup's `pids.max` is reached.
pub fn fork(
    flags: CloneFlags,
    cgroup: Option<BorrowedFd<'_>>,
    body: impl FnOnce() -> i32,
) -> nix::Result<Pid> {
    let bits = u64::from(flags.bits().cast_unsigned());
    let exit_signal = u64::from((Signal::SIGCHLD as i32).cast_unsigned());
    let mut args = CloneArgs { flags: bits, exit_signal, ..Default::default() };
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }
    // SAFETY: `args` is a valid clone_args of the size given. Without CLONE_VM and without a stack
    // the call is a fork: the child has a copy of this process, which has one thread, so no lock
    // is held by a thread that the copy lacks.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    match Errno::result(pid)? {
        0 => exit_with(body),
        pid => Ok(Pid::from_raw(i32::try_from(pid).map_err(|_| Errno::ERANGE)?)),
    }
}

fn exit_with(body: impl FnOnce() -> i32) -> ! {
    let status = catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED);
    // SAFETY: `_exit` has no preconditions; it skips what the parent registered to run at exit.
    unsafe { libc::_exit(status) }
}

/// Closes every file descriptor from 3 up, except those in `keep`.
///
/// Only for a newly forked process, which never returns to the owners of the closed descriptors.
///
/// # Errors
/// The kernel's error.
pub fn close_all_but(keep: &[BorrowedFd<'_>]) -> nix::Result<()> {
    let mut keep: Vec<RawFd> = keep.iter().map(AsRawFd::as_raw_fd).filter(|fd| *fd >= 3).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep {
        if first < fd {
            close_range(first.cast_unsigned(), (fd - 1).cast_unsigned())?;
        }
        first = fd + 1;
    }
    close_range(first.cast_unsigned(), u32::MAX)
}

fn close_range(first: u32, last: u32) -> nix::Result<()> {
    // SAFETY: the call takes no pointers. The callers are forked children whose copies of the
    // owning objects are never dropped, as they end in `execve` or `_exit`.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    Errno::result(result).map(drop)
}

/// Reaps one ended child without waiting. Returns its process id and the kernel's raw status.
///
/// Unlike `nix`'s function, supports a child that was ended by a real-time signal.
pub fn reap() -> Option<(Pid, i32)> {
    let mut status = 0;
    // SAFETY: `status` is valid for writes for the duration of the call.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then(|| (Pid::from_raw(pid), status))
}

/// Returns a descriptor of a process. `poll` reports it as readable when the process has ended
/// ([pidfd_open(2)](https://man7.org/linux/man-pages/man2/pidfd_open.2.html)).
///
/// # Errors
/// The kernel's error. `ESRCH` if the process has been reaped.
pub fn open_process(pid: Pid) -> nix::Result<OwnedFd> {
    // SAFETY: the call takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    let fd = RawFd::try_from(Errno::result(fd)?).map_err(|_| Errno::ERANGE)?;
    // SAFETY: the kernel has just made this descriptor, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Exchanges the files of two paths atomically
/// ([renameat2(2)](https://man7.org/linux/man-pages/man2/renameat2.2.html)).
///
/// # Errors
/// The kernel's error.
pub fn exchange(one: &Path, other: &Path) -> nix::Result<()> {
    let result = one.with_nix_path(|one| {
        other.with_nix_path(|other| {
            let (at, flags) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
            // SAFETY: both paths are C strings that outlive the call. The other arguments are numbers.
            unsafe {
                libc::syscall(libc::SYS_renameat2, at, one.as_ptr(), at, other.as_ptr(), flags)
            }
        })
    })??;
    Errno::result(result).map(drop)
}

/// Accepts one connection on a listening socket.
///
/// # Errors
/// The kernel's error.
pub fn accept(listener: BorrowedFd<'_>) -> nix::Result<OwnedFd> {
    let fd = accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
    // SAFETY: the kernel has just made this descriptor, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Receives one packet and its file descriptors (three at most).
///
/// Returns the packet's length, which is zero if the other end has hung up.
///
/// # Errors
/// The kernel's error. `EMSGSIZE` for a packet that is longer than `buffer`.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> nix::Result<(usize, Vec<OwnedFd>)> {
    let mut space = nix::cmsg_space!([RawFd; 4]);
    let mut iov = [io::IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut iov, Some(&mut space), flags)?;
    let mut fds = Vec::new();
    for control in message.cmsgs()? {
        let ControlMessageOwned::ScmRights(received) = control else { continue };
        // SAFETY: SCM_RIGHTS has just put these descriptors into this process, so nothing else
        // owns them.
        fds.extend(received.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
    }
    if message.flags.contains(MsgFlags::MSG_TRUNC) {
        return Err(Errno::EMSGSIZE);
    }
    Ok((message.bytes, fds))
}

/// Brings the loopback device of the current network namespace up.
///
/// # Errors
/// The kernel's error.
pub fn loopback_up(socket: BorrowedFd<'_>) -> nix::Result<()> {
    device_up(socket, "lo")
}

/// Brings a device of the current network namespace up.
///
/// # Errors
/// The kernel's error. `ENODEV` if no device has this name.
pub fn device_up(socket: BorrowedFd<'_>, device: &str) -> nix::Result<()> {
    let up =
        libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(|_| Errno::ERANGE)?;
    let flags = libc::__c_anonymous_ifr_ifru { ifru_flags: up };
    set_interface(socket, device.as_bytes(), libc::SIOCSIFFLAGS, flags)
}

/// Gives the loopback device of the current network namespace a further address, as the alias `lo:N`. All addresses
/// with the same prefix then belong to the namespace
/// ([netdevice(7)](https://man7.org/linux/man-pages/man7/netdevice.7.html)).
///
/// # Errors
/// The kernel's error.
pub fn add_loopback_address(
    socket: BorrowedFd<'_>,
    alias: u8,
    (address, prefix): (Ipv4Addr, u8),
) -> nix::Result<()> {
    set_address(socket, &format!("lo:{alias}"), (address, prefix))
}

/// Gives a device of the current network namespace its address, and the length of its network's prefix in bits.
///
/// # Errors
/// The kernel's error. `ENODEV` if no device has this name.
pub fn set_address(
    socket: BorrowedFd<'_>,
    device: &str,
    (address, prefix): (Ipv4Addr, u8),
) -> nix::Result<()> {
    let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix.into())).unwrap_or(0);
    for (request, address) in
        [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, Ipv4Addr::from_bits(mask))]
    {
        let address = libc::__c_anonymous_ifr_ifru { ifru_addr: socket_address(address) };
        set_interface(socket, device.as_bytes(), request, address)?;
    }
    Ok(())
}

/// Adds the default route through a gateway, which must be reachable.
///
/// # Errors
/// The kernel's error.
pub fn add_default_route(socket: BorrowedFd<'_>, gateway: Ipv4Addr) -> nix::Result<()> {
    // SAFETY: `rtentry` consists of numbers, socket addresses and pointers, for all of which zeros are valid.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    route.rt_dst = socket_address(Ipv4Addr::UNSPECIFIED);
    route.rt_genmask = socket_address(Ipv4Addr::UNSPECIFIED);
    route.rt_gateway = socket_address(gateway);
    route.rt_flags = libc::RTF_UP | libc::RTF_GATEWAY;
    // SAFETY: the request reads a whole `rtentry`, which `route` is. The pointer to a device's name is null and is not
    // read.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCADDRT as _, &raw const route) };
    Errno::result(result).map(drop)
}

/// Returns an address in the form of `struct sockaddr_in`, without a port.
fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    // The address follows the port.
    for (to, byte) in data[2..].iter_mut().zip(address.octets()) {
        *to = byte.cast_signed();
    }
    // AF_INET is 2.
    libc::sockaddr {
        sa_family: libc::sa_family_t::try_from(libc::AF_INET).unwrap_or(2),
        sa_data: data,
    }
}

/// Sets a property of a network device.
fn set_interface(
    socket: BorrowedFd<'_>,
    device: &[u8],
    request: libc::c_ulong,
    value: libc::__c_anonymous_ifr_ifru,
) -> nix::Result<()> {
    let mut name = [0; libc::IFNAMSIZ];
    for (to, byte) in name.iter_mut().zip(device) {
        *to = byte.cast_signed();
    }
    let set = libc::ifreq { ifr_name: name, ifr_ifru: value };
    // SAFETY: each of the requests above reads a whole `ifreq`, which `set` is, and writes nothing.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw const set) };
    Errno::result(result).map(drop)
}

/// Gives every signal its default disposition, and unblocks it. `execve` would otherwise keep ignored signals ignored and blocked
/// ones blocked.
///
/// # Errors
/// The kernel's error.
pub fn reset_signals() -> nix::Result<()> {
    let fixed = |signal: &Signal| matches!(signal, Signal::SIGKILL | Signal::SIGSTOP);
    for number in Signal::iterator().filter(|signal| !fixed(signal)) {
        // SAFETY: the default disposition runs no code of ours.
        unsafe { signal(number, SigHandler::SigDfl) }?;
    }
    SigSet::empty().thread_set_mask()
}

/// Sets the nice value of this process and its future children, from -20 (highest priority) to 19.
///
/// # Errors
/// The kernel's error.
pub fn set_nice(nice: i32) -> nix::Result<()> {
    // SAFETY: the call takes numbers only; 0 is the calling process.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    Errno::result(result).map(drop)
}

/// Drops a capability from the bounding set. Returns whether the kernel knows the capability.
///
/// # Errors
/// The kernel's error, except `EINVAL` for an unknown capability.
pub fn drop_bounding(capability: u8) -> nix::Result<bool> {
    let capability = libc::c_ulong::from(capability);
    // SAFETY: PR_CAPBSET_DROP takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    match Errno::result(result) {
        Ok(_) => Ok(true),
        Err(Errno::EINVAL) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Empties the ambient capability set.
///
/// # Errors
/// The kernel's error.
pub fn clear_ambient() -> nix::Result<()> {
    let clear = libc::c_ulong::from(libc::PR_CAP_AMBIENT_CLEAR_ALL.cast_unsigned());
    // SAFETY: PR_CAP_AMBIENT takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, clear, 0, 0, 0) };
    Errno::result(result).map(drop)
}

/// `_LINUX_CAPABILITY_VERSION_3`: sets of 64 bits, in two halves.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Makes `set` the permitted and the effective capabilities, and empties the inheritable set.
///
/// # Errors
/// The kernel's error. `EPERM` for a capability that the process does not have.
pub fn set_capabilities(set: u64) -> nix::Result<()> {
    let [b0, b1, b2, b3, b4, b5, b6, b7] = set.to_le_bytes();
    let low = u32::from_le_bytes([b0, b1, b2, b3]);
    let high = u32::from_le_bytes([b4, b5, b6, b7]);
    // `struct __user_cap_header_struct`, then two of `__user_cap_data_struct`.
    let header: [u32; 2] = [CAPABILITY_VERSION, 0];
    let data: [u32; 6] = [low, low, 0, high, high, 0];
    // SAFETY: header and data have the layout and length that version 3 prescribes; the kernel
    // only reads them.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const data) };
    Errno::result(result).map(drop)
}

/// Installs a classic BPF program as a filter of all system calls of this process and its descendants.
///
/// # Errors
/// The kernel's error. `EACCES` without `no_new_privs`.
pub fn install_filter(program: &[libc::sock_filter]) -> nix::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: `program` refers to `len` instructions that outlive the call. The kernel copies and checks them, and does
    // not write to them.
    let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) };
    Errno::result(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::wait::{WaitStatus, waitpid};

    #[test]
    fn a_forked_body_decides_the_exit_status() {
        let pid = fork(CloneFlags::empty(), None, || 42).unwrap();
        assert_eq!(waitpid(pid, None).unwrap(), WaitStatus::Exited(pid, 42));
    }

    /// As for a workload: init blocks signals, and its parent may ignore some. Signal 32 is one of the C library, which nobody resets.
    #[test]
    fn a_program_gets_its_own_session_and_no_signal_that_is_ignored_or_blocked() {
        let script = "read -r _ _ _ _ group session _ < /proc/self/stat && [ $group = $$ ] && [ $session = $$ ] && \
            [ $(grep -cE '^Sig(Ign|Blk):.*[08]0{7}$' /proc/self/status) = 2 ]";
        let program = |is_reset| {
            move || {
                let fixed = [Signal::SIGKILL, Signal::SIGSTOP];
                for number in Signal::iterator().filter(|it| !fixed.contains(it)) {
                    // SAFETY: ignoring a signal runs no code of ours.
                    unsafe { signal(number, SigHandler::SigIgn) }.unwrap();
                }
                SigSet::all().thread_set_mask().unwrap();
                nix::unistd::setsid().unwrap();
                if is_reset {
                    reset_signals().unwrap();
                }
                let script = std::ffi::CString::new(script).unwrap();
                nix::unistd::execv(c"/bin/sh", &[c"sh", c"-c", &script])
                    .map_or(9, |never| match never {})
            }
        };
        for (is_reset, status) in [(true, 0), (false, 1)] {
            let pid = fork(CloneFlags::empty(), None, program(is_reset)).unwrap();
            assert_eq!(waitpid(pid, None).unwrap(), WaitStatus::Exited(pid, status));
        }
    }

    #[test]
    fn the_time_stamp_counter_increases() {
        assert!(time_stamp_counter() < time_stamp_counter());
    }
}

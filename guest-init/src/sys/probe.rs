//! Makes system calls for the tests of a filter. A second filter, `MARKED`, fails the calls that the tested filter
//! allows, so the kernel executes none of them.

use std::io::{Read as _, pipe};
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::libc::{self, sock_filter};
use nix::sched::CloneFlags;
use nix::sys::prctl::set_no_new_privs;
use nix::sys::wait::{WaitStatus, waitpid};

use super::{fork, install_filter};

/// The result of a call that the tested filter allows.
pub(crate) const PASSED: Errno = Errno::EXDEV;

/// The sixth argument of the calls. Only [`MARKED`] reads it.
const MARK: u32 = 0x5EC0_4B1D;

/// A filter that returns [`PASSED`] for calls with the mark, and for all calls of other architectures. If two filters
/// return an error, the one that was installed last takes precedence. So this filter is installed first, and its result
/// shows that the tested filter allows the call.
const MARKED: [sock_filter; 6] = [
    instruction(0x20, 4, 0, 0),           // the architecture
    instruction(0x15, 0xC000_003E, 0, 3), // x86-64
    instruction(0x20, 56, 0, 0),          // the sixth argument, its low half
    instruction(0x15, MARK, 1, 0),
    instruction(0x06, libc::SECCOMP_RET_ALLOW, 0, 0),
    instruction(0x06, libc::SECCOMP_RET_ERRNO | 18, 0, 0), // EXDEV
];

const fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// A call to test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// A call by its number, with its first two arguments.
    Native { number: u32, arguments: [u64; 2] },
    /// `getpid` as a 32-bit program makes it.
    I386Getpid,
}

/// Makes all calls in a new process with `filter`. Returns the error of each call.
pub(crate) fn answers(filter: &[sock_filter], calls: &[Call]) -> Vec<Errno> {
    let (mut reader, writer) = pipe().unwrap();
    let child = fork(CloneFlags::empty(), None, || {
        set_no_new_privs().unwrap();
        install_filter(&MARKED).unwrap();
        install_filter(filter).unwrap();
        let reported = calls.iter().all(|call| tell(writer.as_raw_fd(), make(*call)));
        i32::from(!reported)
    });
    let child = child.unwrap();
    drop(writer);
    let mut answers = Vec::new();
    reader.read_to_end(&mut answers).unwrap();
    assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
    assert_eq!(answers.len(), calls.len() * size_of::<i32>(), "an answer to each");
    let number = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().unwrap());
    answers.chunks(size_of::<i32>()).map(|bytes| Errno::from_raw(number(bytes))).collect()
}

/// Makes a call in this process, which has the filter [`MARKED`]. Returns the call's error, or 0.
fn make(call: Call) -> i32 {
    let Call::Native { number, arguments: [first, second] } = call else { return i386_getpid() };
    let (number, mark) = (libc::c_long::from(number), u64::from(MARK));
    // SAFETY: the kernel answers a call with the mark before it looks at anything else.
    let result = unsafe { libc::syscall(number, first, second, 0_u64, 0_u64, 0_u64, mark) };
    if result == -1 { Errno::last_raw() } else { 0 }
}

/// Writes a number to a pipe. The C library's `write` would not clear the register of the sixth argument, which can
/// still contain the mark.
fn tell(pipe: libc::c_int, number: i32) -> bool {
    let bytes = number.to_le_bytes();
    // SAFETY: the bytes outlive the call.
    let written = unsafe {
        libc::syscall(libc::SYS_write, pipe, bytes.as_ptr(), bytes.len(), 0_u64, 0_u64, 0_u64)
    };
    usize::try_from(written) == Ok(bytes.len())
}

fn i386_getpid() -> i32 {
    const GETPID: i32 = 20;
    let mut result = GETPID;
    // SAFETY: the call takes no arguments and touches no memory; the registers that the kernel's
    // entry for 32-bit calls may clear are named.
    unsafe {
        std::arch::asm!("int 0x80", inout("eax") result, out("r8") _, out("r9") _, out("r10") _,
            out("r11") _, options(nostack));
    }
    if result < 0 { -result } else { 0 }
}

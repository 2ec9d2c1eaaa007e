//! The system call filter of workloads: it keeps them off the control channel's kind of socket.
//!
//! Every guest has the same vsock address, so the launcher cannot tell a workload's connection
//! from init's by it. Workloads therefore get no `AF_VSOCK` socket, by none of the ways to make one:
//! `socket`, `socket` by another architecture's or x32's numbers, or a ring of io_uring (which
//! makes sockets without a system call of that name). Everything else is allowed.

use nix::libc::{self, sock_filter};

use crate::error::{InitError, Step as _};
use crate::sys;

/// `AUDIT_ARCH_X86_64`: `EM_X86_64`, 64 bit, little-endian (`linux/audit.h`).
const ARCH_X86_64: u32 = 62 | 0x8000_0000 | 0x4000_0000;
/// The bit that x32 system calls have in their number.
const X32_BIT: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`; the argument's low half, as a socket's family is an `int`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

const SYS_SOCKET: u32 = 41;
const SYS_IO_URING_SETUP: u32 = 425;
const AF_VSOCK: u32 = 40;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const JUMP_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// The program. The numbers after a test are how many instructions to skip if it holds, and if
/// not.
const FILTER: [sock_filter; 12] = [
    load(ARCH),
    test(JUMP_EQUAL, ARCH_X86_64, 0, 7), // else: no such call
    load(NUMBER),
    test(JUMP_AT_LEAST, X32_BIT, 5, 0),         // no such call
    test(JUMP_EQUAL, SYS_IO_URING_SETUP, 5, 0), // not permitted
    test(JUMP_EQUAL, SYS_SOCKET, 0, 2),         // else: allow
    load(FIRST_ARGUMENT),
    test(JUMP_EQUAL, AF_VSOCK, 3, 0), // no such family
    answer(libc::SECCOMP_RET_ALLOW),
    answer(refuse(libc::ENOSYS)),
    answer(refuse(libc::EPERM)),
    answer(refuse(libc::EAFNOSUPPORT)),
];

const fn load(offset: u32) -> sock_filter {
    sock_filter { code: LOAD, jt: 0, jf: 0, k: offset }
}

const fn test(code: u16, value: u32, then: u8, otherwise: u8) -> sock_filter {
    sock_filter { code, jt: then, jf: otherwise, k: value }
}

const fn answer(verdict: u32) -> sock_filter {
    sock_filter { code: RETURN, jt: 0, jf: 0, k: verdict }
}

const fn refuse(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}

/// Filters the system calls of this process from here on. Needs `no_new_privs`.
///
/// # Errors
/// The kernel's.
pub(crate) fn install() -> Result<(), InitError> {
    sys::install_filter(&FILTER).step("install the system call filter")
}

#[cfg(test)]
mod tests {
    use nix::sched::CloneFlags;
    use nix::sys::wait::{WaitStatus, waitpid};

    use super::*;

    /// Runs the filter as the kernel would on a call's number, architecture and first argument.
    fn verdict(arch: u32, number: u32, argument: u32) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let instruction = FILTER[at];
            let holds = match instruction.code {
                LOAD => {
                    accumulator = match instruction.k {
                        NUMBER => number,
                        ARCH => arch,
                        FIRST_ARGUMENT => argument,
                        other => panic!("a load from {other}"),
                    };
                    false
                }
                JUMP_EQUAL => accumulator == instruction.k,
                JUMP_AT_LEAST => accumulator >= instruction.k,
                RETURN => return instruction.k,
                other => panic!("an instruction {other}"),
            };
            at += 1 + usize::from(if holds { instruction.jt } else { instruction.jf });
        }
    }

    #[test]
    fn only_vsock_sockets_are_refused() {
        let socket = |family| verdict(ARCH_X86_64, SYS_SOCKET, family);
        assert_eq!(socket(AF_VSOCK), refuse(libc::EAFNOSUPPORT));
        for family in (0..64).filter(|family| *family != AF_VSOCK) {
            assert_eq!(socket(family), libc::SECCOMP_RET_ALLOW, "family {family}");
        }
    }

    #[test]
    fn ways_around_are_refused() {
        let i386 = 0x4000_0003;
        assert_eq!(verdict(i386, 102, 1), refuse(libc::ENOSYS), "socketcall of i386");
        assert_eq!(verdict(ARCH_X86_64, X32_BIT | 41, 40), refuse(libc::ENOSYS));
        assert_eq!(verdict(ARCH_X86_64, SYS_IO_URING_SETUP, 8), refuse(libc::EPERM));
    }

    #[test]
    fn all_other_calls_are_allowed() {
        let others = (0..600).filter(|n| ![SYS_SOCKET, SYS_IO_URING_SETUP].contains(n));
        for number in others {
            assert_eq!(verdict(ARCH_X86_64, number, 40), libc::SECCOMP_RET_ALLOW, "{number}");
        }
    }

    /// Refuses with `EXDEV` all that the filter looks at. Of two filters that refuse, the one that
    /// was installed last has its way: installed before the filter, this shows what it lets pass.
    const BEFORE: [sock_filter; 8] = [
        load(ARCH),
        test(JUMP_EQUAL, ARCH_X86_64, 0, 5),
        load(NUMBER),
        test(JUMP_AT_LEAST, X32_BIT, 3, 0),
        test(JUMP_EQUAL, SYS_IO_URING_SETUP, 2, 0),
        test(JUMP_EQUAL, SYS_SOCKET, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(refuse(libc::EXDEV)),
    ];

    /// Makes a call in a process of its own, after the installations; returns its error number, 0
    /// for none.
    fn kernel_says(probe: sys::Probe, before: bool, filter: bool) -> i32 {
        let body = || {
            nix::sys::prctl::set_no_new_privs().unwrap();
            if before {
                sys::install_filter(&BEFORE).unwrap();
            }
            if filter {
                install().unwrap();
            }
            probe.call().map_or_else(|error| error as i32, |()| 0)
        };
        let child = sys::fork(CloneFlags::empty(), None, body).unwrap();
        match waitpid(child, None).unwrap() {
            WaitStatus::Exited(_, status) => status,
            other => panic!("{probe:?}: {other:?}"),
        }
    }

    #[test]
    fn the_kernel_refuses_vsock_sockets_and_the_ways_around() {
        let vsock = libc::AF_VSOCK;
        for (probe, errno) in [
            (sys::Probe::Socket(vsock), libc::EAFNOSUPPORT),
            (sys::Probe::X32Socket(vsock), libc::ENOSYS),
            (sys::Probe::X32Socket(libc::AF_UNIX), libc::ENOSYS),
            (sys::Probe::I386, libc::ENOSYS),
            (sys::Probe::IoUring, libc::EPERM),
        ] {
            assert_eq!(kernel_says(probe, true, false), libc::EXDEV, "{probe:?}");
            assert_eq!(kernel_says(probe, true, true), errno, "{probe:?}");
        }
    }

    #[test]
    fn the_kernel_lets_all_other_sockets_pass() {
        for family in (0..64).filter(|family| *family != libc::AF_VSOCK) {
            let probe = sys::Probe::Socket(family);
            assert_eq!(kernel_says(probe, true, true), libc::EXDEV, "{probe:?}");
        }
        assert_eq!(kernel_says(sys::Probe::Socket(libc::AF_UNIX), false, true), 0);
        assert_eq!(kernel_says(sys::Probe::Socket(libc::AF_INET), false, true), 0);
    }
}

//! Names the system call that the filter forbids, for `boxlaunch run --jail trace`.
#![allow(unsafe_code)]

use std::io::{self, Write as _};

use nix::libc::{self, c_int, c_void, siginfo_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// The index of the call's number in a `siginfo_t`, in units of 32 bits (sigaction(2), `si_syscall`).
const CALL: usize = 6;

/// Installs a handler for SIGSYS that logs the forbidden call and ends the process.
pub(super) fn name_forbidden_calls() {
    let handler = SigHandler::SigAction(name_call);
    let action = SigAction::new(handler, SaFlags::SA_SIGINFO, SigSet::all());
    // SAFETY: the handler uses no memory but its stack and its arguments, and never returns.
    unsafe { sigaction(Signal::SIGSYS, &action) }.ok();
}

extern "C" fn name_call(_: c_int, information: *mut siginfo_t, _: *mut c_void) {
    let numbers: *const i32 = information.cast();
    // SAFETY: the kernel passes a whole `siginfo_t`, which is 128 bytes long and aligned to more than 4.
    let call = unsafe { &*numbers.cast::<[i32; CALL + 1]>() }[CALL];
    let mut line = [0_u8; 80];
    let mut left = &mut line[..];
    // A failure cannot be handled here.
    writeln!(left, "the jail forbids the system call {call} (x86-64)").ok();
    let unused = left.len();
    let length = line.len() - unused;
    // Not through `io::Write`, because this thread may hold the lock of standard error.
    nix::unistd::write(io::stderr(), &line[..length]).ok();
    // SAFETY: `_exit` runs no code of this program.
    unsafe { libc::_exit(128 + libc::SIGSYS) }
}

//! Unprivileged processes of init that carry a component's connections and requests.
//!
//! They are children of init outside of the component's PID namespace, so that no workload can see or stop them.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use box_contract::User;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::{set_keepcaps, set_name, set_no_new_privs};
use nix::unistd::Pid;

use crate::component::{caps, spawn};
use crate::error::{InitError, Step as _};
use crate::sys;

/// The user and group of these processes. No account of an image has such a high number, so no workload without root's
/// rights may signal them. The two higher numbers have special meanings.
const OWN: u32 = u32::MAX - 2;
/// The report of a process once it serves. Any other report is the text of an error.
const READY: &[u8] = b"\0";
/// The greatest length of an error's text, in bytes.
const MAX_ERROR: u64 = 4096;

/// Starts a process, in a cgroup if `cgroup` is one. It calls `prepare` with the file for its report, which it must keep open,
/// and then `serve`, whose result is its exit status. The function returns after `prepare`.
///
/// # Errors
/// The failure of `step`, with the error of `prepare`.
pub(crate) fn start<S>(
    step: &str,
    cgroup: Option<BorrowedFd<'_>>,
    prepare: impl FnOnce(&File) -> Result<S, InitError>,
    serve: impl FnOnce(S) -> i32,
) -> Result<Pid, InitError> {
    let (reader, writer) = io::pipe().step(step)?;
    // The closure owns the writer and what `prepare` owns, so `fork` drops the parent's copies together with the closure.
    let child = move || {
        let mut report = File::from(OwnedFd::from(writer));
        let prepared = prepare(&report);
        let text = prepared
            .as_ref()
            .map_or_else(|error| error.to_string().into_bytes(), |_| READY.to_vec());
        let is_reported = report.write_all(&text).is_ok();
        drop(report);
        match prepared {
            Ok(server) if is_reported => serve(server),
            _ => 1,
        }
    };
    let pid = sys::fork(CloneFlags::empty(), cgroup, child).step(step)?;
    let mut output = Vec::new();
    reader.take(MAX_ERROR).read_to_end(&mut output).step(step)?;
    if output == READY { Ok(pid) } else { Err(String::from_utf8_lossy(&output)).step(step) }
}

/// Enters a component's network namespace, if `network` is one, and closes all of init's files except `keep`.
///
/// # Errors
/// The step that failed.
pub(crate) fn enter(
    name: &CStr,
    keep: &[BorrowedFd<'_>],
    network: Option<&File>,
) -> Result<(), InitError> {
    let network_fd = network.map(|it| it.as_fd());
    let keep: Vec<_> = keep.iter().copied().chain(network_fd).collect();
    sys::close_all_but(&keep).step("close init's files")?;
    set_name(name).step("name the process")?;
    if let Some(network) = network {
        setns(network, CloneFlags::CLONE_NEWNET).step("enter the component's network")?;
    }
    sys::set_nice(0).step("reset the priority")
}

/// Becomes the user [`OWN`], and keeps only `capabilities`, a set of bits.
///
/// # Errors
/// The step that failed.
pub(crate) fn give_up_privileges(capabilities: u64) -> Result<(), InitError> {
    become_user(&User { uid: OWN, gid: OWN, groups: Vec::new() }, capabilities)
}

/// Becomes a user, and keeps only `capabilities`, a set of bits.
///
/// # Errors
/// The step that failed.
pub(crate) fn become_user(user: &User, capabilities: u64) -> Result<(), InitError> {
    caps::bound(capabilities)?;
    set_keepcaps(capabilities != 0).step("keep capabilities")?;
    spawn::become_user(user)?;
    sys::set_capabilities(capabilities).step("drop capabilities")?;
    set_no_new_privs().step("set no_new_privs")
}

//! Unprivileged processes of init that carry a component's connections.
//!
//! They are children of init outside of the component's PID namespace, so that no workload can see or stop them.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};

use box_contract::User;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::{set_keepcaps, set_name, set_no_new_privs};

use crate::component::{caps, spawn};
use crate::error::{InitError, Step as _};
use crate::sys;

/// The user and group of these processes. No account of an image has such a high number, so no workload without root's
/// rights may signal them. The two higher numbers have special meanings.
const OWN: u32 = u32::MAX - 2;

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
    caps::bound(capabilities)?;
    set_keepcaps(capabilities != 0).step("keep capabilities")?;
    spawn::become_user(&User { uid: OWN, gid: OWN, groups: Vec::new() })?;
    sys::set_capabilities(capabilities).step("drop capabilities")?;
    set_no_new_privs().step("set no_new_privs")
}

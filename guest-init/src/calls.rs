//! The socket on which the agent asks for commands in the business component.
//!
//! It is made before any component, and bound into the agent's root beside the program that asks, `box-exec`.

use std::fs::{Permissions, set_permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;

use box_image::User;

use crate::error::{InitError, Step as _};

/// Where init has it.
pub(crate) const SOCKET: &str = "/run/box-exec.sock";
/// Only the agent's user may connect.
const MODE: u32 = 0o600;

/// Makes the socket for an agent that runs as `user`.
///
/// # Errors
/// The kernel's.
pub(crate) fn listen(user: &User) -> Result<UnixListener, InitError> {
    let listen = || -> io::Result<UnixListener> {
        let listener = UnixListener::bind(SOCKET)?;
        set_permissions(SOCKET, Permissions::from_mode(MODE))?;
        chown(SOCKET, Some(user.uid), Some(user.gid))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().step("listen for the agent's calls")
}

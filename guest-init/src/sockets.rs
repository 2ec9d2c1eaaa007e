//! Sockets of the host: each component has a socket of init in their place.
//!
//! ```text
//! /run/socket-agent-0    init's socket, which the agent sees at its guest path
//! ```
//!
//! Init listens before any program of the box runs, so that no program finds nobody there. `box-network`, the process of
//! the component's end of the network, accepts the connections, and carries each as a stream to the host. A socket with a
//! path is found by its file, so the component's network namespace does not matter
//! ([unix(7)](https://man7.org/linux/man-pages/man7/unix.7.html)).

use std::fs::{Permissions, set_permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use box_contract::plan::RUN_PATH;
use box_contract::wire::HostSocket;
use box_contract::{ComponentName, RunPlan};

use crate::error::{InitError, Step as _};

/// The permissions of a socket: every user of the component can connect.
const MODE: u32 = 0o666;

/// A socket of a component that stands for a socket of the host.
#[derive(Debug)]
pub(crate) struct SocketDoor {
    /// The component that can connect.
    pub(crate) component: ComponentName,
    /// The number of the host's socket.
    pub(crate) number: u16,
    /// The socket, which does not block.
    pub(crate) listener: UnixListener,
}

/// Listens in each component for connections to the sockets of the host.
///
/// # Errors
/// The error of the socket.
pub(crate) fn listen(sockets: &[HostSocket], plan: &RunPlan) -> Result<Vec<SocketDoor>, InitError> {
    let mut doors = Vec::new();
    for (component, _) in plan.components() {
        for (at, socket) in sockets.iter().enumerate() {
            if socket.scope.includes(component) {
                let step = || format!("listen for the socket {}", socket.guest);
                let listener = listen_at(&path_of(component, at)).step_with(step)?;
                let number = u16::try_from(at).step_with(step)?;
                doors.push(SocketDoor { component, number, listener });
            }
        }
    }
    Ok(doors)
}

/// Returns init's path of a component's socket.
pub(crate) fn path_of(component: ComponentName, at: usize) -> PathBuf {
    Path::new(RUN_PATH).join(format!("socket-{}-{at}", component.name()))
}

/// Returns a listener that does not block.
pub(crate) fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    set_permissions(path, Permissions::from_mode(MODE))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

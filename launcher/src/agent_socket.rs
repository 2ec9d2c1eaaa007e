//! The Unix socket on the host that leads to the agent's port.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::LaunchError;
use crate::runtime_dir::{RuntimeDir, checked_socket_path};
use crate::vmm::AgentPort;

/// The agent's socket, which libkrun makes; removed when dropped.
#[derive(Debug)]
pub(crate) struct AgentSocket(AgentPort);

impl AgentSocket {
    /// Takes charge of a socket that libkrun is about to make.
    pub(crate) fn new(agent: AgentPort) -> Result<Self, LaunchError> {
        // Hashing takes time, in which another run may have made its socket here.
        check_free(&agent.socket)?;
        Ok(Self(agent))
    }

    /// Returns the port and the socket.
    pub(crate) const fn port(&self) -> &AgentPort {
        &self.0
    }
}

/// Returns where the agent is reached: at `wanted`, else in the private directory.
pub(crate) fn agent_port(
    port: u16,
    wanted: Option<PathBuf>,
    runtime: &RuntimeDir,
) -> Result<AgentPort, LaunchError> {
    let Some(wanted) = wanted else {
        return Ok(AgentPort { port, socket: runtime.socket("agent.sock")? });
    };
    let path = std::path::absolute(&wanted).map_err(LaunchError::file("find", &wanted))?;
    let socket = checked_socket_path(path)?;
    check_free(&socket)?;
    Ok(AgentPort { port, socket })
}

/// Checks that nothing is at the path of a socket, and that its directory can take one.
fn check_free(socket: &Path) -> Result<(), LaunchError> {
    may_be_made(socket).map_err(LaunchError::file("make the agent's socket", socket))
}

/// Checks that there is no file at a path, but a directory that one can be made in.
fn may_be_made(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists already"));
    }
    let directory = path.parent().unwrap_or(path).join(".");
    Ok(access(&directory, AccessFlags::W_OK)?)
}

impl Drop for AgentSocket {
    fn drop(&mut self) {
        // Before the guest has a vsock driver there is no file.
        drop(fs::remove_file(&self.0.socket));
    }
}

#[cfg(test)]
mod tests {
    use testkit::test_box::{TestBox, config};

    use super::*;

    #[test]
    fn the_agents_socket_needs_a_free_place() {
        let (made, runtime) = (TestBox::new(&config()), tempfile::tempdir().unwrap());
        let runtime = RuntimeDir::create(runtime.path()).unwrap();
        let plan = |path: &str| agent_port(80, Some(made.path().join(path)), &runtime);
        let free = plan("a.sock").unwrap();
        assert_eq!(free.socket, made.path().join("a.sock"));
        fs::write(&free.socket, "another run's").unwrap();
        assert!(AgentSocket::new(free).is_err());
        assert!(made.path().join("a.sock").exists());
        for (path, reason) in [
            ("index.json", "it exists already"),
            ("missing/a.sock", "No such file or directory (os error 2)"),
            ("index.json/a.sock", "Not a directory (os error 20)"),
        ] {
            let error = plan(path).unwrap_err().to_string();
            let path = made.path().join(path);
            assert_eq!(
                error,
                format!("cannot make the agent's socket {}: {reason}", path.display())
            );
        }
    }
}

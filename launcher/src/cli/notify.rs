//! Reports to a service manager that the box is ready, and which process runs it, with the protocol of
//! [sd_notify(3)](https://man7.org/linux/man-pages/man3/sd_notify.3.html).

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;

/// Sends `READY=1` if [`SOCKET`] is set. Errors are ignored, because the run does not depend on the service manager.
pub(super) fn ready() {
    tell("READY=1\n");
}

/// Sends `READY=1` and the process id of this process, which the service manager then regards as the main process of the
/// service. A detached box calls this, because the process that the service manager has started ends.
pub(super) fn ready_here() {
    tell(&format!("MAINPID={}\nREADY=1\n", process::id()));
}

/// The variable with the path of the service manager's socket.
pub(super) const SOCKET: &str = "NOTIFY_SOCKET";

/// Returns whether the service manager has started `process` itself, as the command of a service. systemd 248 and later say so
/// ([systemd.exec(5)](https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html), `SYSTEMD_EXEC_PID`). A service may
/// also start boxes besides its own work: none of these is its main process.
pub(super) fn is_command_of_service(process: u32) -> bool {
    env::var("SYSTEMD_EXEC_PID").is_ok_and(|it| it == process.to_string())
}

/// Returns whether a service manager listens to this process.
pub(super) fn is_heard() -> bool {
    env::var_os(SOCKET).is_some()
}

fn tell(message: &str) {
    if let Some(socket) = env::var_os(SOCKET) {
        drop(send(&socket, message.as_bytes()));
    }
}

/// Sends a message to the socket at a path, or in the abstract namespace if the name begins with `@`
/// ([unix(7)](https://man7.org/linux/man-pages/man7/unix.7.html)).
fn send(socket: &OsStr, message: &[u8]) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    sender.send_to_addr(message, &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_hears_it_at_a_path_and_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("boxlaunch-notify-{}", std::process::id());
        let by_name = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let sockets = [UnixDatagram::bind(&path), UnixDatagram::bind_addr(&by_name)];
        let addresses = [path.into_os_string(), format!("@{name}").into()];
        for (socket, address) in sockets.into_iter().zip(addresses) {
            send(&address, b"READY=1\n").unwrap();
            let mut got = [0; 16];
            let length = socket.unwrap().recv(&mut got).unwrap();
            assert_eq!(&got[..length], b"READY=1\n");
        }
    }
}

//! The bridge from a vsock port of the guest to the same TCP port of a component.
//!
//! An agent listens on a TCP port of loopback. The host reaches it through the vsock port, which the launcher maps to a
//! Unix socket.

use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use box_contract::ComponentPlan;
use box_contract::plan::MAX_CLIENTS;
use nix::errno::Errno;
use nix::libc;
use nix::sched::CloneFlags;
use nix::sys::socket::{
    AddressFamily, Backlog, Shutdown, SockFlag, SockType, VsockAddr, bind, listen, shutdown, socket,
};
use nix::unistd::Pid;

use crate::component::Component;
use crate::error::{InitError, Step as _};
use crate::{console, inside, sandboxed, sys};

/// How many connections can wait to be accepted.
const BACKLOG: i32 = 64;
/// The pause after a connection that cannot be accepted, for example because memory or descriptors are exhausted.
const AFTER_ERROR: Duration = Duration::from_millis(50);
/// The stack size of a connection's threads, in bytes.
const STACK: usize = 64 * 1024;

/// Starts the bridge of a component. Returns `None` if the component has no port. When the function returns, the bridge
/// listens.
///
/// # Errors
/// The step that failed.
pub(crate) fn start(component: &Component, plan: &ComponentPlan) -> Result<Option<Pid>, InitError> {
    let Some(port) = plan.port else { return Ok(None) };
    let listener = listen_on(port).step_with(|| format!("listen on vsock port {port}"))?;
    let network = plan.namespaces.net.then(|| component.open_network()).transpose()?;
    let child = || match prepare(&listener, network.as_ref()) {
        Ok(()) => serve(&listener, port),
        Err(error) => {
            console::say(&format!("the bridge: {error}"));
            1
        }
    };
    sys::fork(CloneFlags::empty(), None, child).step("start a bridge").map(Some)
}

fn listen_on(port: u16) -> nix::Result<OwnedFd> {
    let listener = socket(AddressFamily::Vsock, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    bind(listener.as_raw_fd(), &VsockAddr::new(libc::VMADDR_CID_ANY, port.into()))?;
    listen(&listener, Backlog::new(BACKLOG)?)?;
    Ok(listener)
}

/// Enters the component's network, and drops the files and privileges that the bridge does not need.
fn prepare(listener: &OwnedFd, network: Option<&File>) -> Result<(), InitError> {
    sandboxed::enter(c"box-bridge", &[listener.as_fd()], network)?;
    sandboxed::give_up_privileges(0)
}

/// Accepts connections for ever. Errors are ignored: an error concerns one connection, or passes when other connections
/// end.
fn serve(listener: &OwnedFd, port: u16) -> ! {
    let connections = Arc::new(());
    loop {
        match sys::accept(listener.as_fd()) {
            Ok(connection) => admit(connection, port, &connections),
            Err(Errno::EINTR | Errno::ECONNABORTED) => {}
            Err(_) => thread::sleep(AFTER_ERROR),
        }
    }
}

/// Carries a connection in new threads, or closes it if there are too many connections. Each connection has a clone of
/// `connections`, so the reference count is the number of connections plus one.
fn admit(connection: OwnedFd, port: u16, connections: &Arc<()>) {
    if Arc::strong_count(connections) > MAX_CLIENTS {
        return;
    }
    let counted = Arc::clone(connections);
    let carry = move || {
        // If no program listens or a copy fails, both ends see the connection close.
        drop(carry(File::from(connection), port));
        drop(counted);
    };
    // If the thread cannot be started, the connection is closed.
    drop(thread::Builder::new().stack_size(STACK).spawn(carry));
}

/// Copies in both directions between `host` and the component until both ends have closed.
fn carry(host: File, port: u16) -> io::Result<()> {
    let inside = inside::connect(port, TcpStream::connect)?;
    inside.set_nodelay(true)?;
    let inside = File::from(OwnedFd::from(inside));
    join(&host, &inside)
}

fn join(one: &File, other: &File) -> io::Result<()> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK);
        let back = builder.spawn_scoped(scope, || pump(other, one));
        if back.is_ok() {
            pump(one, other);
        } else {
            close_both(one, other);
        }
        back.map(drop)
    })
}

/// Copies from `from` to `to` until the end of `from`, and then closes `to` for writing. An error closes both sockets,
/// so that the thread of the other direction ends, too.
fn pump(mut from: &File, mut to: &File) {
    match io::copy(&mut from, &mut to) {
        Ok(_) => drop(shutdown(to.as_raw_fd(), Shutdown::Write)),
        Err(_) => close_both(from, to),
    }
}

fn close_both(one: &File, other: &File) {
    for socket in [one, other] {
        // An error means that the socket is closed already.
        let _ = shutdown(socket.as_raw_fd(), Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};
    use std::os::unix::net::UnixStream;

    #[test]
    fn both_directions_and_half_closes_are_carried() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mut host, bridged) = UnixStream::pair().unwrap();
        let bridge = thread::spawn(move || carry(File::from(OwnedFd::from(bridged)), port));

        let (mut inside, _) = listener.accept().unwrap();
        let request = vec![7; (48 << 10) + 1];
        let writer = thread::spawn({
            let (mut host, request) = (host.try_clone().unwrap(), request.clone());
            move || {
                host.write_all(&request).unwrap();
                host.shutdown(std::net::Shutdown::Write).unwrap();
            }
        });
        let mut got = Vec::new();
        inside.read_to_end(&mut got).unwrap();
        assert_eq!(got, request);
        inside.write_all(b"answer after the request's end").unwrap();
        drop(inside);
        let mut answer = String::new();
        host.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "answer after the request's end");
        writer.join().unwrap();
        bridge.join().unwrap().unwrap();
    }

    #[test]
    fn a_closed_port_closes_the_connection() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let (mut host, bridged) = UnixStream::pair().unwrap();
        assert!(carry(File::from(OwnedFd::from(bridged)), port).is_err());
        assert_eq!(host.read(&mut [0; 1]).unwrap(), 0);
    }
}

//! A component's end of the network: what its programs connect to, carried to the host.
//!
//! ```text
//! program ── TCP on loopback ── box-network ══ one vsock connection ══ the host's filter ── a host of the network
//! ```
//!
//! Where the host filters, it is a proxy and a resolver for the component's programs, at addresses of loopback that nobody
//! else has. It decides nothing: the host does, for each connection and for each name. And it connects to what the
//! component's programs listen on where the host has published that.

mod dns;
mod names;
mod server;
pub(crate) mod shared;
mod stream;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use box_contract::network::{DNS_PORT, HTTP_PORT, NETWORK_PORT, PREFIX, SOCKS_PORT, own_address};
use box_contract::wire::{GuestNetwork, NetworkHello};
use box_contract::{ComponentName, ComponentPlan, NetworkMode, NetworkPlan};
use nix::errno::Errno;
use nix::libc;
use nix::sched::CloneFlags;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, VsockAddr, connect, socket};
use nix::unistd::Pid;

use crate::component::Component;
use crate::error::{InitError, Step as _};
use crate::{boot, console, sandboxed, sys};

/// `CAP_NET_BIND_SERVICE`: the hosts of names are reached at the ports that they have.
const BIND_LOW_PORTS: u64 = 1 << 10;
/// Enough for all connections, and for all names.
const MAX_FILES: u64 = 4096;
/// The report of the process once it listens; anything else is an error's text.
const READY: &[u8] = b"\0";
/// The longest text of an error, in bytes.
const MAX_ERROR: u64 = 4096;

/// Where programs of a component connect to.
#[derive(Debug)]
struct Doors {
    http: TcpListener,
    socks: TcpListener,
    dns: UdpSocket,
}

/// Starts a component's end of the network. It listens before this returns.
///
/// # Errors
/// The step that failed.
pub(crate) fn start(
    component: &Component,
    plan: &ComponentPlan,
    network: &NetworkPlan,
) -> Result<Pid, InitError> {
    let step = "start the network";
    let (reader, writer) = io::pipe().step(step)?;
    let own = plan.namespaces.net.then(|| component.open_network()).transpose()?;
    // The parent's copy of the writer goes with it.
    let child = move || {
        let mut report = File::from(OwnedFd::from(writer));
        match prepare(component.name, own.as_ref(), network, &mut report) {
            Ok(server) => {
                drop(report);
                server.run()
            }
            Err(error) => {
                drop(report.write_all(error.to_string().as_bytes()));
                1
            }
        }
    };
    let pid = sys::fork(CloneFlags::empty(), None, child).step(step)?;
    let mut said = Vec::new();
    reader.take(MAX_ERROR).read_to_end(&mut said).step(step)?;
    if said == READY { Ok(pid) } else { Err(String::from_utf8_lossy(&said)).step(step) }
}

/// Opens everything that the process needs, says so, and gives its privileges up.
fn prepare(
    name: ComponentName,
    own: Option<&File>,
    network: &NetworkPlan,
    report: &mut File,
) -> Result<server::Server, InitError> {
    sandboxed::enter(c"box-network", &[report.as_fd()], own)?;
    console::speak_of_panics_on_stderr();
    setrlimit(Resource::RLIMIT_NOFILE, MAX_FILES, MAX_FILES).step("raise the limit of files")?;
    let is_filtered = network.mode == NetworkMode::Filtered;
    let doors = is_filtered.then(|| open_doors(name)).transpose()?;
    let mut host = connect_to_host().step("connect to the host's end of the network")?;
    let hello = GuestNetwork::Hello(NetworkHello { component: name });
    hello.write(&mut host).step("say hello to the host's end of the network")?;
    sandboxed::give_up_privileges(if is_filtered { BIND_LOW_PORTS } else { 0 })?;
    report.write_all(READY).step("report to init")?;
    Ok(server::Server::new(host, name, doors, network.limits))
}

/// Gives the component its addresses, and listens at the first of them.
fn open_doors(name: ComponentName) -> Result<Doors, InitError> {
    let own = own_address(name);
    boot::loopback_up()?;
    boot::network_socket()
        .and_then(|it| sys::add_loopback_address(it.as_fd(), alias(name), (own, PREFIX)))
        .step("give loopback another address")?;
    let open = || -> io::Result<Doors> {
        let (http, socks) = (listen((own, HTTP_PORT))?, listen((own, SOCKS_PORT))?);
        let dns = UdpSocket::bind((own, DNS_PORT))?;
        dns.set_nonblocking(true)?;
        Ok(Doors { http, socks, dns })
    };
    open().step_with(|| format!("listen on {own}"))
}

const fn alias(name: ComponentName) -> u8 {
    match name {
        ComponentName::Agent => 1,
        ComponentName::Business => 2,
    }
}

/// Listens, without blocking whoever accepts.
fn listen(at: (Ipv4Addr, u16)) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Begins to connect to what a program listens on: what comes of it is seen when it is read.
fn connect_inside(port: u16) -> nix::Result<TcpStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let inside = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
    let at = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
    match connect(inside.as_raw_fd(), &at) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(inside)),
        Err(error) => Err(error),
    }
}

fn connect_to_host() -> nix::Result<File> {
    let vsock = socket(AddressFamily::Vsock, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    connect(vsock.as_raw_fd(), &VsockAddr::new(libc::VMADDR_CID_HOST, NETWORK_PORT))?;
    Ok(File::from(vsock))
}

#[cfg(test)]
mod tests;

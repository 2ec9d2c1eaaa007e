//! A component's end of the network: carries the connections of its programs to the host.
//!
//! ```text
//! program ── TCP on loopback ── box-network ══ one vsock connection ══ the host's filter ── a host of the network
//! ```
//!
//! If the network is filtered, `box-network` is a proxy and a resolver for the component's programs, at loopback
//! addresses that no other process uses. The host decides on each connection and on each name. If the host publishes
//! ports, `box-network` connects to the component's programs that listen on them. If the component has sockets of the
//! host or HTTP APIs, `box-network` accepts their connections.

mod dns;
mod names;
mod server;
pub(crate) mod shared;
mod stream;

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};

use box_contract::network::{
    DNS_PORT, HTTP_PORT, NETWORK_PORT, PREFIX, SOCKS_PORT, own_address, service_port,
};
use box_contract::wire::{GuestNetwork, NetworkHello};
use box_contract::{ComponentName, NetworkMode, RunPlan};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrLike as _, SockaddrStorage, VsockAddr, connect,
    socket,
};
use nix::unistd::Pid;

use crate::component::Component;
use crate::error::{InitError, Step as _};
use crate::sockets::SocketDoor;
use crate::{boot, console, inside, sandboxed, sys};

/// `CAP_NET_BIND_SERVICE`: the process listens on the ports of allowed names, such as 443.
const BIND_LOW_PORTS: u64 = 1 << 10;
/// The limit of open files. It is enough for all connections and names.
const MAX_FILES: u64 = 4096;
/// The prefix length of an address without others, in bits.
const ALONE: u8 = 32;

/// All sockets to which the component's programs connect.
#[derive(Debug, Default)]
struct Doors {
    /// The proxies and the resolver, if the network is filtered.
    filter: Option<Listeners>,
    services: Vec<ServiceDoor>,
    /// The sockets that stand for sockets of the host.
    sockets: Vec<SocketDoor>,
}

/// A socket to which the component's programs connect to reach an HTTP API.
#[derive(Debug)]
struct ServiceDoor {
    /// The number of the API.
    number: u16,
    listener: TcpListener,
}

/// The sockets to which the component's programs connect to reach the filter.
#[derive(Debug)]
struct Listeners {
    http: TcpListener,
    socks: TcpListener,
    dns: UdpSocket,
}

/// Starts the process of a component's end of the network. When the function returns, the process listens.
///
/// # Errors
/// The step that failed.
pub(crate) fn start(
    component: &Component,
    plan: &RunPlan,
    sockets: Vec<SocketDoor>,
) -> Result<Pid, InitError> {
    let is_apart = plan.component(component.name).is_some_and(|it| it.namespaces.net);
    let own = is_apart.then(|| component.open_network()).transpose()?;
    let name = component.name;
    // The closure owns the sockets, of which the parent then has no copies.
    let prepare = move |report: &File| prepare(name, own.as_ref(), (plan, sockets), report);
    sandboxed::start("start the network", None, prepare, server::Server::run)
}

/// Opens all files that the process needs, and drops the privileges.
fn prepare(
    name: ComponentName,
    own: Option<&File>,
    (plan, sockets): (&RunPlan, Vec<SocketDoor>),
    report: &File,
) -> Result<server::Server, InitError> {
    let kept = sockets.iter().map(|it| it.listener.as_fd()).chain([report.as_fd()]);
    sandboxed::enter(c"box-network", &kept.collect::<Vec<_>>(), own)?;
    console::speak_of_panics_on_stderr();
    setrlimit(Resource::RLIMIT_NOFILE, MAX_FILES, MAX_FILES).step("raise the limit of files")?;
    let is_filtered = plan.network.mode == NetworkMode::Filtered;
    let doors = Doors { sockets, ..open_doors(name, plan)? };
    let mut host = connect_to_host().step("connect to the host's end of the network")?;
    let hello = GuestNetwork::Hello(NetworkHello { component: name });
    hello.write(&mut host).step("say hello to the host's end of the network")?;
    sandboxed::give_up_privileges(if is_filtered { BIND_LOW_PORTS } else { 0 })?;
    Ok(server::Server::new(host, name, doors, plan.network.limits))
}

/// Gives the component its addresses, and listens at the first of them for the filter and the HTTP APIs.
fn open_doors(name: ComponentName, plan: &RunPlan) -> Result<Doors, InitError> {
    let own = own_address(name);
    let is_filtered = plan.network.mode == NetworkMode::Filtered;
    let mut services = plan.services_of(name).peekable();
    if !is_filtered && services.peek().is_none() {
        return Ok(Doors::default());
    }
    // Only the filter needs the addresses after the first one, which a shared network uses for its own.
    let prefix = if is_filtered { PREFIX } else { ALONE };
    boot::loopback_up()?;
    boot::network_socket()
        .and_then(|it| sys::add_loopback_address(it.as_fd(), alias(name), (own, prefix)))
        .step("give loopback another address")?;
    let service = |(number, _)| -> io::Result<ServiceDoor> {
        Ok(ServiceDoor { number, listener: listen((own, service_port(number)))? })
    };
    let open = || -> io::Result<Doors> {
        let filter = is_filtered.then(|| listen_for_filter(own)).transpose()?;
        let services = services.map(service).collect::<io::Result<_>>()?;
        Ok(Doors { filter, services, sockets: Vec::new() })
    };
    open().step_with(|| format!("listen on {own}"))
}

fn listen_for_filter(own: Ipv4Addr) -> io::Result<Listeners> {
    let (http, socks) = (listen((own, HTTP_PORT))?, listen((own, SOCKS_PORT))?);
    let dns = UdpSocket::bind((own, DNS_PORT))?;
    dns.set_nonblocking(true)?;
    Ok(Listeners { http, socks, dns })
}

const fn alias(name: ComponentName) -> u8 {
    match name {
        ComponentName::Agent => 1,
        ComponentName::Business => 2,
    }
}

/// Returns a non-blocking listener.
fn listen(at: (Ipv4Addr, u16)) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// How long the result of a connection on loopback is awaited, in milliseconds. The kernel has it at once, unless the program's queue is full.
const AT_ONCE: u8 = 10;

/// Connects to a program that listens on `port`. If the program accepts the connection later, an error of the connection is
/// returned when it is read.
fn connect_inside(port: u16) -> io::Result<TcpStream> {
    inside::connect(port, start_connection)
}

/// Starts a non-blocking connection.
fn start_connection(to: SocketAddr) -> io::Result<TcpStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let address = SockaddrStorage::from(to);
    let family = address.family().unwrap_or(AddressFamily::Inet);
    let socket = socket(family, SockType::Stream, flags, None)?;
    match connect(socket.as_raw_fd(), &address) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)], AT_ONCE)?;
    stream.take_error()?.map_or(Ok(stream), Err)
}

fn connect_to_host() -> nix::Result<File> {
    let vsock = socket(AddressFamily::Vsock, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    connect(vsock.as_raw_fd(), &VsockAddr::new(libc::VMADDR_CID_HOST, NETWORK_PORT))?;
    Ok(File::from(vsock))
}

#[cfg(test)]
mod tests;

//! Unix sockets of the host to which components can connect.
//!
//! The supervisor connects to the socket for each connection of a component, so a server that begins again is found. By then,
//! another box can have replaced a directory or a file that it shares. So no link is followed, and only a socket is connected.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use box_contract::wire::HostSocket;
use box_contract::{ComponentName, Scope};
use host_fs::kernel;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use tokio::net::UnixStream;
use tokio::time::sleep;

use super::is_file_in;
use super::shares::{ShareError, ShareRecord};

/// The names of sockets whose servers start any program as their own user.
const POWERFUL: [&str; 9] = [
    "docker.sock",
    "podman.sock",
    "containerd.sock",
    "buildkitd.sock",
    "crio.sock",
    "libvirt-sock",
    "systemd/private",
    "lxd/unix.socket",
    "incus/unix.socket",
];
/// The name of a user's message bus, by which systemd starts programs, in a directory of [`OF_USERS`].
const BUS: &str = "bus";
/// The starts of the names of directories with the sockets of terminals and displays, which type for their users.
const TYPING: [&str; 2] = ["tmux-", ".X11-unix"];
/// The directory of the sockets whose servers run as a user other than root.
const OF_USERS: &str = "/run/user";
/// How often a server is asked whose queue of connections is full, and the pause between two attempts.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// A Unix stream socket of the host to which components can connect.
#[derive(Debug, Clone)]
pub struct SharedSocket {
    host: PathBuf,
    guest: String,
    scope: Scope,
    /// The user who owns the socket.
    owner: u32,
    is_served: bool,
    /// Whether only what an SSH agent may be asked for is passed on.
    is_ssh_agent: bool,
}

impl SharedSocket {
    /// Examines a socket of the host, which components have at `guest`. `host` is its path without symbolic links: the caller
    /// decides which links it follows.
    ///
    /// # Errors
    /// If there is no socket, if the user may not connect to it, if it is no stream socket, or if it is in a file system of the
    /// kernel.
    pub fn new(host: PathBuf, guest: &str, scope: Scope) -> Result<Self, ShareError> {
        let look = || -> io::Result<(u32, bool)> {
            if let Some(place) = kernel::around(&host)? {
                return Err(kernel::no_files(&place));
            }
            let socket = open(&host)?;
            Ok((fstat(&socket)?.st_uid, is_served(&socket)?))
        };
        match look() {
            Ok((owner, is_served)) => {
                let guest = guest.to_owned();
                Ok(Self { host, guest, scope, owner, is_served, is_ssh_agent: false })
            }
            Err(source) => Err(ShareError { path: host, source }),
        }
    }

    /// Returns the socket as that of the user's SSH agent: components can list its keys and sign with them, and nothing else.
    pub fn of_ssh_agent(self) -> Self {
        Self { is_ssh_agent: true, ..self }
    }

    /// Returns whether this is the socket of the user's SSH agent.
    pub const fn is_ssh_agent(&self) -> bool {
        self.is_ssh_agent
    }

    /// Returns the user who owned the socket when it was examined.
    pub const fn owner(&self) -> u32 {
        self.owner
    }

    /// Returns the path of the socket on the host, without symbolic links.
    pub fn host(&self) -> &Path {
        &self.host
    }

    /// Returns the path of the components' sockets.
    pub(crate) fn guest(&self) -> &str {
        &self.guest
    }

    /// Returns whether a program listened when the socket was examined.
    pub const fn is_served(&self) -> bool {
        self.is_served
    }

    /// Returns whether the socket is in a directory or its subdirectories, also through bind mounts.
    ///
    /// # Errors
    /// If a directory above the socket cannot be opened.
    pub fn is_inside(&self, directory: &Path) -> io::Result<bool> {
        is_file_in(&self.host, directory)
    }

    /// Returns the user whose rights a box gets through the socket, if its server is known to start any program for its clients.
    pub fn power(&self) -> Option<&'static str> {
        let is_of_user = self.host.starts_with(OF_USERS);
        let user = if is_of_user { "the user of the socket" } else { "root" };
        if POWERFUL.iter().any(|it| self.host.ends_with(it)) {
            return Some(user);
        }
        let directory = self.host.parent()?.file_name()?.to_string_lossy();
        let types = TYPING.iter().any(|it| directory.starts_with(it));
        (types || is_of_user && self.host.ends_with(BUS)).then_some("the user of the socket")
    }

    /// Returns the socket for the box's record.
    pub fn record(&self) -> ShareRecord {
        let (host, guest) = (self.host.clone(), self.guest.clone());
        ShareRecord { host, guest, writable: false, socket: true }
    }

    /// Returns the description of the socket for init.
    pub(crate) fn described(&self) -> HostSocket {
        HostSocket { guest: self.guest.clone(), scope: self.scope }
    }

    /// Returns whether a component can connect.
    pub(crate) const fn is_for(&self, component: ComponentName) -> bool {
        self.scope.includes(component)
    }

    /// Connects to the socket.
    ///
    /// # Errors
    /// If there is no socket at the path any more, if it is another user's now, or if its server does not accept the connection.
    pub(crate) async fn connect(&self) -> io::Result<UnixStream> {
        let mut attempts = 0;
        loop {
            let socket = open(&self.host)?;
            if fstat(&socket)?.st_uid != self.owner {
                return Err(io::Error::other("it is a socket of another user now"));
            }
            match UnixStream::connect(path_of(&socket)).await {
                // A socket that waits would wait until its server has accepted others.
                Err(error) if error.kind() == ErrorKind::WouldBlock && attempts < ATTEMPTS => {
                    attempts += 1;
                    sleep(PAUSE).await;
                }
                connected => return connected,
            }
        }
    }
}

/// Opens a socket for examining it, without following a link.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    match FileType::from_raw_mode(fstat(&opened)?.st_mode) {
        FileType::Socket => Ok(opened),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a socket")),
    }
}

/// Returns a path that leads to an open socket, whatever is at the socket's own path now. It is short enough for an address.
fn path_of(socket: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", socket.as_raw_fd()))
}

/// Returns whether a program listens at an open socket. To connect a datagram socket shows that without a connection that a
/// server of a stream socket would see ([unix(7)](https://man7.org/linux/man-pages/man7/unix.7.html)).
fn is_served(socket: &OwnedFd) -> io::Result<bool> {
    match UnixDatagram::unbound()?.connect(path_of(socket)) {
        Ok(()) => Err(io::Error::new(ErrorKind::Unsupported, "it is a datagram socket")),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PROTOTYPE.raw_os_error()) => {
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::{fs, thread};

    use tokio::runtime::Builder;

    use super::*;

    fn socket(path: PathBuf) -> Result<SharedSocket, ShareError> {
        SharedSocket::new(path, "/s", Scope::Both)
    }

    fn connect(socket: &SharedSocket) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(socket.connect()).map(drop)
    }

    #[test]
    fn what_is_no_stream_socket_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        fs::write(at("file"), "").unwrap();
        let _datagrams = UnixDatagram::bind(at("datagrams")).unwrap();
        let listener = UnixListener::bind(at("socket")).unwrap();
        symlink("socket", at("link")).unwrap();
        let error = |name: &str| socket(at(name)).unwrap_err().source;
        assert_eq!(error("none").kind(), ErrorKind::NotFound);
        assert_eq!(error("datagrams").to_string(), "it is a datagram socket");
        for name in ["file", "link"] {
            error(name);
        }
        let found = socket(at("socket")).unwrap();
        assert!(found.is_served() && found.is_inside(dir.path()).unwrap());
        assert!(!found.is_inside(Path::new("/proc")).unwrap());
        let strange = SharedSocket { owner: found.owner + 1, ..found };
        assert_eq!(
            connect(&strange).unwrap_err().to_string(),
            "it is a socket of another user now"
        );
        listener.set_nonblocking(true).unwrap();
        let asked = listener.accept().unwrap_err();
        assert_eq!(asked.kind(), ErrorKind::WouldBlock, "its server was not disturbed");
        drop(listener);
        assert!(!socket(at("socket")).unwrap().is_served(), "its server may come later");
    }

    /// Imitates a box that has the directory of the socket as a writable share.
    #[test]
    fn what_replaces_a_socket_is_not_connected() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        for name in ["own", "other"] {
            fs::create_dir(at(name)).unwrap();
        }
        let _other = UnixListener::bind(at("other/s")).unwrap();
        let listener = UnixListener::bind(at("own/s")).unwrap();
        let shared = socket(at("own/s")).unwrap();
        connect(&shared).unwrap();
        fs::remove_file(at("own/s")).unwrap();
        assert_eq!(connect(&shared).unwrap_err().kind(), ErrorKind::NotFound);
        symlink("../other/s", at("own/s")).unwrap();
        connect(&shared).unwrap_err();
        fs::remove_file(at("own/s")).unwrap();
        fs::write(at("own/s"), "").unwrap();
        assert_eq!(connect(&shared).unwrap_err().to_string(), "it is not a socket");
        fs::rename(at("own"), at("moved")).unwrap();
        symlink("other", at("own")).unwrap();
        connect(&shared).unwrap_err();
        drop(listener);
        fs::remove_file(at("own")).unwrap();
        fs::create_dir(at("own")).unwrap();
        let _again = UnixListener::bind(at("own/s")).unwrap();
        connect(&shared).unwrap();
    }

    #[test]
    fn a_connection_waits_for_a_server_that_is_busy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let shared = socket(path).unwrap();
        connect(&shared).unwrap();
        let server = thread::spawn(move || {
            thread::sleep(3 * PAUSE);
            [listener.accept().map(drop), listener.accept().map(drop)]
        });
        connect(&shared).unwrap();
        assert!(server.join().unwrap().iter().all(Result::is_ok));
    }

    #[test]
    fn sockets_that_give_more_than_a_connection_are_known() {
        let power = |host: &str| {
            let (guest, scope) = ("/s".to_owned(), Scope::Both);
            let host = host.into();
            let (owner, is_served, is_ssh_agent) = (0, true, false);
            SharedSocket { host, guest, scope, owner, is_served, is_ssh_agent }.power()
        };
        for host in ["/run/docker.sock", "/run/containerd/containerd.sock", "/run/systemd/private"]
        {
            assert_eq!(power(host), Some("root"), "{host}");
        }
        for host in [
            "/run/user/1000/podman/podman.sock",
            "/run/user/1000/bus",
            "/tmp/tmux-1000/default",
            "/tmp/.X11-unix/X0",
        ] {
            assert_eq!(power(host), Some("the user of the socket"), "{host}");
        }
        for host in ["/tmp/ssh-x/agent.7", "/run/other/private", "/run/other/bus"] {
            assert_eq!(power(host), None, "{host}");
        }
    }
}

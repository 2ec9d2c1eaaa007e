//! The network that a box shares with its host: passt forwards the guest's packets through sockets of the host.
//!
//! ```text
//! guest ── virtio-net ── VMM process ══ relay ══ passt ── the host's network
//! ```
//!
//! passt runs beside the VMM process, outside the jail, which has no network. passt confines itself: it changes to an
//! unprivileged user if root starts it, enters new namespaces with an empty root, and filters its system calls. The
//! relay runs in the supervisor, and keeps the host's loopback out of the guest's reach, see [`relay`]. passt ends when
//! its socket is closed, which the kernel does even if the supervisor is killed. A parent-death signal would be lost,
//! because the kernel clears it when a process changes its user or its capabilities (`PR_SET_PDEATHSIG` in
//! [prctl(2)](https://man7.org/linux/man-pages/man2/prctl.2.html)).

mod relay;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use box_contract::NetworkMode;
use box_contract::network::{SHARED_GATEWAY, SHARED_GUEST, SHARED_PREFIX, SHARED_RESOLVER};
use host_fs::OsError;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::Pid;
use safe_text::shown;

use crate::host::programs::{self, PASST};
use crate::network::{Given, NetworkError};
use relay::{Flows, MAX_FRAME};
use vmm::GUEST_MAC;
use vmm::jail::process::close_on_exec;

/// The hardware address that passt has on the guest's network. By default it is the hardware address of the host's
/// device, but not every device has one.
const PASST_MAC: &str = "02:00:00:00:00:01";
/// How long passt may take to answer, which needs some milliseconds.
const LIMIT: Duration = Duration::from_secs(2);
/// The maximum number of bytes of passt's messages that are read.
const MAX_STDERR: usize = 4096;
/// The file that names the host's resolver, which passt reads.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// A running passt; killed on drop.
#[derive(Debug)]
pub(crate) struct Passt {
    child: Child,
    /// passt's messages, which are only read after a failure.
    stderr: PipeReader,
    /// The relay's ends of the sockets: `machine` to the guest's device, and `passt` to passt.
    machine: UnixStream,
    passt: UnixStream,
    relay: Vec<JoinHandle<()>>,
}

/// Finds passt in the directories of a `PATH`. Returns `None` if the box does not get the host's network.
///
/// # Errors
/// [`NetworkError::NoPasst`] if it is not installed.
pub(crate) fn find(given: &Given, path: &OsStr) -> Result<Option<PathBuf>, NetworkError> {
    if given.mode != NetworkMode::Shared {
        return Ok(None);
    }
    programs::locate(PASST, path).map(Some).ok_or(NetworkError::NoPasst)
}

/// The host's end of a box's network device.
#[derive(Debug)]
pub(crate) enum Device {
    /// passt, which connects the guest to the host's network.
    Host(Passt),
    /// A device without a network, for a box that declares the host's network and does not get it. The box's init
    /// expects the device. Nothing reads this end of the device, so packets of the guest wait.
    Nothing { _end: UnixStream },
}

impl Device {
    /// Creates the device of a box that declares the host's network, and starts the program `passt` for it. If that is
    /// `None`, the device has no network. Returns the device and the guest's socket.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn make(passt: Option<&Path>) -> Result<(Self, UnixStream), OsError> {
        if let Some(program) = passt {
            return Passt::start(program).map(|(passt, device)| (Self::Host(passt), device));
        }
        let pair = UnixStream::pair().map_err(OsError::system("make a network device"));
        pair.map(|(end, device)| (Self::Nothing { _end: end }, device))
    }

    /// Returns the process id of passt; `None` for a device without a network.
    pub(crate) fn process(&self) -> Option<Pid> {
        match self {
            Self::Host(passt) => i32::try_from(passt.child.id()).ok().map(Pid::from_raw),
            Self::Nothing { .. } => None,
        }
    }

    /// Waits until passt is ready, and lets the guest reach the network. A no-op for a device without a network.
    ///
    /// # Errors
    /// The errors of [`Passt::serve`].
    pub(crate) fn serve(&mut self) -> Result<(), NetworkError> {
        match self {
            Self::Host(passt) => passt.serve(),
            Self::Nothing { .. } => Ok(()),
        }
    }
}

/// Starts passt, waits until it is ready, and stops it. Returns the reason if it does not become ready.
pub fn why_no_network(program: &Path) -> Option<String> {
    let tried = Passt::start(program).map_err(NetworkError::from);
    tried.and_then(|(mut passt, _device)| passt.check()).err().map(|it| it.to_string())
}

impl Passt {
    /// Starts passt. Returns the running passt and the guest's socket.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn start(program: &Path) -> Result<(Self, UnixStream), OsError> {
        let action = "start passt";
        let system = || OsError::system::<io::Error>(action);
        let (machine, device) = UnixStream::pair().map_err(system())?;
        let (mut passt, own) = UnixStream::pair().map_err(system())?;
        let (stderr, says) = io::pipe().map_err(system())?;
        // passt does not close inherited descriptors.
        close_on_exec().map_err(OsError::system(action))?;
        // A full pipe must not block passt. `Passt::stderr` keeps the pipe open, because a closed pipe would kill
        // passt.
        fcntl(says.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
            .map_err(OsError::system(action))?;
        let child = command(program)
            .stdin(OwnedFd::from(own))
            .stdout(Stdio::null())
            .stderr(says)
            .spawn()
            .map_err(OsError::file("start", program))?;
        let asked = passt.write_all(&relay::question(GUEST_MAC, SHARED_GUEST, SHARED_GATEWAY));
        let started = Self { child, stderr, machine, passt, relay: Vec::new() };
        // If passt has already ended, the wait for its answer returns the reason.
        drop(asked);
        Ok((started, device))
    }

    /// Waits until passt is ready, and lets the guest reach the network.
    ///
    /// # Errors
    /// [`NetworkError::Passt`] with passt's message if it has ended or takes too long.
    pub(crate) fn serve(&mut self) -> Result<(), NetworkError> {
        self.check()?;
        self.relay = self.start_relay().map_err(OsError::system("carry the network"))?;
        Ok(())
    }

    /// Starts the threads of the relay. If one of them ends, the guest has no network. Its device then waits, because
    /// the sockets stay open.
    fn start_relay(&self) -> io::Result<Vec<JoinHandle<()>>> {
        let (flows, names) = (Arc::new(Flows::default()), has_resolver());
        let [machine, passt] = [&self.machine, &self.passt];
        let (from, to, known) = (machine.try_clone()?, passt.try_clone()?, Arc::clone(&flows));
        let to_host = move || drop(relay::to_host(from, to, &known, names));
        let ((sender, waiting), from) = (relay::queue(), passt.try_clone()?);
        let to_guest = move || drop(relay::to_guest(from, &sender, &flows));
        let to = machine.try_clone()?;
        let deliver = move || drop(relay::deliver(&waiting, to));
        Ok(vec![
            thread::Builder::new().name("to passt".to_owned()).spawn(to_host)?,
            thread::Builder::new().name("from passt".to_owned()).spawn(to_guest)?,
            thread::Builder::new().name("to the guest".to_owned()).spawn(deliver)?,
        ])
    }

    /// Waits until passt is ready.
    fn check(&mut self) -> Result<(), NetworkError> {
        self.answer().map_err(|error| {
            NetworkError::Passt(self.reason().unwrap_or_else(|| error.to_string()))
        })
    }

    /// Waits for the answer to the ARP question that [`Passt::start`] sent.
    fn answer(&mut self) -> io::Result<()> {
        self.passt.set_read_timeout(Some(LIMIT))?;
        let mut length = [0; relay::LENGTH];
        self.passt.read_exact(&mut length)?;
        let length = u64::from(u32::from_be_bytes(length));
        if length > MAX_FRAME as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let read = io::copy(&mut (&self.passt).take(length), &mut io::sink())?;
        self.passt.set_read_timeout(None)?;
        if read == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Kills passt, and returns its last message, safe for a terminal.
    fn reason(&mut self) -> Option<String> {
        self.child.kill().ok()?;
        let mut bytes = [0; MAX_STDERR];
        let length = self.stderr.read(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        text.lines().rfind(|line| !line.trim().is_empty()).map(|line| shown(line.trim()))
    }
}

impl Drop for Passt {
    fn drop(&mut self) {
        // A failure means that passt has already ended.
        drop((self.machine.shutdown(Shutdown::Both), self.passt.shutdown(Shutdown::Both)));
        drop(self.child.kill());
        drop(self.child.wait());
        self.relay.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Returns whether passt can find a resolver. If there is none, passt would send questions to this host at 127.0.0.1.
fn has_resolver() -> bool {
    fs::read_to_string(RESOLV_CONF).is_ok_and(|text| names_resolver(&text))
}

/// Returns whether a [resolv.conf(5)](https://man7.org/linux/man-pages/man5/resolv.conf.5.html) names a resolver by
/// IPv4.
fn names_resolver(text: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("nameserver")
            && words.next().is_some_and(|it| it.parse::<Ipv4Addr>().is_ok())
    })
}

/// Returns the command that starts passt with its socket as standard input.
///
/// passt carries only IPv4, because the guest has only IPv4 addresses. It assigns no addresses, because init knows
/// them. It forwards no port of the host, and the gateway's address does not lead to the host.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    let [guest, gateway, resolver]: [String; 3] =
        [SHARED_GUEST, SHARED_GATEWAY, SHARED_RESOLVER].map(|it: Ipv4Addr| it.to_string());
    command
        .args(["--foreground", "--quiet", "--fd", "0", "--ipv4-only"])
        .args(["--address", &guest, "--netmask", &SHARED_PREFIX.to_string()])
        .args(["--gateway", &gateway, "--mac-addr", PASST_MAC, "--dns-forward", &resolver])
        .args(["--no-map-gw", "--tcp-ports", "none", "--udp-ports", "none"])
        .args(["--no-dhcp", "--no-ndp", "--no-dhcpv6", "--no-ra"])
        .env_clear()
        .current_dir("/")
        // The group keeps Ctrl-C at a terminal from passt: the supervisor then shuts down the VM first.
        .process_group(0);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// Creates a script that replaces passt, in a new directory.
    fn program(script: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(PASST);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (directory, path)
    }

    #[test]
    fn what_passt_says_last_is_why_there_is_no_network() {
        let (_directory, path) = program("echo first >&2; echo 'no \u{1b}route' >&2");
        let (mut passt, _device) = Passt::start(&path).unwrap();
        let error = passt.serve().unwrap_err().to_string();
        assert_eq!(error, "passt could not start: no \u{fffd}route");
    }

    #[test]
    fn a_resolver_of_ipv4_is_one_that_passt_asks() {
        assert!(names_resolver("search a\nnameserver fd00::1\n nameserver\t127.0.0.53\n"));
        for text in ["", "nameserver fd00::53\n", "# nameserver 1.1.1.1\n", "nameserver\n"] {
            assert!(!names_resolver(text), "{text}");
        }
    }

    #[test]
    fn passt_has_none_of_our_files() {
        let open = fs::File::open("/etc/hostname").unwrap();
        let inherited = nix::unistd::dup(&open).unwrap();
        let (_directory, path) =
            program(r"ls -l /proc/self/fd | grep -c hostname >&2; exec sleep 1000");
        let (mut passt, _device) = Passt::start(&path).unwrap();
        let mut output = [0];
        passt.stderr.read_exact(&mut output).unwrap();
        assert_eq!(&output, b"0");
        drop(inherited);
    }

    #[test]
    fn the_page_has_the_addresses_of_the_box() {
        let page = include_str!("../../../../docs/network.md");
        let guest = format!("{SHARED_GUEST}/{SHARED_PREFIX}");
        for address in [guest, SHARED_GATEWAY.to_string(), SHARED_RESOLVER.to_string()] {
            assert!(page.contains(&address), "{address}");
        }
    }

    #[test]
    fn passt_ends_with_its_handle() {
        let (_directory, path) = program("exec sleep 1000");
        let (passt, _device) = Passt::start(&path).unwrap();
        let proc = PathBuf::from(format!("/proc/{}", passt.child.id()));
        assert!(proc.exists());
        drop(passt);
        assert!(!proc.exists());
    }

    #[test]
    fn what_comes_from_passt_reaches_the_device() {
        // The answer to the ARP question, and an ARP frame.
        let (_directory, path) =
            program(r"printf '\0\0\0\02ok\0\0\0\016aaaaaabbbbbb\010\006' >&0; exec sleep 1000");
        let (mut passt, mut device) = Passt::start(&path).unwrap();
        passt.serve().unwrap();
        let mut frame = [0; 18];
        device.read_exact(&mut frame).unwrap();
        assert_eq!(&frame, b"\0\0\0\x0eaaaaaabbbbbb\x08\x06");
    }
}

//! Attempts of a command to leave its policy. The policy is that of tests/boot/policy.rs: commands have no network, may write
//! to `/work` and `/srv`, but not to `/work/.git` and `/work/kept/file`, and may not read `/secret`, `/key`, `/root/.ssh` and
//! `/work/a/b/hidden`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, SystemTime};

use box_init::sys::zeros::{Call, call_with_zeros};
use nix::fcntl::{OFlag, openat};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::ptrace;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{Gid, Pid, Uid, chown, mkfifo, pivot_root};

/// The port of the server that commands must not reach.
const PORT: u16 = 8081;
/// The abstract socket that commands must not reach.
const ABSTRACT: &[u8] = b"red-team";

type Tried = Result<(), String>;

/// Listens at the addresses that commands must not reach, and sleeps.
pub(crate) fn serve() {
    let address = SocketAddr::from_abstract_name(ABSTRACT);
    let socket = address.and_then(|it| UnixListener::bind_addr(&it));
    let port = TcpListener::bind(("127.0.0.1", PORT));
    println!("{} {}", socket.is_ok(), port.is_ok());
    std::thread::sleep(Duration::MAX);
}

/// Makes all attempts and prints a line for each: its name, and `refused` with the reason, or `succeeded`.
pub(crate) fn leave() {
    let Some(other) = other() else { return println!("find another process\tfailed") };
    prepare();
    for (name, attempt) in ALL {
        match attempt(other) {
            Err(why) => println!("{name}\trefused\t{why}"),
            Ok(()) => println!("{name}\tsucceeded"),
        }
    }
}

/// Does what a command under the policy may do, and prints a line for each.
pub(crate) fn stay() {
    prepare();
    let tries = [
        ("read a file outside", read("/etc/passwd")),
        ("make a file", create("/work/new")),
        ("make a file in /tmp", create("/tmp/new")),
        ("make a file in a declared directory", create("/srv/new")),
        ("make a file in a directory", create("/work/directory/new")),
        ("move a file", rename("/work/directory/new", "/work/moved")),
        ("link a file", link("/work/moved", "/work/linked")),
        ("read a kept file", read("/work/kept/file")),
        ("write beside a kept file", append("/work/kept/other")),
        ("write in a directory with a kept one", create("/work/.git/index")),
        ("write to a device", append("/dev/null")),
        ("bind a socket", of(UnixListener::bind("/work/socket").map(drop))),
        ("listen", of(TcpListener::bind(("127.0.0.1", PORT)).map(drop))),
    ];
    for (name, tried) in tries {
        println!("{name}\t{}", tried.err().unwrap_or_else(|| "done".to_owned()));
    }
}

/// Waits at most 20 seconds until a file exists.
pub(crate) fn wait_for(path: &str) {
    println!("{}", if comes(path) { "it is there" } else { "it never came" });
}

/// Appends to a file, waits until the file `other` exists, and appends again. Prints both outcomes.
pub(crate) fn append_twice(path: &str, other: &str) {
    let say = |tried: Tried| println!("{}", tried.err().unwrap_or_else(|| "done".to_owned()));
    say(append(path));
    if comes(other) {
        say(append(path));
    }
}

/// Returns whether a file exists within 20 seconds.
fn comes(path: &str) -> bool {
    (0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        fs::exists(path).unwrap_or(false)
    })
}

/// Returns the id of a process of this component with the same name as this one.
fn other() -> Option<i32> {
    let ids = fs::read_dir("/proc").ok()?;
    let ids = ids.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    let own = i32::try_from(std::process::id()).ok()?;
    let mut others = ids.filter(|id| *id != own).filter(|id| {
        fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|it| it.trim_end() == "red-team")
    });
    others.next()
}

/// Makes files and links of the command's own, which the attempts use.
fn prepare() {
    for (target, link) in [
        ("/etc/passwd", "/work/to-passwd"),
        ("/etc", "/work/to-etc"),
        ("/secret", "/work/to-secret"),
        ("/proc/1/root", "/work/to-first"),
        // For later commands, in whose mount namespaces these directories are fixed.
        ("/", "/tmp/.git"),
        ("/", "/tmp/.claude"),
    ] {
        drop(symlink(target, link));
    }
    drop(fs::write("/work/mine", "mine"));
    drop(fs::create_dir("/work/directory"));
}

fn of(result: io::Result<()>) -> Tried {
    result.map_err(|error| error.to_string())
}

fn by(result: nix::Result<()>) -> Tried {
    result.map_err(|error| error.to_string())
}

fn append(path: &str) -> Tried {
    of(OpenOptions::new().append(true).open(path).and_then(|mut it| it.write_all(b"x")))
}

fn create(path: &str) -> Tried {
    of(OpenOptions::new().write(true).create_new(true).open(path).map(drop))
}

/// Reads a file. An empty file is refused: it stands for one that is hidden.
fn read(path: &str) -> Tried {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|it| it.take(64).read_to_end(&mut text));
    of(read.map(drop))?;
    if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(()) }
}

/// Lists a directory. An empty one is refused.
fn list(path: &str) -> Tried {
    let mut entries = fs::read_dir(path).map_err(|error| error.to_string())?;
    entries.next().map(drop).ok_or_else(|| "it is empty".to_owned())
}

fn rename(from: &str, to: &str) -> Tried {
    of(fs::rename(from, to))
}

fn link(from: &str, to: &str) -> Tried {
    of(fs::hard_link(from, to))
}

fn trace(process: i32) -> Tried {
    by(ptrace::attach(Pid::from_raw(process)))
}

fn zeros(call: Call) -> Tried {
    by(call_with_zeros(call))
}

fn raise(resource: Resource) -> Tried {
    by(setrlimit(resource, 2000, 2000))
}

/// Opens a file for reading, and then for writing through the link of its descriptor.
fn reopen(path: &str) -> Tried {
    let file = File::open(path).map_err(|error| error.to_string())?;
    append(&format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Opens a directory, and then a file in it for writing.
fn open_below(directory: &str, name: &str) -> Tried {
    let directory = File::open(directory).map_err(|error| error.to_string())?;
    by(openat(&directory, name, OFlag::O_WRONLY, Mode::empty()).map(drop))
}

fn connect_abstract() -> Tried {
    of(SocketAddr::from_abstract_name(ABSTRACT)
        .and_then(|it| UnixStream::connect_addr(&it))
        .map(drop))
}

fn enter(namespace: &str, flag: CloneFlags) -> Tried {
    let file = File::open(namespace).map_err(|error| error.to_string())?;
    by(setns(file, flag))
}

fn device(kind: SFlag) -> Tried {
    by(mknod("/work/device", kind, Mode::S_IRUSR, makedev(1, 11)))
}

fn set_times(path: &str) -> Tried {
    of(File::open(path).and_then(|it| it.set_modified(SystemTime::UNIX_EPOCH)))
}

fn chmod(path: &str, mode: u32) -> Tried {
    of(fs::set_permissions(path, fs::Permissions::from_mode(mode)))
}

fn exchange(one: &str, other: &str) -> Tried {
    by(box_init::sys::exchange(one.as_ref(), other.as_ref()))
}

/// Refused if this process has files open besides its standard streams and the directory that it reads.
fn inherited() -> Tried {
    let entries = fs::read_dir("/proc/self/fd").map_err(|error| error.to_string())?;
    let others =
        entries.filter_map(Result::ok).filter_map(|it| it.file_name().to_str()?.parse().ok());
    let count = others.filter(|fd: &i32| *fd > 3).count();
    if count == 0 { Err("it inherits no file".to_owned()) } else { Ok(()) }
}

/// Refused if the only network device is loopback.
fn devices() -> Tried {
    let list = fs::read_to_string("/proc/self/net/dev").map_err(|error| error.to_string())?;
    let count = list.lines().skip(2).filter(|line| !line.trim_start().starts_with("lo:")).count();
    if count == 0 { Err("it has only loopback".to_owned()) } else { Ok(()) }
}

const fn remount() -> MsFlags {
    MsFlags::MS_REMOUNT.union(MsFlags::MS_BIND)
}

type Attempt = (&'static str, fn(i32) -> Tried);

/// All attempts. The argument is the id of another process of the component.
const ALL: &[Attempt] = &[
    // Writing outside.
    ("make a file in /etc", |_| create("/etc/new")),
    ("make a file in /usr", |_| create("/usr/new")),
    ("make a file in /", |_| create("/new")),
    ("make a file in the home", |_| create("/root/.bashrc")),
    ("append to a file", |_| append("/etc/passwd")),
    ("truncate a file", |_| of(File::create("/etc/passwd").map(drop))),
    ("make a directory", |_| of(fs::create_dir("/var/new"))),
    ("remove a file", |_| of(fs::remove_file("/etc/passwd"))),
    ("remove a directory", |_| of(fs::remove_dir("/empty"))),
    ("move a file in from outside", |_| rename("/etc/passwd", "/work/passwd")),
    ("move a file out", |_| rename("/work/mine", "/etc/mine")),
    ("link a file in from outside", |_| link("/etc/passwd", "/work/passwd")),
    ("link a file out", |_| link("/work/mine", "/etc/mine")),
    ("make a symbolic link outside", |_| of(symlink("/work/mine", "/etc/mine"))),
    ("write through a symbolic link", |_| append("/work/to-passwd")),
    ("write below a link to a directory", |_| create("/work/to-etc/new")),
    ("write through dots", |_| append("/work/../etc/passwd")),
    ("write through /proc/self/root", |_| append("/proc/self/root/etc/passwd")),
    ("write through /proc/self/cwd", |_| append("/proc/self/cwd/../etc/passwd")),
    ("write through /proc/thread-self", |_| append("/proc/thread-self/root/etc/passwd")),
    ("open a descriptor again to write", |_| reopen("/etc/passwd")),
    ("write relative to a directory", |_| open_below("/etc", "passwd")),
    ("make a FIFO", |_| by(mkfifo("/etc/fifo", Mode::S_IRUSR))),
    ("bind a socket", |_| of(UnixListener::bind("/etc/socket").map(drop))),
    ("make a character device", |_| device(SFlag::S_IFCHR)),
    ("make a block device", |_| device(SFlag::S_IFBLK)),
    ("change a mode", |_| chmod("/etc/passwd", 0o666)),
    ("set a set-user-ID bit", |_| chmod("/red-team", 0o4755)),
    ("change an owner", |_| {
        by(chown("/etc/passwd", Some(Uid::from_raw(1)), Some(Gid::from_raw(1))))
    }),
    ("change times", |_| set_times("/etc/passwd")),
    ("change a device's mode", |_| chmod("/dev/null", 0o600)),
    ("write to the memory of another process", |it| append(&format!("/proc/{it}/mem"))),
    ("change the OOM score of another process", |it| append(&format!("/proc/{it}/oom_score_adj"))),
    // What is denied in a writable directory.
    ("write to a kept file", |_| append("/work/kept/file")),
    ("remove a kept file", |_| of(fs::remove_file("/work/kept/file"))),
    ("replace a kept file", |_| rename("/work/mine", "/work/kept/file")),
    ("exchange a kept file", |_| exchange("/work/mine", "/work/kept/file")),
    ("move a kept file's directory away", |_| rename("/work/kept", "/work/elsewhere")),
    ("link a kept file", |_| link("/work/kept/file", "/work/mine-too")),
    ("make a file in a kept directory", |_| create("/work/.git/hooks/pre-commit")),
    ("write to a file of the preset", |_| append("/work/.vscode/tasks.json")),
    ("move a kept directory away", |_| rename("/work/.git", "/work/git")),
    ("unmount what keeps a file", |_| by(umount2("/work/kept/file", MntFlags::MNT_DETACH))),
    ("remount what keeps a file", |_| {
        by(mount(None::<&str>, "/work/kept/file", None::<&str>, remount(), None::<&str>))
    }),
    ("make the root writable", |_| {
        by(mount(None::<&str>, "/", None::<&str>, remount(), None::<&str>))
    }),
    // Reading what is denied.
    ("read a hidden file", |_| read("/key")),
    ("read in a hidden directory", |_| read("/secret/key")),
    ("list a hidden directory", |_| list("/secret")),
    ("read a hidden file of the home", |_| read("/root/.ssh/id")),
    ("read through a symbolic link", |_| read("/work/to-secret/key")),
    ("read through /proc/self/root", |_| read("/proc/self/root/secret/key")),
    ("read through the root of process 1", |_| read("/proc/1/root/secret/key")),
    ("read through a link to the root of process 1", |_| read("/work/to-first/secret/key")),
    ("read through the root of another process", |it| read(&format!("/proc/{it}/root/secret/key"))),
    ("read through the directory of another process", |it| read(&format!("/proc/{it}/cwd/../key"))),
    ("read through a link to the root", |_| read("/tmp/.git/secret/key")),
    ("read above the root", |_| read("/../secret/key")),
    ("write above the root", |_| append("/../work/kept/file")),
    ("link a hidden file", |_| link("/key", "/work/key")),
    ("move a hidden file's directory away", |_| rename("/work/a", "/work/elsewhere")),
    ("move a hidden file's inner directory away", |_| rename("/work/a/b", "/work/elsewhere")),
    ("read a hidden file in a writable directory", |_| read("/work/a/b/hidden")),
    ("unmount what hides a directory", |_| by(umount2("/secret", MntFlags::MNT_DETACH))),
    ("open a file by a handle", |_| zeros(Call::OpenByHandleAt)),
    ("open a tree of mounts", |_| zeros(Call::OpenTree)),
    // Leaving the namespaces.
    ("enter the mounts of process 1", |_| enter("/proc/1/ns/mnt", CloneFlags::CLONE_NEWNS)),
    ("enter the network of another process", |it| {
        enter(&format!("/proc/{it}/ns/net"), CloneFlags::CLONE_NEWNET)
    }),
    ("make a mount namespace", |_| by(unshare(CloneFlags::CLONE_NEWNS))),
    ("make a user namespace", |_| by(unshare(CloneFlags::CLONE_NEWUSER))),
    ("pivot_root", |_| by(pivot_root("/work", "/work/directory"))),
    ("mount over a directory", |_| {
        by(mount(Some("/work"), "/etc", None::<&str>, MsFlags::MS_BIND, None::<&str>))
    }),
    // Other processes, and the network.
    ("trace process 1", |_| trace(1)),
    ("trace another process", trace),
    ("kill another process", |it| by(kill(Pid::from_raw(it), Signal::SIGKILL))),
    ("signal the group of another process", |it| by(kill(Pid::from_raw(-it), Signal::SIGCONT))),
    ("read the variables of another process", |it| read(&format!("/proc/{it}/environ"))),
    ("take a file of another process", |_| zeros(Call::PidfdGetfd)),
    ("connect to an abstract socket", |_| connect_abstract()),
    ("connect to a server of the component", |_| {
        of(TcpStream::connect(("127.0.0.1", PORT)).map(drop))
    }),
    ("have a network device", |_| devices()),
    ("inherit an open file", |_| inherited()),
    // The kernel.
    ("io_uring", |_| zeros(Call::IoUringSetup)),
    ("bpf", |_| zeros(Call::Bpf)),
    ("userfaultfd", |_| zeros(Call::Userfaultfd)),
    ("keyctl", |_| zeros(Call::Keyctl)),
    ("raise the limit of open files", |_| raise(Resource::RLIMIT_NOFILE)),
    ("raise the limit of processes", |_| raise(Resource::RLIMIT_NPROC)),
];

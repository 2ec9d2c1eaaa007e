//! The process that sends the requests in files: one thread waits for files, and others send the requests.
//!
//! Programs of the component can do anything to the directories at any time. So no file is opened through a link or waited
//! for, and each step may fail without an effect on other requests.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use super::message::{Answer, CopyFault, MAX_HEAD, Request, copy_body, read_head};
use super::{REQUESTS, RESPONSES};
use crate::connection::Connection;

/// How many requests are sent at once.
const MAX_AT_ONCE: usize = 8;
/// How many files can wait to be sent. Further ones are found when the others have been sent.
const MAX_WAITING: usize = 1024;
/// The greatest length of a file's name, in bytes. The name of the unfinished answer is longer.
const MAX_NAME: usize = 200;
/// How many bytes of an answer are read at a time.
const CHUNK: usize = 16 << 10;
/// The size of the buffer for events of the directories, in bytes.
const EVENTS: usize = 16 << 10;
/// The stack size of a thread, in bytes.
const STACK: usize = 128 << 10;
/// The mode of an answer.
const MODE: u32 = 0o644;
/// The status of an answer to a request that is not sent.
const MALFORMED: u16 = 400;

/// The HTTP APIs of a component, with their directories.
#[derive(Debug)]
pub(super) struct Server {
    services: Vec<Service>,
    timeout: Duration,
    watch: OwnedFd,
    queue: Mutex<Queue>,
    /// Signals a new file in the queue.
    added: Condvar,
}

#[derive(Debug)]
struct Service {
    address: SocketAddr,
    requests: PathBuf,
    responses: PathBuf,
    /// The number of the directory of requests in events.
    watched: i32,
}

/// A file with a request: the position of its service, and its name.
type Job = (usize, OsString);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Job>,
    /// The files that wait or are being sent. Further events of these files are ignored.
    known: BTreeSet<Job>,
    threads: usize,
    /// How many threads wait for a file.
    idle: usize,
    /// Whether there can be files that are not in the queue.
    has_missed: bool,
}

impl Server {
    /// Watches the directories of the services, which are below `root`.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn new(
        root: &Path,
        services: impl IntoIterator<Item = (String, SocketAddr)>,
        timeout: Duration,
    ) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::CLOEXEC)?;
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        let service = |(name, address): (String, SocketAddr)| -> io::Result<Service> {
            let [requests, responses] = [REQUESTS, RESPONSES].map(|it| root.join(&name).join(it));
            let watched = inotify::add_watch(&watch, requests.as_path(), flags)?;
            Ok(Service { address, requests, responses, watched })
        };
        let services = services.into_iter().map(service).collect::<io::Result<_>>()?;
        let (queue, added) = (Mutex::default(), Condvar::new());
        Ok(Self { services, timeout, watch, queue, added })
    }

    /// Serves until the kernel reports no more events. Returns the exit status.
    pub(super) fn run(self) -> i32 {
        let server = Arc::new(self);
        let mut buffer = [MaybeUninit::uninit(); EVENTS];
        let mut events = inotify::Reader::new(&server.watch, &mut buffer);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(error) if error == rustix::io::Errno::INTR => continue,
                Err(_) => return 1,
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                server.find_missed();
            }
            let at = server.services.iter().position(|it| it.watched == event.wd());
            if let (Some(at), Some(name)) = (at, event.file_name()) {
                server.add((at, OsStr::from_bytes(name.to_bytes()).to_owned()));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds all files in the directories to the queue.
    fn find_missed(self: &Arc<Self>) {
        for (at, service) in self.services.iter().enumerate() {
            let names = fs::read_dir(&service.requests).into_iter().flatten();
            names.flatten().for_each(|it| self.add((at, it.file_name())));
        }
    }

    /// Adds a file to the queue, and starts a thread for it if no thread is idle.
    fn add(self: &Arc<Self>, job: Job) {
        let mut queue = self.lock();
        if is_hidden(&job.1) || queue.known.contains(&job) {
            return;
        }
        if queue.waiting.len() >= MAX_WAITING {
            queue.has_missed = true;
            return;
        }
        queue.known.insert(job.clone());
        queue.waiting.push_back(job);
        self.added.notify_one();
        if queue.waiting.len() <= queue.idle || queue.threads >= MAX_AT_ONCE {
            return;
        }
        queue.threads += 1;
        drop(queue);
        let server = Arc::clone(self);
        let started = thread::Builder::new().stack_size(STACK).spawn(move || server.work());
        if started.is_err() {
            self.work_here();
        }
    }

    /// Sends the waiting requests in this thread if there is no other, because the component has as many processes as it may
    /// have.
    fn work_here(self: &Arc<Self>) {
        let mut queue = self.lock();
        queue.threads -= 1;
        while queue.threads == 0
            && let Some(job) = queue.waiting.pop_front()
        {
            drop(queue);
            self.serve(&job);
            queue = self.lock();
        }
    }

    /// Sends requests for ever. A panic ends the process, so that init reports it.
    fn work(self: &Arc<Self>) {
        drop(catch_unwind(AssertUnwindSafe(|| self.work_for_ever())));
        std::process::abort();
    }

    fn work_for_ever(self: &Arc<Self>) {
        loop {
            self.serve(&self.wait_for_file());
        }
    }

    /// Waits for a file.
    fn wait_for_file(self: &Arc<Self>) -> Job {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.waiting.pop_front() {
                return job;
            }
            if std::mem::take(&mut queue.has_missed) {
                drop(queue);
                self.find_missed();
                queue = self.lock();
                continue;
            }
            queue.idle += 1;
            queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    /// Sends the request in a file, and writes the answer. The answer appears last, so that a program that waits for it can
    /// then use the name again.
    fn serve(&self, job: &Job) {
        let answered = self.services.get(job.0).and_then(|it| self.answer(it, &job.1));
        self.lock().known.remove(job);
        if let Some((part, response)) = answered {
            part.finish(&response);
        }
    }

    /// Returns the answer to the request in a file, with its path, and removes the request. Returns `None` if the file is gone, or
    /// if no file can be made for the answer.
    fn answer(&self, service: &Service, name: &OsStr) -> Option<(Part, PathBuf)> {
        let [path, response] = [&service.requests, &service.responses].map(|it| it.join(name));
        let request = match open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            opened => opened.map_err(|error| Failure::malformed(&error.to_string())),
        };
        let made = Part::make(&response).or_else(|_| {
            // The component may have as many files as it may have.
            drop(fs::remove_file(&path));
            Part::make(&response)
        });
        let answer = made.ok().map(|mut part| {
            let done = request.and_then(|it| self.exchange(service, &it, &mut part.file));
            if let Err(failure) = done {
                part.explain(&failure, &path);
            }
            (part, response)
        });
        drop(fs::remove_file(&path));
        answer
    }

    /// Sends a request, and writes the answer to `to`.
    fn exchange(&self, service: &Service, file: &File, to: &mut File) -> Result<(), Failure> {
        let unreadable = |error: io::Error| Failure::malformed(&error.to_string());
        let mut start = Vec::new();
        file.take(MAX_HEAD as u64).read_to_end(&mut start).map_err(unreadable)?;
        let read = start.len() as u64;
        let total = file.metadata().map_err(unreadable)?.len().max(read);
        let request = Request::parse(&start, total == read).map_err(Failure::malformed)?;
        let body = total - request.length as u64;
        let head = request.encoded(service.address, body);

        let deadline = Instant::now() + self.timeout;
        let connection = Connection::open(service.address, deadline).map_err(Failure::of_server)?;
        let mut server = BufReader::with_capacity(CHUNK, connection);
        let rest = (&start[request.length..]).chain(file.take(total - read));
        let sent = send(server.get_mut(), &head, rest, body);
        if matches!(&sent, Err(it) if it.status == MALFORMED) {
            return sent;
        }
        // A server can refuse a request before it has read all of it.
        let received = receive(&mut server, request.asks_for_head(), to);
        match (sent, received) {
            (Err(failure), Err(_)) | (Ok(()), Err(failure)) => Err(failure),
            (_, Ok(())) => Ok(()),
        }
    }
}

/// Returns whether a file is no request: its name begins with a dot, or is too long.
fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".") || name.len() > MAX_NAME
}

/// Opens a file, without following a link and without waiting for a pipe or a lease.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

/// Sends a head and `length` bytes of a body.
fn send(
    to: &mut Connection,
    head: &[u8],
    mut body: impl io::Read,
    length: u64,
) -> Result<(), Failure> {
    to.write_all(head).map_err(Failure::of_server)?;
    match io::copy(&mut body, to).map_err(Failure::of_server)? {
        copied if copied == length => Ok(()),
        _ => Err(Failure::malformed("the file became shorter while it was sent")),
    }
}

/// Writes the answer of a server to a file.
fn receive(
    from: &mut BufReader<Connection>,
    asks_for_head: bool,
    to: &mut File,
) -> Result<(), Failure> {
    let answer = loop {
        let head = read_head(from).map_err(Failure::of_server)?;
        let answer = Answer::parse(&head, asks_for_head);
        let answer = answer.ok_or_else(|| Failure::of_server(ErrorKind::InvalidData.into()))?;
        if !answer.is_interim() {
            break answer;
        }
    };
    to.write_all(&answer.text).map_err(Failure::of_file)?;
    copy_body(from, answer.framing, to).map_err(|fault| match fault {
        CopyFault::Source(error) => Failure::of_server(error),
        CopyFault::Target(error) => Failure::of_file(error),
    })
}

/// An answer that is not finished: the file `.NAME.part`.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    file: File,
}

impl Part {
    /// Makes the file for the answer at `response`. Replaces a file that is there.
    fn make(response: &Path) -> io::Result<Self> {
        let name = response.file_name().unwrap_or_default();
        let path = response
            .with_file_name(OsString::from_vec([&b"."[..], name.as_bytes(), b".part"].concat()));
        drop(fs::remove_file(&path));
        let file = File::options().write(true).create_new(true).mode(MODE).open(&path)?;
        Ok(Self { path, file })
    }

    /// Replaces the content by the reason why there is no answer. Without room even for that, removes the request to make
    /// room. If that does not help, the answer is empty.
    fn explain(&mut self, failure: &Failure, request: &Path) {
        if self.replace(&failure.text()).is_err() {
            drop(fs::remove_file(request));
            if self.replace(&failure.text()).is_err() {
                drop(self.file.set_len(0));
            }
        }
    }

    fn replace(&mut self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())
    }

    /// Gives the file its name.
    fn finish(self, response: &Path) {
        if fs::rename(&self.path, response).is_err() {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Why a request has no answer of its server.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    status: u16,
    reason: String,
}

impl Failure {
    fn malformed(reason: &str) -> Self {
        Self { status: MALFORMED, reason: format!("the request was not sent: {reason}") }
    }

    fn of_server(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                let reason = "the request and its answer took longer than the `timeout` of `cap`";
                Self { status: 504, reason: reason.to_owned() }
            }
            ErrorKind::UnexpectedEof | ErrorKind::InvalidData => {
                Self { status: 502, reason: "the answer is incomplete or malformed".to_owned() }
            }
            _ => Self { status: 502, reason: format!("the service does not answer: {error}") },
        }
    }

    fn of_file(error: io::Error) -> Self {
        Self { status: 507, reason: format!("the answer cannot be written: {error}") }
    }

    /// Returns the answer's text.
    fn text(&self) -> String {
        let Self { status, reason } = self;
        format!("{status}\ncontent-type: text/plain\n\n{reason}\n")
    }
}

//! The logs of a box: the output of the agent and of the business application's main program, the decisions of the box's
//! filter, init's events of the run, and the agent's trajectories. Each log consists of two files of bounded size.
//!
//! An entry is the time in milliseconds since 1970 as eight bytes, little-endian, and then the frame in which init sent
//! it. When the current file is full, it replaces the older file, and a new one is created. The output of components
//! and the events of init also have a rate limit: see [`rate`].

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use box_contract::logs::{MAX_TRAJECTORIES, MAX_TRAJECTORY_FILES};
use box_contract::wire::{Frames, GuestMessage, MAX_OUTPUT, Output, ProgramId, Stream, Trajectory};
use box_contract::{ComponentName, LogsPlan};
use egress_proxy::Decision;
use host_fs::OsError;

use crate::streams::control::CHUNK;
use rate::{Held, Rate};

mod rate;

/// The size in bytes from which a file is full.
pub(crate) const MAX_FILE: u64 = 4 << 20;

/// The log of the filter's decisions.
const DECISIONS: &str = "network.log";
/// The log of init's events.
const EVENTS: &str = "events.log";
/// The log of the trajectories.
const TRAJECTORIES: &str = "atif.log";
/// How much of the limit for trajectories each part uses in addition to its bytes.
const PART_COST: usize = 128;
/// The greatest number of parts of trajectories: all full parts, and the last part of each trajectory.
const MAX_PARTS: usize = MAX_TRAJECTORIES / MAX_OUTPUT + MAX_TRAJECTORY_FILES;

/// The logs of a box. Each component has a separate log, so that the output of one does not replace the output of the
/// other. The filter has one log for both components.
#[derive(Debug)]
pub struct Logs {
    agent: Log,
    business: Log,
    network: NetworkLog,
    events: Log,
    trajectories: Log,
    /// How many more bytes of trajectories are kept.
    trajectories_left: usize,
    /// How many more trajectories are kept, and the name of the last one.
    files_left: usize,
    last_file: Option<String>,
    /// The logs that the box's plan declares.
    declared: LogsPlan,
}

/// Keeps the decisions of a box's filter, each as one JSON object.
#[derive(Debug, Clone)]
pub(crate) struct NetworkLog(Arc<Mutex<Log>>);

impl NetworkLog {
    pub(crate) fn note(&self, decision: &Decision) {
        let Ok(data) = serde_json::to_vec(decision) else { return };
        let output = Output { id: ProgramId::AGENT, stream: Stream::Stdout, data };
        // Use even a poisoned lock, because no code panics while it has the lock.
        let message = GuestMessage::Output(output);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(&message, Instant::now());
    }
}

impl Logs {
    /// Creates the logs in a directory.
    pub(crate) fn create(directory: &Path, declared: LogsPlan) -> Result<Self, OsError> {
        let path = current(directory, ComponentName::Agent);
        let file = new_file(&path).map_err(OsError::file("make", &path))?;
        let now = Instant::now();
        let later = |name: &str| Log::new(directory.join(name));
        Ok(Self {
            agent: Log::new(path).within(now).with(file),
            business: Log::new(current(directory, ComponentName::Business)).within(now),
            // No rate limit, because the filter limits the number of its decisions.
            network: NetworkLog(Arc::new(Mutex::new(later(DECISIONS)))),
            events: later(EVENTS).within(now),
            trajectories: later(TRAJECTORIES),
            trajectories_left: MAX_TRAJECTORIES + MAX_PARTS * PART_COST,
            files_left: MAX_TRAJECTORY_FILES,
            last_file: None,
            declared,
        })
    }

    /// Makes the current file of each log in a directory the older one, so that [`Self::create`] can create logs there.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub(crate) fn set_aside(directory: &Path) -> io::Result<()> {
        let components = [ComponentName::Agent, ComponentName::Business];
        let components = components.map(|it| current(directory, it));
        let others = [DECISIONS, EVENTS, TRAJECTORIES].map(|name| directory.join(name));
        let exists = |path: &PathBuf| path.exists();
        components.into_iter().chain(others).filter(exists).try_for_each(|path| set_aside(&path))
    }

    /// Returns logs that discard everything.
    #[cfg(test)]
    pub(crate) fn nowhere() -> Self {
        let log = || {
            let mut log = Log::new(PathBuf::new());
            log.failed = Some(String::new());
            log
        };
        let network = NetworkLog(Arc::new(Mutex::new(log())));
        let (events, trajectories) = (log(), log());
        Self {
            agent: log(),
            business: log(),
            network,
            events,
            trajectories,
            trajectories_left: 0,
            files_left: 0,
            last_file: None,
            declared: LogsPlan::default(),
        }
    }

    /// Returns the log of the filter's decisions.
    pub(crate) fn network(&self) -> NetworkLog {
        self.network.clone()
    }

    /// Logs output of the agent or of the business application's main program.
    pub(crate) fn write(&mut self, output: &Output, now: Instant) {
        let is_business = output.id == ProgramId::BUSINESS;
        let log = if is_business { &mut self.business } else { &mut self.agent };
        log.write(&GuestMessage::Output(output.clone()), now);
    }

    /// Returns when to call [`Self::write_due`], if entries wait.
    pub(crate) fn due(&self) -> Option<Instant> {
        [&self.agent, &self.business, &self.events].into_iter().filter_map(|it| it.held.due()).min()
    }

    /// Writes the waiting entries of each log whose rate permits it.
    pub(crate) fn write_due(&mut self, now: Instant) {
        [&mut self.agent, &mut self.business, &mut self.events]
            .into_iter()
            .for_each(|it| it.write_held(now));
    }

    /// Writes all waiting entries, at the end of the run.
    pub(crate) fn finish(&mut self) {
        [&mut self.agent, &mut self.business, &mut self.events].into_iter().for_each(Log::finish);
    }

    /// Logs an event of the run or a part of a trajectory, if the box's plan declares that log.
    pub(crate) fn keep(&mut self, message: GuestMessage, now: Instant) {
        match message {
            GuestMessage::Event(_) if self.declared.events => self.events.write(&message, now),
            GuestMessage::Trajectory(part) if self.declared.atif => self.trajectory(part, now),
            _ => {}
        }
    }

    /// Logs a part of a trajectory, up to the limits of a box.
    fn trajectory(&mut self, part: Trajectory, now: Instant) {
        if self.last_file.as_ref() != Some(&part.name) {
            let Some(left) = self.files_left.checked_sub(1) else { return };
            (self.files_left, self.last_file) = (left, Some(part.name.clone()));
        }
        let left = self.trajectories_left.checked_sub(part.data.len() + PART_COST);
        if let Some(left) = left {
            self.trajectories_left = left;
            self.trajectories.write(&GuestMessage::Trajectory(part), now);
        }
    }

    /// Continues in the files of the same names in `directory`, to which the logs were moved.
    pub(crate) fn move_to(&mut self, directory: &Path) {
        self.network.0.lock().unwrap_or_else(PoisonError::into_inner).move_to(directory);
        let logs = [&mut self.agent, &mut self.business, &mut self.events, &mut self.trajectories];
        logs.into_iter().for_each(|it| it.move_to(directory));
    }

    /// Returns why a log lacks its last entries.
    pub(crate) fn failed(&self) -> Option<String> {
        let network = self.network.0.lock().unwrap_or_else(PoisonError::into_inner).failed.clone();
        let logs = [&self.agent, &self.business, &self.events, &self.trajectories];
        logs.into_iter().find_map(|it| it.failed.clone()).or(network)
    }
}

/// Returns the path of a component's log.
fn current(directory: &Path, component: ComponentName) -> PathBuf {
    directory.join(format!("{}.log", component.name()))
}

/// Returns the path of a log that was moved to `directory`.
fn moved(path: &Path, directory: &Path) -> PathBuf {
    path.file_name().map_or_else(|| path.to_owned(), |name| directory.join(name))
}

/// Returns the path of a log's older file.
fn older(current: &Path) -> PathBuf {
    current.with_extension("log.1")
}

/// One log.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// The current file. If it is `None`, the next entry creates it.
    file: Option<File>,
    size: u64,
    failed: Option<String>,
    /// The rate limit of the log, if it has one.
    rate: Option<Rate>,
    held: Held,
}

impl Log {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None, size: 0, failed: None, rate: None, held: Held::default() }
    }

    fn move_to(&mut self, directory: &Path) {
        self.path = moved(&self.path, directory);
    }

    /// Sets a rate limit for the log.
    fn within(mut self, now: Instant) -> Self {
        self.rate = Some(Rate::new(now));
        self
    }

    /// Sets the file of the log.
    fn with(mut self, file: File) -> Self {
        self.file = Some(file);
        self
    }

    /// Logs a message, at once if the rate permits it. After an error, such as a full disk, the log discards all
    /// messages.
    fn write(&mut self, message: &GuestMessage, now: Instant) {
        if self.failed.is_some() {
            return;
        }
        match entry_of(message) {
            Ok(entry) => {
                self.held.push(entry, now);
                self.write_held(now);
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Writes the held entries, if the rate permits it.
    fn write_held(&mut self, now: Instant) {
        let size = self.held.size();
        if self.rate.as_mut().is_none_or(|rate| rate.take(size, now)) {
            self.finish();
        } else {
            self.held.postpone(now);
        }
    }

    /// Writes all held entries.
    fn finish(&mut self) {
        let (note, entries) = self.held.take();
        let note = note.map(|text| {
            let id = ProgramId::AGENT;
            let output = Output { id, stream: Stream::Stderr, data: text.into_bytes() };
            entry_of(&GuestMessage::Output(output))
        });
        for entry in note.into_iter().chain(entries.into_iter().map(Ok)) {
            if self.failed.is_none()
                && let Err(error) = entry.and_then(|entry| self.append(&entry))
            {
                self.fail(&error);
            }
        }
    }

    fn fail(&mut self, error: &io::Error) {
        (self.file, self.failed) = (None, Some(error.to_string()));
    }

    fn append(&mut self, entry: &[u8]) -> io::Result<()> {
        if self.size >= MAX_FILE {
            self.rotate()?;
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => new_file(&self.path)?,
        };
        self.size += entry.len() as u64;
        file.write_all(entry)?;
        self.file = Some(file);
        Ok(())
    }

    /// Replaces the older file with the current one.
    fn rotate(&mut self) -> io::Result<()> {
        set_aside(&self.path)?;
        (self.file, self.size) = (None, 0);
        Ok(())
    }
}

impl Drop for Log {
    /// Writes the held entries if the supervisor has not, because the start failed.
    fn drop(&mut self) {
        self.finish();
    }
}

/// Replaces the older file of a log with the current one. The older file is removed first: ext4 immediately flushes a file
/// that is renamed over another one (`auto_da_alloc` in
/// [ext4(5)](https://man7.org/linux/man-pages/man5/ext4.5.html)), and a log does not need that.
fn set_aside(current: &Path) -> io::Result<()> {
    let older = older(current);
    match fs::remove_file(&older) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => fs::rename(current, older),
    }
}

/// Returns an entry with the current time.
fn entry_of(message: &GuestMessage) -> io::Result<Vec<u8>> {
    let mut entry = since_epoch().to_le_bytes().to_vec();
    message.write(&mut entry)?;
    Ok(entry)
}

fn new_file(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// A piece of output from a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// The time, in milliseconds since 1970.
    pub time_ms: u64,
    /// The stream to which the program wrote.
    pub stream: Stream,
    /// The bytes, which are not safe for a terminal.
    pub data: Vec<u8>,
}

/// Reads a log from its beginning, even while it is being written.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    file: Option<File>,
    frames: Frames,
}

impl LogReader {
    pub(crate) fn new(directory: &Path, component: ComponentName) -> Self {
        Self::at(current(directory, component))
    }

    /// Reads the decisions of a box's filter.
    pub(crate) fn of_network(directory: &Path) -> Self {
        Self::at(directory.join(DECISIONS))
    }

    /// Reads the events of a run.
    pub(crate) fn of_events(directory: &Path) -> Self {
        Self::at(directory.join(EVENTS))
    }

    /// Reads the trajectories of a run.
    pub(crate) fn of_trajectories(directory: &Path) -> Self {
        Self::at(directory.join(TRAJECTORIES))
    }

    fn at(path: PathBuf) -> Self {
        Self { path, file: None, frames: Frames::default() }
    }

    /// Continues in `directory`, to which the log was moved.
    pub(crate) fn move_to(&mut self, directory: &Path) {
        self.path = moved(&self.path, directory);
    }

    /// Returns the next entry; `None` at the end. More entries may follow later.
    ///
    /// # Errors
    /// If the files cannot be read, or contain entries of another log.
    pub fn next_entry(&mut self) -> io::Result<Option<Logged>> {
        match self.next_message()? {
            Some((time_ms, GuestMessage::Output(Output { stream, data, .. }))) => {
                Ok(Some(Logged { time_ms, stream, data }))
            }
            Some(_) => Err(something_else()),
            None => Ok(None),
        }
    }

    /// Like [`Self::next_entry`], for any log; returns the time in milliseconds since 1970, and the logged message.
    pub(crate) fn next_message(&mut self) -> io::Result<Option<(u64, GuestMessage)>> {
        loop {
            if let Some(entry) = self.frames.next(entry)? {
                return Ok(Some(entry));
            }
            if !self.read()? && !self.advance()? {
                return Ok(None);
            }
        }
    }

    /// Returns the next decision of a box's filter, with its time in milliseconds since 1970. `None` at the end; more
    /// decisions may follow later.
    ///
    /// # Errors
    /// The errors of [`Self::next_entry`].
    pub fn next_decision(&mut self) -> io::Result<Option<(u64, Decision)>> {
        let Some((time_ms, message)) = self.next_message()? else { return Ok(None) };
        Ok(Some((time_ms, decision(&message)?)))
    }

    /// Reads the next bytes of the file; returns whether there were any.
    fn read(&mut self) -> io::Result<bool> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let mut chunk = [0; CHUNK];
        let length = file.read(&mut chunk)?;
        self.frames.push(&chunk[..length]);
        Ok(length > 0)
    }

    /// Continues with the next file of the log. Returns whether there may be more bytes to read.
    fn advance(&mut self) -> io::Result<bool> {
        let next = match &self.file {
            None => open(&older(&self.path))?.or(open(&self.path)?),
            Some(file) => {
                let current = open(&self.path)?;
                let is_other = |it: &File| Ok::<_, io::Error>(inode(it)? != inode(file)?);
                match current {
                    Some(current) if is_other(&current)? => Some(current),
                    _ => None,
                }
            }
        };
        let found = next.is_some();
        // The old file may have got bytes after the last read, before the next file replaced it.
        if found && self.read()? {
            return Ok(true);
        }
        self.file = next.or(self.file.take());
        Ok(found)
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Parses an entry.
fn entry(rest: &mut &[u8]) -> io::Result<Option<(u64, GuestMessage)>> {
    let mut time = [0; 8];
    rest.read_exact(&mut time)?;
    let message = GuestMessage::read(rest)?.ok_or(ErrorKind::UnexpectedEof)?;
    Ok(Some((u64::from_le_bytes(time), message)))
}

/// Parses an entry of the filter's log as a decision.
pub(crate) fn decision(message: &GuestMessage) -> io::Result<Decision> {
    match message {
        GuestMessage::Output(output) => Ok(serde_json::from_slice(&output.data)?),
        _ => Err(something_else()),
    }
}

/// Returns the error for an entry that belongs to another log.
pub(crate) fn something_else() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the log holds something else")
}

/// Returns the inode of a file, which identifies a log after its rotation.
fn inode(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.ino())
}

/// Returns the time in milliseconds since 1970.
pub fn since_epoch() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

//! The logs of a box: what the agent, and the business application's own program, wrote, when and where; what the box's
//! filter has decided, what init says of the run, and what the agent has left as trajectories. Each is in two files of
//! bounded size.
//!
//! Each entry is the time in milliseconds since 1970 as eight bytes, little-endian, and then the frame in which init sent
//! it. When a file is full, it takes the place of the older one. What components write and what init says has a rate, too:
//! see [`rate`].

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

/// The size of a file from which on the next entry goes to another, in bytes.
pub(crate) const MAX_FILE: u64 = 4 << 20;

/// The decisions of the box's filter.
const PASST: &str = "network.log";
/// The events of the run, as init tells them.
const EVENTS: &str = "events.log";
/// The trajectories.
const TRAJECTORIES: &str = "atif.log";
/// The cost of a part of a trajectory beside its bytes.
const PART_COST: usize = 128;
/// How many parts they have at most: those that are full, and the last of each.
const MAX_PARTS: usize = MAX_TRAJECTORIES / MAX_OUTPUT + MAX_TRAJECTORY_FILES;

/// The logs of a box. Each component has its own, so that neither drives the other's lines out; the filter has one for both.
#[derive(Debug)]
pub struct Logs {
    agent: Log,
    business: Log,
    network: NetworkLog,
    events: Log,
    trajectories: Log,
    /// How much of trajectories is still kept.
    trajectories_left: usize,
    /// How many more of them, and the name of the last one.
    files_left: usize,
    last_file: Option<String>,
    /// The logs that the box's plan declares.
    declared: LogsPlan,
}

/// Keeps what the filter of a box has decided, each time as one JSON object.
#[derive(Debug, Clone)]
pub(crate) struct NetworkLog(Arc<Mutex<Log>>);

impl NetworkLog {
    /// Keeps a decision.
    pub(crate) fn note(&self, decision: &Decision) {
        let Ok(data) = serde_json::to_vec(decision) else { return };
        let output = Output { id: ProgramId::AGENT, stream: Stream::Stdout, data };
        // Nobody panics while holding it.
        let message = GuestMessage::Output(output);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(&message, Instant::now());
    }
}

impl Logs {
    /// Makes the logs in a directory.
    pub(crate) fn create(directory: &Path, declared: LogsPlan) -> Result<Self, OsError> {
        let path = current(directory, ComponentName::Agent);
        let file = new_file(&path).map_err(OsError::file("make", &path))?;
        let now = Instant::now();
        let later = |name: &str| Log::new(directory.join(name));
        Ok(Self {
            agent: Log::new(path).within(now).with(file),
            business: Log::new(current(directory, ComponentName::Business)).within(now),
            // The filter bounds how many decisions come.
            network: NetworkLog(Arc::new(Mutex::new(later(PASST)))),
            events: later(EVENTS).within(now),
            trajectories: later(TRAJECTORIES),
            trajectories_left: MAX_TRAJECTORIES + MAX_PARTS * PART_COST,
            files_left: MAX_TRAJECTORY_FILES,
            last_file: None,
            declared,
        })
    }

    /// Returns logs that keep nothing.
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

    /// Returns where the decisions of the box's filter are kept.
    pub(crate) fn network(&self) -> NetworkLog {
        self.network.clone()
    }

    /// Keeps an output of the agent or of the business application's own program.
    pub(crate) fn write(&mut self, output: &Output, now: Instant) {
        let is_business = output.id == ProgramId::BUSINESS;
        let log = if is_business { &mut self.business } else { &mut self.agent };
        log.write(&GuestMessage::Output(output.clone()), now);
    }

    /// Returns when [`Self::write_due`] is to be called, if something waits to be written.
    pub(crate) fn due(&self) -> Option<Instant> {
        [&self.agent, &self.business, &self.events].into_iter().filter_map(|it| it.held.due()).min()
    }

    /// Writes what has waited, as far as there is room for it.
    pub(crate) fn write_due(&mut self, now: Instant) {
        [&mut self.agent, &mut self.business, &mut self.events]
            .into_iter()
            .for_each(|it| it.write_held(now));
    }

    /// Writes all that has waited: nothing more comes.
    pub(crate) fn finish(&mut self) {
        [&mut self.agent, &mut self.business, &mut self.events].into_iter().for_each(Log::finish);
    }

    /// Keeps an event of the run or a part of a trajectory, if its box is to have any.
    pub(crate) fn keep(&mut self, message: GuestMessage, now: Instant) {
        match message {
            GuestMessage::Event(_) if self.declared.events => self.events.write(&message, now),
            GuestMessage::Trajectory(part) if self.declared.atif => self.trajectory(part, now),
            _ => {}
        }
    }

    /// Keeps a part of a trajectory, as long as there are not more than a box has.
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

    /// Returns why a log lacks the last outputs.
    pub(crate) fn failed(&self) -> Option<String> {
        let network = self.network.0.lock().unwrap_or_else(PoisonError::into_inner).failed.clone();
        let logs = [&self.agent, &self.business, &self.events, &self.trajectories];
        logs.into_iter().find_map(|it| it.failed.clone()).or(network)
    }
}

/// Returns the file to which a component's log is written.
fn current(directory: &Path, component: ComponentName) -> PathBuf {
    directory.join(format!("{}.log", component.name()))
}

/// Returns the file that was full before.
fn older(current: &Path) -> PathBuf {
    current.with_extension("log.1")
}

/// Keeps what a component's own program writes.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// Made at the first output, if not before.
    file: Option<File>,
    size: u64,
    failed: Option<String>,
    /// How fast it may grow.
    rate: Option<Rate>,
    held: Held,
}

impl Log {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None, size: 0, failed: None, rate: None, held: Held::default() }
    }

    /// Gives the log a rate.
    fn within(mut self, now: Instant) -> Self {
        self.rate = Some(Rate::new(now));
        self
    }

    /// Gives the log its file.
    fn with(mut self, file: File) -> Self {
        self.file = Some(file);
        self
    }

    /// Keeps a message, at once where there is room. A disk that is full ends the log, but not the agent.
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

    /// Writes what is held, where there is room.
    fn write_held(&mut self, now: Instant) {
        let size = self.held.size();
        if self.rate.as_mut().is_none_or(|rate| rate.take(size, now)) {
            self.finish();
        } else {
            self.held.postpone(now);
        }
    }

    /// Writes all that is held.
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

    /// Puts the full file in the place of the older one. That is removed before: ext4 writes a file that is renamed over
    /// another to the disk at once (`auto_da_alloc` in ext4(5)), which nobody needs of a log.
    fn rotate(&mut self) -> io::Result<()> {
        let older = older(&self.path);
        match fs::remove_file(&older) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => fs::rename(&self.path, older)?,
        }
        (self.file, self.size) = (None, 0);
        Ok(())
    }
}

impl Drop for Log {
    /// Keeps the last words of a box that was never served.
    fn drop(&mut self) {
        self.finish();
    }
}

/// Returns an entry with the time of now.
fn entry_of(message: &GuestMessage) -> io::Result<Vec<u8>> {
    let mut entry = since_epoch().to_le_bytes().to_vec();
    message.write(&mut entry)?;
    Ok(entry)
}

fn new_file(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Something that a component's own program wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// Where.
    pub stream: Stream,
    /// What.
    pub data: Vec<u8>,
}

/// Reads a log from its beginning, also while it is written.
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

    /// Reads what the filter of a box has decided.
    pub(crate) fn of_network(directory: &Path) -> Self {
        Self::at(directory.join(PASST))
    }

    /// Reads what init has said of a run.
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

    /// Returns the next entry; `None` at the end, after which there may be more later.
    ///
    /// # Errors
    /// When the files cannot be read, or hold something else.
    pub fn next_entry(&mut self) -> io::Result<Option<Logged>> {
        match self.next_message()? {
            Some((time_ms, GuestMessage::Output(Output { stream, data, .. }))) => {
                Ok(Some(Logged { time_ms, stream, data }))
            }
            Some(_) => Err(something_else()),
            None => Ok(None),
        }
    }

    /// As [`Self::next_entry`], of any log; returns the time in milliseconds since 1970, and what was logged.
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

    /// Returns the next decision of a box's filter, with its time in milliseconds since 1970; `None` as of
    /// [`Self::next_entry`].
    ///
    /// # Errors
    /// Those of [`Self::next_entry`].
    pub fn next_decision(&mut self) -> io::Result<Option<(u64, Decision)>> {
        let Some((time_ms, message)) = self.next_message()? else { return Ok(None) };
        Ok(Some((time_ms, decision(&message)?)))
    }

    /// Reads more of the file; returns whether there was more.
    fn read(&mut self) -> io::Result<bool> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let mut chunk = [0; CHUNK];
        let length = file.read(&mut chunk)?;
        self.frames.push(&chunk[..length]);
        Ok(length > 0)
    }

    /// Opens the file after this one; returns whether there is one.
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
        // What was written before the file was replaced may have come after it was last read.
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

/// Reads an entry.
fn entry(rest: &mut &[u8]) -> io::Result<Option<(u64, GuestMessage)>> {
    let mut time = [0; 8];
    rest.read_exact(&mut time)?;
    let message = GuestMessage::read(rest)?.ok_or(ErrorKind::UnexpectedEof)?;
    Ok(Some((u64::from_le_bytes(time), message)))
}

/// Returns the decision of the box's filter that a message of its log is.
pub(crate) fn decision(message: &GuestMessage) -> io::Result<Decision> {
    match message {
        GuestMessage::Output(output) => Ok(serde_json::from_slice(&output.data)?),
        _ => Err(something_else()),
    }
}

/// Returns the error of an entry that belongs to another log.
pub(crate) fn something_else() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the log holds something else")
}

/// Returns the inode of a file, by which a log that was rotated is known.
fn inode(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.ino())
}

/// Returns the time in milliseconds since 1970.
pub fn since_epoch() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

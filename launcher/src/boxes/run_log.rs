//! The log of a run: the output, the events and the filter's decisions, in the order of time.

use std::io;
use std::path::Path;

use box_contract::ComponentName;
use box_contract::wire::{GuestEvent, GuestEventKind, GuestMessage, Output, ProgramId};
use egress_proxy::Decision;

use crate::streams::log::{LogReader, Logged, decision, something_else};

/// An entry of the log of a run.
#[derive(Debug)]
pub struct RunEntry {
    /// The time, in milliseconds since 1970.
    pub time_ms: u64,
    /// The component that caused the entry.
    pub component: ComponentName,
    /// What happened.
    pub what: Happened,
}

impl RunEntry {
    /// Returns the order of an entry among entries of the same millisecond: starts before output, and output before
    /// ends.
    const fn rank(&self) -> u8 {
        match &self.what {
            Happened::Event(event) => match event.kind {
                GuestEventKind::End | GuestEventKind::CommandEnd | GuestEventKind::Denied => 2,
                GuestEventKind::Start
                | GuestEventKind::Ready
                | GuestEventKind::Command
                | GuestEventKind::Question
                | GuestEventKind::Approved => 0,
            },
            Happened::Output(_) | Happened::Connection(_) => 1,
        }
    }
}

/// The content of an entry.
#[derive(Debug)]
pub enum Happened {
    /// Output of the component's main program.
    Output(Logged),
    /// An event that init reports.
    Event(GuestEvent),
    /// A decision of the box's filter.
    Connection(Decision),
}

/// A trajectory file that the agent has written.
#[derive(Debug, PartialEq, Eq)]
pub struct KeptTrajectory {
    /// When the file arrived on the host, in milliseconds since 1970.
    pub time_ms: u64,
    /// The file's name.
    pub name: String,
    /// The file's content.
    pub data: Vec<u8>,
}

/// Reads the log of a run, even while it is being written.
#[derive(Debug)]
pub struct RunLog {
    sources: Vec<Source>,
    trajectories: LogReader,
}

/// One of the merged logs, and its next entry.
#[derive(Debug)]
struct Source {
    log: LogReader,
    read: fn(u64, GuestMessage) -> io::Result<RunEntry>,
    next: Option<RunEntry>,
}

impl RunLog {
    pub(super) fn new(directory: &Path) -> Self {
        let source = |log, read| Source { log, read, next: None };
        let outputs =
            ComponentName::ALL.map(|name| source(LogReader::new(directory, name), output));
        let others = [
            source(LogReader::of_events(directory), event),
            source(LogReader::of_network(directory), connection),
        ];
        Self {
            sources: others.into_iter().chain(outputs).collect(),
            trajectories: LogReader::of_trajectories(directory),
        }
    }

    /// Returns the earliest entry that was not returned yet. `None` if the logs have no more entries now.
    ///
    /// # Errors
    /// If the files cannot be read, or contain entries of another log.
    pub fn next_entry(&mut self) -> io::Result<Option<RunEntry>> {
        for source in self.sources.iter_mut().filter(|it| it.next.is_none()) {
            let message = source.log.next_message()?;
            source.next =
                message.map(|(time_ms, message)| (source.read)(time_ms, message)).transpose()?;
        }
        let place = |source: &&mut Source| source.next.as_ref().map(|it| (it.time_ms, it.rank()));
        let pending = self.sources.iter_mut().filter(|it| it.next.is_some());
        Ok(pending.min_by_key(place).and_then(|it| it.next.take()))
    }

    /// Returns the trajectories. They arrive on the host when the agent has ended.
    ///
    /// # Errors
    /// The errors of [`Self::next_entry`].
    pub fn trajectories(&mut self) -> io::Result<Vec<KeptTrajectory>> {
        let mut kept: Vec<KeptTrajectory> = Vec::new();
        while let Some((time_ms, message)) = self.trajectories.next_message()? {
            let GuestMessage::Trajectory(part) = message else { return Err(something_else()) };
            match kept.last_mut() {
                Some(last) if last.name == part.name => last.data.extend_from_slice(&part.data),
                _ => kept.push(KeptTrajectory { time_ms, name: part.name, data: part.data }),
            }
        }
        Ok(kept)
    }
}

fn output(time_ms: u64, message: GuestMessage) -> io::Result<RunEntry> {
    let GuestMessage::Output(Output { id, stream, data }) = message else {
        return Err(something_else());
    };
    let is_business = id == ProgramId::BUSINESS;
    let component = if is_business { ComponentName::Business } else { ComponentName::Agent };
    Ok(RunEntry { time_ms, component, what: Happened::Output(Logged { time_ms, stream, data }) })
}

fn event(time_ms: u64, message: GuestMessage) -> io::Result<RunEntry> {
    let event = match message {
        GuestMessage::Event(event) => event,
        // boxlaunch's note about events that the rate limit dropped, which has the form of output.
        message => return output(time_ms, message),
    };
    Ok(RunEntry { time_ms, component: event.component, what: Happened::Event(event) })
}

fn connection(time_ms: u64, message: GuestMessage) -> io::Result<RunEntry> {
    let decision = decision(&message)?;
    Ok(RunEntry { time_ms, component: decision.component, what: Happened::Connection(decision) })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use box_contract::LogsPlan;
    use box_contract::logs::{MAX_TRAJECTORIES, MAX_TRAJECTORY_FILES};
    use box_contract::wire::{MAX_OUTPUT, Stream, Trajectory};

    use super::super::Logs;
    use super::*;

    const ALL: LogsPlan = LogsPlan { stdout: true, stderr: true, events: true, atif: true };

    fn output(id: ProgramId, data: &str) -> Output {
        Output { id, stream: Stream::Stdout, data: data.into() }
    }

    #[test]
    fn the_entries_of_all_logs_come_in_the_order_of_time() {
        let dir = tempfile::tempdir().unwrap();
        let mut logs = Logs::create(dir.path(), ALL).unwrap();
        let mut log = RunLog::new(dir.path());
        assert!(log.next_entry().unwrap().is_none());
        let pause = || std::thread::sleep(std::time::Duration::from_millis(2));
        logs.keep(
            GuestMessage::Event(GuestEvent::new(ComponentName::Agent, GuestEventKind::Start)),
            Instant::now(),
        );
        pause();
        logs.write(&output(ProgramId::BUSINESS, "b"), Instant::now());
        pause();
        logs.write(&output(ProgramId::AGENT, "a"), Instant::now());
        let mut seen = Vec::new();
        while let Some(entry) = log.next_entry().unwrap() {
            let what = match entry.what {
                Happened::Output(it) => String::from_utf8(it.data).unwrap(),
                Happened::Event(it) => it.kind.name().to_owned(),
                Happened::Connection(_) => unreachable!(),
            };
            seen.push((entry.component, what));
        }
        let expected = [
            (ComponentName::Agent, "start"),
            (ComponentName::Business, "b"),
            (ComponentName::Agent, "a"),
        ];
        assert_eq!(seen, expected.map(|(name, what)| (name, what.to_owned())));
        logs.write(&output(ProgramId::AGENT, "later"), Instant::now());
        assert!(log.next_entry().unwrap().is_some(), "as it is followed");
    }

    #[test]
    fn what_ends_comes_after_all_else_of_its_millisecond() {
        let place = |what| RunEntry { time_ms: 1, component: ComponentName::Agent, what }.rank();
        let event = |kind| place(Happened::Event(GuestEvent::new(ComponentName::Agent, kind)));
        let data = b"last words".to_vec();
        let output = place(Happened::Output(Logged { time_ms: 1, stream: Stream::Stdout, data }));
        assert!(event(GuestEventKind::Start) < output && output < event(GuestEventKind::End));
    }

    #[test]
    fn parts_of_a_trajectory_are_put_together_and_no_more_than_a_box_has_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut logs = Logs::create(dir.path(), ALL).unwrap();
        let part = |name: &str, data: &[u8]| Trajectory { name: name.into(), data: data.into() };
        for it in [part("a", b"1"), part("a", b"2"), part("b", b"3"), part("a", b"4")] {
            logs.keep(GuestMessage::Trajectory(it), Instant::now());
        }
        let kept = RunLog::new(dir.path()).trajectories().unwrap();
        let kept: Vec<_> = kept.into_iter().map(|it| (it.name, it.data)).collect();
        let expected = [("a", b"12".to_vec()), ("b", b"3".to_vec()), ("a", b"4".to_vec())];
        assert_eq!(kept, expected.map(|(name, data)| (name.to_owned(), data)));
        let sent = MAX_TRAJECTORIES / MAX_OUTPUT;
        let mut keep = |it| logs.keep(GuestMessage::Trajectory(it), Instant::now());
        (0..sent).for_each(|_| keep(part("c", &[0; MAX_OUTPUT])));
        (0..1000).for_each(|_| keep(part("d", b"")));
        let kept = RunLog::new(dir.path()).trajectories().unwrap();
        let bytes: usize = kept.iter().map(|it| it.data.len()).sum();
        assert_eq!(bytes, MAX_TRAJECTORIES + 4, "all that a box can have");
        let size = || {
            let files = std::fs::read_dir(dir.path()).unwrap();
            files.map(|it| it.unwrap().metadata().unwrap().len()).sum::<u64>()
        };
        let before = size();
        (0..9).for_each(|_| {
            logs.keep(GuestMessage::Trajectory(part("e", &[0; MAX_OUTPUT])), Instant::now());
        });
        assert_eq!(size(), before);
        assert!(logs.failed().is_none());
    }

    #[test]
    fn no_more_files_are_kept_than_a_box_has_and_none_that_is_not_declared() {
        let count = |declared: LogsPlan| {
            let dir = tempfile::tempdir().unwrap();
            let mut logs = Logs::create(dir.path(), declared).unwrap();
            for number in 0..1000 {
                let name = number.to_string();
                let part = Trajectory { name, data: b"1".into() };
                logs.keep(GuestMessage::Trajectory(part), Instant::now());
                logs.keep(
                    GuestMessage::Event(GuestEvent::new(
                        ComponentName::Agent,
                        GuestEventKind::Start,
                    )),
                    Instant::now(),
                );
            }
            let mut log = RunLog::new(dir.path());
            let events = std::iter::from_fn(|| log.next_entry().unwrap()).count();
            (events, log.trajectories().unwrap().len())
        };
        assert_eq!(count(ALL), (1000, MAX_TRAJECTORY_FILES));
        assert_eq!(count(LogsPlan::default()), (0, 0));
    }
}

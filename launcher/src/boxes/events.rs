//! Events of boxes, found by comparing their records.

use std::collections::BTreeMap;

use box_contract::{NetworkMode, named_enum};
use box_digest::Digest;
use egress_proxy::Decision;
use host_fs::OsError;
use serde::Serialize;

use super::{Boxes, LogReader, Record, State, StoppedBy, since_epoch};

/// An event of a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoxEvent {
    /// The time, in milliseconds since 1970.
    pub time_ms: u64,
    /// What happened.
    pub event: EventKind,
    /// The name of the box.
    pub name: String,
    /// The digest of the box.
    #[serde(rename = "box")]
    pub digest: Digest,
    /// The exit status of the agent, the business application or the box, if it has one.
    pub status: Option<u8>,
    /// Why the box ended. `None` if its agent ended, or a user or a rule of the run stopped it.
    pub error: Option<String>,
    /// The rule of the run that stopped the box.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<StoppedBy>,
    /// The digest of the box that this one has replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// The filter's decision about a connection, and the connection's result. Or a failed connection to a socket of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<Decision>,
}

named_enum! {
    /// The kinds of events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum EventKind {
        /// The start of the box has begun.
        Start "start",
        /// The agent of the box is ready.
        Ready "ready",
        /// The box has replaced another one, whose name it has now.
        Updated "updated",
        /// The filter has denied a connection of the box, or has allowed it and the connection has ended. Or the box could not
        /// be connected to a socket of the host.
        Connection "connection",
        /// The box has ended, and is started again.
        Restart "restart",
        /// The business application's main program has ended with a different status than before.
        BusinessEnd "business-end",
        /// The box has ended.
        End "end",
        /// The record of the box was removed.
        Remove "remove",
    }
}

/// Finds the events between two reads of the records.
#[derive(Debug)]
pub struct RecordWatch {
    boxes: Boxes,
    /// The records of the last read. An update changes the names of boxes.
    seen: BTreeMap<RunId, Record>,
    /// The readers of the logs of connections.
    networks: BTreeMap<RunId, LogReader>,
}

/// Identifies a run: when it began, and the process id of its supervisor.
type RunId = (u64, u32);

const fn run_id(record: &Record) -> RunId {
    (record.created_ms, record.supervisor)
}

impl RecordWatch {
    /// Reads the existing records, and returns their events since `since_ms`, in milliseconds since 1970.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn new(boxes: Boxes, since_ms: u64) -> Result<(Self, Vec<BoxEvent>), OsError> {
        let mut watch = Self { boxes, seen: BTreeMap::new(), networks: BTreeMap::new() };
        let mut past = watch.look(true)?;
        past.retain(|event| event.time_ms >= since_ms);
        Ok((watch, past))
    }

    /// Reads the records again, and returns the events since the last read, in order. With `sweep`, they include the
    /// ends of boxes whose supervisor was killed.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn look(&mut self, sweep: bool) -> Result<Vec<BoxEvent>, OsError> {
        let records = if sweep { self.boxes.all()? } else { self.boxes.records()? };
        let now: BTreeMap<_, _> = records.into_iter().map(|it| (run_id(&it), it)).collect();
        let mut events = Vec::new();
        for (run, before) in &self.seen {
            match now.get(run) {
                Some(after) => events.extend(between(Some(before), after)),
                None => {
                    let successor = now.values().find(|it| it.name == before.name);
                    events.extend(removed(before, successor));
                }
            }
        }
        let new = now.iter().filter(|(run, _)| !self.seen.contains_key(run));
        events.extend(new.flat_map(|(_, it)| between(None, it)));
        events.extend(self.connections(&now));
        events.sort_by_key(|event| event.time_ms);
        self.seen = now;
        Ok(events)
    }
}

impl RecordWatch {
    /// Returns the decisions of filters and services, and the failed connections to sockets of the host since the last read. A log that cannot be
    /// read is treated as empty.
    fn connections(&mut self, now: &BTreeMap<RunId, Record>) -> Vec<BoxEvent> {
        self.networks.retain(|run, _| now.contains_key(run));
        let mut events = Vec::new();
        for (run, record) in now.iter().filter(|it| has_connections(it.1)) {
            let new = || self.boxes.network_log(&record.name);
            let log = self.networks.entry(*run).or_insert_with(new);
            if self.seen.get(run).is_some_and(|before| before.name != record.name) {
                log.move_to(&self.boxes.directory.join(&record.name));
            }
            while let Ok(Some((time_ms, decision))) = log.next_decision() {
                let connection = Some(decision);
                events
                    .push(BoxEvent { connection, ..event(record, EventKind::Connection, time_ms) });
            }
        }
        events
    }
}

/// Returns whether a box can have connections that are in its log: those through the filter, to services, and to sockets of the host.
fn has_connections(record: &Record) -> bool {
    record.network.mode == NetworkMode::Filtered
        || !record.services.is_empty()
        || record.shares.iter().any(|it| it.socket)
}

fn event(record: &Record, event: EventKind, time_ms: u64) -> BoxEvent {
    let (name, digest) = (record.name.clone(), record.digest);
    BoxEvent {
        time_ms,
        event,
        name,
        digest,
        status: None,
        error: None,
        stopped_by: None,
        from: None,
        connection: None,
    }
}

/// Returns the events of a box between two versions of its record. Without `before`, returns all events in `after`.
fn between(before: Option<&Record>, after: &Record) -> Vec<BoxEvent> {
    let mut events = Vec::new();
    if before.is_none() {
        events.push(event(after, EventKind::Start, after.created_ms));
    }
    let restarted_before = before.and_then(|it| it.restarted.as_ref()).map(|it| it.count);
    if let Some(restarted) =
        after.restarted.as_ref().filter(|it| Some(it.count) != restarted_before)
    {
        let (status, error) = (after.status, Some(restarted.reason.clone()));
        let restart = event(after, EventKind::Restart, restarted.time_ms);
        events.push(BoxEvent { status, error, ..restart });
    }
    let ready_before = before.and_then(|it| it.ready_ms);
    if let Some(ready_ms) = after.ready_ms.filter(|it| ready_before != Some(*it)) {
        events.push(event(after, EventKind::Ready, ready_ms));
    }
    if let (None, Some(updated)) = (before.and_then(|it| it.updated.as_ref()), &after.updated) {
        let from = Some(updated.from);
        events.push(BoxEvent { from, ..event(after, EventKind::Updated, updated.time_ms) });
    }
    let status = after.business_status;
    if status.is_some() && status != before.and_then(|it| it.business_status) {
        let time_ms = after.ended_ms.filter(|_| before.is_none()).unwrap_or_else(since_epoch);
        events.push(BoxEvent { status, ..event(after, EventKind::BusinessEnd, time_ms) });
    }
    if after.state == State::Ended && before.is_none_or(|it| it.state != State::Ended) {
        events.push(ended(after, after.ended_ms));
    }
    events
}

fn ended(record: &Record, ended_ms: Option<u64>) -> BoxEvent {
    let end = event(record, EventKind::End, ended_ms.unwrap_or_else(since_epoch));
    let (status, error, stopped_by) = (record.status, record.error.clone(), record.stopped_by);
    BoxEvent { status, error, stopped_by, ..end }
}

/// Returns the events of a box whose record was removed or replaced by the record of another box with the same name:
/// the end of the box, if it still ran, and the removal of the record, unless the other run continues this one.
fn removed(before: &Record, after: Option<&Record>) -> Vec<BoxEvent> {
    let now = after.map_or_else(since_epoch, |it| it.created_ms);
    let end = (before.state != State::Ended).then(|| ended(before, Some(now)));
    let is_removed = after.is_none_or(|it| !it.continues);
    let remove = is_removed.then(|| event(before, EventKind::Remove, now));
    end.into_iter().chain(remove).collect()
}

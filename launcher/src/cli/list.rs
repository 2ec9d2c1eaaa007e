//! `boxlaunch ps`, and `boxlaunch inspect` of a started box.

use std::mem::discriminant;

use box_contract::wire::Follow;
use box_contract::{ComponentName, ErrorCode};
use boxlaunch::boxes::all_users::UserBox;
use boxlaunch::boxes::{Boxes, Record, State, since_epoch};
use boxlaunch::client::{Client, ClientError};
use boxlaunch::machine::variables::GivenVariable;
use boxlaunch::mounts::volumes::VolumePlace;
use boxlaunch::network::Published;
use nix::unistd::getuid;
use safe_text::{readable, shown};
use serde_json::{Value, json};
use vmm::signals::StopSignals;

use super::environment::record_at;
use super::error::Failure;
use super::launch_error::LaunchError;
use super::terminal::{aligned, is_quiet, json_line, notice, print};
use super::{all_users, paths};

/// Lists the running boxes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch ps
  boxlaunch ps --all --json | jq '.boxes[] | {name, state}'
  boxlaunch ps --filter status=ended --filter name=test
  sudo boxlaunch ps --all-users
  boxlaunch stop $(boxlaunch ps -n)")]
pub(crate) struct PsArgs {
    /// Also list boxes that have ended.
    #[arg(short, long)]
    all: bool,
    /// List the running boxes of all users, for root.
    #[arg(long, conflicts_with_all = ["all", "names"])]
    all_users: bool,
    /// Only list boxes that fit: status=starting, running or ended, name=TEXT for a part of the name, or box=DIGEST for the
    /// start of the box digest. May be repeated: different keys must all fit, and of equal keys one. A status lists boxes
    /// that have ended, too.
    #[arg(short, long = "filter", value_name = "KEY=VALUE", value_parser = Filter::parse, conflicts_with = "all_users")]
    filters: Vec<Filter>,
    /// Print only names, as -q does.
    #[arg(short, long, conflicts_with = "json")]
    names: bool,
    /// Print one JSON object with the boxes' records.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A condition of `--filter`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Filter {
    Status(State),
    Name(String),
    Digest(String),
}

impl Filter {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match text.split_once('=') {
            Some(("status", "starting")) => Ok(Self::Status(State::Starting)),
            Some(("status", "running")) => Ok(Self::Status(State::Running)),
            Some(("status", "ended" | "exited")) => Ok(Self::Status(State::Ended)),
            Some(("status", _)) => Err("a status is starting, running or ended"),
            Some(("name", name)) => Ok(Self::Name(name.to_owned())),
            Some(("box", digest)) => {
                Ok(Self::Digest(digest.strip_prefix("sha256:").unwrap_or(digest).to_owned()))
            }
            _ => Err("write status=STATUS, name=TEXT or box=DIGEST"),
        }
    }

    fn fits(&self, record: &Record) -> bool {
        match self {
            Self::Status(state) => record.state == *state,
            Self::Name(part) => record.name.contains(part),
            Self::Digest(start) => {
                let digest = record.digest.to_string();
                digest.strip_prefix("sha256:").is_some_and(|it| it.starts_with(start))
            }
        }
    }

    /// Returns whether a record fits for each key one of the filters with that key.
    fn all_fit(filters: &[Self], record: &Record) -> bool {
        filters.iter().all(|one| {
            let same = filters.iter().filter(|it| discriminant(*it) == discriminant(one));
            same.into_iter().any(|it| it.fits(record))
        })
    }
}

/// Shows the addresses of a box's ports on this host, or publishes further ports of a box that runs.
///
/// The agent's port is a Unix socket of this host; ports of `run --publish` are TCP ports.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch port hello
  boxlaunch port hello --publish 3000:3000
  curl --unix-socket $(boxlaunch port --quiet hello) http://box/")]
pub(crate) struct PortArgs {
    /// The box's name [default: the environment of the current directory].
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Publish a TCP port of a component on this host while the box runs, and at its later starts: HOST:GUEST, as in `boxlaunch run`.
    /// May be repeated.
    #[arg(short, long, value_name = "[ADDRESS:]HOST:GUEST[/COMPONENT]")]
    publish: Vec<Published>,
    /// Print one JSON object: agent_port, agent_socket and published.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn port(args: &PortArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let mut record = record_at(&boxes, args.name.as_deref())?;
    if record.state == State::Ended {
        return Err(ClientError::NotRunning(record.name).into());
    }
    if !args.publish.is_empty() {
        publish(&record, &args.publish)?;
        record = boxes.find(&record.name)?;
    }
    if args.json && (record.agent_socket.is_some() || !record.published.is_empty()) {
        let Record { agent_port, agent_socket, published, .. } = &record;
        print(&json_line(
            &json!({ "agent_port": agent_port, "agent_socket": agent_socket, "published": published }),
        )?)?;
        return Ok(0);
    }
    let published: String = record.published.iter().map(published).collect();
    if !is_quiet() {
        print(&published)?;
    }
    let Some(socket) = &record.agent_socket else {
        return Err(match record.state {
            State::Running if !published.is_empty() => return Ok(0),
            State::Starting => LaunchError::StillStarting(record.name),
            State::Running => LaunchError::NoPort(record.name),
            State::Ended => ClientError::NotRunning(record.name).into(),
        }
        .into());
    };
    let socket = socket.display();
    print(&match record.agent_port {
        Some(port) if !is_quiet() => format!("{port}/tcp -> {socket}\n"),
        _ => format!("{socket}\n"),
    })?;
    Ok(0)
}

/// Publishes ports of a box that runs.
pub(super) fn publish(record: &Record, ports: &[Published]) -> Result<(), Failure> {
    let signals = StopSignals::block()?;
    Ok(Client::connect(record, Follow::Nothing, &signals)?.publish(ports)?)
}

/// Returns a published port as a line of text.
fn published(port: &Published) -> String {
    format!("{}/tcp of {} -> {}\n", port.guest, port.component.name(), port.host)
}

pub(crate) fn ps(args: &PsArgs) -> Result<u8, Failure> {
    if args.all_users {
        return ps_all_users(args.json);
    }
    let boxes = Boxes::new(&paths::state()?);
    let mut records = boxes.all()?;
    let unreadable = if args.all { boxes.unreadable()? } else { Vec::new() };
    for name in unreadable {
        notice(&format!(
            "boxlaunch: warning: the record of {name} cannot be read; `boxlaunch rm {name}` removes the box, with its disk\n"
        ));
    }
    let has_status = args.filters.iter().any(|it| matches!(it, Filter::Status(_)));
    records.retain(|record| args.all || has_status || record.state != State::Ended);
    records.retain(|record| Filter::all_fit(&args.filters, record));
    print(&if args.json {
        json_line(&json!({ "boxes": records }))?
    } else if args.names || is_quiet() {
        records.iter().map(|record| format!("{}\n", record.name)).collect()
    } else {
        table(&records, since_epoch())
    })?;
    Ok(0)
}

fn ps_all_users(as_json: bool) -> Result<u8, Failure> {
    let boxes = if let Some(mut all) = all_users::look()? {
        let boxes = all.running();
        all_users::notice_left_out(&all);
        boxes
    } else {
        own_boxes()?
    };
    print(&if as_json {
        let boxes = boxes.iter().map(with_user).collect::<Result<Vec<_>, _>>()?;
        json_line(&json!({ "boxes": boxes }))?
    } else if is_quiet() {
        boxes.iter().map(|it| format!("{}\n", it.record.name)).collect()
    } else {
        user_table(&boxes, since_epoch())
    })?;
    Ok(0)
}

/// Returns the running boxes of this user's state directory.
fn own_boxes() -> Result<Vec<UserBox>, Failure> {
    let (uid, state) = (getuid().as_raw(), paths::state()?);
    let records = Boxes::new(&state).all()?.into_iter();
    let running = records.filter(|record| record.state != State::Ended);
    Ok(running.map(|record| UserBox { uid, state: state.clone(), record }).collect())
}

/// Returns a record with its user and state directory, as JSON.
fn with_user(of: &UserBox) -> Result<Value, Failure> {
    let record = serde_json::to_value(&of.record);
    let mut json = record.map_err(|error| Failure::new(ErrorCode::Internal, error))?;
    json["user"] = all_users::user(of.uid).into();
    json["uid"] = of.uid.into();
    json["state_directory"] = of.state.to_string_lossy().into();
    Ok(json)
}

/// Returns the table of boxes.
fn table(records: &[Record], now: u64) -> String {
    let head = ["NAME", "BOX", "PORTS", "CREATED", "STATUS"].map(str::to_owned);
    let rows = records.iter().map(|record| row(record, now));
    let rows = std::iter::once(head).chain(rows);
    if records.iter().all(|it| it.project.is_none()) {
        return aligned(&rows.collect::<Vec<_>>());
    }
    let project = |it: &Record| it.project.as_deref().map(|it| shown(&it.display().to_string()));
    let projects = records.iter().map(|it| project(it).unwrap_or_else(|| "-".to_owned()));
    let projects = std::iter::once("PROJECT".to_owned()).chain(projects);
    let with = |([name, digest, ports, created, status], project): ([String; 5], String)| {
        [name, project, digest, ports, created, status]
    };
    aligned(&rows.zip(projects).map(with).collect::<Vec<_>>())
}

/// The greatest length of a cell with another user's text, in characters.
const MAX_FOREIGN: usize = 200;

/// Returns the table of boxes of all users.
fn user_table(boxes: &[UserBox], now: u64) -> String {
    let head = ["USER", "NAME", "BOX", "PORTS", "CREATED", "STATUS"].map(str::to_owned);
    let cut = |cell: String| cell.chars().take(MAX_FOREIGN).collect::<String>();
    let row = |it: &UserBox| {
        let [name, digest, ports, created, status] = row(&it.record, now).map(cut);
        [all_users::user(it.uid), name, digest, ports, created, status]
    };
    aligned(&std::iter::once(head).chain(boxes.iter().map(row)).collect::<Vec<_>>())
}

fn row(record: &Record, now: u64) -> [String; 5] {
    let digest = record.digest.hex()[..12].to_owned();
    let created = format!("{} ago", ago(now.saturating_sub(record.created_ms)));
    [shown(&record.name), digest, ports(record), created, status(record, now)]
}

/// Returns the published ports of a box, for example `127.0.0.1:8080->4088`. Those of the business component end in `/business`.
fn ports(record: &Record) -> String {
    let port = |it: &Published| {
        let component = match it.component {
            ComponentName::Agent => "",
            ComponentName::Business => "/business",
        };
        format!("{}->{}{component}", it.host, it.guest)
    };
    let ports: Vec<_> = record.published.iter().map(port).collect();
    if ports.is_empty() { "-".to_owned() } else { ports.join(", ") }
}

/// Returns the state of a box, and how it has ended.
fn status(record: &Record, now: u64) -> String {
    let since = |time: Option<u64>| ago(now.saturating_sub(time.unwrap_or(now)));
    match (record.state, &record.error, record.stopped_by, record.status) {
        (State::Starting, ..) => match &record.restarted {
            None => "starting".to_owned(),
            Some(restarted) => format!("starting again: {}", first_line(&restarted.reason)),
        },
        (State::Running, ..) => {
            format!("running for {}{}", since(record.ready_ms), restarts(record))
        }
        (State::Ended, Some(error), ..) => {
            format!("failed {} ago: {}", since(record.ended_ms), first_line(error))
        }
        (State::Ended, None, Some(rule), _) => {
            format!("stopped {} ago: {}", since(record.ended_ms), rule.reason())
        }
        (State::Ended, None, None, Some(status)) => {
            format!("ended with {status} {} ago", since(record.ended_ms))
        }
        (State::Ended, None, None, None) => format!("stopped {} ago", since(record.ended_ms)),
    }
}

/// Counts the restarts of a box, for example `, 2 restarts`. Empty if there were none.
fn restarts(record: &Record) -> String {
    let count = record.restarted.as_ref().map_or(0, |it| it.count);
    match count {
        0 => String::new(),
        1 => ", 1 restart".to_owned(),
        _ => format!(", {count} restarts"),
    }
}

fn first_line(text: &str) -> String {
    shown(text.lines().next().unwrap_or_default())
}

/// Returns a duration of `ms` milliseconds in its largest whole unit, for example `2 hours`.
pub(super) fn ago(ms: u64) -> String {
    let seconds = ms / 1000;
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let (size, unit) =
        units.into_iter().find(|(size, _)| seconds >= *size).unwrap_or((1, "second"));
    let count = seconds / size;
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// Names the components that ran out of memory.
fn oom_killed(record: &Record) -> Option<String> {
    let names: Vec<_> = record.oom_killed.iter().map(|it| it.name()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Names the missing layers of a box's jail.
fn jail(record: &Record) -> Option<String> {
    let missing: Vec<_> = record.jail_missing.iter().map(|it| shown(&it.to_string())).collect();
    match (missing.is_empty(), record.phases_ms) {
        (false, _) => Some(format!("without {}", missing.join(", "))),
        (true, Some(_)) => Some("complete".to_owned()),
        // The start has not succeeded yet, so the jail is unknown.
        (true, None) => None,
    }
}

/// Names the variables that the components got at launch.
fn variables(record: &Record) -> Option<String> {
    let variable =
        |it: &GivenVariable| shown(&format!("{}={} in {}", it.name, it.value, it.component.name()));
    let variables: Vec<_> = record.env.iter().map(variable).collect();
    (!variables.is_empty()).then(|| variables.join(", "))
}

/// Names the directories of the host that a box sees.
fn directories(record: &Record) -> Option<String> {
    let shares: Vec<_> = record
        .shares
        .iter()
        .map(|it| {
            let access = match (it.socket, it.writable) {
                (true, _) => "socket",
                (false, true) => "read and written",
                (false, false) => "read",
            };
            shown(&format!("{} at {} ({access})", it.host.display(), it.guest))
        })
        .collect();
    (!shares.is_empty()).then(|| shares.join(", "))
}

/// Names the volumes of a box.
fn volumes(record: &Record) -> Option<String> {
    let place = |it: &VolumePlace| shown(&format!("{} at {}", it.volume, it.guest));
    let volumes: Vec<_> = record.volumes.iter().map(place).collect();
    (!volumes.is_empty()).then(|| volumes.join(", "))
}

/// Describes a started box.
pub(super) fn describe(record: &Record) -> String {
    let now = since_epoch();
    let text = |it: Option<String>| it.unwrap_or_else(|| "-".to_owned());
    let vm = &record.vm;
    let plural = if vm.cpus == 1 { "" } else { "s" };
    let rows = [
        ("name", record.name.clone()),
        ("status", status(record, now)),
        ("project", text(record.project.as_ref().map(|it| shown(&it.display().to_string())))),
        ("box", format!("{} in {}", record.digest, shown(&record.directory))),
        ("machine", format!("{} CPU{plural}, {} MiB", vm.cpus, vm.memory_mib)),
        ("supervisor", record.supervisor.to_string()),
        ("business", text(record.business_status.map(|it| format!("last ended with status {it}")))),
        ("oom killed", text(oom_killed(record))),
        ("env", text(variables(record))),
        ("directories", text(directories(record))),
        ("volumes", text(volumes(record))),
        ("disk", text(record.disk_bytes.map(readable))),
        ("jail", text(jail(record))),
        ("ready after", text(record.phases_ms.map(|it| format!("{:.0} ms", it.total)))),
        ("agent socket", text(record.agent_socket.as_ref().map(|it| it.display().to_string()))),
    ];
    rows.map(|(name, value)| format!("{name:<13}{value}\n")).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the record of a box that has ended, as an earlier version of boxlaunch has written it.
    fn ended() -> serde_json::Value {
        json!({
            "name": "hello", "box": format!("sha256:{}", "0".repeat(64)), "directory": "/hello.box",
            "components": ["agent"], "vm": { "cpus": 1, "memory-mib": 256 }, "state": "ended",
            "supervisor": 1, "runtime": "/none", "created_ms": 1, "ended_ms": 1, "remove": false,
        })
    }

    #[test]
    fn the_end_of_a_box_is_described_with_what_has_stopped_it() {
        let mut record = ended();
        let mut described = |field: &str, value: serde_json::Value| {
            record[field] = value;
            status(&serde_json::from_value(record.clone()).unwrap(), 60_001)
        };
        assert_eq!(described("state", "ended".into()), "stopped 1 minute ago");
        assert_eq!(described("status", 143.into()), "ended with 143 1 minute ago");
        let idle = described("stopped_by", "idle".into());
        assert_eq!(idle, "stopped 1 minute ago: nobody used it");
        let failed = described("error", "no answer".into());
        assert_eq!(failed, "failed 1 minute ago: no answer");
    }

    #[test]
    fn what_a_box_has_of_the_host_is_described() {
        let mut record = ended();
        let described = |record: &serde_json::Value| {
            let text = describe(&serde_json::from_value(record.clone()).unwrap());
            let is_of_host = |it: &&str| it.starts_with("directories") || it.starts_with("volumes");
            text.lines().filter(is_of_host).collect::<Vec<_>>().join("\n")
        };
        // The record of an earlier version of boxlaunch contains neither `shares` nor `volumes`.
        assert_eq!(described(&record), "directories  -\nvolumes      -");
        record["shares"] = json!([{ "host": "/home/me", "guest": "/w", "writable": true }]);
        let volumes = [("work", "/var/work"), ("data", "/data")];
        record["volumes"] = volumes.map(|it| json!({ "name": it.0, "guest": it.1 })).into();
        insta::assert_snapshot!(described(&record), @"
        directories  /home/me at /w (read and written)
        volumes      work at /var/work, data at /data
        ");
    }
}

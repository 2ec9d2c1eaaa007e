//! `boxlaunch snapshot`: copies of the disks of boxes, from which environments begin or to which they return.

use boxlaunch::boxes::{Boxes, Snapshot, Snapshots, since_epoch};
use clap::Subcommand;
use cli_common::store::StoreOption;
use safe_text::{readable, shown};
use serde_json::json;
use vmm::signals::StopSignals;

use super::environment::record_or_tip;
use super::error::Failure;
use super::lifecycle::each;
use super::list::ago;
use super::paths;
use super::stored::PROGRAM;
use super::terminal::{aligned, is_quiet, json_line, notice, print};

/// Creates, lists and removes snapshots: copies of what programs have written to the root of a box.
///
/// `boxlaunch up --from SNAP` starts the environment of a project with a copy of a snapshot: a new one, or one that returns to an
/// earlier state. Volumes, shares and the directory of a project are not part of a snapshot.
#[derive(Debug, clap::Args)]
pub(crate) struct SnapshotArgs {
    #[command(subcommand)]
    command: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
enum SnapshotCommand {
    Create(CreateArgs),
    #[command(alias = "list")]
    Ls(LsArgs),
    Rm(RmArgs),
}

/// Copies the disk of a box that has ended, and prints the name of the snapshot.
///
/// On a file system with reflinks, such as btrfs or XFS, the copy takes disk space only as one of the disks changes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch down && boxlaunch snapshot create
  boxlaunch snapshot create . before-upgrade
  boxlaunch snapshot create work && boxlaunch start work")]
struct CreateArgs {
    /// The name of the box; `.` is the environment of the current directory [default: that environment].
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The name of the snapshot [default: the name of the box with a running number, such as page-4a05-1].
    #[arg(value_name = "SNAP")]
    snapshot: Option<String>,
    /// Print one JSON object with the snapshot.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreOption,
}

/// Lists all snapshots, the newest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch snapshot ls
  boxlaunch snapshot ls --json | jq '.snapshots[] | {name, box}'")]
struct LsArgs {
    /// Print one JSON object with the snapshots.
    #[arg(long)]
    json: bool,
}

/// Removes snapshots. Environments that began with them keep their files.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch snapshot rm page-4a05-1")]
struct RmArgs {
    /// The snapshots' names.
    #[arg(value_name = "SNAP", required = true)]
    snapshots: Vec<String>,
    /// Print one JSON object with the names of the snapshots that were removed.
    #[arg(long)]
    json: bool,
}

impl SnapshotArgs {
    /// Returns whether the command has `--json`.
    pub(crate) fn is_json(&self) -> bool {
        match &self.command {
            SnapshotCommand::Create(args) => args.json,
            SnapshotCommand::Ls(args) => args.json,
            SnapshotCommand::Rm(args) => args.json,
        }
    }
}

/// Runs `boxlaunch snapshot`.
pub(crate) fn snapshot(args: &SnapshotArgs) -> Result<u8, Failure> {
    let state = paths::state()?;
    let snapshots = Snapshots::new(&state);
    snapshots.sweep();
    match &args.command {
        SnapshotCommand::Create(args) => create(&snapshots, &Boxes::new(&state), args),
        SnapshotCommand::Ls(args) => list(&snapshots, args.json),
        SnapshotCommand::Rm(args) => {
            each(&args.snapshots, args.json, |name| Ok(snapshots.remove(name)?))
        }
    }
}

fn create(snapshots: &Snapshots, boxes: &Boxes, args: &CreateArgs) -> Result<u8, Failure> {
    let of = args.name.as_deref();
    let name = record_or_tip(boxes, of, |word| format!("boxlaunch snapshot create . {word}"))?.name;
    let _alone = boxes.updating(&name)?;
    let signals = StopSignals::block()?;
    let of = boxes.find(&name)?;
    let made = snapshots.create((boxes, &of), args.snapshot.as_deref(), &signals)?;
    if let Ok(store) = args.store.root(&PROGRAM) {
        // A store that this user cannot write, such as that of all users, keeps what its owner wants.
        drop(snapshots.note_in(&made, &store));
    }
    print(&match args.json {
        true => json_line(&json!({ "snapshots": [made] }))?,
        false => format!("{}\n", made.name),
    })?;
    Ok(0)
}

fn list(snapshots: &Snapshots, as_json: bool) -> Result<u8, Failure> {
    let (all, unreadable) = snapshots.all()?;
    for error in unreadable {
        notice(&format!("boxlaunch: warning: {}\n", shown(&error.to_string())));
    }
    print(&match as_json {
        true => json_line(&json!({ "snapshots": all }))?,
        false if is_quiet() => all.iter().map(|it| it.name.clone() + "\n").collect(),
        false => table(&all, since_epoch()),
    })?;
    Ok(0)
}

/// Returns the table of snapshots.
fn table(snapshots: &[Snapshot], now: u64) -> String {
    let head = ["NAME", "OF", "PROJECT", "BOX", "ON DISK", "CREATED"].map(str::to_owned);
    let row = |it: &Snapshot| {
        let project = it.project.as_ref().map(|it| shown(&it.display().to_string()));
        let (project, digest) =
            (project.unwrap_or_else(|| "-".to_owned()), it.digest.hex()[..12].to_owned());
        let created = format!("{} ago", ago(now.saturating_sub(it.created_ms)));
        let taken = readable(it.allocated_bytes);
        [it.name.clone(), shown(&it.of), project, digest, taken, created]
    };
    aligned(&std::iter::once(head).chain(snapshots.iter().map(row)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use box_digest::Digest;

    use super::*;

    #[test]
    fn a_table_names_the_box_and_the_project_of_each() {
        let snapshot = |name: &str, of: &str, project: Option<&str>| Snapshot {
            name: name.to_owned(),
            of: of.to_owned(),
            project: project.map(Into::into),
            digest: Digest::from_bytes([0xab; 32]),
            size_bytes: 10 << 30,
            allocated_bytes: 56 << 20,
            disk: "/state/snapshots/x/disk".into(),
            created_ms: 1000,
        };
        let snapshots = [
            snapshot("before", "page-4a05", Some("/home/ada/src/page")),
            snapshot("work-1", "work", None),
        ];
        insta::assert_snapshot!(table(&snapshots, 181_000), @"
        NAME     OF          PROJECT              BOX            ON DISK    CREATED
        before   page-4a05   /home/ada/src/page   abababababab   56.0 MiB   3 minutes ago
        work-1   work        -                    abababababab   56.0 MiB   3 minutes ago
        ");
    }
}

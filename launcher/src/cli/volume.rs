//! `boxlaunch volume`: manages the disks that outlive boxes.

use boxlaunch::boxes::since_epoch;
use boxlaunch::mounts::volumes::{DEFAULT_SIZE, MAX_SIZE, MIN_SIZE, VolumeState, Volumes};
use clap::Subcommand;
use cli_common::size_between;
use safe_text::{readable, shown};
use serde_json::json;

use super::error::Failure;
use super::lifecycle::each;
use super::list::ago;
use super::paths;
use super::terminal::{aligned, is_quiet, json_line, notice, print};

/// Creates, lists and removes volumes: disks that outlive the boxes that use them.
///
/// `boxlaunch run --volume NAME:/path` mounts a volume in a box, and creates it if it does not exist. Only one running box
/// can use a volume at a time.
#[derive(Debug, clap::Args)]
pub(crate) struct VolumeArgs {
    #[command(subcommand)]
    command: VolumeCommand,
}

#[derive(Debug, Subcommand)]
enum VolumeCommand {
    Create(CreateArgs),
    #[command(alias = "list")]
    Ls(LsArgs),
    Inspect(InspectArgs),
    Rm(RmArgs),
}

/// Creates an empty volume. It takes disk space on this host only as it is written, and cannot grow beyond its size.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch volume create work --size 50GiB")]
struct CreateArgs {
    /// The volume's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// The maximum size of its content, from 8MiB to 1024GiB [default: 10GiB].
    #[arg(long, value_name = "SIZE", value_parser = size_between(MIN_SIZE, MAX_SIZE, None))]
    size: Option<u64>,
    /// Print one JSON object with the volume.
    #[arg(long)]
    json: bool,
}

/// Lists all volumes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch volume ls
  boxlaunch volume ls --json | jq '.volumes[] | {name, allocated_bytes}'")]
struct LsArgs {
    /// Print one JSON object with the volumes.
    #[arg(long)]
    json: bool,
}

/// Shows the size of volumes, and the box that uses each one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch volume inspect work")]
struct InspectArgs {
    /// The volumes' names.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Print one JSON object with the volumes.
    #[arg(long)]
    json: bool,
}

/// Removes volumes and all their content. A volume that a running box uses is not removed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch volume rm work")]
struct RmArgs {
    /// The volumes' names.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Print one JSON object with the names of the volumes that were removed.
    #[arg(long)]
    json: bool,
}

impl VolumeArgs {
    /// Returns whether the command has `--json`.
    pub(crate) fn is_json(&self) -> bool {
        match &self.command {
            VolumeCommand::Ls(args) => args.json,
            VolumeCommand::Inspect(args) => args.json,
            VolumeCommand::Create(args) => args.json,
            VolumeCommand::Rm(args) => args.json,
        }
    }
}

pub(crate) fn volume(args: &VolumeArgs) -> Result<u8, Failure> {
    let volumes = Volumes::new(&paths::state()?);
    match &args.command {
        VolumeCommand::Create(args) => {
            volumes.create(&args.name, args.size.unwrap_or(DEFAULT_SIZE))?;
            print(&match args.json {
                true => json_line(&json!({ "volumes": [volumes.find(&args.name)?] }))?,
                false => format!("{}\n", args.name),
            })?;
        }
        VolumeCommand::Ls(args) => {
            let (all, unreadable) = volumes.all()?;
            for error in unreadable {
                notice(&format!("boxlaunch: warning: {}\n", shown(&error.to_string())));
            }
            print(&match args.json {
                true => json_line(&json!({ "volumes": all }))?,
                false if is_quiet() => all.iter().map(|it| it.name.clone() + "\n").collect(),
                false => table(&all, since_epoch()),
            })?;
        }
        VolumeCommand::Inspect(args) => {
            let found = args.names.iter().map(|name| volumes.find(name));
            let found = found.collect::<Result<Vec<_>, _>>()?;
            let texts = found.iter().map(|it| describe(it, since_epoch())).collect::<Vec<_>>();
            print(&match args.json {
                true => json_line(&json!({ "volumes": found }))?,
                false => texts.join("\n"),
            })?;
        }
        VolumeCommand::Rm(args) => {
            return each(&args.names, args.json, |name| Ok(volumes.remove(name)?));
        }
    }
    Ok(0)
}

/// Returns the table of volumes.
fn table(volumes: &[VolumeState], now: u64) -> String {
    let head = ["NAME", "SIZE", "ON DISK", "USED"].map(str::to_owned);
    let row = |it: &VolumeState| {
        let (size, taken) = (readable(it.size_bytes), readable(it.allocated_bytes));
        [it.name.clone(), size, taken, used(it, now)]
    };
    aligned(&std::iter::once(head).chain(volumes.iter().map(row)).collect::<Vec<_>>())
}

/// Returns the output of `volume inspect` for a volume.
fn describe(volume: &VolumeState, now: u64) -> String {
    let mut rows = vec![
        ("name", volume.name.clone()),
        ("size", readable(volume.size_bytes)),
        ("on disk", readable(volume.allocated_bytes)),
        ("made", format!("{} ago", ago(now.saturating_sub(volume.created_ms)))),
        ("used", used(volume, now)),
        ("file", volume.disk.display().to_string()),
    ];
    rows.extend(volume.origin.iter().map(|it| ("of", shown(it))));
    rows.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect()
}

/// Names the box that uses the volume, or the last box that used it.
fn used(volume: &VolumeState, now: u64) -> String {
    match (&volume.user, volume.used_ms) {
        (Some(user), _) if volume.in_use => format!("in use by {user}"),
        (Some(user), Some(time)) => {
            format!("last by {user}, {} ago", ago(now.saturating_sub(time)))
        }
        _ => "never".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use box_contract::size;
    use clap::{Args as _, Command};

    use super::*;

    fn state(in_use: bool, user: Option<&str>) -> VolumeState {
        VolumeState {
            name: "work".to_owned(),
            size_bytes: 10 << 30,
            created_ms: 1000,
            user: user.map(str::to_owned),
            used_ms: user.map(|_| 61_000),
            disk: "/state/volumes/work/disk".into(),
            allocated_bytes: 56 << 10,
            in_use,
            origin: in_use.then(|| "/home/me/app/Boxfile".to_owned()),
        }
    }

    #[test]
    fn a_table_names_who_has_each() {
        let volumes = [state(true, Some("web")), state(false, Some("web")), state(false, None)];
        insta::assert_snapshot!(table(&volumes, 181_000), @r"
        NAME   SIZE       ON DISK    USED
        work   10.0 GiB   56.0 KiB   in use by web
        work   10.0 GiB   56.0 KiB   last by web, 2 minutes ago
        work   10.0 GiB   56.0 KiB   never
        ");
        insta::assert_snapshot!(describe(&volumes[0], 181_000), @r"
        name      work
        size      10.0 GiB
        on disk   56.0 KiB
        made      3 minutes ago
        used      in use by web
        file      /state/volumes/work/disk
        of        /home/me/app/Boxfile
        ");
    }

    /// The page of the documentation about volumes.
    const PAGE: &str = include_str!("../../../docs/volumes.md");

    /// Returns the sizes in a text.
    fn sizes(text: &str) -> Vec<u64> {
        text.split(|it: char| !it.is_ascii_alphanumeric()).filter_map(size::parse).collect()
    }

    #[test]
    fn the_help_and_the_page_name_the_bounds() {
        let mut command = VolumeArgs::augment_args(Command::new("volume"));
        let create = command.find_subcommand_mut("create").unwrap();
        let help = create.clone().after_help("").render_long_help().to_string();
        assert_eq!(sizes(&help), [MIN_SIZE, MAX_SIZE, DEFAULT_SIZE], "{help}");
        let row = PAGE.lines().find(|it| it.starts_with("| `volume create ")).unwrap();
        assert_eq!(sizes(row), [MIN_SIZE, MAX_SIZE], "{row}");
        let room = format!("with room for {} GiB", DEFAULT_SIZE >> 30);
        assert!(PAGE.contains(&room), "{room}");
    }
}

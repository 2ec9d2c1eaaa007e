//! `boxbuild ls`: lists the files of a box.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use box_contract::ComponentName;
use box_inspect::diff::{Entry, Side};
use box_inspect::entry::{entry_json, origin, path_json, permissions, shown_bytes};
use box_tree::Follow;
use box_tree::path::names;
use serde_json::json;

use super::failure::Failure;
use super::stored;
use super::terminal;
use cli_common::store::BoxArgument;

/// Lists the files of a box.
///
/// Prints paths of the rootfs: the files of the agent's image are below /roots/agent. With layout "merged", the files of both
/// images are below /roots/merged. With --component, prints paths as the component's image has them; files that the box adds
/// to it are below /boxbuild/system.
///
/// Follows symbolic links in the directories of PATH. Mounts and unpacks nothing, because the box contains this list.
/// `boxbuild verify` compares the list with the rootfs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild ls hello.box                              every file\n  \
    boxbuild ls hello.box --component agent --depth 1  the top of the agent's root\n  \
    boxbuild ls hello.box --component agent /etc -l    with permissions, owner, size and time\n  \
    boxbuild ls hello.box /roots/agent/etc             the same directory, by its path in the rootfs\n  \
    boxbuild ls hello.box --origin | grep skill        the files of skills\n  \
    boxbuild ls hello.box --json | jq '.entries[0]'    as JSON: docs/json.md")]
pub(crate) struct Args {
    #[command(flatten)]
    subject: BoxArgument,
    /// List this file, or this directory and everything below it
    #[arg(value_name = "PATH", default_value = "/")]
    path: OsString,
    /// Resolve paths in the root of this component, without /roots/NAME
    #[arg(long, value_parser = cli_common::component_name())]
    component: Option<ComponentName>,
    /// List at most this many levels below PATH; 0 is PATH alone
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Show type and permissions, owner, size, time (UTC) and the targets of links
    #[arg(short, long)]
    long: bool,
    /// Show the origin of each file: image and layer, skill, file, program, init, generated or merged
    #[arg(long)]
    origin: bool,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let opened = stored::open(&args.subject)?;
    let side = Side::of_box(&opened, args.component)?;
    let found = side.find(args.path.as_bytes(), Follow::Parents);
    let path = found.map_err(|error| stored::missing(&args.subject, &error))?.path;
    let most = args.depth.map(|depth| depth.saturating_add(names(&path).count()));
    let entries = side.entries(&path, most);
    if args.json {
        let head = json!({
            "box": opened.digest, "tree": opened.config.tree, "component": args.component,
        });
        let entries = entries.map(|(path, entry)| entry_json(path_json(&path), &entry));
        terminal::json_list(&head, "entries", entries);
    } else {
        terminal::pieces(entries.map(|(path, entry)| text(args, &path, &entry)));
    }
    Ok(())
}

fn text(args: &Args, path: &[u8], entry: &Entry<'_>) -> String {
    let mut text = if args.long { long(entry) } else { String::new() };
    if args.origin {
        text += &format!("{:<50} ", origin(entry));
    }
    text += &shown_bytes(path);
    if let Some(target) = entry.inode.target().filter(|_| args.long) {
        text += &format!(" -> {}", shown_bytes(target));
    }
    text + "\n"
}

fn long(entry: &Entry<'_>) -> String {
    let meta = &entry.inode.meta;
    let owner = format!("{}:{}", meta.uid, meta.gid);
    let size = entry.inode.content().map(|it| it.size.to_string());
    let size = size.or_else(|| entry.inode.device_numbers()).unwrap_or_else(|| "-".to_owned());
    format!("{} {owner:>9} {size:>11} {} ", permissions(entry), meta.mtime_utc())
}

//! `boxbuild cat`: prints the content of a file in a box.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;

use box_contract::manifest::SEGMENTED_EPOCH;
use box_contract::plan::PLAN_PATH;
use box_contract::{ComponentName, ErrorCode};
use box_inspect::diff::Side;
use box_inspect::entry::shown_bytes;
use box_inspect::export::{ExportError, VerifiedContents};
use box_inspect::opened::OpenBox;
use box_tree::Content;
use box_tree::Follow;
use box_tree::listing::Found;
use safe_text::{shell_path, shell_word};

use super::failure::Failure;
use super::stored;
use super::terminal;
use cli_common::store::BoxArgument;

/// Prints the content of a file in a box.
///
/// Paths are the ones that `boxbuild ls` prints. Symbolic links are followed as in the running component. A terminal gets the
/// content without the bytes that would move its cursor or change its settings; a file or a pipe gets it unchanged. The
/// content is verified while it is printed: if the exit code is not 0, do not use the output.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild cat hello.box --component agent /etc/os-release\n  \
    boxbuild cat hello.box /roots/agent/etc/os-release         the same file\n  \
    boxbuild cat hello.box /boxbuild/plan.json | jq .agent     the plan that init gets\n  \
    boxbuild cat hello.box /a3s/skills/greet/SKILL.md > SKILL.md")]
pub(crate) struct Args {
    #[command(flatten)]
    subject: BoxArgument,
    /// The path of the file in the box
    #[arg(value_name = "PATH")]
    path: OsString,
    /// Resolve paths in the root of this component, without /roots/NAME
    #[arg(long, value_parser = cli_common::component_name())]
    component: Option<ComponentName>,
    /// Print the content unchanged, also to a terminal
    #[arg(long)]
    raw: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let opened = stored::open(&args.subject)?;
    if is_plan(args, &opened) {
        let plan = serde_json::to_vec(opened.plan());
        let plan = plan.map_err(|error| Failure::new(ErrorCode::Internal, error))?;
        return print(args, |out| out.write_all(&plan).map_err(ExportError::Write));
    }
    let side = Side::of_box(&opened, args.component)?;
    let found = side.find(args.path.as_bytes(), Follow::All);
    let found = found.map_err(|error| stored::missing(&args.subject, &error))?;
    let content = content(args, &side, &found)?;
    let contents = VerifiedContents::open(&opened, &side.listing.tree)?;
    print(args, |out| contents.copy(&found.path, content, out))
}

/// Returns whether the path is the run plan, which is in the config and not in the rootfs.
fn is_plan(args: &Args, opened: &OpenBox) -> bool {
    let is_in_config = opened.config.epoch >= SEGMENTED_EPOCH;
    is_in_config && args.component.is_none() && args.path == PLAN_PATH
}

/// Writes to standard output. The data are filtered for a terminal, unless `--raw` is set.
fn print(
    args: &Args,
    write: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(1 << 20, terminal::data(args.raw));
    let written = write(&mut out);
    match written.and_then(|()| out.flush().map_err(ExportError::Write)) {
        // The reader has closed the pipe because it needs no more.
        Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Returns the content of a file.
///
/// # Errors
/// [`ErrorCode::PathNotFile`] for a directory, a pipe or a device.
fn content(args: &Args, side: &Side, found: &Found) -> Result<Content, Failure> {
    let inode = side.listing.tree.inode(found.id);
    if let Some(content) = inode.content() {
        return Ok(*content);
    }
    let path = if found.path.is_empty() { "/".into() } else { shown_bytes(&found.path) };
    let is = match inode.type_name() {
        "directory" => "a directory",
        "fifo" => "a pipe",
        _ => "a device",
    };
    let message = format!("{path} is {is}, and not a file");
    if is != "a directory" {
        return Err(Failure::new(ErrorCode::PathNotFile, message));
    }
    let component = args.component.map(|it| format!(" --component {}", it.name()));
    let (of, component) = (shell_path(&args.subject.reference), component.unwrap_or_default());
    let path = shell_word(OsStr::from_bytes(if path == "/" { b"/" } else { &found.path }));
    let help = format!("list it with `boxbuild ls {of}{component} {path}`");
    Err(Failure::new((ErrorCode::PathNotFile, help), message))
}

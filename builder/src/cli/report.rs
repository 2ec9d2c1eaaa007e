//! `boxbuild report`: writes a page about a box for a browser.

use std::io;
use std::path::{Path, PathBuf};

use box_contract::{ErrorCode, Phases};
use box_digest::Digest;
use box_inspect::diff::summary::Summary;
use box_inspect::export::{ExportError, LateContents};
use box_inspect::opened::{self, Documents};
use box_inspect::sbom::{Inventory, Packaged};
use box_report::{MAX_CHANGED_FILES, Report};
use box_tree::listing::Listing;
use boxbuild::budget;
use host_fs::FileError;
use host_fs::read::{Links, read_file};
use serde_json::json;

use super::diff::Comparison;
use super::export::{base_name, is_stream, to_file};
use super::failure::Failure;
use super::{stored, terminal};
use cli_common::store::BoxArgument;

/// The maximum size of a measurement, in bytes.
const MAX_MEASUREMENT: u64 = 1 << 20;

/// Writes a page about a box for a browser: sizes as a map, origins, packages, permissions and the budget of its start.
///
/// With OLD, the page also has what changed since that box. The page is one HTML file without a script. It loads nothing, so
/// it can be opened, attached or archived anywhere. The same box gives the same bytes. An existing file is never overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild report hello.box                         the page: ./hello.html\n  \
    boxbuild report new.box old.box -o changes.html   also what changed since old.box\n  \
    boxbuild budget hello.box --json > start.json; boxbuild report hello.box --measured start.json")]
pub(crate) struct Args {
    #[command(flatten)]
    subject: BoxArgument,
    /// An older box, with which the box is compared
    #[arg(value_name = "OLD")]
    old: Option<PathBuf>,
    /// The file to write; `-` is standard output [default: ./BOX.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A measured start of the box: the output of `boxbuild budget BOX --json` or `boxlaunch run BOX --json`
    #[arg(long, value_name = "FILE")]
    measured: Option<PathBuf>,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let output = output(args)?;
    let opened = stored::open(&args.subject)?;
    let (digest, measured) = (opened.digest, measured(args, &opened.digest)?);
    let mut compared = None;
    let html = match &args.old {
        None => page((&opened, &opened::listing(&opened)?), measured, None)?,
        Some(old) => {
            let store = args.subject.store.clone();
            let old = stored::open(&BoxArgument { reference: old.clone(), store })?;
            compared = Some(old.digest);
            // The page names no path of the host.
            let names = [&old, &opened].map(|it| format!("{} {}", it.plan().name, it.digest));
            let found = Comparison::of_boxes(old, opened)?;
            let both = found.second().zip(found.summary(names, MAX_CHANGED_FILES));
            let (second, summary) = both.ok_or_else(|| {
                Failure::new((ErrorCode::Usage, "name two boxes"), "only two boxes can be compared")
            })?;
            page(second, measured, Some(summary))?
        }
    };
    to_file(&output, |out| out.write_all(html.as_bytes()).map_err(ExportError::Write))?;
    if is_stream(&output) {
        return Ok(());
    }
    let (page, output) = (Digest::of(html.as_bytes()), output.display().to_string());
    if args.json {
        let report = json!({
            "box": digest, "compared": compared, "output": output, "digest": page, "bytes": html.len(),
        });
        terminal::json(&report.to_string());
    } else {
        terminal::note(&format!("written: {output}"));
        terminal::result(&page.to_string());
    }
    Ok(())
}

/// Returns the path to write, by default in the working directory.
fn output(args: &Args) -> Result<PathBuf, Failure> {
    let Some(output) = args.output.clone() else {
        let mut name = base_name(&args.subject)?.unwrap_or_else(|| "box".into());
        name.push(".html");
        return Ok(name.into());
    };
    if is_stream(&output) && args.json {
        let message = "standard output cannot take both the page and the JSON";
        return Err(Failure::new((ErrorCode::Usage, "name a file with `--output FILE`"), message));
    }
    if !is_stream(&output) {
        stored::check_output(&output)?;
    }
    Ok(output)
}

/// Reads a measured start, which must be of the box with this digest.
fn measured(args: &Args, digest: &Digest) -> Result<Option<Phases>, Failure> {
    let Some(path) = args.measured.as_deref() else { return Ok(None) };
    let bytes = read_file(path, Links::Follow, MAX_MEASUREMENT);
    let bytes = bytes.map_err(FileError::of("read", path))?;
    let refused = |message: String| {
        let help = "write it with `boxbuild budget BOX --json > FILE`";
        Failure::new((ErrorCode::Usage, help), message)
    };
    let (of, phases) = budget::read(&bytes)
        .map_err(|error| refused(format!("{} has no measured start: {error}", shown(path))))?;
    if of == *digest {
        return Ok(Some(phases));
    }
    Err(refused(format!("{} is about another box, {of}", shown(path))))
}

fn shown(path: &Path) -> String {
    safe_text::shown(&path.display().to_string())
}

/// Formats the page of a box, with the differences from an older one.
fn page(
    (opened, listing): (&Documents, &Listing),
    measured: Option<Phases>,
    changes: Option<Summary<'_>>,
) -> Result<String, Failure> {
    let open = |named: &_| opened.open_blob(named).map_err(io::Error::other);
    let mut contents = LateContents::new(opened, &listing.tree, &open);
    let mut packaged = Packaged { plan: opened.plan(), listing, contents: &mut contents };
    let inventory = &Inventory::of(&mut packaged)?;
    Ok(Report { opened, listing, inventory, measured, changes }.html())
}

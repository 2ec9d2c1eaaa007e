//! `boxlaunch verify`: hashes everything that a box is made of.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use box_digest::Digest;
use box_image::text::shown;
use box_image::{Descriptor, ErrorCode, exit};
use box_layout::{Blob, OpenBox, OpenError};
use boxlaunch::LaunchError;
use boxlaunch::receipt::Receipts;
use boxlaunch::verify::{self, Trust};
use serde::Serialize;

use super::error::CommandError;
use super::{json_line, notice, paths, print};

/// Checks that a box's files are the ones that it names.
///
/// Hashes every blob that the manifest names, whatever earlier runs found out, and remembers the
/// result for those that boot, so that the next `run` need not hash them. Exits with 5 where a file
/// differs or is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch verify ./hello.box")]
pub(crate) struct VerifyArgs {
    /// The box's directory.
    #[arg(value_name = "BOX")]
    directory: PathBuf,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(rename = "box")]
    digest: Digest,
    ok: bool,
    blobs: Vec<BlobReport>,
}

#[derive(Debug, Serialize)]
struct BlobReport {
    name: String,
    digest: Digest,
    size: u64,
    ok: bool,
    error: Option<String>,
    code: Option<&'static str>,
}

impl BlobReport {
    fn new(descriptor: &Descriptor, error: Option<&OpenError>) -> Self {
        let name = shown(descriptor.role());
        let (digest, size, ok) = (descriptor.digest, descriptor.size, error.is_none());
        let code = error.map(|it| it.code().name());
        let error = error.map(|it| shown(&it.to_string()));
        Self { name, digest, size, ok, error, code }
    }
}

pub(crate) fn verify(args: &VerifyArgs) -> Result<ExitCode, CommandError> {
    let opened = boxlaunch::open(&args.directory)?;
    let receipts = Receipts::new(&paths::state()?);
    // Opening the box has hashed the config, as it has the manifest.
    let mut blobs = vec![BlobReport::new(&opened.manifest.config, None)];
    let mut checked = HashSet::new();
    for descriptor in &opened.manifest.layers {
        // A manifest may name one large blob a thousand times.
        if checked.insert((descriptor.digest, descriptor.size)) {
            blobs.push(check(&opened, descriptor, &receipts)?);
        }
    }
    let report = Report { digest: opened.digest, ok: blobs.iter().all(|blob| blob.ok), blobs };
    if args.json {
        print(&json_line(&report)?)?;
    } else {
        print(&lines(&report))?;
        report.blobs.iter().filter_map(|blob| blob.error.as_ref()).for_each(|error| {
            notice(&format!("error: {error}\n"));
        });
    }
    let damaged = report.blobs.iter().any(|it| it.code == Some(ErrorCode::BoxDamaged.name()));
    Ok(match (report.ok, damaged) {
        (true, _) => ExitCode::SUCCESS,
        (false, true) => ExitCode::from(exit::DIFFERENT),
        (false, false) => ExitCode::from(exit::FAILED),
    })
}

/// Hashes a blob. One that boots is open already, and gets a receipt.
fn check(
    opened: &OpenBox,
    descriptor: &Descriptor,
    receipts: &Receipts,
) -> Result<BlobReport, CommandError> {
    let boots = |blob: &&Blob| blob.descriptor == *descriptor;
    let verified = match opened.boot_blobs().into_iter().find(boots) {
        Some(blob) => verify::blob(blob, receipts, Trust::Nothing).map(drop),
        None => opened
            .open_blob(descriptor)
            .map_err(LaunchError::from)
            .and_then(|blob| verify::hashed(&blob).map(drop)),
    };
    let error = match verified {
        Ok(()) => None,
        Err(LaunchError::Open(error)) => Some(error),
        Err(error) => return Err(error.into()),
    };
    Ok(BlobReport::new(descriptor, error.as_ref()))
}

fn lines(report: &Report) -> String {
    let mut text = format!("{:<9}ok       {}\n", "manifest", report.digest);
    for blob in &report.blobs {
        let verdict = if blob.ok { "ok" } else { "DIFFERS" };
        // The media type of a blob that this version does not know is longer than a name.
        text += &format!("{:<8} {verdict:<9}{}\n", blob.name, blob.digest);
    }
    text
}

//! `boxlaunch verify`: hashes everything that a box is made of.

use std::collections::HashSet;
use std::path::PathBuf;

use box_digest::Digest;
use box_image::Descriptor;
use box_image::text::shown;
use box_layout::{Blob, OpenBox, OpenError};
use boxlaunch::LaunchError;
use boxlaunch::receipt::Receipts;
use boxlaunch::verify::{self, Trust};
use error_report::Problem;
use serde::Serialize;
use serde_json::json;

use super::error::{CommandError, exit_code};
use super::{json_line, notice, paths, print};

/// Verifies that the files of a box are undamaged.
///
/// Hashes every blob that the manifest names, even those that earlier runs verified, and remembers
/// the result for those that boot, so that the next `run` need not hash them. Exits with 5 if a file
/// is damaged or missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch verify ./hello.box")]
pub(crate) struct VerifyArgs {
    /// The box's directory.
    #[arg(value_name = "BOX")]
    directory: PathBuf,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(rename = "box")]
    digest: Digest,
    ok: bool,
    blobs: Vec<BlobReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Problem>,
}

#[derive(Debug, Serialize)]
struct BlobReport {
    name: String,
    digest: Digest,
    size: u64,
    ok: bool,
}

pub(crate) fn verify(args: &VerifyArgs) -> Result<u8, CommandError> {
    let opened = boxlaunch::open(&args.directory)?;
    let receipts = Receipts::new(&paths::state()?);
    let report = report(&opened, &receipts)?;
    if args.json {
        print(&json_line(&report)?)?;
    } else {
        print(&lines(&report))?;
        if !report.ok {
            notice(&(error_report::text(&report.errors) + "\n"));
        }
    }
    Ok(report.errors.iter().map(|it| exit_code(it.code)).max().unwrap_or(0))
}

fn report(opened: &OpenBox, receipts: &Receipts) -> Result<Report, CommandError> {
    let (mut blobs, mut errors) = (Vec::new(), Vec::new());
    let mut checked = HashSet::new();
    for descriptor in [&opened.manifest.config].into_iter().chain(&opened.manifest.layers) {
        // A manifest may name one large blob a thousand times.
        if !checked.insert((descriptor.digest, descriptor.size)) {
            continue;
        }
        let wrong = check(opened, descriptor, receipts)?;
        let Descriptor { digest, size, .. } = *descriptor;
        blobs.push(BlobReport {
            name: shown(descriptor.role()),
            digest,
            size,
            ok: wrong.is_none(),
        });
        errors.extend(wrong.map(|error| {
            Problem::new(&error, shown(&error.to_string()))
                .with_details("", &[("blob", json!(digest))])
        }));
    }
    Ok(Report { digest: opened.digest, ok: errors.is_empty(), blobs, errors })
}

/// Hashes a blob, and returns what is wrong with it. One that boots is open already, and gets a
/// receipt.
fn check(
    opened: &OpenBox,
    descriptor: &Descriptor,
    receipts: &Receipts,
) -> Result<Option<OpenError>, CommandError> {
    let boots = |blob: &&Blob| blob.descriptor == *descriptor;
    let verified = match opened.boot_blobs().into_iter().find(boots) {
        Some(blob) => verify::blob(blob, receipts, Trust::Nothing).map(drop),
        None => opened
            .open_blob(descriptor)
            .map_err(LaunchError::from)
            .and_then(|blob| verify::hashed(&blob).map(drop)),
    };
    match verified {
        Ok(()) => Ok(None),
        Err(LaunchError::Open(error)) => Ok(Some(error)),
        Err(error) => Err(error.into()),
    }
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

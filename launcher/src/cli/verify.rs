//! `boxlaunch verify`: hashes everything that a box is made of.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use box_digest::Digest;
use box_image::Descriptor;
use box_image::text::shown;
use box_layout::{Documents, OpenError};
use boxlaunch::receipt::Receipts;
use boxlaunch::verify::{self, Trust};
use boxlaunch::{LaunchError, check_owner};
use error_report::Problem;
use serde::Serialize;
use serde_json::json;

use super::error::{CommandError, exit_code};
use super::paths;
use super::terminal::{is_quiet, json_line, notice, painted, print};

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
    #[serde(skip)]
    missing: bool,
}

pub(crate) fn verify(args: &VerifyArgs) -> Result<u8, CommandError> {
    let documents = Documents::read(&args.directory).map_err(LaunchError::from)?;
    let receipts = Receipts::new(&paths::state()?);
    let report = report(&documents, &receipts)?;
    if args.json {
        print(&json_line(&report)?)?;
    } else {
        print(&lines(&report))?;
        if !report.ok {
            notice(&(painted(&error_report::text(&report.errors)) + "\n"));
        }
    }
    Ok(report.errors.iter().map(|it| exit_code(it.code)).max().unwrap_or(0))
}

fn report(documents: &Documents, receipts: &Receipts) -> Result<Report, CommandError> {
    let (mut blobs, mut errors) = (Vec::new(), Vec::new());
    let mut checked = HashSet::new();
    let manifest = &documents.manifest;
    for descriptor in [&manifest.config].into_iter().chain(&manifest.layers) {
        // A manifest may name one large blob a thousand times.
        if !checked.insert((descriptor.digest, descriptor.size)) {
            continue;
        }
        let wrong = check(documents, descriptor, receipts)?;
        let Descriptor { digest, size, .. } = *descriptor;
        blobs.push(BlobReport {
            name: shown(descriptor.role()),
            digest,
            size,
            ok: wrong.is_none(),
            missing: wrong.as_ref().is_some_and(is_missing),
        });
        errors.extend(wrong.map(|error| {
            Problem::new(&error, shown(&error.to_string()))
                .with_details("", &[("blob", json!(digest))])
        }));
    }
    Ok(Report { digest: documents.digest, ok: errors.is_empty(), blobs, errors })
}

/// Returns `true` where there is no file.
fn is_missing(error: &OpenError) -> bool {
    matches!(error, OpenError::File { error, .. } if error.kind() == ErrorKind::NotFound)
}

/// Hashes a blob, and returns what is wrong with it. One that boots gets a receipt.
fn check(
    documents: &Documents,
    descriptor: &Descriptor,
    receipts: &Receipts,
) -> Result<Option<OpenError>, CommandError> {
    let opened = documents.open_blob(descriptor).map_err(LaunchError::from);
    let verified = opened.and_then(|blob| match documents.boots(descriptor) {
        true => {
            check_owner(&blob)?;
            verify::blob(&blob, receipts, Trust::Nothing, None).map(drop)
        }
        false => verify::hashed(&blob, None).map(drop),
    });
    match verified {
        Ok(()) => Ok(None),
        Err(LaunchError::Open(error)) => Ok(Some(error)),
        Err(error) => Err(error.into()),
    }
}

fn lines(report: &Report) -> String {
    let mut text = format!("{:<9}ok       {}\n", "manifest", report.digest);
    if is_quiet() {
        text.clear();
    }
    for blob in report.blobs.iter().filter(|it| !it.ok || !is_quiet()) {
        let verdict = match (blob.ok, blob.missing) {
            (true, _) => "ok",
            (false, false) => "DIFFERS",
            (false, true) => "MISSING",
        };
        // The media type of a blob that this version does not know is longer than a name.
        text += &format!("{:<8} {verdict:<9}{}\n", blob.name, blob.digest);
    }
    text
}

//! `boxlaunch verify`: hashes everything that a box boots.

use std::path::PathBuf;
use std::process::ExitCode;

use box_image::Digest;
use boxlaunch::bundle::{Blob, Bundle};
use boxlaunch::receipt::Receipts;
use boxlaunch::verify::{self, Trust};
use serde::Serialize;

use super::error::{CommandError, DIFFERENT};
use super::{notice, paths, print, print_json};

/// Checks that a box's files are the ones that it names.
///
/// Hashes the rootfs, the init and the kernel, whatever earlier runs found out, and remembers the
/// result, so that the next `run` need not hash them. Exits with 5 where a file differs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch verify ./hello.box")]
pub(crate) struct VerifyArgs {
    /// The box's directory.
    #[arg(value_name = "BOX")]
    bundle: PathBuf,
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
    name: &'static str,
    digest: Digest,
    size: u64,
    ok: bool,
    error: Option<String>,
}

pub(crate) fn verify(args: &VerifyArgs) -> Result<ExitCode, CommandError> {
    let bundle = Bundle::open(&args.bundle)?;
    let receipts = Receipts::new(&paths::state()?);
    let blobs = bundle
        .blobs()
        .into_iter()
        .map(|blob| check(blob, &receipts))
        .collect::<Result<Vec<_>, _>>()?;
    let report = Report { digest: bundle.digest, ok: blobs.iter().all(|blob| blob.ok), blobs };
    if args.json {
        print_json(&report)?;
    } else {
        print(&lines(&report))?;
        report.blobs.iter().filter_map(|blob| blob.error.as_ref()).for_each(|error| {
            notice(&format!("error: {error}\n"));
        });
    }
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

fn check(blob: &Blob, receipts: &Receipts) -> Result<BlobReport, CommandError> {
    let error = match verify::blob(blob, receipts, Trust::Nothing) {
        Ok(_) => None,
        Err(error) if error.is_difference() => Some(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    let (name, digest, size) = (blob.name, blob.descriptor.digest, blob.descriptor.size);
    Ok(BlobReport { name, digest, size, ok: error.is_none(), error })
}

fn lines(report: &Report) -> String {
    let mut text = format!("{:<9}ok       {}\n", "manifest", report.digest);
    for blob in &report.blobs {
        let verdict = if blob.ok { "ok" } else { "DIFFERS" };
        text += &format!("{:<9}{verdict:<9}{}\n", blob.name, blob.digest);
    }
    text
}

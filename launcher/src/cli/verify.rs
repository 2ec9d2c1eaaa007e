//! `boxlaunch verify`: hashes all content of a box.

use box_contract::Descriptor;
use box_contract::manifest::SEGMENTED_EPOCH;
use box_digest::Digest;
use box_layout::{Documents, OpenError};
use boxlaunch::opened::receipt::Receipts;
use boxlaunch::opened::verify::{self, Trust};
use boxlaunch::opened::{OpenBoxError, check_owner};
use cli_common::Problem;
use safe_text::shown;
use serde::Serialize;
use serde_json::json;

use super::error::{Boxlaunch, Failure};
use super::paths;
use super::stored::PROGRAM;
use super::terminal::{is_quiet, json_line, notice, painted, print};
use cli_common::failure::Reporter as _;
use cli_common::policy::{HostPolicy, PolicyReport};
use cli_common::store::{BoxArgument, attachments};
use cli_common::trust::{NamedBundle, Signatures, TrustOptions, TrustedKeys};

/// Verifies the files of a box against their digests.
///
/// Hashes every blob that the manifest names, even those that earlier runs verified. Remembers the result for blobs that
/// boot, so that the next `run` need not hash them. In a box of format epoch 3, also compares the plan that init reads with
/// the one that `inspect` shows. `boxbuild verify` compares the files with the list of files, too, but remembers
/// nothing. Exits with 5 if something differs or is missing.
///
/// With --key, also requires a signature of the box by that key. Without it, also asks the policy of this host, if there is one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  boxlaunch verify ./hello.box
  boxlaunch verify ghcr.io/acme/hello:v1 --key acme.pub")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    subject: BoxArgument,
    #[command(flatten)]
    trust: TrustOptions,
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
    /// Whether the plan in the rootfs equals the plan in the config. `None` if a blob is damaged, or if init reads the plan from
    /// the config.
    plan_matches: Option<bool>,
    /// The bundles of the box, verified with the keys of the command line. `None` without `--key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    signatures: Option<Signatures>,
    /// What the policy of this host says about the box. `None` with `--key`, and if there is no policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<PolicyReport>,
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

pub(crate) fn verify(args: &VerifyArgs) -> Result<u8, Failure> {
    let keys = args.trust.keys(&PROGRAM)?;
    let documents = args.subject.find(&PROGRAM)?.documents()?;
    // Without a state directory there are no receipts, and verification still works.
    let receipts = paths::state().ok().map(|state| Receipts::new(&state));
    let mut report = report(&documents, receipts.as_ref())?;
    match keys {
        Some(keys) => report.check_signatures(args, &keys)?,
        None => report.ask_policy(&args.subject)?,
    }
    if args.json {
        print(&json_line(&report)?)?;
    } else {
        print(&lines(&report))?;
        if !report.ok {
            notice(&(painted(&cli_common::problem::text(&report.errors)) + "\n"));
        }
    }
    Ok(report.errors.iter().map(|it| Boxlaunch::exit(it.code)).max().unwrap_or(0))
}

impl Report {
    /// Requires a signature of the box by one of the keys of the command line.
    fn check_signatures(&mut self, args: &VerifyArgs, keys: &TrustedKeys) -> Result<(), Failure> {
        let bundles = match args.trust.bundles()? {
            Some(bundles) => bundles,
            None => {
                NamedBundle::of(attachments(&args.subject.store.stores(&PROGRAM), &self.digest)?)
            }
        };
        let found = keys.verify(&bundles, &self.digest);
        self.errors.extend(found.missing());
        self.ok = self.errors.is_empty();
        self.signatures = Some(found);
        Ok(())
    }

    /// Asks the policy of this host whether the box may start.
    fn ask_policy(&mut self, subject: &BoxArgument) -> Result<(), Failure> {
        if let Some(policy) = HostPolicy::read(PROGRAM.variable)? {
            let (report, refused) = PolicyReport::of(&policy, &PROGRAM, subject, &self.digest)?;
            self.errors.extend(refused);
            self.policy = Some(report);
        }
        self.ok = self.errors.is_empty();
        Ok(())
    }
}

fn report(documents: &Documents, receipts: Option<&Receipts>) -> Result<Report, Failure> {
    let (mut blobs, mut errors) = (Vec::new(), Vec::new());
    for descriptor in documents.manifest.blobs() {
        let wrong = check(documents, descriptor, receipts)?;
        let Descriptor { digest, size, .. } = *descriptor;
        blobs.push(BlobReport {
            name: shown(descriptor.role()),
            digest,
            size,
            ok: wrong.is_none(),
            missing: wrong.as_ref().is_some_and(OpenError::is_missing),
        });
        errors.extend(wrong.map(|error| {
            Problem::new(&error, shown(&error.to_string()))
                .with_details("", &[("blob", json!(digest))])
        }));
    }
    // The rootfs of a box with a damaged blob is not checked, because the damage is already an error.
    let is_whole = errors.is_empty();
    let wrong = if is_whole { check_rootfs(documents)? } else { None };
    let has_plan = documents.config.epoch < SEGMENTED_EPOCH;
    let plan_matches = (is_whole && has_plan).then_some(wrong.is_none());
    errors.extend(wrong.map(|error| Problem::new(&error, shown(&error.to_string()))));
    Ok(Report {
        digest: documents.digest,
        ok: errors.is_empty(),
        blobs,
        plan_matches,
        signatures: None,
        policy: None,
        errors,
    })
}

/// Hashes a blob, and returns its error. Writes a receipt for a blob from which the VM boots.
fn check(
    documents: &Documents,
    descriptor: &Descriptor,
    receipts: Option<&Receipts>,
) -> Result<Option<OpenError>, Failure> {
    let opened = documents.open_blob(descriptor).map_err(OpenBoxError::from);
    let boots = documents.boots(descriptor);
    let verified = opened.and_then(|blob| {
        if boots {
            check_owner(&blob)?;
        }
        match receipts.filter(|_| boots) {
            Some(receipts) => verify::blob(&blob, receipts, Trust::Nothing, None).map(drop),
            None => verify::hashed(&blob, None).map(drop),
        }
    });
    found(verified)
}

/// Checks the rootfs and returns its error. Before [`SEGMENTED_EPOCH`], compares the plan in the rootfs with the config's plan.
/// From that epoch on, compares the size in the superblock with the total size of the metadata and the segments.
fn check_rootfs(documents: &Documents) -> Result<Option<OpenError>, Failure> {
    let checked = documents.open_rootfs().and_then(|rootfs| {
        if documents.config.epoch < SEGMENTED_EPOCH {
            rootfs.metadata().check_plan(&documents.config.plan)
        } else {
            rootfs.check_superblock()
        }
    });
    found(checked.map_err(OpenBoxError::from))
}

/// Returns an error of the box as `Ok(Some)`. An error that prevented the check is `Err`.
fn found(verified: Result<(), OpenBoxError>) -> Result<Option<OpenError>, Failure> {
    match verified {
        Ok(()) => Ok(None),
        Err(OpenBoxError::Open(error)) => Ok(Some(error)),
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
        // The space after the name separates the name of an unknown blob: its media type, which is wider than the column.
        text += &format!("{:<8} {verdict:<9}{}\n", blob.name, blob.digest);
    }
    if let Some(matches) = report.plan_matches.filter(|it| !it || !is_quiet()) {
        let verdict = if matches { "ok" } else { "DIFFERS" };
        text += &format!("plan     {verdict:<9}the plan in the rootfs, compared with the config\n");
    }
    if let Some(policy) = report.policy.as_ref().filter(|it| !it.ok || !is_quiet()) {
        text += &policy.line();
    }
    for line in report.signatures.iter().filter(|_| !is_quiet()).flat_map(Signatures::lines) {
        text += &(line + "\n");
    }
    text
}

//! `boxbuild verify`: verifies that a box is consistent and undamaged.

use std::path::PathBuf;

use box_contract::Platform;
use box_digest::Digest;
use box_inspect::entry::shown_bytes;
use box_inspect::opened::OpenBox;
use box_inspect::verify::{Check, verify};
use cli_common::Problem;
use cli_common::policy::{HostPolicy, PolicyReport};
use cli_common::trust::TrustOptions;
use safe_text::shell_word;
use serde_json::json;

use super::failure::{Explain, Failure, chain};
use super::options::{InputOptions, ProfileOption, ProjectOptions, platform};
use super::signing::{self, Verified};
use super::{rebuild, stored, terminal};
use cli_common::store::BoxArgument;

/// Verifies the content of a box against its digests and its list of files, or against a new build.
///
/// Hashes every blob that the manifest names, and compares every entry and all data of the rootfs with the list of files.
/// Does not check the builder's statements about the box's images and the kernel's version. To find out whether it is the box
/// that you want, compare its digest with the one that `build` printed. Exits with 5 if something differs or is missing.
///
/// With --rebuild, builds the Boxfile again from its lock, as `build --locked`, in an empty store, and compares the two boxes.
/// Exits with 5 if they differ, and shows how. Changes neither the store nor the checkout.
///
/// With --key, also requires a valid signature of the box, which `boxbuild sign` makes. It may be attached to the box in the
/// store. If the store lacks a box HOST/NAME:TAG, only its signature in the registry is verified, and no blob is fetched. Without
/// --key, also asks the policy of this host, if there is one.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  \
    boxbuild verify hello.box\n  \
    boxbuild verify hello.box --json   each check and its result as JSON\n  \
    boxbuild verify hello --key acme.pub                 also its signature\n  \
    boxbuild verify ghcr.io/acme/hello:v1 --key acme.pub   only its signature, if it was not pulled\n  \
    boxbuild verify --rebuild          do Boxfile and Boxfile.lock make the box that was built?\n  \
    boxbuild verify --rebuild ghcr.io/acme/hello:v1  do they make the box in a registry?",
    mut_arg("file", |it| it.requires("rebuild")),
    mut_arg("checkout", |it| it.requires("rebuild")),
    mut_arg("name", |it| it.requires("rebuild")),
    mut_arg("lock_file", |it| it.requires("rebuild")),
    mut_arg("offline", |it| it.requires("rebuild"))
)]
pub(crate) struct Args {
    /// The box: a directory such as NAME.box or ./DIR, a name in the store, HOST/NAME:TAG of a registry, or sha256:...; a box
    /// with @sha256:... after it must have that digest [default with --rebuild: NAME.box, or NAME in the store]
    #[arg(id = "box", value_name = "BOX", required_unless_present = "rebuild")]
    pub(super) reference: Option<PathBuf>,
    /// Build the Boxfile again from its lock, in an empty store, and compare the boxes. Takes the disk space of a build, in
    /// $TMPDIR or /var/tmp
    #[arg(long, conflicts_with = "keys")]
    rebuild: bool,
    #[command(flatten)]
    trust: TrustOptions,
    #[command(flatten, next_help_heading = "With --rebuild")]
    pub(crate) project: ProjectOptions,
    #[command(flatten, next_help_heading = "With --rebuild")]
    pub(super) profile: ProfileOption,
    /// The platform to build for [default: the first that the Boxfile declares]
    #[arg(long, value_name = "PLATFORM", value_parser = platform, requires = "rebuild")]
    pub(super) platform: Option<Platform>,
    #[command(flatten, next_help_heading = "With --rebuild")]
    pub(super) inputs: InputOptions,
    /// The number of threads that decode layers [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    #[arg(requires = "rebuild")]
    pub(super) jobs: Option<u16>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.rebuild {
        return rebuild::run(args);
    }
    let reference = args.reference.clone().unwrap_or_default();
    let subject = BoxArgument { reference, store: args.inputs.store.clone() };
    let signed = signing::verify(&subject, &args.trust, &args.inputs.registries, args.project.json);
    let signed = signed.map_err(stored::damaged)?;
    let (digest, checks) = match &signed {
        Some(Verified { subject: found, .. }) if found.is_elsewhere() => {
            note_elsewhere(args, &subject);
            (found.digest(), Vec::new())
        }
        Some(Verified { subject: found, .. }) => check(&found.open().map_err(stored::damaged)?),
        None => check(&stored::open_undamaged(&subject)?),
    };
    let wrong = checks.iter().filter_map(|it| it.error.as_ref());
    let mut errors: Vec<_> = wrong.map(|it| Problem::new(it.explain(), chain(it))).collect();
    errors.extend(signed.as_ref().and_then(|it| it.signatures.missing()));
    let policy = if signed.is_none() { HostPolicy::read(stored::PROGRAM.variable)? } else { None };
    let asked = policy.map(|it| PolicyReport::of(&it, &stored::PROGRAM, &subject, &digest));
    let (policy, refused) = asked.transpose()?.unzip();
    errors.extend(refused.flatten());
    if args.project.json {
        let mut report = json!({
            "box": digest, "ok": errors.is_empty(), "checks": checks, "errors": errors,
        });
        if let Some(signed) = &signed {
            report["signatures"] = json!(signed.signatures);
        }
        if let Some(policy) = &policy {
            report["policy"] = json!(policy);
        }
        terminal::json(&report.to_string());
    } else {
        terminal::pieces(checks.iter().map(|it| shown_bytes(it.to_string().as_bytes()) + "\n"));
        let lines = signed.iter().flat_map(|it| it.signatures.lines());
        terminal::pieces(lines.map(|it| it + "\n").chain(policy.iter().map(PolicyReport::line)));
        if !errors.is_empty() {
            terminal::error(cli_common::problem::text(&errors).trim_end());
        }
    }
    match errors.iter().map(|it| it.code.exit_verified()).max() {
        Some(exit) if !terminal::lost() => Err(Failure::reported(exit)),
        _ => Ok(()),
    }
}

/// Verifies the content of the box.
fn check(opened: &OpenBox) -> (Digest, Vec<Check>) {
    (opened.digest, verify(opened))
}

fn note_elsewhere(args: &Args, subject: &BoxArgument) {
    if !args.project.json {
        let word = shell_word(subject.word());
        let text = "only the signature is verified, because the store does not have the content of the box";
        terminal::note(&format!("{text}; to fetch it: `boxbuild pull {word}`"));
    }
}

//! `boxbuild check`: is the Boxfile right, without building it.

use std::path::{Path, PathBuf};

use box_digest::Blake3Digest;
use boxbuild::{BuildError, Pins, Report, Request};
use boxfile_spec::{Diagnostic, Platform};
use download::fetch::FetchOptions;
use serde_json::json;

use super::failure::{Failure, diagnostic_json};
use super::loaded::Loaded;
use super::options::{ProfileOption, ProjectOptions};
use super::terminal;

/// Checks a Boxfile and the files of the checkout that it names, without building.
///
/// Reads the Boxfile with all its profiles, what it extends, its skills and its files with
/// variables. Images, the kernel and the network are not looked at.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild check               check ./Boxfile\n  \
    boxbuild check --json        print what is wrong as JSON\n  \
    boxbuild check --canonical   print the Boxfile with every default filled in, as JSON")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    profile: ProfileOption,
    /// Print the Boxfile in its canonical form: the same for both syntaxes and any order
    #[arg(long)]
    canonical: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.project, args.profile.name.as_deref())?;
    let (mut warnings, mut failures) = (Vec::new(), Vec::new());
    let all = if loaded.variant().is_some() { vec![loaded.clone()] } else { loaded.variants() };
    for variant in &all {
        let (errors, mut found) = check(variant);
        found.extend(unbuildable(variant));
        failures.extend(errors.iter().map(|it| Failure::of_build(it, &variant.sources)));
        warnings.extend(found);
    }
    // Profiles share most of what is wrong.
    distinct(&mut failures);
    distinct(&mut warnings);
    Failure::all(failures)?;
    report(args, &loaded, &warnings);
    Ok(())
}

/// Leaves out what is there before already.
fn distinct<T: PartialEq>(list: &mut Vec<T>) {
    let all = std::mem::take(list);
    for item in all {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

fn check(loaded: &Loaded) -> (Vec<BuildError>, Vec<Report>) {
    boxbuild::check(&Request {
        boxfile: loaded.boxfile(),
        base: &loaded.project.base,
        checkout: loaded.project.checkout(loaded.boxfile()),
        platform: loaded.platform(None).unwrap_or(Platform::BUILT),
        pins: Pins::default(),
        fetch: FetchOptions { offline: true, ..FetchOptions::default() },
        remote: None,
        init: Path::new(""),
        kernel: PathBuf::new(),
        builder: Blake3Digest::from_bytes([0; 32]),
    })
}

/// Returns the warning about a box that this version can build for none of its platforms.
fn unbuildable(loaded: &Loaded) -> Option<Report> {
    let platforms = &loaded.boxfile().platforms;
    let first =
        platforms.first().filter(|_| platforms.iter().all(|it| it.value != Platform::BUILT))?;
    let message = BuildError::Platform { platform: first.value }.to_string();
    Report::new(loaded.sources.clone(), [Diagnostic::warning(message, first.span, "declared here")])
}

fn report(args: &Args, loaded: &Loaded, warnings: &[Report]) {
    if args.canonical {
        return terminal::json(&loaded.boxfile().canonical());
    }
    if args.project.json {
        let own = loaded.warnings.iter().map(|it| diagnostic_json(it, &loaded.sources));
        let further = warnings
            .iter()
            .flat_map(|report| report.found.iter().map(|it| diagnostic_json(it, &report.sources)));
        let warnings: Vec<_> = own.chain(further).collect();
        let report = json!({
            "name": loaded.boxfile().name, "profiles": loaded.profile_names(), "warnings": warnings,
            "unsupported": boxbuild::compose::unsupported(loaded.boxfile()),
        });
        return terminal::json(&report.to_string());
    }
    loaded.show_warnings(warnings);
    for unsupported in boxbuild::compose::unsupported(loaded.boxfile()) {
        terminal::note(&format!("warning: boxlaunch will not start this box: {unsupported}"));
    }
    terminal::note(&format!("{}: ok", loaded.project.file.display()));
}

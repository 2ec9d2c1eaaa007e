//! `boxbuild check`: checks a Boxfile without building it.

use std::collections::HashSet;
use std::hash::Hash;

use box_contract::Platform;
use box_contract::plan::Unsupported;
use box_digest::Blake3Digest;
use boxbuild::compose::unsupported;
use boxbuild::{BuildError, Checked, InputFile, Pins, Report, Request};
use diagnostics::{Diagnostic, MAX_KEPT};
use download::fetch::FetchOptions;
use serde_json::json;

use super::failure::{Failure, of_build};
use super::loaded::{Loaded, Tools};
use super::locking::Fixed;
use super::options::{InputOptions, LockedOption, ProfileOption, ProjectOptions, lock_command};
use super::preview::{self, Previewed};
use super::terminal;
use super::warnings::Warnings;

/// Checks a Boxfile and the files of the checkout that it names, without building.
///
/// Reads the Boxfile with all its profiles, the files that it extends, its skills, and the files of the checkout that it
/// names. Does not read images or the kernel and uses no network, unless --images is given. With --images, a program, health
/// check, user or interpreter that the image lacks is an error, too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  \
    boxbuild check                     check ./Boxfile\n  \
    boxbuild check --images            also check the images\n  \
    boxbuild check --images --offline  also check the images, with what the store has\n  \
    boxbuild check --json              print the errors as JSON\n  \
    boxbuild check --canonical         print the Boxfile with every default filled in, as JSON",
    mut_arg("locked", |it| it.requires("images")),
    mut_arg("lock_file", |it| it.requires("images")),
    mut_arg("store", |it| it.requires("images")),
    mut_arg("offline", |it| it.requires("images"))
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    profile: ProfileOption,
    /// Print the Boxfile in its canonical form, which is the same for both syntaxes and any order of declarations
    #[arg(long)]
    canonical: bool,
    /// Also fetch and read the images, and compose the root as `boxbuild plan` does. Writes neither a box nor the lock
    #[arg(long)]
    images: bool,
    #[command(flatten, next_help_heading = "With --images")]
    locked: LockedOption,
    #[command(flatten, next_help_heading = "With --images")]
    inputs: InputOptions,
}

/// The findings of the command.
#[derive(Default)]
struct Found {
    failures: Vec<Failure>,
    warnings: Vec<Report>,
    unsupported: Vec<Unsupported>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.project, args.profile.name.as_deref())?;
    let all = if loaded.variant().is_some() { vec![loaded.clone()] } else { loaded.variants() };
    let mut found = Found { unsupported: unsupported(loaded.boxfile()), ..Found::default() };
    found.check_files(&all);
    found.refuse()?;
    if args.images {
        found.check_images(args, &all)?;
        found.refuse()?;
    }
    distinct(&mut found.warnings, identity);
    report(args, &loaded, &found);
    Ok(())
}

impl Found {
    /// Checks the files of the checkout for each variant, until there are too many errors.
    fn check_files(&mut self, variants: &[Loaded]) {
        let mut checked = Checked::default();
        for variant in variants {
            let (errors, warnings) = check(variant, &mut checked);
            self.failures.extend(errors.iter().map(|it| of_build(it, &variant.sources)));
            self.warnings.extend(warnings);
            self.warnings.extend(unbuildable(variant));
            // Most errors are the same for all profiles.
            distinct(&mut self.failures, Failure::json);
            let cut = |errors: usize| errors >= MAX_KEPT;
            if cut(errors.iter().map(BuildError::count).sum())
                || cut(self.failures.iter().map(|it| it.problems().len()).sum())
            {
                self.failures = self.failures.drain(..).map(Failure::cut).collect();
                break;
            }
        }
    }

    /// Checks the declarations that depend on the images.
    fn check_images(&mut self, args: &Args, variants: &[Loaded]) -> Result<(), Failure> {
        let Args { locked, inputs, project, .. } = args;
        let file = variants[0].lock_file(inputs).map_err(|error| locked.blame(error.into()))?;
        let command = lock_command(project, inputs);
        let fixed = Fixed { file: &file, option: "--locked", command: &command };
        let fixed = locked.locked.then_some(&fixed);
        let tools = Tools::find(inputs, project.json)?;
        for (index, variant) in variants.iter().enumerate() {
            let platform = variant.platform(None)?;
            match preview::preview(variant, &tools, platform, &file, fixed) {
                Ok(previewed) => self.add(previewed, variant, index == 0),
                Err(failure) => self.failures.push(failure),
            }
        }
        Ok(())
    }

    /// Adds the findings of a preview. Only the `first` preview sets the unsupported settings in the report.
    fn add(&mut self, previewed: Previewed, variant: &Loaded, first: bool) {
        let Previewed { preview, warnings, .. } = previewed;
        self.warnings.extend(warnings);
        if let Err(unmerged) = preview.root {
            let error = BuildError::Conflicts(unmerged);
            self.failures.push(of_build(&error, &variant.sources));
        } else if first {
            self.unsupported = preview.unsupported;
        }
    }

    /// Fails if there are errors.
    fn refuse(&mut self) -> Result<(), Failure> {
        distinct(&mut self.failures, Failure::json);
        Failure::all(std::mem::take(&mut self.failures))
    }
}

/// Removes items whose key occurred before. A list can have tens of thousands of items, so they are not compared in
/// pairs.
fn distinct<T, K: Eq + Hash>(list: &mut Vec<T>, key: impl Fn(&T) -> K) {
    let mut seen = HashSet::new();
    list.retain(|item| seen.insert(key(item)));
}

/// Returns the identity of a report: the name of its text, and its findings.
fn identity(report: &Report) -> (String, Vec<String>) {
    let problems = report.problems().iter().map(|it| json!(it).to_string());
    (report.file().to_owned(), problems.collect())
}

fn check(loaded: &Loaded, before: &mut Checked) -> (Vec<BuildError>, Vec<Report>) {
    let request = Request {
        boxfile: loaded.boxfile(),
        base: &loaded.project.base,
        checkout: loaded.project.checkout(),
        platform: loaded.platform(None).unwrap_or(Platform::BUILT),
        pins: Pins::default(),
        fetch: FetchOptions { offline: true, ..FetchOptions::default() },
        remote: None,
        init: InputFile::found(""),
        kernel: InputFile::found(""),
        builder: Blake3Digest::from_bytes([0; 32]),
    };
    boxbuild::check(&request, before)
}

/// Returns the warning about a box whose platforms this version cannot build.
fn unbuildable(loaded: &Loaded) -> Option<Report> {
    let platforms = &loaded.boxfile().platforms;
    let first =
        platforms.first().filter(|_| platforms.iter().all(|it| it.value != Platform::BUILT))?;
    let message = BuildError::Platform { platform: first.value }.to_string();
    let warning = Diagnostic::warning(message, first.span, "declared here");
    Report::new(&loaded.sources, &[warning])
}

fn report(args: &Args, loaded: &Loaded, found: &Found) {
    if args.canonical {
        return terminal::json(&loaded.boxfile().canonical());
    }
    let mut warnings = Warnings::new(args.project.json);
    loaded.add_warnings(&found.warnings, &mut warnings);
    if args.project.json {
        let report = json!({
            "name": loaded.boxfile().name, "profiles": loaded.profile_names(),
            "warnings": warnings.json(), "unsupported": found.unsupported,
        });
        return terminal::json(&report.to_string());
    }
    warnings.add_unsupported(&found.unsupported);
    terminal::note(&format!("{}: ok", loaded.project.file.display()));
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use box_contract::ErrorCode;

    use super::*;

    #[test]
    fn what_is_found_again_is_left_out_without_comparing_each_with_each() {
        let failure = |text: usize| Failure::new(ErrorCode::Io, text);
        let mut list: Vec<_> = (0..100).chain(50..150).chain([0]).map(failure).collect();
        let looked_at = Cell::new(0);
        let key = |it: &Failure| {
            looked_at.set(looked_at.get() + 1);
            it.json()
        };
        distinct(&mut list, key);
        assert_eq!(list, (0..150).map(failure).collect::<Vec<_>>());
        assert_eq!(looked_at.get(), 201);
    }

    #[test]
    fn reports_differ_by_their_text_and_what_was_found() {
        let report = |name: &str, message: &str| {
            let sources = diagnostics::Sources::single(diagnostics::Source::new(name, "x"));
            let at = diagnostics::Span::default();
            Report::new(&sources, &[Diagnostic::warning(message, at, "")]).unwrap()
        };
        let mut list =
            [("a", "m"), ("a", "n"), ("b", "m"), ("a", "m")].map(|(a, b)| report(a, b)).to_vec();
        let all = list.clone();
        distinct(&mut list, identity);
        assert_eq!(list, all[..3]);
    }
}

//! `boxbuild fmt`: the layout of a Boxfile.

use std::path::{Path, PathBuf};

use box_image::ErrorCode;
use boxbuild::project::{Project, replace};
use boxfile_spec::{MAX_SOURCE, Severity, Syntax, format_kdl, format_toml};
use serde_json::json;

use super::failure::Failure;
use super::{locate, terminal};

/// Formats Boxfiles in place.
///
/// Comments, blank lines and the order of declarations stay; what a Boxfile says never changes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild fmt                    format ./Boxfile\n  \
    boxbuild fmt --check            only say whether it is formatted (exit code 1 if not)\n  \
    boxbuild fmt a.Boxfile b.toml   format these")]
pub(crate) struct Args {
    /// The files [default: ./Boxfile, ./Boxfile.kdl, ./Boxfile.toml]
    #[arg(value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Change nothing; exit with 1 if a file is not formatted
    #[arg(long)]
    check: bool,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let files = match args.files.as_slice() {
        [] => vec![locate::boxfile(None)?],
        files => files.to_vec(),
    };
    let (mut changed, mut failures) = (Vec::new(), Vec::new());
    for file in &files {
        match format(file, args.check) {
            Ok(true) => changed.push(file.display().to_string()),
            Ok(false) => {}
            Err(failure) => failures.push(failure),
        }
    }
    if !args.check && !args.json {
        changed.iter().for_each(|file| terminal::note(&format!("formatted {file}")));
    }
    if args.check && !changed.is_empty() {
        failures.push(unformatted(&changed, args.files.is_empty()));
    }
    Failure::all(failures)?;
    if args.json {
        let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        terminal::json(&json!({ "files": files, "formatted": changed }).to_string());
    }
    Ok(())
}

/// Says which files are not formatted, and what would format them.
fn unformatted(files: &[String], found: bool) -> Failure {
    let names = if found { String::new() } else { format!(" {}", files.join(" ")) };
    let help = format!("run `boxbuild fmt{names}`");
    let are = if files.len() == 1 { "is" } else { "are" };
    let message = format!("{} {are} not formatted", files.join(", "));
    Failure::new((ErrorCode::BoxfileUnformatted, help), message)
        .with_details("", &[("files", json!(files))])
}

/// Formats a file, or only checks it; returns whether it was not formatted.
fn format(file: &Path, check: bool) -> Result<bool, Failure> {
    let Some(text) = formatted(file)? else { return Ok(false) };
    if !check {
        let failed = |error| {
            Failure::new(ErrorCode::Io, format!("cannot write {}: {error}", file.display()))
        };
        replace(file, &text).map_err(failed)?;
    }
    Ok(true)
}

/// Returns a file's text as it should be; nothing if it is so already.
fn formatted(file: &Path) -> Result<Option<String>, Failure> {
    // What else is wrong with it is not this command's affair.
    let document = Project::of(file).read(None)?;
    let source = &document.sources.as_slice()[0];
    let text = match source.syntax {
        Syntax::Kdl => format_kdl(&source.text),
        Syntax::Toml => format_toml(&source.text),
    };
    match text {
        Some(text) if text.len() > MAX_SOURCE => {
            let what = "would have more than 1 MiB when it is formatted; it is left as it is";
            Err(Failure::new(ErrorCode::TooLarge, format!("{} {what}", file.display())))
        }
        Some(text) => Ok((text != source.text).then_some(text)),
        None => {
            let mut wrong = document.found;
            wrong.retain(|it| it.severity() == Severity::Error);
            if wrong.is_empty() {
                let message = format!("{} cannot be formatted", file.display());
                return Err(Failure::new(ErrorCode::BoxfileInvalid, message));
            }
            Err(Failure::diagnostics(ErrorCode::BoxfileInvalid, &wrong, &document.sources))
        }
    }
}

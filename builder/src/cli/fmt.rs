//! `boxbuild fmt`: formats Boxfiles.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use box_contract::ErrorCode;
use boxbuild::project::lock::Lock;
use boxbuild::project::{self, Checkout, Project};
use boxfile_spec::{Document, MAX_SOURCE};
use checkout::is_boxfile_name;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use diagnostics::{Severity, Source, Syntax};
use host_fs::FileError;
use host_fs::checkout::replace;
use safe_text::shell_path;
use serde_json::json;

use super::failure::Failure;
use super::loaded::no_boxfile;
use super::{search, terminal};

/// Formats Boxfiles in place.
///
/// Keeps comments, blank lines and the order of declarations. The meaning of a Boxfile never changes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild fmt                    format the Boxfile\n  \
    boxbuild fmt --check            exit with 1 if the Boxfile is not formatted\n  \
    boxbuild fmt a.Boxfile b.toml   format these files\n  \
    boxbuild fmt - <Boxfile         format standard input, for editors")]
pub(crate) struct Args {
    /// The files to format; `-` reads standard input and prints the result [default: the Boxfile that other commands use]
    #[arg(value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Change nothing, and exit with 1 if a file is not formatted
    #[arg(long)]
    check: bool,
    /// The syntax of standard input: kdl or toml [default: guessed from the text]
    #[arg(long, value_name = "SYNTAX", value_parser = syntax(), hide_possible_values = true)]
    syntax: Option<Syntax>,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let is_input = |file: &PathBuf| file.as_os_str() == "-";
    if args.files.iter().any(is_input) {
        return run_on_input(args);
    }
    if let Some(syntax) = args.syntax {
        return Err(only_for_input(syntax, args.files.first()));
    }
    let files = match args.files.as_slice() {
        [] => vec![search::boxfile(None)?],
        files => files.to_vec(),
    };
    let (mut changed, mut locks, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for file in &files {
        match format(file, args.files.is_empty(), args.check) {
            Ok(Was::Unformatted) => changed.push(file.display().to_string()),
            Ok(Was::Formatted) => {}
            Ok(Was::Lock) => locks.push(file),
            Err(failure) => failures.push(failure),
        }
    }
    // A pattern such as `Boxfile*` also matches the lock, which is skipped. If the user names only
    // locks, they are errors.
    if locks.len() == files.len() {
        failures.extend(locks.iter().map(|it| no_boxfile(it)));
    }
    if !args.check && !args.json {
        changed.iter().for_each(|file| terminal::note(&format!("formatted {file}")));
    }
    if args.check && !changed.is_empty() {
        failures.push(unformatted(&changed, args.files.is_empty()));
    }
    Failure::all(failures)?;
    if args.json {
        let files = files.iter().filter(|it| !locks.contains(it));
        let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
        terminal::json(&json!({ "files": files, "formatted": changed }).to_string());
    }
    Ok(())
}

/// Returns the failure of `--syntax` with a file.
fn only_for_input(syntax: Syntax, file: Option<&PathBuf>) -> Failure {
    let name = if syntax == Syntax::Toml { "toml" } else { "kdl" };
    let file = file.map_or_else(|| "Boxfile".to_owned(), shell_path);
    let help = format!("write `boxbuild fmt --syntax {name} - <{file}`, or leave out `--syntax`");
    Failure::new((ErrorCode::Usage, help), "`--syntax` can be used only with standard input")
}

/// Returns the failure with the unformatted files, and the command that formats them.
fn unformatted(files: &[String], found: bool) -> Failure {
    let names = if found {
        String::new()
    } else {
        files.iter().map(|it| format!(" {}", shell_path(it))).collect()
    };
    let help = format!("run `boxbuild fmt{names}`");
    let are = if files.len() == 1 { "is" } else { "are" };
    let message = format!("{} {are} not formatted", files.join(", "));
    Failure::new((ErrorCode::BoxfileUnformatted, help), message)
        .with_details("", &[("files", json!(files))])
}

/// The state of a file before this command.
enum Was {
    /// The file is not formatted.
    Unformatted,
    /// The file is formatted already.
    Formatted,
    /// The file is a lock and not a Boxfile. It is left as it is.
    Lock,
}

/// Formats a file, or only checks it.
fn format(file: &Path, is_found: bool, check: bool) -> Result<Was, Failure> {
    // The errors in the document are shown only if the text cannot be formatted.
    let checkout = Checkout::own(project::base(file), search::search().homes);
    let document = Project::within(file, checkout).found(is_found).read(None)?;
    if is_lock(&document) {
        return Ok(Was::Lock);
    }
    let Some(text) = formatted(file, document, is_boxfile_name(file))? else {
        return Ok(Was::Formatted);
    };
    if !check {
        replace(file, &text).map_err(FileError::of("write", file))?;
    }
    Ok(Was::Unformatted)
}

/// Formats standard input to standard output, or only checks it.
fn run_on_input(args: &Args) -> Result<(), Failure> {
    if args.files.len() > 1 || args.json {
        return Err(Failure::usage("`-` cannot be combined with files or with --json"));
    }
    let failed =
        |error| Failure::new(ErrorCode::Io, format!("cannot read standard input: {error}"));
    let (mut text, limit) = (String::new(), MAX_SOURCE as u64 + 1);
    io::stdin().lock().take(limit).read_to_string(&mut text).map_err(failed)?;
    let syntax = args.syntax.unwrap_or_else(|| boxfile_spec::likely_syntax(&text));
    let source = Source { name: "<stdin>".to_owned(), syntax, text: text.clone() };
    let document = boxfile_spec::read(source, None, |_| Err(String::new()));
    if is_lock(&document) {
        return Err(no_boxfile(Path::new("standard input")));
    }
    let changed = formatted(Path::new("standard input"), document, true)?;
    match (changed, args.check) {
        (Some(_), true) => {
            let message = "standard input is not formatted";
            Err(Failure::new(ErrorCode::BoxfileUnformatted, message))
        }
        (None, true) => Ok(()),
        (changed, false) => {
            terminal::pieces([changed.unwrap_or(text)]);
            Ok(())
        }
    }
}

/// Returns whether the document is a lock.
fn is_lock(document: &Document) -> bool {
    Lock::is_lock(&document.sources.as_slice()[0].text)
}

/// Refuses a text that is not a Boxfile, because formatting would change a foreign file.
fn check_boxfile(file: &Path, source: &Source) -> Result<(), Failure> {
    if boxfile_spec::looks_like_boxfile(source) {
        return Ok(());
    }
    let help = "a Boxfile has that name, as `Boxfile.toml` and `ci.Boxfile` do, or declares a box, \
                an agent or a business component, or extends a Boxfile";
    let message = format!("{} is not a Boxfile, and was not changed", file.display());
    Err(Failure::new((ErrorCode::BoxfileInvalid, help), message))
}

/// Returns the parser of `--syntax`.
fn syntax() -> impl TypedValueParser<Value = Syntax> {
    PossibleValuesParser::new(["kdl", "toml"])
        .map(|name| if name == "toml" { Syntax::Toml } else { Syntax::Kdl })
}

/// Returns the formatted text, or `None` if it is formatted already.
fn formatted(file: &Path, document: Document, named: bool) -> Result<Option<String>, Failure> {
    let source = &document.sources.as_slice()[0];
    if !named {
        check_boxfile(file, source)?;
    }
    let text = boxfile_spec::format(source);
    match text {
        Some(text) if text.len() > MAX_SOURCE => {
            let message = format!(
                "{} would have more than {} MiB when it is formatted; it was not changed",
                file.display(),
                MAX_SOURCE >> 20
            );
            Err(Failure::new(ErrorCode::TooLarge, message))
        }
        Some(text) => Ok((text != source.text).then_some(text)),
        None => {
            let mut wrong = document.found;
            wrong.retain(|it| it.severity() == Severity::Error);
            if wrong.is_empty() {
                let message = format!("{} cannot be formatted", file.display());
                return Err(Failure::new(ErrorCode::BoxfileInvalid, message));
            }
            Err(Failure::of_diagnostics(ErrorCode::BoxfileInvalid, &wrong, &document.sources))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boxfile_is_known_by_its_name() {
        for name in ["Boxfile", "a/Boxfile.kdl", "Boxfile.toml", "Boxfile.ci", "ci.Boxfile"] {
            assert!(is_boxfile_name(Path::new(name)), "{name}");
        }
        for name in ["README.md", "Cargo.toml", "a.kdl", "Boxfiles", "aBoxfile", "Boxfile.lock"] {
            assert!(!is_boxfile_name(Path::new(name)), "{name}");
        }
    }
}

//! A failed command: its errors, as text and as JSON, and its exit code. Every error of a command is converted here.

mod compose;
mod explain;
mod images;
mod network;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use box_cache::StoreError;
use box_contract::{ErrorCode, exit};
use boxbuild::project::LockFileError;
use boxbuild::{BuildError, Report};
use clap::error::{ContextKind, ContextValue};
use cli_common::failure::{Reporter, Table};
use cli_registry::SetupError;
use diagnostics::{Diagnostic, MAX_KEPT, Sources};
use safe_text::shown;
use safe_text::{clipped, with_causes};

use super::{conflicts, terminal};
pub(crate) use explain::Explain;

/// `boxbuild`, as the program that reports failures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Boxbuild;

impl Reporter for Boxbuild {}

/// A failed command.
pub(crate) type Failure = cli_common::Failure<Boxbuild>;

impl<E: Explain + 'static> Table<E> for Boxbuild {
    fn failure(error: E) -> Failure {
        of_full_store(&error).unwrap_or_else(|| Failure::new(error.explain(), chain(&error)))
    }
}

impl Table<LockFileError> for Boxbuild {
    fn failure(error: LockFileError) -> Failure {
        let explanation = explain::lock(&error);
        match error {
            LockFileError::Malformed { sources, diagnostics, .. } => {
                Failure::of_diagnostics(explanation.code, diagnostics.as_slice(), &sources)
            }
            error => Failure::new(explanation, chain(&error)),
        }
    }
}

impl Table<SetupError> for Boxbuild {
    fn failure(error: SetupError) -> Failure {
        Failure::of(error.problems())
    }
}

/// Returns the failure of a refused file of the checkout.
fn rejected(report: &Report) -> Failure {
    let errors = report.problems().to_vec();
    let is_cut = errors.len() >= MAX_KEPT;
    let failure = Failure::of(errors).with_exit(ErrorCode::FileInvalid.exit());
    if is_cut { failure.cut() } else { failure }
}

/// Returns the failure of a full store if a full store caused the error. The failure does not name the input that was
/// read at that moment, because the input did not cause it.
fn of_full_store(error: &(dyn Error + 'static)) -> Option<Failure> {
    let full = StoreError::Full(StoreError::full(error)?.to_owned());
    Some(Failure::new(full.explain(), chain(&full)))
}

/// Returns the failure of a build. An error in the Boxfile is shown with its span.
pub(crate) fn of_build(error: &BuildError, sources: &Sources) -> Failure {
    if let BuildError::Rejected(report) = error {
        return rejected(report);
    }
    if let BuildError::Several(errors) = error {
        let all = errors.iter().map(|error| of_build(error, sources)).collect();
        return Failure::all(all).err().unwrap_or_else(|| Failure::reported(exit::FAILED));
    }
    if let BuildError::Conflicts(conflicts) = error {
        return conflicts::failure(&error.to_string(), conflicts, sources);
    }
    if let Some(failure) = of_full_store(error) {
        return failure;
    }
    let explanation = error.explain();
    let [span, other] = error.spans();
    let Some(span) = span else {
        return Failure::new(explanation, chain(error));
    };
    let mut diagnostic = Diagnostic::new(chain(error), span, "named here");
    if let Some(other) = other {
        diagnostic = diagnostic.with_label(other, "and named here");
    }
    if let Some(help) = explanation.help {
        diagnostic = diagnostic.with_help(help);
    }
    Failure::of_diagnostics(explanation.code, &[diagnostic], sources)
}

/// Prints a failure, as text or as JSON, and returns the exit code. On a terminal, the number of errors follows.
pub(crate) fn report(failure: &Failure, as_json: bool) -> ExitCode {
    match (failure.problems().is_empty(), as_json) {
        (true, _) => {}
        (false, true) => terminal::result(failure.json().trim_end()),
        (false, false) => {
            let tally = cli_common::problem::tally(failure.problems());
            let tally = tally.filter(|_| terminal::is_watched()).map(|it| format!("\n{it}"));
            terminal::error((failure.text() + &tally.unwrap_or_default()).trim_end());
        }
    }
    ExitCode::from(failure.exit)
}

/// Adds a tip to the error of an unknown command that boxlaunch has.
fn point_to_boxlaunch(error: &mut clap::Error) {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let tip = match name.as_str() {
        "run" => "boxlaunch runs boxes: `boxlaunch run BOX`".to_owned(),
        "prune" => {
            "`boxbuild gc` removes the least recently used boxes and files of the store".to_owned()
        }
        "images" | "rmi" => format!("boxlaunch lists and removes boxes: `boxlaunch {name}`"),
        _ => return,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

/// Adds a tip about `-f` to the error of an unexpected argument.
fn point_to_file(error: &mut clap::Error) {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let takes_file = ["build", "check", "fetch", "lock", "plan"];
    let is_of = |name: &str| usage.contains(&format!("boxbuild {name} "));
    if argument.starts_with('-') || !takes_file.into_iter().any(is_of) {
        return;
    }
    let tip = "boxbuild finds the Boxfile in this directory or the nearest one above; `-f PATH` names another";
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.to_owned().into()]));
}

/// Prints the error of a command line, or the requested help.
pub(crate) fn usage(mut error: clap::Error) -> ExitCode {
    point_to_boxlaunch(&mut error);
    point_to_file(&mut error);
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        return ExitCode::from(exit::USAGE);
    }
    terminal::check(printed);
    if terminal::lost() { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS }
}

/// Joins an error and its causes. The messages can contain foreign names, so control characters are replaced.
pub(crate) fn chain(error: &dyn Error) -> String {
    clipped(shown(&with_causes(error)))
}

#[cfg(test)]
mod tests {
    use boxbuild::{InputError, InputFile, InputKind, NamedBy};

    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_cut_where_it_becomes_too_long() {
        let long = chain(&std::io::Error::other("é".repeat(5000)));
        assert!(long.ends_with("é… (1808 more bytes)"), "{}", &long[8000..]);
        assert_eq!(long.chars().filter(|it| *it == 'é').count(), 4096);
    }

    #[test]
    fn a_full_store_is_not_blamed_on_the_image() {
        let full = StoreError::Full("/x/store".into());
        let write = io::Error::new(io::ErrorKind::StorageFull, full);
        let error = BuildError::from(oci_layer::LayerError {
            layer: box_digest::Digest::of(b"layer"),
            entry: Some((b"usr/bin/git".to_vec(), Some(512))),
            kind: Box::new(oci_layer::LayerErrorKind::Store(write.into())),
        });
        let sources = Sources::single(diagnostics::Source::new("Boxfile", "x"));
        let failure = of_build(&error, &sources);
        assert_eq!(
            failure.text().trim_end(),
            "error: no space left in the store /x/store\n  \
             = help: free some space there, or name another directory with --store"
        );
        assert_eq!(json!(failure.problems())[0]["code"], "disk-full");
    }

    #[test]
    fn a_lock_that_a_full_disk_does_not_take_is_no_wrong_place() {
        let error = |kind: io::ErrorKind| {
            LockFileError::NotWritable(host_fs::FileError::of("write", "Boxfile.lock")(
                io::Error::from(kind),
            ))
        };
        let json = |kind| json!(Failure::from(error(kind)).problems())[0].clone();
        assert_eq!(json(io::ErrorKind::StorageFull)["code"], "disk-full");
        let denied = json(io::ErrorKind::PermissionDenied);
        assert_eq!(denied["code"], "io");
        assert!(denied["help"].as_str().unwrap().contains("--lock-file"), "{denied}");
    }

    #[test]
    fn a_stale_pin_is_the_fault_of_a_lock_that_may_not_change() {
        let exit = |locked, code| {
            crate::cli::options::LockedOption { locked }.blame_pin(Failure::new(code, "x")).exit
        };
        assert_eq!(exit(true, ErrorCode::LockPinStale), exit::LOCKED);
        assert_eq!(exit(false, ErrorCode::LockPinStale), exit::FAILED);
        assert_eq!(exit(true, ErrorCode::ImageNotFound), exit::FAILED);
    }

    #[test]
    fn a_file_that_every_box_has_is_named_as_it_was_chosen() {
        let sources = Sources::single(diagnostics::Source::new("Boxfile", "kernel \"k\""));
        let failed = |named_by| {
            let file = InputFile { path: "k".into(), named_by };
            let source = io::ErrorKind::NotFound.into();
            let error = InputError { kind: InputKind::Kernel, file, source };
            of_build(&BuildError::from(error), &sources).text().trim_end().to_owned()
        };
        let message = "error: cannot read the kernel k: entity not found";
        let helps = [
            (NamedBy::Option("--kernel"), "\n  = help: the option --kernel names it"),
            (
                NamedBy::Variable("BOXBUILD_KERNEL"),
                "\n  = help: the environment variable BOXBUILD_KERNEL names it",
            ),
            (NamedBy::Nothing, ""),
        ];
        for (named_by, help) in helps {
            assert_eq!(failed(named_by), format!("{message}{help}"));
        }
    }

    #[test]
    fn causes_are_shown_once() {
        let cause = std::io::Error::other("the disk is full");
        let source = host_fs::FileError::of("read", "a")(std::io::Error::other(cause));
        let error = BuildError::from(source);
        assert_eq!(chain(&error), "cannot read a: the disk is full");
    }
}

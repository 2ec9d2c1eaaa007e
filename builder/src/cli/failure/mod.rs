//! A failed command: its errors, as text and as JSON, and its exit code. Every error of a command is converted here.

mod compose;
mod explain;
mod images;
mod network;

use std::error::Error;
use std::process::ExitCode;

use box_cache::StoreError;
use box_contract::{ErrorCode, exit};
use boxbuild::project::LockFileError;
use boxbuild::{BuildError, Report};
use cli_common::failure::{Reporter, Table};
use cli_common::policy::PolicyFault;
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

impl Table<PolicyFault> for Boxbuild {
    fn failure(fault: PolicyFault) -> Failure {
        Failure::of(fault.problems())
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
    let [span, other] = error.spans();
    let syntax = span.map(|it| sources.of(it).syntax).unwrap_or_default();
    let explanation = compose::in_syntax(error, syntax).unwrap_or_else(|| error.explain());
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
    terminal::annotate(failure.problems());
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

/// Joins an error and its causes. The messages can contain foreign names, so control characters are replaced.
pub(crate) fn chain(error: &dyn Error) -> String {
    clipped(shown(&with_causes(error)))
}

#[cfg(test)]
mod tests {
    use std::io;

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
        insta::assert_snapshot!(failed(NamedBy::Option("--kernel")), @"
        error: cannot read the kernel k, which --kernel names: entity not found
          = help: correct the path, or leave out `--kernel`
        ");
        insta::assert_snapshot!(failed(NamedBy::Variable("BOXBUILD_KERNEL")), @"
        error: cannot read the kernel k, which BOXBUILD_KERNEL names: entity not found
          = help: correct the path, or run `unset BOXBUILD_KERNEL`
        ");
        insta::assert_snapshot!(failed(NamedBy::Nothing), @"error: cannot read the kernel k: entity not found");
    }

    #[test]
    fn causes_are_shown_once() {
        let cause = std::io::Error::other("the disk is full");
        let source = host_fs::FileError::of("read", "a")(std::io::Error::other(cause));
        let error = BuildError::from(source);
        assert_eq!(chain(&error), "cannot read a: the disk is full");
    }
}

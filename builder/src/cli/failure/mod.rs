//! A failed command: its errors, as text and as data, and its exit code. Every error ends here.

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
use cli_common::{Explanation, Problem};
use diagnostics::{Diagnostic, MAX_KEPT, Sources};
use safe_text::shown;
use safe_text::{clipped, with_causes};
use serde_json::{Value, json};

use super::{conflicts, terminal};
pub(crate) use explain::Explain;

/// A failed command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    exit: u8,
    /// Empty where the command's result already says what is wrong.
    errors: Vec<Problem>,
    /// Set where a text has more errors than are listed: how many are.
    truncated: Option<usize>,
}

impl<E: Explain + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::of_full_store(&error).unwrap_or_else(|| Self::new(error.explain(), chain(&error)))
    }
}

impl From<LockFileError> for Failure {
    fn from(error: LockFileError) -> Self {
        let explanation = explain::lock(&error);
        match error {
            LockFileError::Malformed { sources, diagnostics, .. } => {
                Self::diagnostics(explanation.code, diagnostics.as_slice(), &sources)
            }
            error => Self::new(explanation, chain(&error)),
        }
    }
}

impl Failure {
    /// Returns a failure with one error.
    pub(crate) fn new(
        explanation: impl Into<Explanation>,
        message: impl std::fmt::Display,
    ) -> Self {
        let explanation = explanation.into();
        let exit = explanation.code.exit();
        Self { exit, errors: vec![Problem::new(explanation, message)], truncated: None }
    }

    /// Returns the failure of a wrong command line.
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self::new(ErrorCode::Usage, message)
    }

    /// Returns the failure of a command whose result already says what is wrong.
    pub(crate) const fn reported(exit: u8) -> Self {
        Self { exit, errors: Vec::new(), truncated: None }
    }

    /// Returns the failure of a command with these errors, of which there is at least one.
    pub(crate) fn of(errors: Vec<Problem>) -> Self {
        let exit = errors.first().map_or(exit::FAILED, |it| it.code.exit());
        Self { exit, errors, truncated: None }
    }

    /// Returns the failure of a text with these diagnostics.
    pub(crate) fn diagnostics(code: ErrorCode, found: &[Diagnostic], sources: &Sources) -> Self {
        let errors = Problem::of_diagnostics(code, found, sources);
        let truncated = (found.len() >= MAX_KEPT).then_some(MAX_KEPT);
        Self { exit: code.exit(), errors, truncated }
    }

    /// Returns the failure of a file of the checkout.
    fn rejected(report: &Report) -> Self {
        let errors = report.problems().to_vec();
        let truncated = (errors.len() >= MAX_KEPT).then_some(MAX_KEPT);
        Self { exit: ErrorCode::FileInvalid.exit(), errors, truncated }
    }

    /// Returns the failure of a full store, where that is the cause of an error. What was read or
    /// built at that moment has nothing to do with it.
    fn of_full_store(error: &(dyn Error + 'static)) -> Option<Self> {
        let full = StoreError::Full(StoreError::full(error)?.to_owned());
        Some(Self::new(full.explain(), chain(&full)))
    }

    /// Returns the failure of a build. An error that the Boxfile is to blame for shows its place
    /// there.
    pub(crate) fn of_build(error: &BuildError, sources: &Sources) -> Self {
        if let BuildError::Rejected(report) = error {
            return Self::rejected(report);
        }
        if let BuildError::Several(errors) = error {
            let all = errors.iter().map(|error| Self::of_build(error, sources)).collect();
            return Self::all(all).err().unwrap_or_else(|| Self::reported(exit::FAILED));
        }
        if let BuildError::Conflicts(conflicts) = error {
            return conflicts::failure(&error.to_string(), conflicts, sources);
        }
        if let Some(failure) = Self::of_full_store(error) {
            return failure;
        }
        let explanation = error.explain();
        let [span, other] = error.spans();
        let Some(span) = span else {
            return Self::new(explanation, chain(error));
        };
        let mut diagnostic = Diagnostic::new(chain(error), span, "named here");
        if let Some(other) = other {
            diagnostic = diagnostic.with_label(other, "and named here");
        }
        if let Some(help) = explanation.help {
            diagnostic = diagnostic.with_help(help);
        }
        Self::diagnostics(explanation.code, &[diagnostic], sources)
    }

    /// Adds lines for people below the message, and the same as fields of the data.
    pub(crate) fn with_details(self, lines: &str, data: &[(&'static str, Value)]) -> Self {
        let errors = self.errors.into_iter().map(|it| it.with_details(lines, data)).collect();
        Self { errors, ..self }
    }

    /// Returns how many errors and warnings it has.
    pub(crate) fn count(&self) -> usize {
        self.errors.len()
    }

    /// Returns whether an error has this code.
    pub(crate) fn has(&self, code: ErrorCode) -> bool {
        self.errors.iter().any(|it| it.code == code)
    }

    /// Returns the same failure with another exit code.
    pub(crate) const fn with_exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// Returns the same failure as one of a text with more errors than are listed.
    pub(crate) fn cut(self) -> Self {
        Self { truncated: Some(MAX_KEPT), ..self }
    }

    /// Puts several failures into one. Its exit code is theirs, or that of a failure where they
    /// differ.
    pub(crate) fn all(failures: Vec<Self>) -> Result<(), Self> {
        let truncated = failures.iter().find_map(|it| it.truncated);
        let same = failures.windows(2).all(|pair| pair[0].exit == pair[1].exit);
        let exit = failures.first().filter(|_| same).map_or(exit::FAILED, |it| it.exit);
        let errors: Vec<_> = failures.into_iter().flat_map(|it| it.errors).collect();
        if errors.is_empty() { Ok(()) } else { Err(Self { exit, errors, truncated }) }
    }

    /// Shows the failure, as text or as data, and returns the exit code.
    pub(crate) fn report(self, as_json: bool) -> ExitCode {
        match (self.errors.is_empty(), as_json) {
            (true, _) => {}
            (false, true) => terminal::json(&self.json()),
            (false, false) => terminal::error(&self.text(terminal::is_watched())),
        }
        ExitCode::from(self.exit)
    }

    /// Returns the failure for people; a `tally` at the end counts its errors.
    fn text(&self, tally: bool) -> String {
        let mut parts = vec![cli_common::problem::text(&self.errors).trim_end().to_owned()];
        parts.extend(self.truncated.map(|most| {
            format!("there may be more errors: only the first {most} of a file are listed")
        }));
        parts.extend(cli_common::problem::tally(&self.errors).filter(|_| tally));
        parts.join("\n\n")
    }

    /// Returns the failure as data.
    pub(crate) fn json(&self) -> String {
        match self.truncated {
            None => cli_common::problem::json(&self.errors),
            Some(most) => json!({ "errors": self.errors, "truncated": most }).to_string(),
        }
    }
}

/// Adds to the error of a command that the other program has, where to find it.
fn point_to_boxlaunch(error: &mut clap::Error) {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let tip = match name.as_str() {
        "run" => "boxlaunch runs boxes: `boxlaunch run BOX`".to_owned(),
        "prune" => "`boxbuild gc` removes from the store what was used least recently".to_owned(),
        "images" | "rmi" => format!("boxlaunch lists and removes boxes: `boxlaunch {name}`"),
        _ => return,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

/// Adds to the error of an argument that a command with a Boxfile does not take, how one is named.
fn point_to_file(error: &mut clap::Error) {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let takes_file = ["build", "check", "fetch", "lock", "plan"];
    let is_of = |name: &str| usage.contains(&format!("boxbuild {name} "));
    if argument.starts_with('-') || !takes_file.into_iter().any(is_of) {
        return;
    }
    let tip = "the Boxfile here, or in the nearest directory above, is found by itself; `-f PATH` names another";
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.to_owned().into()]));
}

/// Shows what is wrong with a command line, or the help that it asked for.
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

/// Joins an error and its causes. Names from outside can be in them, so that what would move the
/// cursor or begin a line is replaced.
pub(crate) fn chain(error: &dyn Error) -> String {
    clipped(shown(&with_causes(error)))
}

#[cfg(test)]
mod tests {
    use boxbuild::{InputError, InputFile, InputKind, NamedBy};

    use super::*;

    #[test]
    fn several_failures_are_one() {
        Failure::all(Vec::new()).unwrap();
        let both = ["one", "two"].map(|it| Failure::new(ErrorCode::LockOutOfDate, it));
        assert_eq!(both[0].exit, exit::LOCKED);
        let mut three = Vec::from(both);
        let both = Failure::all(three.clone()).unwrap_err();
        assert_eq!((both.errors.len(), both.exit), (2, exit::LOCKED));
        three.push(Failure::new(ErrorCode::Io, "three"));
        assert_eq!(Failure::all(three).unwrap_err().exit, exit::FAILED);
    }

    #[test]
    fn a_list_that_is_cut_says_so() {
        let sources = Sources::single(diagnostics::Source::new("Boxfile", "x"));
        let found = vec![Diagnostic::new("bad", diagnostics::Span::default(), ""); MAX_KEPT];
        let failure = |found| Failure::diagnostics(ErrorCode::BoxfileInvalid, found, &sources);
        let cut = failure(&found);
        let end = "and 950 more errors\n\nthere may be more errors: only the first 1000 of a file are \
                   listed\n\n1000 errors";
        assert!(cut.text(true).ends_with(end), "{}", cut.text(true));
        assert!(cut.json().ends_with(",\"truncated\":1000}"));
        let listed = (0..2).map(|it| Failure::new(ErrorCode::Io, it).cut()).collect();
        let several = Failure::all(listed).unwrap_err();
        assert!(several.text(false).ends_with("first 1000 of a file are listed"));
        let whole = failure(&found[..2]);
        assert!(!whole.text(false).contains("2 errors") && !whole.json().contains("truncated"));
    }

    #[test]
    fn a_warning_among_errors_has_no_code() {
        let at = diagnostics::Span::default();
        let found = [Diagnostic::new("bad", at, ""), Diagnostic::warning("odd", at, "")];
        let sources = Sources::single(diagnostics::Source::new("Boxfile", "x"));
        let failure = Failure::diagnostics(ErrorCode::BoxfileInvalid, &found, &sources);
        let json = json!(failure.errors);
        assert_eq!(json[0]["code"], "boxfile-invalid");
        assert_eq!(json[1]["code"], Value::Null);
    }

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
        let failure = Failure::of_build(&error, &sources);
        assert_eq!(
            cli_common::problem::text(&failure.errors),
            "error: no space left in the store /x/store\n  \
             = help: free some space there, or name another directory with --store"
        );
        assert_eq!(json!(failure.errors)[0]["code"], "disk-full");
    }

    #[test]
    fn a_lock_that_a_full_disk_does_not_take_is_no_wrong_place() {
        let error = |kind: io::ErrorKind| {
            LockFileError::NotWritable(host_fs::FileError::of("write", "Boxfile.lock")(
                io::Error::from(kind),
            ))
        };
        let json = |kind| json!(Failure::from(error(kind)).errors)[0].clone();
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
            cli_common::problem::text(&Failure::of_build(&BuildError::from(error), &sources).errors)
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

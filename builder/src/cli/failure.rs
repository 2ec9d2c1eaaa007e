//! What a failed command says, and its exit code. Every error ends here.

use std::error::Error;
use std::process::ExitCode;

use box_inspect::opened::OpenError;
use boxbuild::project::LockFileError;
use boxbuild::{BuildError, Report};
use boxfile_spec::{Diagnostic, Sources, shown};
use download::DownloadError;
use download::fetch::FetchError;
use oci_image::SourceError;
use serde_json::{Value, json};

use super::failure_images::Help;
use super::{conflicts, failure_images, json, terminal};

/// The input is wrong, or the build failed.
const FAILED: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;
/// The lock is out of date, and `--locked` forbids to change it.
const LOCKED: u8 = 3;

/// A comparison found a difference.
const DIFFERENT: u8 = 5;

/// A failed command.
#[derive(Debug, PartialEq)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    /// The same as data: a list of errors.
    errors: Vec<Value>,
}

impl Failure {
    /// Returns a failure with a message, which starts with `error: ` when it is shown.
    pub(crate) fn new(message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        let (text, help) = match message.split_once("\n  = help: ") {
            Some((text, help)) => (text, Some(help.replace("\n    ", "\n"))),
            None => (message.as_str(), None),
        };
        let errors = vec![json!({
            "severity": "error", "message": text, "help": help, "labels": [],
        })];
        Self { code: FAILED, message: format!("error: {message}"), errors }
    }

    /// Returns the failure that an error and its causes are.
    pub(crate) fn of(error: impl Error) -> Self {
        Self::new(chain(&error))
    }

    /// Returns the failure that an error and its causes are, and what to do about it.
    pub(crate) fn helped(error: &dyn Error, help: Help) -> Self {
        match help {
            Some(help) => Self::new(format!("{}\n  = help: {help}", chain(error))),
            None => Self::new(chain(error)),
        }
    }

    /// Returns the failure of an image that cannot be read.
    pub(crate) fn of_image(error: &SourceError) -> Self {
        Self::helped(error, failure_images::image(error))
    }

    /// Returns the failure of a box that cannot be read, and what to do about it.
    pub(crate) fn of_box(error: OpenError) -> Self {
        Self::helped(&error, box_help(&error).map(Into::into))
    }

    /// Returns the failure of a command line that cannot be meant.
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self { code: USAGE, ..Self::new(message) }
    }

    /// Returns the failure of a lock that is not the one that it is to be: in which entries, for
    /// people and as data, and what to do.
    pub(crate) fn locked(message: &str, lines: &[String], help: &str, entries: Value) -> Self {
        let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        let errors = vec![json!({
            "severity": "error", "message": message, "help": help, "labels": [],
            "entries": entries,
        })];
        Self { code: LOCKED, message: format!("error: {message}\n{lines}  = help: {help}"), errors }
    }

    /// Returns the failure of a check that found something.
    pub(crate) fn found(message: String, errors: Vec<Value>) -> Self {
        Self { code: FAILED, message, errors }
    }

    /// Returns the failure of a command whose result says what is wrong.
    pub(crate) const fn told() -> Self {
        Self { code: FAILED, message: String::new(), errors: Vec::new() }
    }

    /// Returns the failure that diagnostics of some text are.
    pub(crate) fn diagnostics(found: &[Diagnostic], sources: &Sources) -> Self {
        let report = Report { sources: sources.clone(), found: found.to_vec() };
        let errors = found.iter().map(|it| json::diagnostic(it, sources)).collect();
        Self { code: FAILED, message: report.render(), errors }
    }

    /// Returns the failure of a build; what the Boxfile is to blame for is shown there.
    pub(crate) fn of_build(error: &BuildError, sources: &Sources) -> Self {
        if let BuildError::Rejected(report) = error {
            return Self::diagnostics(&report.found, &report.sources);
        }
        if let BuildError::Conflicts(unmerged) = error {
            return conflicts::failure(&error.to_string(), unmerged, sources);
        }
        match error.span() {
            None => Self::of(error),
            Some(span) => {
                let diagnostic = Diagnostic::new(chain(error), span, "named here");
                let diagnostic = match help(error) {
                    Some(help) => diagnostic.with_help(help),
                    None => diagnostic,
                };
                let other = error.other_span().into_iter();
                let diagnostic =
                    other.fold(diagnostic, |it, span| it.with_label(span, "and named here"));
                Self::diagnostics(&[diagnostic], sources)
            }
        }
    }

    /// Returns the outcome of a comparison that found a difference, which is told already.
    pub(crate) const fn different() -> Self {
        Self { code: DIFFERENT, message: String::new(), errors: Vec::new() }
    }

    /// Returns the same failure as one of `--locked`.
    pub(crate) const fn with_lock(mut self) -> Self {
        self.code = LOCKED;
        self
    }

    /// Returns the failure of a lock that cannot be used.
    pub(crate) fn of_lock(error: &LockFileError) -> Self {
        match error {
            LockFileError::Malformed { sources, diagnostics } => {
                Self::diagnostics(diagnostics.as_slice(), sources)
            }
            LockFileError::Io { action: "write", .. } => Self::new(format!(
                "{}\n  = help: name a place that can be written with --lock-file PATH",
                chain(error)
            )),
            LockFileError::Io { .. } => Self::of(error),
            error => Self::new(format!("{}\n  = help: {}", chain(error), lock_advice(error))),
        }
    }

    /// Puts several failures into one.
    pub(crate) fn all(failures: Vec<Self>) -> Result<(), Self> {
        let messages: Vec<String> =
            failures.iter().map(|it| it.message.trim_end().to_owned()).collect();
        let errors: Vec<Value> = failures.into_iter().flat_map(|it| it.errors).collect();
        if messages.is_empty() {
            return Ok(());
        }
        Err(Self { code: FAILED, message: messages.join("\n\n"), errors })
    }

    /// Shows the failure, as text or as data, and returns the exit code.
    pub(crate) fn report(self, as_json: bool) -> ExitCode {
        // Of a wrong command line, it is not sure that it wants data.
        if as_json && self.code != USAGE && !self.errors.is_empty() {
            terminal::json(&json!({ "errors": self.errors }).to_string());
        } else if !self.message.is_empty() {
            terminal::note(self.message.trim_end());
        }
        ExitCode::from(self.code)
    }
}

/// Returns what to do about a lock that was read and cannot be used.
const fn lock_advice(error: &LockFileError) -> &'static str {
    match error {
        LockFileError::Foreign(_) => "move it away to have a lock written",
        LockFileError::Changed(_) => "run this command again",
        LockFileError::Epoch { .. } => {
            "use the boxbuild that wrote it, or run `boxbuild lock` to rewrite it with the same pins"
        }
        _ => "run `boxbuild update` to resolve everything again",
    }
}

/// Returns what to do about an image that cannot be read, or a download that failed.
fn help(error: &BuildError) -> Help {
    let source = match error {
        BuildError::Image { source, .. } => return failure_images::image(source),
        BuildError::Fetch { source, .. } => source,
        _ => return None,
    };
    match **source {
        FetchError::Offline { .. } => Some("build once without --offline".into()),
        FetchError::Download(DownloadError::WrongDigest { .. }) => {
            Some("if the file was meant to change, write the new sha256".into())
        }
        _ => None,
    }
}

/// Shows what is wrong with a command line, or the help that it asked for.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    drop(error.print());
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// Returns what to do about a box that cannot be read.
fn box_help(error: &OpenError) -> Option<&'static str> {
    use box_layout::OpenError as Layout;

    let error = match error {
        OpenError::Layout(error) => error,
        OpenError::WrongListing { .. } => return Some("somebody changed the box: do not use it"),
        _ => return None,
    };
    Some(match error {
        Layout::Missing { .. } | Layout::NotALayout { .. } | Layout::OtherArtifact { .. } => {
            "name the directory that `boxbuild build` wrote, such as NAME.box"
        }
        Layout::NotOneBlob { .. } => "build it again with this version of boxbuild",
        Layout::Manifests { .. } => "copy the manifest of the box into a layout of its own",
        Layout::Digest { .. } | Layout::Size { .. } => {
            "the file was damaged or changed after the build; build or copy the box again"
        }
        Layout::NotRegular(_) => "copy the box with its files, not with links to them",
        Layout::File { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
            "a box is a directory that `boxbuild build` wrote; copy it whole"
        }
        Layout::Epoch { .. } => "use the boxbuild that built the box, or build it again",
        _ => return None,
    })
}

/// Joins an error and its causes. Names from outside can be in them, so that what would move the
/// cursor or begin a line is replaced.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        next = cause.source();
    }
    shown(&texts.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_and_its_help_are_apart_as_data() {
        let failure = Failure::new("no image\n  = help: copy one:\n    skopeo copy");
        assert_eq!(failure.message, "error: no image\n  = help: copy one:\n    skopeo copy");
        assert_eq!(failure.errors[0]["message"], "no image");
        assert_eq!(failure.errors[0]["help"], "copy one:\nskopeo copy");
        assert_eq!(Failure::new("no image").errors[0]["help"], Value::Null);
    }

    #[test]
    fn several_failures_are_one() {
        Failure::all(Vec::new()).unwrap();
        let both = Failure::all(vec![Failure::new("one\n"), Failure::new("two")]).unwrap_err();
        assert_eq!(both.message, "error: one\n\nerror: two");
        assert_eq!((both.errors.len(), both.code), (2, FAILED));
    }

    #[test]
    fn causes_are_told_once() {
        let cause = std::io::Error::other("the disk is full");
        let error = BuildError::Read {
            what: "init",
            path: "a".into(),
            source: std::io::Error::other(cause),
        };
        assert_eq!(chain(&error), "cannot read the init a: the disk is full");
    }
}

//! From texts to the model: the files are read, merged, and then declaration by declaration
//! understood.

mod checkout;
mod children;
mod component;
mod document;
mod keyed;
mod layout;
mod load;
mod machine;
mod merge;
mod profile;
mod reader;
mod rebase;
mod run;
mod skill;

use crate::sink::Sink;
use crate::{Boxfile, Diagnostic, Diagnostics, Severity, Source, Sources, Span};

/// The greatest length of a Boxfile in bytes: 1 MiB.
pub const MAX_SOURCE: usize = 1 << 20;

/// What reading a Boxfile gave.
#[derive(Debug)]
pub struct Document {
    /// The texts that were read: the file, and what it extends.
    pub sources: Sources,
    /// The model, if nothing is wrong.
    pub boxfile: Option<Boxfile>,
    /// Everything that is wrong or worth a look, sorted by position. Where blocks do not close or
    /// text is lost behind an unclosed quote, only errors of that kind: all others could be their
    /// consequence.
    pub found: Vec<Diagnostic>,
    /// The names of the profiles, sorted.
    pub profiles: Vec<String>,
}

impl Document {
    /// Returns the model, or all errors.
    ///
    /// # Errors
    /// At least one diagnostic of severity [`Severity::Error`], and all others with it.
    pub fn into_result(self) -> Result<Boxfile, Diagnostics> {
        self.boxfile.ok_or_else(|| {
            // Warnings alone do not explain why there is no model.
            let explained = self.found.iter().any(is_error);
            let unexplained = (!explained).then(unexplained);
            let found = self.found.into_iter().chain(unexplained).collect();
            Diagnostics::new(found).unwrap_or_else(|| self::unexplained().into())
        })
    }
}

/// Reads a Boxfile in KDL that extends no other.
///
/// # Errors
/// Everything that is wrong with it: see [`Document::found`].
pub fn parse(text: &str) -> Result<Boxfile, Diagnostics> {
    let source = Source::new("Boxfile", text);
    read(source, None, |_| Err("a text by itself extends nothing".to_owned())).into_result()
}

/// Reads a Boxfile, with a profile if one is named, and the files that it extends.
///
/// `load` is given the path of a base, relative to the directory of `main`, and returns its text
/// with the name to show, or says why it cannot.
pub fn read(
    main: Source,
    profile: Option<&str>,
    load: impl FnMut(&str) -> Result<Source, String>,
) -> Document {
    let syntax = main.syntax;
    let mut files = load::files(main, load);
    let sink = Sink::default();
    if !files.complete {
        sink.be_lenient();
    }
    let profiles = profile::take(&mut files.nodes, &sink);
    let mut document = Document {
        sources: files.sources,
        boxfile: None,
        found: files.found,
        profiles: profiles.iter().map(|it| it.name.clone()).collect(),
    };
    if files.intact {
        document.boxfile = document::read(&files.nodes, syntax, files.climb, &sink);
        let base = sink.into_found();
        let context = profile::Context { nodes: &files.nodes, syntax, climb: files.climb };
        let chosen = context.read(&profiles, profile, &base, files.complete);
        document.found.extend(base);
        document.found.extend(chosen.found);
        if let Some(boxfile) = chosen.boxfile {
            document.boxfile = boxfile;
        }
    }
    if document.found.iter().any(is_error) {
        document.boxfile = None;
    }
    document.profiles.sort_unstable();
    document.found.sort_by_key(Diagnostic::span);
    document
}

fn is_error(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity() == Severity::Error
}

/// Stands for an error that was found and not reported: a defect of this crate, not of the file.
fn unexplained() -> Diagnostic {
    let message = "the file cannot be read, and the reason is unknown";
    Diagnostic::new(message, Span::default(), "").with_help("report this as a defect of boxbuild")
}

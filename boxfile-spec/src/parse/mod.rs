//! Turns texts into the model: reads and merges the files, then reads each declaration.

mod budget;
mod checkout;
mod children;
mod component;
mod document;
mod hints;
mod layout;
mod load;
mod merge;
mod names;
mod overridden;
mod profile;
mod reader;
mod rebase;
mod run;
mod secrets;
mod vm;

pub use checkout::Reach;
pub use load::MAX_SOURCE;
pub use rebase::MAX_ADDED;

use crate::Boxfile;
use children::Children;
use diagnostics::{Diagnostic, Diagnostics, Severity, Source, Sources, Span};
use load::Files;
use reader::{Reader, read_fields};

/// The result of reading a Boxfile.
#[derive(Debug)]
pub struct Document {
    /// The texts that were read: the file and its bases. Secrets that are reported are overwritten with asterisks, so
    /// that no message shows one.
    pub sources: Sources,
    /// The model, if there is no error.
    pub boxfile: Option<Boxfile>,
    /// All errors and warnings, sorted by position. If blocks do not close or text is lost after an unclosed quote,
    /// only errors of this kind are listed, because all others could be their consequence.
    pub found: Vec<Diagnostic>,
    /// The names of the profiles, sorted.
    pub profiles: Vec<String>,
    /// The model with each of the profiles, by the profile's name, in the order of the declarations (the file's
    /// profiles before its base's); empty if there is any error. The list does not depend on the chosen profile.
    pub variants: Vec<(String, Boxfile)>,
    /// The error if the chosen profile does not exist, without a position in the file. This is not an error of the file,
    /// so it is not in `found`; `boxfile` is `None`.
    pub unknown_profile: Option<Diagnostic>,
}

impl Document {
    /// Returns the model, or all errors.
    ///
    /// # Errors
    /// All diagnostics, at least one of which has the severity [`Severity::Error`]. A chosen profile that does not
    /// exist is an error, too.
    pub fn into_result(self) -> Result<Boxfile, Diagnostics> {
        self.boxfile.ok_or_else(|| {
            // Warnings alone do not explain why there is no model.
            let explained = self.found.iter().any(is_error);
            let reason = self.unknown_profile.or_else(|| (!explained).then(unexplained));
            let found = self.found.into_iter().chain(reason).collect();
            Diagnostics::new(found).unwrap_or_else(|| unexplained().into())
        })
    }
}

/// Reads a Boxfile in KDL that has no base.
///
/// # Errors
/// All errors of the text: see [`Document::found`].
pub fn parse(text: &str) -> Result<Boxfile, Diagnostics> {
    let source = Source::new("Boxfile", text);
    read(source, None, |_| Err("a text by itself extends nothing".to_owned())).into_result()
}

/// Reads a Boxfile, with a profile if one is named, and its base files.
///
/// The checkout is the Boxfile's directory: see [`read_within`].
///
/// # Examples
/// ```
/// use diagnostics::Source;
///
/// let main = Source::new("Boxfile", "extends \"base\"\nbox \"hello\"\n");
/// let base = "agent {\n    image \"oci:images/agent\"\n}\n";
/// let document = boxfile_spec::read(main, None, |path| Ok(Source::new(path, base)));
/// assert_eq!(document.boxfile.expect("no errors").name, "hello");
/// ```
pub fn read(
    main: Source,
    profile: Option<&str>,
    load: impl FnMut(&str) -> Result<Source, String>,
) -> Document {
    read_within(main, profile, &Reach::default(), load)
}

/// Reads a Boxfile, with a profile if one is named, and its base files. `reach` is the extent of the checkout.
///
/// `load` takes the path of a base, relative to the directory of `main`. It returns the text with the name for
/// messages, or the reason why the base cannot be read. No `..` in the path leads out of the checkout, but `load` must
/// check whether a symbolic link does.
pub fn read_within(
    main: Source,
    profile: Option<&str>,
    reach: &Reach,
    load: impl FnMut(&str) -> Result<Source, String>,
) -> Document {
    let mut files = load::files(main, reach, load);
    let overridden = overridden::check(&mut files);
    let mut document = understand(files, profile);
    document.found.extend(overridden);
    if document.found.iter().any(is_error) {
        document.boxfile = None;
        document.variants.clear();
    }
    for hidden in document.found.iter().filter_map(Diagnostic::hidden) {
        document.sources.hide(hidden);
    }
    document.profiles.sort_unstable();
    document.found.sort_by_key(Diagnostic::span);
    document
}

/// Reads the declarations of the merged files, and of their profiles.
fn understand(mut files: Files, profile: Option<&str>) -> Document {
    let sink = files.sink();
    let profiles = profile::take(&mut files.nodes, &sink);
    let mut document = Document {
        sources: std::mem::take(&mut files.sources),
        boxfile: None,
        found: std::mem::take(&mut files.found),
        profiles: profiles.iter().map(|it| it.name.clone()).collect(),
        variants: Vec::new(),
        unknown_profile: None,
    };
    if files.intact {
        let boxfile = document::read(&files.nodes, files.syntax, &files.reach, &sink);
        files.read_profiles(&profiles, profile, sink.into_found(), &mut document);
        document.boxfile = match profile {
            None => boxfile,
            Some(name) => {
                document.variants.iter().find(|(it, _)| it == name).map(|(_, it)| it.clone())
            }
        };
    }
    document
}

fn is_error(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity() == Severity::Error
}

/// Returns the error of a file that has no model, although no error was reported. The cause is a defect of this crate.
fn unexplained() -> Diagnostic {
    let message = "the file cannot be read, and the reason is unknown";
    Diagnostic::new(message, Span::default(), "")
        .with_help("please report this as a bug in boxbuild")
}

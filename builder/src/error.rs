//! Why a box cannot be built.

use std::path::PathBuf;

use box_cache::StoreError;
use box_digest::Digest;
use box_image::ComponentName;
use box_image::plan::PlanError;
use box_tree::listing::ListingError;
use boxfile_spec::{Diagnostic, Diagnostics, Platform, Sources, Span};
use download::fetch::{FetchError, UrlError};
use host_fs::FileError;
use oci_image::SourceError;
use oci_layer::{Excess, LayerError};

use crate::binary::BinaryError;
use crate::compose::ComposeError;
use crate::compose::merged::MergeConflicts;
use crate::kernel::KernelError;
use crate::skill::SkillError;

/// Why a box cannot be built. A `span` is where the Boxfile names what is to blame.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum BuildError {
    /// Something that the build needs cannot be read, fetched, used or written.
    #[error("{what}")]
    Unusable { what: String, span: Option<Span>, source: Box<Cause> },
    /// Two skills have one name.
    #[error("two skills have the name `{name}`: {} and {}", paths[0], paths[1])]
    SkillClash { name: String, first: Span, second: Span, paths: [String; 2] },
    /// A text of the checkout is wrong.
    #[error("{} is refused", .0.sources.as_slice()[0].name)]
    Rejected(Box<Report>),
    /// A file is not the one that the Boxfile names.
    #[error("{what} is {found}, but the Boxfile names {expected}")]
    WrongFile { span: Option<Span>, what: String, expected: Digest, found: Digest },
    /// The agent's program is started by something that is not there.
    #[error("the agent's program needs {interpreter}, which {lacking} have")]
    NoInterpreter {
        span: Span,
        interpreter: String,
        /// Where it would have to be, as the end of a sentence.
        lacking: &'static str,
    },
    /// What the lock pins is not there any more.
    #[error("the lock pins `{name}` to {digest}, which is no longer in {place}")]
    PinGone { span: Span, name: String, place: String, digest: Digest },
    /// The lock says of an image what is not so.
    #[error("the lock's entry `{name}` does not fit the image that it names: {what}")]
    PinMismatch { span: Span, name: String, what: &'static str },
    /// The platform is one that this version does not build for.
    #[error("this version builds boxes for linux/amd64 only, not for {platform}")]
    Platform { platform: Platform },
    /// Two images that are to have one root differ where nothing decides.
    #[error(
        "the images have something different at {}, and layout \"merged\" has each path once",
        match .0.conflicts.len() { 1 => "a path".to_owned(), count => format!("{count} paths") }
    )]
    Conflicts(Box<MergeConflicts>),
    /// The init is not a static program for the platform.
    #[error("the init {} is not a static program for {platform}", path.display())]
    NotAnInit { path: PathBuf, platform: Platform },
}

/// Why something cannot be used. What it is, [`BuildError::Unusable`] says.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[allow(missing_docs, reason = "a variant is named as the error in it")]
pub enum Cause {
    Image(#[from] SourceError),
    Layer(#[from] LayerError),
    Skill(#[from] SkillError),
    Binary(#[from] BinaryError),
    Url(#[from] UrlError),
    Fetch(#[from] FetchError),
    File(#[from] FileError),
    Kernel(#[from] KernelError),
    Compose(#[from] ComposeError),
    Plan(#[from] PlanError),
    Excess(#[from] Excess),
    Listing(#[from] ListingError),
    Bake(#[from] erofs_writer::Error),
    Store(#[from] StoreError),
    Document(#[from] serde_json::Error),
}

impl<E: Into<Cause>> From<E> for BuildError {
    fn from(cause: E) -> Self {
        Self::at(None, cause)
    }
}

impl BuildError {
    /// Returns the error of something that the Boxfile names.
    pub(crate) fn unusable(
        what: impl Into<String>,
        span: impl Into<Option<Span>>,
        cause: impl Into<Cause>,
    ) -> Self {
        Self::Unusable { what: what.into(), span: span.into(), source: Box::new(cause.into()) }
    }

    /// Returns the error of a component's image that cannot be read.
    pub(crate) fn image_unread(component: ComponentName, span: Span, cause: SourceError) -> Self {
        let what = format!("the image of `{}` cannot be read", component.name());
        Self::unusable(what, span, cause)
    }

    /// Returns the error of a component's image of which a layer is refused.
    pub(crate) fn image_refused(component: ComponentName, span: Span, cause: LayerError) -> Self {
        Self::unusable(format!("the image of `{}` is refused", component.name()), span, cause)
    }

    /// Returns the error of a cause that says itself what is concerned.
    pub(crate) fn at(span: Option<Span>, cause: impl Into<Cause>) -> Self {
        let cause = cause.into();
        let what = match &cause {
            Cause::Plan(_) => "this box could never start".to_owned(),
            Cause::Listing(_) => "the box is too large: nobody could list what is in it".to_owned(),
            Cause::Bake(_) => "the rootfs cannot be written".to_owned(),
            Cause::Store(_) => "the store failed".to_owned(),
            Cause::Document(_) => "a document of the box is malformed".to_owned(),
            cause => cause.to_string(),
        };
        Self::unusable(what, span, cause)
    }

    /// Returns the place in the Boxfile that is to blame, where there is one.
    pub const fn span(&self) -> Option<Span> {
        match self {
            Self::SkillClash { second: span, .. }
            | Self::NoInterpreter { span, .. }
            | Self::PinGone { span, .. }
            | Self::PinMismatch { span, .. } => Some(*span),
            Self::Unusable { span, .. } | Self::WrongFile { span, .. } => *span,
            _ => None,
        }
    }

    /// Returns a further place in the Boxfile that has to do with it.
    pub const fn other_span(&self) -> Option<Span> {
        match self {
            Self::SkillClash { first, .. } => Some(*first),
            _ => None,
        }
    }
}

/// The diagnostics of a text file of the checkout, with the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The text.
    pub sources: Sources,
    /// The diagnostics; at least one.
    pub found: Vec<Diagnostic>,
}

impl Report {
    /// Returns a report, if something was found.
    pub fn new(sources: Sources, found: impl IntoIterator<Item = Diagnostic>) -> Option<Self> {
        let found: Vec<Diagnostic> = found.into_iter().collect();
        (!found.is_empty()).then_some(Self { sources, found })
    }

    /// Shows all of it, as a person reads it.
    pub fn render(&self) -> String {
        Diagnostics::new(self.found.clone())
            .map(|diagnostics| diagnostics.render(&self.sources))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use boxfile_spec::Source;

    use super::*;

    #[test]
    fn a_report_has_something_to_say() {
        let sources = Sources::single(Source::new("a.env", "A\nB\n"));
        assert_eq!(Report::new(sources.clone(), []), None);
        let found = ["first", "second"].map(|it| Diagnostic::new(it, Span::default(), "here"));
        let text = Report::new(sources, found).unwrap().render();
        assert!(text.starts_with("error: first\n  --> a.env:1:1\n"), "{text}");
        assert!(text.contains("error: second\n"), "{text}");
    }
}

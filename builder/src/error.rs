//! The errors of a build.

use std::path::PathBuf;

use box_cache::StoreError;
use box_contract::ComponentName;
use box_contract::plan::PlanError;
use box_contract::{ImageRef, Platform};
use box_digest::Digest;
use box_tree::listing::ListingError;
use checkout::agents::AgentsError;
use checkout::files::FilesError;
use checkout::skill::SkillError;
use diagnostics::Span;
use download::fetch::{FetchError, UrlError};
use guest_kernel::KernelError;
use host_fs::FileError;
use oci_image::{Form, SourceError};
use oci_layer::{Excess, LayerError};

use crate::binary::BinaryError;
use crate::compose::ComposeError;
use crate::compose::merged::MergeConflicts;
use crate::pack::PackDamaged;
use crate::pipeline::InputError;
use crate::report::Report;

/// Errors of a build. A `span` is the position in the Boxfile that causes the error.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum BuildError {
    /// Something that the build needs cannot be read, fetched, used or written.
    #[error("{what}")]
    Unusable { what: String, span: Option<Span>, source: Box<Cause> },
    /// Two skills have the same name.
    #[error("two skills have the name `{name}`: {} and {}", paths[0], paths[1])]
    SkillClash { name: String, first: Span, second: Span, paths: [String; 2] },
    /// A text file of the checkout is invalid.
    #[error("{} is refused", .0.file())]
    Rejected(Box<Report>),
    /// The digest of a file is not the digest in the Boxfile.
    #[error("{what} is {found}, but the Boxfile names {expected}")]
    WrongFile { span: Option<Span>, what: String, expected: Digest, found: Digest },
    /// The interpreter or dynamic linker of the agent's program is absent. `lacking` completes the message: `the
    /// agent's image does not`.
    #[error("the agent's program needs {interpreter}, which {lacking} have")]
    NoInterpreter { span: Span, interpreter: String, lacking: &'static str },
    /// An input that the lock pins no longer exists.
    #[error("the lock pins `{name}` to {digest}, which is no longer in {place}")]
    PinGone { span: Span, name: String, place: String, digest: Digest },
    /// The lock's entry does not match the image that it names.
    #[error("the lock's entry `{name}` does not fit the image that it names: {what}")]
    PinMismatch { span: Span, name: String, what: &'static str },
    /// The platform is not [`Platform::BUILT`].
    #[error("this version builds boxes for {} only, not for {platform}", Platform::BUILT)]
    Platform { platform: Platform },
    /// Two images that share one root conflict, and no policy decides.
    #[error(
        "the images conflict at {}",
        match .0.conflicts.count { 1 => "1 path".to_owned(), count => format!("{count} paths") }
    )]
    Conflicts(Box<MergeConflicts>),
    /// Several independent errors; at least one.
    #[error("{}", .0.iter().map(Self::to_string).collect::<Vec<_>>().join("; "))]
    Several(Vec<Self>),
    /// The init is not a static program for the platform, or not the box-init of this version.
    #[error("{} is not {expected}", path.display())]
    NotAnInit { path: PathBuf, expected: String },
}

/// The cause of a [`BuildError::Unusable`], whose `what` names the input that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[allow(missing_docs, reason = "a variant is named as the error in it")]
pub enum Cause {
    Image(#[from] SourceError),
    /// A reference that names no image, and the reference that was probably meant.
    #[error("{source}")]
    Misnamed {
        meant: Meant,
        source: SourceError,
    },
    /// The path of a box, which is named as an image.
    #[error("{} is a box, not an image", .0.display())]
    IsBox(PathBuf),
    Layer(#[from] LayerError),
    Skill(#[from] SkillError),
    Agents(#[from] AgentsError),
    Files(#[from] FilesError),
    Binary(#[from] BinaryError),
    Url(#[from] UrlError),
    Fetch(#[from] FetchError),
    File(#[from] FileError),
    Input(#[from] InputError),
    Kernel(#[from] KernelError),
    Compose(#[from] ComposeError),
    #[error("this box could never start")]
    Plan(#[from] PlanError),
    Excess(#[from] Excess),
    #[error("the box has too many files to list")]
    Listing(#[from] ListingError),
    #[error("the store lost a layer again and again while the box was built")]
    Damaged(#[from] PackDamaged),
    #[error("the rootfs cannot be written")]
    Bake(#[from] erofs_writer::Error),
    #[error("the store failed")]
    Store(#[from] StoreError),
    #[error("a document of the box is malformed")]
    Document(#[from] serde_json::Error),
}

/// The image that a reference was probably meant to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant {
    /// The path of an image archive or of a directory, without the prefix of a reference such as `oci-archive:`.
    Unprefixed {
        /// The path.
        path: String,
        /// The form of the file or directory at the path.
        form: Form,
    },
    /// Another reference.
    Other(ImageRef),
}

impl Cause {
    fn further_span(&self) -> Option<Span> {
        match self {
            Self::Compose(source) => source.further_span(),
            _ => None,
        }
    }
}

impl<E: Into<Cause>> From<E> for BuildError {
    fn from(cause: E) -> Self {
        Self::at(None, cause)
    }
}

impl BuildError {
    /// Returns the error of an input that the Boxfile names.
    pub(crate) fn unusable(
        what: impl Into<String>,
        span: impl Into<Option<Span>>,
        cause: impl Into<Cause>,
    ) -> Self {
        Self::Unusable { what: what.into(), span: span.into(), source: Box::new(cause.into()) }
    }

    /// Returns the error of a component's image that cannot be read, or of which a layer is refused.
    pub(crate) fn image(component: ComponentName, span: Span, cause: impl Into<Cause>) -> Self {
        let cause = cause.into();
        let how = if matches!(cause, Cause::Layer(_)) { "is refused" } else { "cannot be read" };
        Self::unusable(format!("the image of `{}` {how}", component.name()), span, cause)
    }

    /// Merges all errors into one. `Ok` if there are none.
    pub(crate) fn all(mut errors: Vec<Self>) -> Result<(), Self> {
        match errors.pop() {
            None => Ok(()),
            Some(only) if errors.is_empty() => Err(only),
            Some(last) => Err(Self::Several(errors.into_iter().chain([last]).collect())),
        }
    }

    /// Returns the number of errors.
    pub fn count(&self) -> usize {
        match self {
            Self::Rejected(report) => report.problems().len(),
            Self::Several(errors) => errors.iter().map(Self::count).sum(),
            _ => 1,
        }
    }

    /// Returns the error of a cause whose message already names the input that cannot be used.
    pub(crate) fn at(span: Option<Span>, cause: impl Into<Cause>) -> Self {
        let cause = cause.into();
        Self::unusable(cause.to_string(), span, cause)
    }

    /// Returns the span in the Boxfile that causes the error, and the span of a related declaration.
    pub fn spans(&self) -> [Option<Span>; 2] {
        match self {
            Self::SkillClash { first, second, .. } => [Some(*second), Some(*first)],
            Self::NoInterpreter { span, .. }
            | Self::PinGone { span, .. }
            | Self::PinMismatch { span, .. } => [Some(*span), None],
            Self::Unusable { span, source, .. } => [*span, source.further_span()],
            Self::WrongFile { span, .. } => [*span, None],
            _ => [None, None],
        }
    }
}

//! Why a box cannot be built.

use std::path::PathBuf;

use box_cache::StoreError;
use box_digest::Digest;
use box_image::ComponentName;
use box_image::plan::PlanError;
use box_tree::listing::ListingError;
use boxfile_spec::{Platform, Span};
use download::fetch::{FetchError, UrlError};
use host_fs::FileError;
use oci_image::SourceError;
use oci_layer::{Excess, LayerError};

use crate::Report;
use crate::binary::BinaryError;
use crate::compose::ComposeError;
use crate::compose::merged::MergeConflicts;
use crate::kernel::KernelError;
use crate::seal::SealError;
use crate::skill::SkillError;

/// Why a box cannot be built. A `span` is where the Boxfile names what is to blame.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum BuildError {
    /// A component's image cannot be read.
    #[error("the image of `{}` cannot be read", component.name())]
    Image { component: ComponentName, span: Span, source: SourceError },
    /// A layer of a component's image is refused.
    #[error("the image of `{}` is refused", component.name())]
    Layer { component: ComponentName, span: Span, source: LayerError },
    /// The layers of the images have more together than a build may hold.
    #[error(transparent)]
    Excess(#[from] Excess),
    /// The box has more than a listing can hold.
    #[error("the box is too large: nobody could list what is in it")]
    Listing(#[from] ListingError),
    /// A skill, or a directory of skills, cannot be read.
    #[error("the {what} cannot be read")]
    Skill { what: String, span: Span, source: SkillError },
    /// Two skills have one name.
    #[error("two skills have the name `{name}`: {} and {}", paths[0], paths[1])]
    SkillClash { name: String, first: Span, second: Span, paths: [String; 2] },
    /// A file that the build needs cannot be read.
    #[error("{source}")]
    File { span: Option<Span>, source: FileError },
    /// A text of the checkout is wrong.
    #[error("{} is refused", .0.sources.as_slice()[0].name)]
    Rejected(Box<Report>),
    /// The agent's program cannot be used.
    #[error("the agent's program cannot be used")]
    Binary { span: Span, source: BinaryError },
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
    /// The URL of the agent's program is malformed.
    #[error("the URL of the agent's program cannot be used")]
    Url { span: Span, source: UrlError },
    /// The agent's program cannot be fetched.
    #[error("the agent's program cannot be fetched")]
    Fetch { span: Span, source: Box<FetchError> },
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
    /// Images and declarations do not fit together.
    #[error("{source}")]
    Compose { span: Option<Span>, source: Box<ComposeError> },
    /// No start could carry out what is declared.
    #[error("this box could never start: {0}")]
    Plan(#[from] PlanError),
    /// The kernel's file is not a kernel.
    #[error("the kernel {} cannot be used", path.display())]
    Kernel { path: PathBuf, source: KernelError },
    /// The init is not a static program for the platform.
    #[error("the init {} is not a static program for {platform}", path.display())]
    NotAnInit { path: PathBuf, platform: Platform },
    /// The rootfs cannot be written.
    #[error("the rootfs cannot be written")]
    Bake(#[from] erofs_writer::Error),
    /// The store failed, or a document of the box is malformed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

impl From<StoreError> for BuildError {
    fn from(error: StoreError) -> Self {
        Self::Seal(error.into())
    }
}

impl From<serde_json::Error> for BuildError {
    fn from(error: serde_json::Error) -> Self {
        Self::Seal(error.into())
    }
}

impl BuildError {
    /// Returns the place in the Boxfile that is to blame, where there is one.
    pub const fn span(&self) -> Option<Span> {
        match self {
            Self::Image { span, .. }
            | Self::Layer { span, .. }
            | Self::Skill { span, .. }
            | Self::SkillClash { second: span, .. }
            | Self::Binary { span, .. }
            | Self::NoInterpreter { span, .. }
            | Self::Url { span, .. }
            | Self::Fetch { span, .. }
            | Self::PinGone { span, .. }
            | Self::PinMismatch { span, .. } => Some(*span),
            Self::File { span, .. } | Self::WrongFile { span, .. } | Self::Compose { span, .. } => {
                *span
            }
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

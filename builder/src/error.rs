//! Why a box cannot be built.

use std::io;
use std::path::PathBuf;

use box_cache::StoreError;
use box_digest::Digest;
use box_image::ComponentName;
use box_image::plan::PlanError;
use box_tree::listing::ListingError;
use boxfile_spec::{Platform, Span};
use download::fetch::{FetchError, UrlError};
use oci_image::SourceError;
use oci_layer::{Excess, LayerError};

use crate::Report;
use crate::binary::BinaryError;
use crate::compose::ComposeError;
use crate::compose::merged::MergeConflicts;
use crate::kernel::KernelError;
use crate::seal::SealError;
use crate::skill::SkillError;

/// Why a box cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A component's image cannot be read.
    #[error("the image of `{}` cannot be read", component.name())]
    Image {
        /// Which component.
        component: ComponentName,
        /// Where the Boxfile names the image.
        span: Span,
        /// Why not.
        source: SourceError,
    },
    /// A layer of a component's image is refused.
    #[error("the image of `{}` is refused", component.name())]
    Layer {
        /// Which component.
        component: ComponentName,
        /// Where the Boxfile names the image.
        span: Span,
        /// Why.
        source: LayerError,
    },
    /// The layers of the images have more together than a build may hold.
    #[error(transparent)]
    Excess(#[from] Excess),
    /// The box has more than a listing can tell of.
    #[error("the box is too large: nobody could list what is in it")]
    Listing(#[from] ListingError),
    /// A skill cannot be read.
    #[error("the skill `{name}` cannot be read")]
    Skill {
        /// Which skill.
        name: String,
        /// Where the Boxfile names its directory.
        span: Span,
        /// Why not.
        source: SkillError,
    },
    /// A directory of skills cannot be read.
    #[error("the skills in {} cannot be read", path.display())]
    SkillsDir {
        /// The directory.
        path: PathBuf,
        /// Where the Boxfile names it.
        span: Span,
        /// Why not.
        source: SkillError,
    },
    /// Two skills have one name.
    #[error("two skills have the name `{name}`: {} and {}; rename one of them", paths[0], paths[1])]
    SkillClash {
        /// The name.
        name: String,
        /// Where the Boxfile names the first.
        first: Span,
        /// Where it names the second.
        second: Span,
        /// Their directories.
        paths: [String; 2],
    },
    /// A file with variables cannot be read.
    #[error("cannot read {}", path.display())]
    EnvFile {
        /// Where the Boxfile names it.
        span: Span,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file that must be a text is none.
    #[error("{} is not UTF-8 text: see byte {at}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first byte that is none.
        at: usize,
    },
    /// A text of the checkout is wrong.
    #[error("{} is refused", .0.sources.as_slice()[0].name)]
    Rejected(Box<Report>),
    /// The agent's program cannot be used.
    #[error("the agent's program cannot be used")]
    Binary {
        /// Where the Boxfile names it.
        span: Span,
        /// Why not.
        source: BinaryError,
    },
    /// The agent's program is not the one that the Boxfile names.
    #[error(
        "the agent's program is {found}, but the Boxfile names {expected}; \
         if it was meant to change, write the new sha256"
    )]
    WrongBinary {
        /// Where the Boxfile names it.
        span: Span,
        /// The named content.
        expected: Digest,
        /// The content as it is.
        found: Digest,
    },
    /// The agent's program needs what only an image has.
    #[error(
        "the agent's program needs {interpreter}, and there is no image that could have it; \
         link the program statically, or declare an `image` for the agent"
    )]
    NeedsImage {
        /// Where the Boxfile names it.
        span: Span,
        /// Its dynamic linker or interpreter.
        interpreter: String,
    },
    /// The agent's image lacks what the agent's program is started by.
    #[error(
        "the agent's program needs {interpreter}, which the agent's image does not have; \
         link the program statically, or declare another `image`"
    )]
    NoInterpreter {
        /// Where the Boxfile names the program.
        span: Span,
        /// Its dynamic linker or interpreter.
        interpreter: String,
    },
    /// The URL of the agent's program is none.
    #[error("the URL of the agent's program cannot be used")]
    Url {
        /// Where the Boxfile names it.
        span: Span,
        /// Why not.
        source: UrlError,
    },
    /// The agent's program cannot be fetched.
    #[error("the agent's program cannot be fetched")]
    Fetch {
        /// Where the Boxfile names it.
        span: Span,
        /// Why not.
        source: Box<FetchError>,
    },
    /// What the lock pins is not there any more.
    #[error(
        "the lock pins `{name}` to {digest}, which is no longer in {place}; \
         put it back, or run `boxbuild update {name}` to take what is there now"
    )]
    PinGone {
        /// Where the Boxfile names it.
        span: Span,
        /// The lock's name for it.
        name: String,
        /// Where it was looked for.
        place: String,
        /// The pinned digest.
        digest: Digest,
    },
    /// The lock says of an image what is not so.
    #[error(
        "the lock's entry `{name}` does not fit the image that it names: {what}; \
         run `boxbuild update {name}` to write it anew"
    )]
    PinMismatch {
        /// Where the Boxfile names the image.
        span: Span,
        /// The lock's name for it.
        name: String,
        /// What is not so.
        what: &'static str,
    },
    /// The platform is one that this version does not build for.
    #[error("this version builds boxes for linux/amd64 only, not for {platform}")]
    Platform {
        /// The platform.
        platform: Platform,
    },
    /// Two images that are to have one root differ where nothing decides.
    #[error(
        "the images have something different at {}, and layout \"merged\" has each path once",
        match .0.conflicts.len() { 1 => "a path".to_owned(), count => format!("{count} paths") }
    )]
    Conflicts(Box<MergeConflicts>),
    /// Images and declarations do not fit together.
    #[error("{source}")]
    Compose {
        /// Where the Boxfile names what is to blame, if it does.
        span: Option<Span>,
        /// Why not.
        source: Box<ComposeError>,
    },
    /// No start could carry out what is declared.
    #[error("this box could never start: {0}")]
    Plan(#[from] PlanError),
    /// The kernel's file cannot be read.
    #[error("the kernel {} cannot be used", path.display())]
    Kernel {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: KernelError,
    },
    /// The kernel is not the one that the Boxfile names.
    #[error(
        "the kernel {} is {found}, but the Boxfile names {expected}",
        path.display()
    )]
    WrongKernel {
        /// The file.
        path: PathBuf,
        /// The named content.
        expected: Digest,
        /// The content as it is.
        found: Digest,
    },
    /// The init is no static program for the platform.
    #[error(
        "the init {} is not a static program for {platform}; build it with \
         `cargo xtask box-init`",
        path.display()
    )]
    NotAnInit {
        /// The file.
        path: PathBuf,
        /// The platform.
        platform: Platform,
    },
    /// A file that the build needs cannot be read.
    #[error("cannot read the {what} {}", path.display())]
    Read {
        /// What it is: `init` or `kernel`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The rootfs cannot be written.
    #[error("the rootfs cannot be written")]
    Bake(#[from] erofs_writer::Error),
    /// The box cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// A document of the box cannot be written as JSON.
    #[error("a document of the box does not become JSON")]
    Document(#[from] serde_json::Error),
}

impl BuildError {
    /// Returns the place in the Boxfile that is to blame, where there is one.
    pub const fn span(&self) -> Option<Span> {
        match self {
            Self::Image { span, .. }
            | Self::Layer { span, .. }
            | Self::Skill { span, .. }
            | Self::SkillsDir { span, .. }
            | Self::SkillClash { second: span, .. }
            | Self::EnvFile { span, .. }
            | Self::Binary { span, .. }
            | Self::WrongBinary { span, .. }
            | Self::NeedsImage { span, .. }
            | Self::NoInterpreter { span, .. }
            | Self::Url { span, .. }
            | Self::Fetch { span, .. }
            | Self::PinGone { span, .. }
            | Self::PinMismatch { span, .. } => Some(*span),
            Self::Compose { span, .. } => *span,
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

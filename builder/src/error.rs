//! Why a box cannot be built.

use std::io;
use std::path::PathBuf;

use box_cache::StoreError;
use box_image::{ComponentName, Digest};
use boxfile_spec::Span;

use crate::compose::ComposeError;
use crate::kernel::KernelError;
use crate::layer::LayerError;
use crate::skill::SkillError;
use crate::source::SourceError;

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
    /// Images and declarations do not fit together.
    #[error(transparent)]
    Compose(#[from] ComposeError),
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
    /// The init is no static program for x86-64.
    #[error(
        "the init {} is not a static x86-64 program; build it with \
         `cargo build --release --target x86_64-unknown-linux-musl -p box-init`",
        path.display()
    )]
    NotAnInit {
        /// The file.
        path: PathBuf,
    },
    /// A file that the build needs cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The rootfs cannot be written.
    #[error("the rootfs cannot be written")]
    Bake(#[from] erofs_writer::Error),
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
            Self::Image { span, .. } | Self::Layer { span, .. } | Self::Skill { span, .. } => {
                Some(*span)
            }
            _ => None,
        }
    }
}

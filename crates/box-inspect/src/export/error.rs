//! Why a box is not exported.

use std::io;
use std::path::{Path, PathBuf};

use host_fs::publish::PublishError;

use crate::opened::OpenError;

/// Why a box is not exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The box cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No image holds what the listing says.
    #[error("the listing of the box is of no image that this version writes")]
    Listing(#[from] erofs_writer::Error),
    /// The box lacks the component.
    #[error("the box has no component `{component}`; leave out `--component`, or name the other")]
    NoComponent {
        /// The component's name.
        component: &'static str,
    },
    /// An OCI image holds one component, and the box has two.
    #[error(
        "the box has an agent and a business application, and an OCI image holds one of them; \
         say which with `--component agent` or `--component business`"
    )]
    WhichComponent,
    /// The component's root is not in the tree.
    #[error("the plan of the box names the root {root}, which its rootfs does not have")]
    NoRoot {
        /// The root's path.
        root: String,
    },
    /// The rootfs cannot be read.
    #[error("cannot read the rootfs of the box")]
    Rootfs(#[source] io::Error),
    /// The rootfs is not the one that the box names.
    #[error("the rootfs of the box is damaged; copy or build the box again")]
    DamagedRootfs,
    /// A file's data in the rootfs is not what the listing names.
    #[error("the rootfs of the box is damaged at {path}; copy or build the box again")]
    Damaged {
        /// The file's path in what is exported.
        path: String,
    },
    /// The form has no place for something.
    #[error("{path} has {what}, for which {form} has no place; {advice}")]
    NoPlace {
        /// The entry's path in what is exported.
        path: String,
        /// What it has.
        what: &'static str,
        /// The form: `a tar archive`.
        form: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// Something is there already.
    #[error("{} exists; remove it, or name another place with --output", path.display())]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// An entry of the tree cannot be made.
    #[error("cannot {doing} {path} of the box")]
    Entry {
        /// What was being done.
        doing: &'static str,
        /// The entry's path in what is exported.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// The operating system refused something.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The directory cannot be put in its place.
    #[error(transparent)]
    Publish(PublishError),
    /// What is exported cannot be written.
    #[error("cannot write the output")]
    Write(#[source] io::Error),
    /// A document does not become JSON.
    #[error(transparent)]
    Document(#[from] oci_spec::OciSpecError),
}

impl From<PublishError> for ExportError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Exists { path } => Self::Exists { path },
            error => Self::Publish(error),
        }
    }
}

impl ExportError {
    /// Names the file of the host where one could not be written.
    pub(super) fn writing(self, path: &Path) -> Self {
        match self {
            Self::Write(source) => io_at("write", path)(source),
            error => error,
        }
    }
}

/// Shows a path of a tree to people.
pub(super) fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Says to which file of the host something was being done.
pub(super) fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ExportError {
    move |source| ExportError::Io { doing, path: path.to_owned(), source }
}

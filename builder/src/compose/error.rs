//! Errors from composing images and declarations into a box.

use std::io;

use box_contract::ComponentName;
use box_tree::{Inode, LookupError, Origin};
use diagnostics::Span;

use super::vsock::OnLoopback;

/// Errors from composing images and declarations into a box. `component` is the component whose image causes the
/// error.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ComposeError {
    /// Neither the Boxfile nor the image names the program to start.
    #[error("the {component} image names no program")]
    NoProgram { component: &'static str },
    /// The image's config has a value with which a component cannot start. `found` begins with the noun: `config has
    /// …`. `declaration` is the Boxfile's declaration that overrides the value, if there is one.
    #[error("the {component} image's {found}")]
    Config { component: &'static str, found: String, declaration: Option<&'static str> },
    /// A user is not in the image's /etc/passwd or /etc/group.
    #[error("{whose}, but the image's {file} has no such name")]
    UnknownUser {
        component: &'static str,
        /// The beginning of the message, such as `the agent component runs as "app"`.
        whose: String,
        file: &'static str,
        /// The name that was probably meant.
        near: Option<String>,
        /// The span in the Boxfile that names the user. `None` if the image names it.
        span: Option<Span>,
    },
    /// A program that the box runs in a component is not in the component's root, or cannot be executed.
    #[error("{message}")]
    NoSuchProgram {
        component: &'static str,
        message: String,
        /// The program that was probably meant.
        near: Option<String>,
        /// The words of a command line that was written as one string, each in quotes.
        words: Option<String>,
        /// Why the program cannot be executed.
        reason: Unrunnable,
        /// The span in the Boxfile that names the program, or else the image whose config names it.
        span: Span,
    },
    /// A file of the image cannot be read.
    #[error("cannot read {file} of the {component} image")]
    Unreadable { component: &'static str, file: &'static str, source: io::Error },
    /// A mount would hide a path of the image, or the path prevents the mount.
    #[error(
        "the {component} {} has {found} at {path}, {mounted}",
        if *baked { "component" } else { "image" }
    )]
    Hidden {
        component: &'static str,
        /// Whether the path is from a file of the checkout, and not from the image.
        baked: bool,
        path: String,
        found: String,
        /// The end of the message, such as `where the guest mounts a share or a disk`.
        mounted: String,
        /// The span of the mount or working directory in the Boxfile, or else of the component's image. `None` for the
        /// box's own mounts.
        span: Option<Span>,
    },
    /// A file of the checkout cannot be put at the path that the Boxfile declares.
    #[error("{file} cannot be at {place} of the {component} component: {obstacle}")]
    Unplaceable {
        component: &'static str,
        /// The path in the checkout.
        file: String,
        place: String,
        obstacle: Box<Obstacle>,
        /// The span in the Boxfile that names `place`.
        span: Span,
    },
    /// Two images that share one root have different C libraries.
    #[error(
        "the images have different C libraries, agent ({agent}) and business ({business}), but one root \
         can have only one: a program that is linked with the other does not start, or fails later"
    )]
    Libc { agent: String, business: String },
    /// The image's command line has an address of AF_VSOCK.
    #[error(
        "the {component} image's command line has the address {:?} of AF_VSOCK, which no program in a box can use",
        .on_loopback.address
    )]
    Vsock { component: &'static str, on_loopback: OnLoopback },
    /// A label of the image has the key of a model.
    #[error(
        "the {component} image has the key of a model in its label `{label}`, which everybody who has the image can read"
    )]
    KeyInLabel {
        component: &'static str,
        label: &'static str,
        /// The variable from which the client of the model's provider reads the key.
        variable: String,
    },
    /// The image's label declares another component.
    #[error("the image of `{component}` says that it is for {found:?} (label `{label}`)")]
    WrongType { component: &'static str, found: String, label: &'static str },
}

/// Why a file or directory cannot be put at a path.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum Obstacle {
    /// A file would replace a directory with all its entries.
    #[error("there is a directory")]
    Directory,
    /// A directory, or a parent of the path, would replace an entry of another type.
    #[error(transparent)]
    Path(#[from] LookupError),
    /// The guest reserves the path. `path` is the path with the links in its parents resolved.
    #[error("it is at {path}, and the guest has its own {reserved}")]
    Reserved { path: String, reserved: &'static str },
    /// Another file of the checkout has the path.
    #[error("{file} is there")]
    File { file: String, span: Span },
    /// The agent's program has the path.
    #[error("the agent's program is there")]
    Program { span: Span },
    /// The box adds a file at the path, which hides the file of the checkout.
    #[error("the box has its own file there")]
    System,
}

/// Why a program cannot be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrunnable {
    /// The file has no permission to be executed.
    NotExecutable,
    /// The entry at the path is not a regular file.
    NotAFile,
    /// The file is absent.
    Missing,
    /// The dynamic linker of a C library is absent.
    NoLoader(CLibrary),
    /// The program is for another processor.
    OtherMachine,
    /// Linux does not start files of this kind.
    NotAProgram,
    /// The file is a Git LFS pointer: the image was built from a checkout without the file's content.
    LfsPointer,
}

box_contract::named_enum! {
    /// A C library that programs are linked with.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CLibrary {
        /// The C library of most distributions.
        Gnu "the GNU C library",
        /// The C library of Alpine.
        Musl "musl",
    }
}

impl ComposeError {
    /// Returns the component whose image causes the error.
    pub fn component(&self) -> ComponentName {
        let name = match self {
            Self::Libc { .. } => ComponentName::Agent.name(),
            Self::NoProgram { component }
            | Self::Config { component, .. }
            | Self::UnknownUser { component, .. }
            | Self::NoSuchProgram { component, .. }
            | Self::Unreadable { component, .. }
            | Self::Hidden { component, .. }
            | Self::Unplaceable { component, .. }
            | Self::Vsock { component, .. }
            | Self::KeyInLabel { component, .. }
            | Self::WrongType { component, .. } => component,
        };
        ComponentName::of(name).unwrap_or(ComponentName::Agent)
    }

    /// Returns the span in the Boxfile that causes the error.
    pub const fn span(&self) -> Option<Span> {
        match self {
            Self::Hidden { span, .. } | Self::UnknownUser { span, .. } => *span,
            Self::NoSuchProgram { span, .. } | Self::Unplaceable { span, .. } => Some(*span),
            _ => None,
        }
    }

    /// Returns the span of the other declaration for the same path: a `file`, or the agent's program.
    pub fn further_span(&self) -> Option<Span> {
        let Self::Unplaceable { obstacle, .. } = self else { return None };
        match **obstacle {
            Obstacle::File { span, .. } | Obstacle::Program { span } => Some(span),
            _ => None,
        }
    }
}

/// Returns the name of the component that an inode is from, and whether the inode is from the checkout.
pub(super) const fn owner(inode: &Inode, component: ComponentName) -> (&'static str, bool) {
    match inode.origin {
        Origin::Layer(component, _) => (component.name(), false),
        Origin::File(_) => (component.name(), true),
        _ => (component.name(), false),
    }
}

//! Errors from composing images and declarations into a box.

use std::io;

use box_contract::ComponentName;
use box_tree::{Inode, LookupError, Origin};
use diagnostics::Span;

/// Errors from composing images and declarations into a box. A `component` is the one whose image is to blame.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ComposeError {
    /// Nothing says which program a component is that is started.
    #[error("the {component} image names no program")]
    NoProgram { component: &'static str },
    /// The image's config has something that a component cannot be started with; `found` begins with
    /// the noun: `config has …`. `declaration` is that of the Boxfile which takes its place, if there is one.
    #[error("the {component} image's {found}")]
    Config { component: &'static str, found: String, declaration: Option<&'static str> },
    /// A user is not in the image's /etc/passwd or /etc/group.
    #[error("{whose}, but the image's {file} has no such name")]
    UnknownUser {
        component: &'static str,
        /// A sentence about the user.
        whose: String,
        file: &'static str,
        /// The name that was probably meant.
        near: Option<String>,
        /// Where the Boxfile names the user, if it does.
        span: Option<Span>,
    },
    /// Something that a component runs is not in its root, or cannot be executed.
    #[error("{message}")]
    NoSuchProgram {
        component: &'static str,
        message: String,
        /// The program that was probably meant.
        near: Option<String>,
        /// The words of a command line that was written as one text, each in quotes.
        words: Option<String>,
        /// Why it cannot be executed.
        reason: Unrunnable,
        /// Where the Boxfile names the program, or the image that names it.
        span: Span,
    },
    /// A file of the image cannot be read.
    #[error("cannot read {file} of the {component} image")]
    Unreadable { component: &'static str, file: &'static str, source: io::Error },
    /// The image has something where a mount would hide it, or cannot be made.
    #[error(
        "the {component} {} has {found} at {path}, {mounted}",
        if *baked { "component" } else { "image" }
    )]
    Hidden {
        component: &'static str,
        /// Whether it is a file of the checkout, and not of the image.
        baked: bool,
        path: String,
        found: String,
        /// The mount there, as the end of a sentence.
        mounted: String,
        /// Where the Boxfile names the path, if it does.
        span: Option<Span>,
    },
    /// A file of the checkout cannot be where the Boxfile puts it.
    #[error("{file} cannot be at {place} of the {component} component: {obstacle}")]
    Unplaceable {
        component: &'static str,
        /// The path in the checkout.
        file: String,
        place: String,
        obstacle: Box<Obstacle>,
        /// Where the Boxfile names its place.
        span: Span,
    },
    /// Two images that are to have one root have two C libraries.
    #[error(
        "the images have different C libraries, agent ({agent}) and business ({business}), but one root \
         can have only one: a program that is linked with the other does not start, or fails later"
    )]
    Libc { agent: String, business: String },
    /// The image's label says that it is for another component.
    #[error("the image of `{component}` says that it is for {found:?} (label `{label}`)")]
    WrongType { component: &'static str, found: String, label: &'static str },
}

/// Why nothing can be put at a place.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum Obstacle {
    /// A file would replace a directory, with all that is in it.
    #[error("there is a directory")]
    Directory,
    /// A directory, or one on the way, would replace something else.
    #[error(transparent)]
    Path(#[from] LookupError),
    /// The guest has something of its own there. `path` is where links lead.
    #[error("it is at {path}, and the guest has its own {reserved}")]
    Reserved { path: String, reserved: &'static str },
    /// Another file of the checkout is there.
    #[error("{file} is there")]
    File { file: String, span: Span },
    /// The agent's program is there.
    #[error("the agent's program is there")]
    Program { span: Span },
    /// The box has a file of its own there, which hides it.
    #[error("the box has its own file there")]
    System,
}

/// Why a program cannot be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrunnable {
    /// It lacks the permission.
    NotExecutable,
    /// Something else is in its place.
    NotAFile,
    /// Nothing is.
    Missing,
    /// The dynamic linker of a C library is not there.
    NoLoader(CLibrary),
    /// It is for another processor.
    OtherMachine,
    /// Linux does not start such a file.
    NotAProgram,
    /// The checkout of whoever built the image had no content for it.
    LfsPointer,
}

box_contract::named_enum! {
    /// A C library that programs are linked with.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CLibrary {
        /// That of most distributions.
        Gnu "the GNU C library",
        /// That of Alpine.
        Musl "musl",
    }
}

impl ComposeError {
    /// Returns the component whose image is to blame.
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
            | Self::WrongType { component, .. } => component,
        };
        ComponentName::of(name).unwrap_or(ComponentName::Agent)
    }

    /// Returns the place in the Boxfile that is to blame, where there is one.
    pub const fn span(&self) -> Option<Span> {
        match self {
            Self::Hidden { span, .. } | Self::UnknownUser { span, .. } => *span,
            Self::NoSuchProgram { span, .. } | Self::Unplaceable { span, .. } => Some(*span),
            _ => None,
        }
    }

    /// Returns a further place in the Boxfile that has to do with it.
    pub fn further_span(&self) -> Option<Span> {
        let Self::Unplaceable { obstacle, .. } = self else { return None };
        match **obstacle {
            Obstacle::File { span, .. } | Obstacle::Program { span } => Some(span),
            _ => None,
        }
    }
}

/// Names the component that an entry of a component's root is from, and says whether the entry is from
/// the checkout.
pub(super) const fn owner(inode: &Inode, component: ComponentName) -> (&'static str, bool) {
    match inode.origin {
        Origin::Layer(component, _) => (component.name(), false),
        Origin::File(_) => (component.name(), true),
        _ => (component.name(), false),
    }
}

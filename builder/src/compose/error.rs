//! Errors from composing images and declarations into a box.

use std::io;

use box_image::ComponentName;
use box_tree::{Inode, Origin};
use boxfile_spec::Span;

/// Errors from composing images and declarations into a box. A `component` is the one whose image is to blame.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ComposeError {
    /// Nothing says which program a component is that is started.
    #[error("the {component} image names no program")]
    NoProgram { component: &'static str },
    /// The image's config has something that a component cannot be started with; `found` begins with
    /// the noun: `config has …`.
    #[error("the {component} image's {found}")]
    Config { component: &'static str, found: String },
    /// The component's user is not in the image's /etc/passwd or /etc/group.
    #[error("the {component} component runs as {user:?}, but the image's {file} has no such name")]
    UnknownUser {
        component: &'static str,
        user: String,
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
        /// Where the Boxfile names the program, or the image that names it.
        span: Span,
    },
    /// A file of the image cannot be read.
    #[error("cannot read {file} of the {component} image")]
    Unreadable { component: &'static str, file: &'static str, source: io::Error },
    /// The image has something where a mount would hide it, or cannot be made.
    #[error("the {component} image has {found} at {path}, {mounted}")]
    Hidden {
        component: &'static str,
        path: String,
        found: String,
        /// The mount there, as the end of a sentence.
        mounted: String,
        /// Where the Boxfile names the path, if it does.
        span: Option<Span>,
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
            | Self::WrongType { component, .. } => component,
        };
        let named = |it: &ComponentName| it.name() == name;
        ComponentName::ALL.into_iter().find(named).unwrap_or(ComponentName::Agent)
    }

    /// Returns the place in the Boxfile that is to blame, where there is one.
    pub const fn span(&self) -> Option<Span> {
        match self {
            Self::Hidden { span, .. } | Self::UnknownUser { span, .. } => *span,
            Self::NoSuchProgram { span, .. } => Some(*span),
            _ => None,
        }
    }
}

/// Names the component whose image an entry of a component's root is from.
pub(super) const fn owner(inode: &Inode, component: ComponentName) -> &'static str {
    match inode.origin {
        Origin::Layer(component, _) => component.name(),
        _ => component.name(),
    }
}

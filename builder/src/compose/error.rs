//! Why images and declarations do not make a box.

use std::io;

use box_image::ComponentName;
use boxfile_spec::Span;

/// Why images and declarations do not make a box.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// Nothing says which program the agent is.
    #[error("the agent's image names no program")]
    NoProgram,
    /// The image's config has an environment entry without `=`.
    #[error("the {component} image's config has the environment entry {entry:?} without a `=`")]
    Environment {
        /// Whose.
        component: &'static str,
        /// The entry.
        entry: String,
    },
    /// The image's config has a string that no program can be given.
    #[error("the {component} image's config has {what}")]
    Process {
        /// Whose.
        component: &'static str,
        /// What it has.
        what: &'static str,
    },
    /// The component's user is not in the image's /etc/passwd or /etc/group.
    #[error("the {component} component runs as {user:?}, but the image's {file} has no such name")]
    UnknownUser {
        /// Whose.
        component: &'static str,
        /// The user as the config names it.
        user: String,
        /// The file that should have it.
        file: &'static str,
    },
    /// A file of the image cannot be read.
    #[error("cannot read {file} of the {component} image")]
    Unreadable {
        /// Whose.
        component: &'static str,
        /// The file.
        file: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The image has something at a path where the guest mounts something.
    #[error("the {component} image has {found} at {path}, where {mounted}")]
    MountPoint {
        /// Whose.
        component: &'static str,
        /// The path.
        path: &'static str,
        /// What is there.
        found: &'static str,
        /// What the guest mounts there.
        mounted: &'static str,
    },
    /// The working directory of an image is not absolute.
    #[error("the {component} image's working directory {path:?} is not absolute")]
    WorkingDirectory {
        /// Whose.
        component: &'static str,
        /// The directory.
        path: String,
    },
    /// Two images that are to have one root have two C libraries.
    #[error(
        "the images have two C libraries, agent ({agent}) and business ({business}), and one root \
         can have one: a program that is linked with the other one does not start, or fails later"
    )]
    Libc {
        /// That of the agent's image.
        agent: String,
        /// That of the business image.
        business: String,
    },
    /// Something would be mounted over what an image has.
    #[error("the {component} image has {found} at {path}, in the way of the {mount}")]
    Hidden {
        /// Whose image.
        component: &'static str,
        /// The path.
        path: String,
        /// What is there.
        found: String,
        /// The share or disk.
        mount: String,
        /// Where the Boxfile names the path.
        span: Span,
    },
    /// The image's label says that it is for another component.
    #[error("the image of `{component}` says that it is for {found:?} (label `{label}`)")]
    WrongType {
        /// Whose image.
        component: &'static str,
        /// What the label says.
        found: String,
        /// The label.
        label: &'static str,
    },
    /// A label of the image cannot be used.
    #[error("the {component} image's label `{label}` is {found:?}, which is {what}")]
    Label {
        /// Whose image.
        component: &'static str,
        /// The label.
        label: String,
        /// What it says.
        found: String,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl ComposeError {
    /// Returns the component whose image is to blame.
    pub fn component(&self) -> ComponentName {
        let name = match self {
            Self::NoProgram | Self::Libc { .. } => ComponentName::Agent.name(),
            Self::Environment { component, .. }
            | Self::Process { component, .. }
            | Self::UnknownUser { component, .. }
            | Self::Unreadable { component, .. }
            | Self::MountPoint { component, .. }
            | Self::WorkingDirectory { component, .. }
            | Self::Hidden { component, .. }
            | Self::WrongType { component, .. }
            | Self::Label { component, .. } => component,
        };
        let named = |it: &ComponentName| it.name() == name;
        ComponentName::ALL.into_iter().find(named).unwrap_or(ComponentName::Agent)
    }

    /// Returns the place in the Boxfile that is to blame, where there is one.
    pub const fn span(&self) -> Option<Span> {
        match self {
            Self::Hidden { span, .. } => Some(*span),
            _ => None,
        }
    }
}

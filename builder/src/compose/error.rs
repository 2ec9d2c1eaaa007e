//! Why images and declarations do not make a box.

use std::io;

/// Why images and declarations do not make a box.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// Nothing says which program the agent is.
    #[error(
        "the agent's image names no program; write `entrypoint \"/path/to/program\"` in `agent`"
    )]
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
    #[error("the {component} image's config has {what}; rebuild the image")]
    Process {
        /// Whose.
        component: &'static str,
        /// What it has.
        what: &'static str,
    },
    /// The image's user is not in its /etc/passwd or /etc/group.
    #[error(
        "the {component} image runs as {user:?}, but its {file} has no such name; \
         build the image with a numeric user"
    )]
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
    #[error(
        "the {component} image has {found} at {path}, where {mounted}; remove it from the image"
    )]
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
}

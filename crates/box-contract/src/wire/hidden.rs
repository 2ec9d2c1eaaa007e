//! The question which files of a box's image a running component does not see, because its programs have written other files at
//! their paths: [`Builtin::Hidden`](super::Builtin::Hidden).

use serde::{Deserialize, Serialize};

/// A regular file or a symbolic link of a component's image. The input of the command has one on each line, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFile {
    /// The absolute path in the component.
    pub path: String,
    /// The size in bytes. That of a symbolic link is the length of its target.
    pub size: u64,
    /// The modification time in seconds since 1970.
    pub mtime: i64,
}

/// The answer, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HiddenFiles {
    /// How many of the files the component does not see.
    pub count: u64,
    /// The paths of the first of them, at most [`MAX_HIDDEN`].
    pub paths: Vec<String>,
}

/// How many paths [`HiddenFiles`] has.
pub const MAX_HIDDEN: usize = 8;

impl HiddenFiles {
    /// Counts a further file.
    pub fn add(&mut self, path: String) {
        self.count += 1;
        if self.paths.len() < MAX_HIDDEN {
            self.paths.push(path);
        }
    }
}

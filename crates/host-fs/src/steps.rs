//! The components of a path, in order, including those of the links on the way.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path};

use rustix::io::Errno;

/// The maximum number of symbolic links, the same as Linux's
/// ([path_resolution(7)](https://man7.org/linux/man-pages/man7/path_resolution.7.html)).
pub(crate) const MAX_LINKS: usize = 40;

/// A step of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To `/`.
    Root,
    /// To the parent directory.
    Up,
    /// To the entry with this name.
    Name(OsString),
}

/// The remaining steps of a path.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The steps in reverse order: the next step is the last element.
    left: Vec<Step>,
    links: usize,
}

impl Steps {
    pub(crate) fn of(path: &Path) -> Self {
        let mut steps = Self { left: Vec::new(), links: 0 };
        steps.put(path);
        steps
    }

    /// Inserts the steps of a link's target before the remaining ones.
    ///
    /// # Errors
    /// If there were too many links.
    pub(crate) fn follow(&mut self, target: &Path) -> io::Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        self.put(target);
        Ok(())
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    fn put(&mut self, path: &Path) {
        let steps = path.components().rev().filter_map(|part| match part {
            Component::RootDir => Some(Step::Root),
            Component::ParentDir => Some(Step::Up),
            Component::Normal(name) => Some(Step::Name(name.to_owned())),
            Component::CurDir | Component::Prefix(_) => None,
        });
        self.left.extend(steps);
    }
}

impl Iterator for Steps {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.left.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_link_come_before_those_that_are_left() {
        let name = |it: &str| Step::Name(it.into());
        let mut steps = Steps::of(Path::new("./a/b/"));
        assert_eq!(steps.next(), Some(name("a")));
        steps.follow(Path::new("/c/..")).unwrap();
        assert!(!steps.is_empty());
        assert_eq!(steps.collect::<Vec<_>>(), [Step::Root, name("c"), Step::Up, name("b")]);
    }

    #[test]
    fn a_link_to_itself_has_an_end() {
        let mut steps = Steps::of(Path::new("a"));
        let endless = (0..=MAX_LINKS).find_map(|_| steps.follow(Path::new("a")).err());
        assert_eq!(endless.unwrap().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
    }
}

//! Reads the files of a skill.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use box_tree::{Content, Inode, InodeId, Leaf, Meta, Tree};
use host_fs::FileError;
use host_fs::read::{Links, ReadError, read_file};

use crate::{SKILL_MAX, Skill, SkillError};

/// Reads everything in the directory of a skill.
pub(crate) fn read(directory: &Path) -> Result<Skill, SkillError> {
    let skill = Skill { tree: Tree::default(), data: BTreeMap::new() };
    let mut reader = Reader { skill, root: directory, bytes: 0 };
    reader.directory(directory, Tree::ROOT)?;
    Ok(reader.skill)
}

struct Reader<'p> {
    skill: Skill,
    /// The directory of the skill.
    root: &'p Path,
    /// How many bytes were read.
    bytes: u64,
}

impl Reader<'_> {
    fn directory(&mut self, path: &Path, into: InodeId) -> Result<(), SkillError> {
        let failed = |error| FileError::of("read", path)(error);
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let inode = self.entry(&entry.path())?;
            if self.skill.tree.inode(inode).names().is_none_or(|names| !names.is_empty()) {
                self.skill.tree.link(into, entry.file_name().as_bytes(), inode);
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path) -> Result<InodeId, SkillError> {
        let failed = |error| FileError::of("read", path)(error);
        let metadata = fs::symlink_metadata(path).map_err(failed)?;
        if metadata.is_dir() {
            let inode = self.skill.tree.add(Inode::directory(Meta::root_owned(0o755)));
            self.directory(path, inode)?;
            return Ok(inode);
        }
        let (mode, leaf) = if metadata.is_symlink() {
            let target = fs::read_link(path).map_err(failed)?;
            (0o777, Leaf::Symlink(target.into_os_string().into_vec()))
        } else if metadata.is_file() {
            let data = match read_file(path, Links::Refuse, SKILL_MAX - self.bytes) {
                Ok(data) => data,
                Err(ReadError::TooLong { .. }) => {
                    return Err(SkillError::TooLarge(self.root.to_owned()));
                }
                Err(error) => return Err(FileError::of("read", path)(error).into()),
            };
            self.bytes += data.len() as u64;
            let content = Content::of(&data);
            self.skill.data.insert(content, data);
            let executable = metadata.permissions().mode() & 0o100 != 0;
            (if executable { 0o755 } else { 0o644 }, Leaf::File(content))
        } else {
            return Err(SkillError::Unusable(
                path.to_owned(),
                "is neither a file nor a directory nor a link",
            ));
        };
        Ok(self.skill.tree.add(Inode::leaf(Meta::root_owned(mode), leaf)))
    }
}

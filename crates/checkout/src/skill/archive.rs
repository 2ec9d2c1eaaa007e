//! Writes a skill as an archive, which a running box unpacks.

use std::io::{self, Write};

use box_copy::Archive;
use box_tree::{Kind, Leaf, Tree, entries};

use super::Skill;

/// The top-level directory of the archive. The box renames it when it unpacks the archive.
const TOP: &[u8] = b"skill";

impl Skill {
    /// Writes the same files that a box built with the skill contains.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn archive(&self, to: impl Write) -> io::Result<()> {
        let mut archive = Archive::new(to);
        archive.directory(TOP)?;
        // A directory precedes its contents.
        for (path, id) in entries(&self.files.tree).filter(|(_, id)| *id != Tree::ROOT) {
            let (inode, path) = (self.files.tree.inode(id), [TOP, &path].concat());
            match &inode.kind {
                Kind::Directory(_) => archive.directory(&path)?,
                Kind::Leaf(Leaf::Symlink(target)) => archive.link(&path, target)?,
                Kind::Leaf(Leaf::File(content)) => {
                    let data = self.files.data.get(content).map_or(&[][..], Vec::as_slice);
                    archive.file(&path, inode.meta.mode.into(), data)?;
                }
                // A checkout's tree has no other kinds of entries.
                Kind::Leaf(_) => {}
            }
        }
        archive.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use box_copy::{Author, CopyEnd, by_path, unpack};

    #[test]
    fn what_is_unpacked_is_the_same_skill() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| from.path().join(name);
        fs::create_dir_all(at("tools/deep")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        fs::write(at("SKILL.md"), "text").unwrap();
        fs::write(at("tools/deep/run"), vec![7; 1000]).unwrap();
        fs::write(at("none"), "").unwrap();
        fs::set_permissions(at("tools/deep/run"), fs::Permissions::from_mode(0o4711)).unwrap();
        symlink("tools/deep/run", at("run")).unwrap();
        let read = |path: &Path| {
            crate::skill::read(&path.into(), path, &mut crate::files::MemoryBudget::default())
                .unwrap()
        };
        let (skill, mut archive) = (read(from.path()), Vec::new());
        skill.archive(&mut archive).unwrap();
        let unpacked = to.path().join("notes");
        let place = CopyEnd::destination(&unpacked, by_path).unwrap();
        unpack(archive.as_slice(), place, Author::User).unwrap();
        assert!(!unpacked.join("empty").exists());
        assert_eq!(read(&unpacked).files.tree.digest(), skill.files.tree.digest());
    }
}

//! The files of loaded skills.
//!
//! ```text
//! skills/NAME   a skill: loaded, or one that the box has from its start
//! about/NAME    the description of a loaded skill, from the host; the other skills have none
//! draft/        a skill that is being unpacked or removed
//! ```

use std::ffi::OsString;
use std::fs::{self, DirBuilder, create_dir, remove_dir_all, remove_file, rename};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use box_contract::SkillPlan;
use box_contract::plan::SKILL_DEFINITION;
use box_contract::rules::{MAX_LOADED_SKILLS, is_name};
use box_copy::{Author, CopyEnd, by_path, unpack};

use crate::sys;

/// The name of a description until it is moved to `about`. No skill has this name.
const ABOUT_DRAFT: &str = ".about";

/// The directory of all files of loaded skills.
#[derive(Debug)]
pub(super) struct Store<'a>(&'a Path);

impl<'a> Store<'a> {
    /// Opens an existing store.
    pub(super) const fn new(base: &'a Path) -> Self {
        Self(base)
    }

    /// Makes a store in a directory that contains the skills of the box.
    ///
    /// # Errors
    /// The error of the file system.
    pub(super) fn make(base: &'a Path) -> io::Result<Self> {
        let store = Self(base);
        create_dir(store.at("about", ""))?;
        create_dir(store.at("draft", ""))?;
        Ok(store)
    }

    /// Returns the directory with all skills.
    pub(super) fn skills(&self) -> PathBuf {
        self.0.join("skills")
    }

    /// Makes the directory over which a skill of the host is mounted.
    ///
    /// # Errors
    /// The error of the file system.
    pub(super) fn make_mount_point(&self, name: &str) -> io::Result<()> {
        DirBuilder::new().mode(0o755).create(self.at("skills", name))
    }

    fn at(&self, directory: &str, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(directory).join(name)
    }

    /// Loads a skill atomically. Replaces a loaded skill with the same name.
    ///
    /// # Errors
    /// The archive is invalid, the file system fails, or the box has the skill from its start. The loaded skills
    /// are unchanged then.
    pub(super) fn load(&self, plan: &SkillPlan, archive: impl Read) -> io::Result<()> {
        if !plan.is_sound() {
            return Err(refused("the host has sent something else than a skill"));
        }
        self.remove_orphaned_descriptions()?;
        let is_known = self.is_loaded(&plan.name);
        if !is_known && self.at("skills", &plan.name).exists() {
            return Err(refused("the box has this skill from its start"));
        }
        if !is_known && self.names()?.len() >= MAX_LOADED_SKILLS {
            return Err(refused("the box has the maximum number of skills; unload one"));
        }
        self.clear()?;
        let placed = self.unpack(plan, archive).and_then(|()| self.place(&plan.name));
        let cleared = self.clear();
        placed.and(cleared)
    }

    fn unpack(&self, plan: &SkillPlan, archive: impl Read) -> io::Result<()> {
        let draft = self.at("draft", &plan.name);
        let output = |error: Error| {
            // The host must not see this path.
            let text = error.to_string().replace(&format!("{}/", draft.display()), "");
            Error::new(error.kind(), text)
        };
        let unpacked =
            CopyEnd::destination(&draft, by_path).and_then(|to| unpack(archive, to, Author::User));
        unpacked.map_err(output)?;
        if !fs::symlink_metadata(draft.join(SKILL_DEFINITION)).is_ok_and(|it| it.is_file()) {
            return Err(refused("the host has sent a skill without its definition"));
        }
        fs::write(self.at("draft", ABOUT_DRAFT), serde_json::to_vec(plan)?)
    }

    /// Moves a draft to its final path. Moves the description first, because a skill without a description is treated
    /// as one that the box has from its start.
    fn place(&self, name: &str) -> io::Result<()> {
        let (draft, skill) = (self.at("draft", name), self.at("skills", name));
        rename(self.at("draft", ABOUT_DRAFT), self.at("about", name))?;
        if skill.exists() {
            sys::exchange(&draft, &skill).map_err(Error::from)
        } else {
            rename(draft, skill)
        }
    }

    /// Unloads a skill atomically.
    ///
    /// # Errors
    /// The file system fails, or no such skill is loaded.
    pub(super) fn unload(&self, name: &str) -> io::Result<()> {
        if !is_name(name) || !self.is_loaded(name) {
            return Err(refused("no such skill is loaded"));
        }
        self.clear()?;
        rename(self.at("skills", name), self.at("draft", name))?;
        remove_file(self.at("about", name))?;
        self.clear()
    }

    /// Writes the descriptions of all loaded skills, unordered.
    ///
    /// # Errors
    /// The error of the file system or of the writer.
    pub(super) fn list(&self, mut to: impl Write) -> io::Result<()> {
        for name in self.names()? {
            if self.is_loaded(&name) {
                to.write_all(&fs::read(self.at("about", &name))?)?;
                to.write_all(b"\n")?;
            }
        }
        to.flush()
    }

    /// Removes all drafts, such as the unfinished files of a task that was killed.
    ///
    /// # Errors
    /// The error of the file system.
    pub(super) fn clear(&self) -> io::Result<()> {
        let draft = self.at("draft", "");
        match remove_dir_all(&draft) {
            // A task was killed after it had removed the directory and before it made it again.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed?,
        }
        create_dir(draft)
    }

    /// Removes descriptions whose skill does not exist. Such a description is left if a task is killed while it loads
    /// or unloads a skill.
    fn remove_orphaned_descriptions(&self) -> io::Result<()> {
        for name in self.names()?.iter().filter(|name| !self.is_loaded(name)) {
            remove_file(self.at("about", name))?;
        }
        Ok(())
    }

    fn is_loaded(&self, name: impl AsRef<Path>) -> bool {
        self.at("about", &name).exists() && self.at("skills", &name).exists()
    }

    /// Returns the names of all descriptions, unordered.
    fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(self.at("about", ""))?.map(|entry| Ok(entry?.file_name())).collect()
    }
}

fn refused(reason: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, read_to_string, write};

    use super::*;

    /// Makes a store next to the skill `baked`.
    fn base(name: &str) -> PathBuf {
        let base = empty(name);
        create_dir_all(base.join("skills/baked")).unwrap();
        Store::make(&base).unwrap();
        base
    }

    fn empty(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("box-init-{name}-{}", std::process::id()));
        drop(remove_dir_all(&path));
        create_dir_all(&path).unwrap();
        path
    }

    fn plan(name: &str) -> SkillPlan {
        SkillPlan { name: name.to_owned(), version: Some("1".to_owned()), ..SkillPlan::default() }
    }

    /// Returns the archive of a skill with this definition.
    fn archive(name: &str, definition: &str) -> Vec<u8> {
        let directory = empty(&format!("{name}-archive"));
        write(directory.join(SKILL_DEFINITION), definition).unwrap();
        let archive = packed(&directory);
        remove_dir_all(directory).unwrap();
        archive
    }

    fn packed(path: &Path) -> Vec<u8> {
        let mut archive = Vec::new();
        box_copy::pack(&CopyEnd::source(path, by_path).unwrap(), &mut archive).unwrap();
        archive
    }

    fn listed(store: &Store<'_>) -> String {
        let mut text = Vec::new();
        store.list(&mut text).unwrap();
        let mut lines: Vec<_> = text.split_inclusive(|it| *it == b'\n').collect();
        lines.sort_unstable();
        String::from_utf8(lines.concat()).unwrap()
    }

    #[test]
    fn a_skill_of_the_host_is_neither_replaced_nor_unloaded() {
        let base = base("host");
        let store = Store::new(&base);
        store.make_mount_point("notes").unwrap();
        let error = store.load(&plan("notes"), archive("host", "").as_slice()).unwrap_err();
        assert_eq!(error.to_string(), "the box has this skill from its start");
        let error = store.unload("notes").unwrap_err();
        assert_eq!(error.to_string(), "no such skill is loaded");
        assert_eq!(listed(&store), "");
        remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_skill_is_loaded_replaced_and_unloaded() {
        let base = base("loaded");
        let store = Store::new(&base);
        let definition = base.join("skills/notes").join(SKILL_DEFINITION);
        for text in ["one", "two"] {
            store.load(&plan("notes"), archive("loaded", text).as_slice()).unwrap();
            assert_eq!(read_to_string(&definition).unwrap(), text);
        }
        store.load(&plan("a"), archive("loaded", "").as_slice()).unwrap();
        let names =
            ["a", "notes"].map(|name| format!("{{\"name\":\"{name}\",\"version\":\"1\"}}\n"));
        assert_eq!(listed(&store), names.concat());
        store.unload("notes").unwrap();
        assert_eq!(listed(&store), names[0]);
        assert!(!definition.exists() && fs::read_dir(base.join("draft")).unwrap().next().is_none());
        let error = store.unload("notes").unwrap_err().to_string();
        assert_eq!(error, "no such skill is loaded");
        remove_dir_all(base).unwrap();
    }

    #[test]
    fn what_is_part_of_the_box_and_what_is_no_skill_stays_out() {
        let base = base("refused");
        let store = Store::new(&base);
        let refused =
            |name: &str, archive: &[u8]| store.load(&plan(name), archive).unwrap_err().to_string();
        assert_eq!(
            refused("baked", &archive("refused", "")),
            "the box has this skill from its start"
        );
        assert_eq!(store.unload("baked").unwrap_err().to_string(), "no such skill is loaded");
        for name in ["", ".", "..", "a/b", ".about", "../skills/baked"] {
            assert_eq!(
                refused(name, &archive("refused", "")),
                "the host has sent something else than a skill"
            );
            assert!(store.unload(name).is_err());
        }
        let other = packed(&base.join("about"));
        assert_eq!(refused("notes", &other), "the host has sent a skill without its definition");
        let whole = archive("refused", "text");
        assert!(
            refused("notes", &whole[..700]).contains("ends"),
            "{}",
            refused("notes", &whole[..700])
        );
        assert_eq!(listed(&store), "");
        assert!(!base.join("skills/notes").exists());
        remove_dir_all(base).unwrap();
    }

    #[test]
    fn so_many_are_loaded() {
        let base = base("many");
        let store = Store::new(&base);
        for number in 0..MAX_LOADED_SKILLS {
            store.load(&plan(&format!("a{number}")), archive("many", "").as_slice()).unwrap();
        }
        assert!(store.load(&plan("b"), archive("many", "").as_slice()).is_err());
        store.load(&plan("a0"), archive("many", "again").as_slice()).unwrap();
        remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_task_that_was_ended_halfway_is_in_nobodys_way() {
        let base = base("halfway");
        let store = Store::new(&base);
        let load = |name: &str| store.load(&plan(name), archive("halfway", "").as_slice());
        for number in 0..MAX_LOADED_SKILLS {
            load(&format!("a{number}")).unwrap();
        }
        // A task was killed while it unloaded a skill and cleared the drafts.
        remove_dir_all(base.join("skills/a0")).unwrap();
        remove_dir_all(base.join("draft")).unwrap();
        assert_eq!(listed(&store).lines().count(), MAX_LOADED_SKILLS - 1);
        assert_eq!(store.unload("a0").unwrap_err().to_string(), "no such skill is loaded");
        load("b").unwrap();
        assert_eq!(listed(&store).lines().count(), MAX_LOADED_SKILLS);
        assert!(load("c").is_err());
        remove_dir_all(base.join("draft")).unwrap();
        store.unload("b").unwrap();
        load("a0").unwrap();
        remove_dir_all(base).unwrap();
    }
}

//! Skills: directories of a checkout that contain a `SKILL.md`.

mod archive;
mod check;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::files::{Files, FilesError, MemoryBudget, open_directory};
use box_contract::SkillPlan;
use box_contract::plan::SKILL_DEFINITION;
use box_contract::rules::{MAX_SKILLS, NAME_FORM, is_name};
use box_tree::Tree;
use host_fs::FileError;
use host_fs::checkout::Bounds;

pub use check::Findings;

/// The reason for refusing a directory that is not a skill.
const NO_DEFINITION: &str = "has no regular file SKILL.md";

/// A skill, read into memory.
#[derive(Debug)]
pub struct Skill {
    /// The skill's files.
    pub files: Files,
    /// The recorded values of the definition: a plan without the skill's name.
    pub about: SkillPlan,
}

/// Why a skill cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum SkillError {
    /// The directory's name is not a valid skill name.
    #[error("the directory {} cannot name a skill: {NAME_FORM}", .0.display())]
    Name(PathBuf),
    /// The skill is incomplete. The text completes a sentence that begins with the path.
    #[error("{} {}", .0.display(), .1)]
    Unusable(PathBuf, &'static str),
    /// The box would have too many skills together with the skills of a directory.
    #[error("with those in {}, the box has more than {MAX_SKILLS} skills", .0.display())]
    TooMany(PathBuf),
    /// The skill's files cannot be read.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A file cannot be read, or is not text.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Returns whether a directory is a skill: it contains a regular file `SKILL.md`.
pub fn is_skill(directory: &Path) -> bool {
    fs::symlink_metadata(directory.join(SKILL_DEFINITION)).is_ok_and(|it| it.is_file())
}

/// Returns the names of the skills in a directory of a checkout, which are its subdirectories with a `SKILL.md`. A
/// `SKILL.md` that is not a regular file is refused later by [`read`].
///
/// # Errors
/// Returns [`SkillError`] if the directory cannot be read, has no skill, or has a skill with an invalid name.
pub fn list(checkout: &Bounds, directory: &Path) -> Result<Vec<String>, SkillError> {
    let open = open_directory(checkout, directory)?;
    let failed = |error| FileError::of("read", directory)(error);
    let mut names = Vec::new();
    for name in open.names().map_err(failed)? {
        let name = name.map_err(failed)?;
        if open.has(&Path::new(&name).join(SKILL_DEFINITION)) {
            let path = directory.join(name);
            names.push(name_of(&path).ok_or(SkillError::Name(path))?);
        }
        if names.len() > MAX_SKILLS {
            return Err(SkillError::TooMany(directory.to_owned()));
        }
    }
    if names.is_empty() {
        let reason = "has no directory with a SKILL.md in it";
        return Err(SkillError::Unusable(directory.to_owned(), reason));
    }
    Ok(names)
}

/// Returns the name of a skill's directory, if it is a valid skill name. The directory may be given as `.`.
pub fn name_of(directory: &Path) -> Option<String> {
    let own = |path: &Path| path.file_name().and_then(OsStr::to_str).map(str::to_owned);
    let name = own(directory).or_else(|| own(&directory.canonicalize().ok()?))?;
    is_name(&name).then_some(name)
}

/// Reads the skill in a directory of a checkout.
///
/// # Errors
/// Returns [`SkillError`] if the directory is not a complete and readable skill.
pub fn read(
    checkout: &Bounds,
    directory: &Path,
    together: &mut MemoryBudget,
) -> Result<Skill, SkillError> {
    let files = crate::files::directory(checkout, directory, together)?;
    let skill = Skill { files, about: SkillPlan::default() };
    match skill.definition() {
        Some(_) => Ok(skill),
        None => Err(SkillError::Unusable(directory.to_owned(), NO_DEFINITION)),
    }
}

impl Skill {
    /// Returns the skill's plan with the name `name`.
    pub fn plan(&self, name: String) -> SkillPlan {
        SkillPlan { name, ..self.about.clone() }
    }

    /// Returns the bytes of the definition. It must be a regular file, not a link.
    fn definition(&self) -> Option<&Vec<u8>> {
        let id = self.files.tree.child(Tree::ROOT, SKILL_DEFINITION.as_bytes())?;
        self.files.data.get(self.files.tree.inode(id).content()?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_what_a_checkout_keeps_makes_a_difference() {
        let make = |mode: u32| {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("tools")).unwrap();
            if mode & 1 != 0 {
                fs::create_dir(dir.path().join("empty")).unwrap();
            }
            fs::write(dir.path().join("SKILL.md"), "# skill").unwrap();
            fs::write(dir.path().join("tools/run.sh"), "#!/bin/sh").unwrap();
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(dir.path().join("tools/run.sh"), permissions).unwrap();
            symlink("tools/run.sh", dir.path().join("run")).unwrap();
            let mut together = MemoryBudget::default();
            read(&dir.path().into(), dir.path(), &mut together).unwrap().files.tree.digest()
        };
        assert_eq!(make(0o700), make(0o755));
        assert_ne!(make(0o700), make(0o600));
    }

    #[test]
    fn a_directory_without_a_definition_is_no_skill() {
        let dir = tempfile::tempdir().unwrap();
        let read = |path: &Path| read(&dir.path().into(), path, &mut MemoryBudget::default());
        assert!(matches!(read(dir.path()), Err(SkillError::Unusable(_, NO_DEFINITION))));
        let missing = dir.path().join("none");
        assert!(matches!(read(&missing), Err(SkillError::Files(FilesError::NotADirectory(_)))));
        fs::write(dir.path().join("other.md"), "").unwrap();
        symlink("other.md", dir.path().join(SKILL_DEFINITION)).unwrap();
        assert!(matches!(read(dir.path()), Err(SkillError::Unusable(_, NO_DEFINITION))));
        assert!(!is_skill(dir.path()));
        let link = dir.path().join("link");
        symlink("/usr", &link).unwrap();
        assert!(matches!(read(&link), Err(SkillError::Files(FilesError::Outside(_)))));
    }

    #[test]
    fn the_name_of_a_directory_does_not_depend_on_how_it_is_given() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("notes/tools")).unwrap();
        for given in ["notes", "notes/.", "notes/tools/..", "none/notes"] {
            assert_eq!(name_of(&dir.path().join(given)).as_deref(), Some("notes"), "{given}");
        }
        for given in ["Notes", "a_b", "none/.."] {
            assert_eq!(name_of(&dir.path().join(given)), None, "{given}");
        }
        assert_eq!(name_of(Path::new("/")), None);
    }

    #[test]
    fn the_skills_of_a_directory_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let list = || list(&dir.path().into(), dir.path());
        assert!(matches!(list(), Err(SkillError::Unusable(..))));
        for name in ["greet", "notes"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("greet").join(SKILL_DEFINITION), "").unwrap();
        assert_eq!(list().unwrap(), ["greet"]);
        fs::rename(dir.path().join("greet"), dir.path().join("Greet")).unwrap();
        assert!(matches!(list(), Err(SkillError::Name(_))));
    }
}

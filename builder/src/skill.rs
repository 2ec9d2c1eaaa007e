//! Skills: directories of the checkout that are baked into the box.
//!
//! Only what a checkout keeps is taken: names, contents, symbolic links and whether a file is
//! executable. Owners, times and the rest of the permissions are the same for everybody, and a
//! directory with nothing in it does not count.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use box_tree::{Content, Inode, InodeId, Leaf, Meta, Tree};
use boxfile_spec::skill_md::{self, SkillManifest};
use boxfile_spec::{Diagnostic, NAME_FORM, Source, Sources, Span, Spanned};
use host_fs::read::{Links, ReadError, read_file};
use host_fs::{FileError, checkout};

use crate::Report;

/// The most bytes that one skill may have. It is read into memory.
const SKILL_MAX: u64 = 64 << 20;
/// The file that makes a directory a skill, which is regular and not a link.
pub(crate) const DEFINITION: &str = "SKILL.md";

/// The reason for refusing a directory that is not a skill.
const NO_DEFINITION: &str = "has no regular file SKILL.md";

/// A skill as it was read.
#[derive(Debug)]
pub struct Skill {
    /// Its files.
    pub tree: Tree,
    /// The data of its files, by content.
    pub data: BTreeMap<Content, Vec<u8>>,
}

/// Why a skill cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum SkillError {
    /// The path leads out of the checkout, through a symbolic link.
    #[error("{} leads out of the checkout", .0.display())]
    Outside(PathBuf),
    /// The directory's name cannot be that of a skill.
    #[error("the directory {} cannot name a skill: {NAME_FORM}", .0.display())]
    Name(PathBuf),
    /// It lacks something, or has something that a skill cannot have: the end of a sentence.
    #[error("{} {}", .0.display(), .1)]
    Unusable(PathBuf, &'static str),
    /// Its definition is refused.
    #[error("its SKILL.md is refused")]
    Rejected(Box<Report>),
    /// The files are too large to be a skill.
    #[error("{} has more than {} MiB", .0.display(), SKILL_MAX >> 20)]
    TooLarge(PathBuf),
    /// A file cannot be read, or is not a text.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Returns whether a directory is a skill.
pub fn is_skill(directory: &Path) -> bool {
    fs::symlink_metadata(directory.join(DEFINITION)).is_ok_and(|it| it.is_file())
}

/// Reads the skill in a directory of a checkout.
///
/// # Errors
/// [`SkillError`].
pub fn read(checkout: &Path, directory: &Path) -> Result<Skill, SkillError> {
    if !directory.is_dir() {
        return Err(SkillError::Unusable(directory.to_owned(), "is not a directory"));
    }
    inside(checkout, directory)?;
    let skill = Skill { tree: Tree::default(), data: BTreeMap::new() };
    let mut reader = Reader { skill, root: directory, bytes: 0 };
    reader.directory(directory, Tree::ROOT)?;
    if reader.skill.definition().is_none() {
        return Err(SkillError::Unusable(directory.to_owned(), NO_DEFINITION));
    }
    Ok(reader.skill)
}

/// Checks that a directory lies in the checkout, also when symbolic links are followed.
pub(crate) fn inside(checkout: &Path, directory: &Path) -> Result<(), SkillError> {
    let inside = checkout::inside(checkout, directory).map_err(FileError::of("read", directory))?;
    inside.map(drop).ok_or_else(|| SkillError::Outside(directory.to_owned()))
}

/// Checks a skill's definition, and makes the scripts that it names executable.
///
/// `tools` are the built-in tools that the agent may see; nothing if all are visible. Returns what
/// is worth a look.
///
/// # Errors
/// [`SkillError::Rejected`] where the definition is wrong or names what is not there.
pub(crate) fn check(
    skill: &mut Skill,
    name: &str,
    directory: &Path,
    tools: Option<&[String]>,
) -> Result<Option<Report>, SkillError> {
    let path = directory.join(DEFINITION);
    let bytes = skill
        .definition()
        .ok_or_else(|| SkillError::Unusable(directory.to_owned(), NO_DEFINITION))?;
    let text = host_fs::read::text(&path, bytes.clone())?;
    let parsed = skill_md::parse(&text, name);
    let mut errors = Vec::new();
    match parsed.manifest {
        Err(found) => errors.extend(found),
        Ok(manifest) => {
            errors = unavailable(&manifest, tools);
            for file in &manifest.files {
                match skill.file(&file.path) {
                    Some(id) if file.executable => skill.tree.inode_mut(id).meta.mode |= 0o111,
                    Some(_) => {}
                    None => errors.push(lacking(&file.path, file.span)),
                }
            }
        }
    }
    let refused = !errors.is_empty();
    let sources = Sources::single(Source::new(path.display().to_string(), text));
    match Report::new(sources, errors.into_iter().chain(parsed.warnings)) {
        Some(report) if refused => Err(SkillError::Rejected(Box::new(report))),
        report => Ok(report),
    }
}

fn lacking(path: &str, span: Span) -> Diagnostic {
    Diagnostic::new(format!("the skill has no file `{path}`"), span, "named here")
        .with_help("add it to the skill's directory, or correct the path, which is relative to it")
}

/// Names the tools that a skill requires and the agent may not see.
fn unavailable(manifest: &SkillManifest, tools: Option<&[String]>) -> Vec<Diagnostic> {
    let Some(tools) = tools else { return Vec::new() };
    let hidden = |tool: &&Spanned<&'static str>| !tools.iter().any(|it| it == tool.value);
    let error = |tool: &Spanned<&'static str>| {
        let name = tool.value;
        Diagnostic::new(
            format!("the skill requires `{name}`, which the agent may not see"),
            tool.span,
            "required here",
        )
        .with_help(format!("add \"{name}\" to the agent's `tools`, or remove it here"))
    };
    manifest.requires.iter().filter(hidden).map(error).collect()
}

struct Reader<'p> {
    skill: Skill,
    /// The directory of the skill.
    root: &'p Path,
    /// How many bytes were read.
    bytes: u64,
}

impl Skill {
    /// Returns the bytes of all its files; of equal ones, once.
    pub fn size(&self) -> u64 {
        self.data.values().map(|data| data.len() as u64).sum()
    }

    /// Returns the bytes of the definition, which is a file and not a link to one.
    fn definition(&self) -> Option<&Vec<u8>> {
        let id = self.tree.child(Tree::ROOT, DEFINITION.as_bytes())?;
        self.data.get(self.tree.inode(id).content()?)
    }

    /// Returns the file at a path, also through links within the skill.
    fn file(&self, path: &str) -> Option<InodeId> {
        self.tree.lookup(path.as_bytes()).filter(|id| self.tree.inode(*id).content().is_some())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_checkout_keeps_counts() {
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
            std::os::unix::fs::symlink("tools/run.sh", dir.path().join("run")).unwrap();
            read(dir.path(), dir.path()).unwrap().tree.digest()
        };
        assert_eq!(make(0o700), make(0o755));
        assert_ne!(make(0o700), make(0o600));
    }

    #[test]
    fn a_directory_without_a_definition_is_no_skill() {
        let dir = tempfile::tempdir().unwrap();
        let read = |path: &Path| read(dir.path(), path);
        assert!(matches!(read(dir.path()), Err(SkillError::Unusable(..))));
        assert!(matches!(read(&dir.path().join("none")), Err(SkillError::Unusable(..))));
        fs::write(dir.path().join("other.md"), "").unwrap();
        std::os::unix::fs::symlink("other.md", dir.path().join(DEFINITION)).unwrap();
        assert!(matches!(read(dir.path()), Err(SkillError::Unusable(_, NO_DEFINITION))));
        assert!(!is_skill(dir.path()));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/usr", &link).unwrap();
        assert!(matches!(read(&link), Err(SkillError::Outside(_))));
    }
}

//! The git repository of a project: what is protected in it, and where it is if it is not in the project.
//!
//! git starts the programs of `hooks` and of some settings in `config`
//! ([githooks(5)](https://git-scm.com/docs/githooks), [git-config(1)](https://git-scm.com/docs/git-config)) as the user of the
//! repository, so a box that writes to them runs programs on the host. git writes to other files, such as `logs/HEAD`, and follows
//! links there, so a box that makes links writes to files of the host. The form of a repository is described by
//! [gitrepository-layout(5)](https://git-scm.com/docs/gitrepository-layout).

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

pub(super) use host_fs::checkout::is_git;
use host_fs::read::{Links, read_file};

use super::special::{Special, check_special};

/// The entry of a project that is its repository, or a file with the path of it.
pub(super) const GIT: &str = ".git";
/// The directory of hooks.
pub(super) const HOOKS: &str = "hooks";
/// The names in a repository that let git start programs, or lead it to another repository.
pub(super) const KEPT: [&str; 5] = [HOOKS, CONFIG, CONFIG_OF_WORKTREE, COMMON, "gitdir"];
const CONFIG: &str = "config";
const CONFIG_OF_WORKTREE: &str = "config.worktree";
/// The file with the path of the repository that has the hooks and the `config` of a worktree.
pub(super) const COMMON: &str = "commondir";
/// The content of that file that leads nowhere else. Without the slash, libgit2 finds no repository.
pub(super) const OWN: &str = "./";
/// The directories of a repository whose entries have the names of branches and objects.
const NAMED: [&str; 3] = ["refs", "logs", "objects"];
/// Any of these makes a directory a repository that a box may have damaged, or may complete.
const PARTS: [&str; 4] = ["HEAD", "objects", HOOKS, CONFIG];
/// The setting that makes git read `config.worktree`.
const WORKTREE_CONFIG: &[u8] = b"worktreeconfig";
/// The repositories of submodules in a repository.
const MODULES: &str = "modules";
/// How many directories are looked through for repositories of submodules.
const MAX_DIRECTORIES: usize = 4096;
/// How many repositories a project may have.
const MAX_REPOSITORIES: usize = 256;
/// The greatest size of a file of git that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Why the repository of a project cannot be shown to a box.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// A file or a directory of the repository cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file or the directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A link, symbolic or hard, would lead to what a box must not change.
    #[error("{} is a link, so a box could change what git starts", .0.display())]
    Link(PathBuf),
    /// A repository that is no worktree leads to another one.
    #[error("{} leads to another repository", .0.display())]
    Elsewhere(PathBuf),
    /// The project names a repository that does not name the project, so a box may have written that name.
    #[error("{} leads to {}, which is no repository of this project", file.display(), to.display())]
    Foreign {
        /// The file in the project.
        file: PathBuf,
        /// The path in the file.
        to: PathBuf,
    },
    /// The project has too many repositories of submodules.
    #[error("{} has more than {MAX_REPOSITORIES} submodules", .0.display())]
    TooMany(PathBuf),
    /// The repository, which is not in the project, contains the project.
    #[error("{} contains the project, so a box could write to all of it", .0.display())]
    Around(PathBuf),
    /// An index has an entry that is not one of the files of the project, so git would write to it.
    #[error("{} has the entry {entry}, which is no file of the project", path.display())]
    Index {
        /// The path of the index.
        path: PathBuf,
        /// The path of the entry, as a word for a shell.
        entry: String,
    },
    /// Something in the repository is neither a file nor a directory, so git would follow it, or wait for it.
    #[error("{} is {kind}", path.display())]
    Special {
        /// The path of the entry.
        path: PathBuf,
        /// The kind of the entry.
        kind: Special,
    },
}

/// What a box may not do in a directory, as paths relative to the directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected {
    /// The files and directories that a box may only read.
    pub kept: Vec<PathBuf>,
    /// The directories in which a box may make only files and directories. An empty path is the directory itself.
    pub guarded: Vec<PathBuf>,
}

/// The repository of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The directory of the repository, if it is not in the project, which is a worktree or a submodule.
    pub outside: Option<(PathBuf, Protected)>,
    /// What is protected in the project.
    pub inside: Protected,
}

impl Repository {
    /// Finds the repository of the project at `project`, a path without links. `None` if the project has none. Makes what
    /// is missing of the files and directories that a box may only read, so that the box cannot make them.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn of(project: &Path) -> Result<Option<Self>, GitError> {
        let place = project.join(GIT);
        match kind(&place)? {
            Kind::Absent => Ok(None),
            Kind::Directory => {
                let mut inside = protected(project, Path::new(GIT))?;
                inside.kept.extend(checkouts(project, &inside.kept)?);
                Ok(Some(Self { outside: None, inside }))
            }
            Kind::File => {
                let outside = outside(project, &place)?;
                if project.starts_with(&outside) {
                    return Err(GitError::Around(outside));
                }
                let own = PathBuf::from(GIT);
                // The repository of a submodule's checkout may be in the project.
                if let Ok(inner) = outside.strip_prefix(project) {
                    let mut inside = protected(project, inner)?;
                    inside.kept.push(own);
                    return Ok(Some(Self { outside: None, inside }));
                }
                let of_outside = protected(&outside, Path::new(""))?;
                let inside = Protected { kept: vec![own], guarded: Vec::new() };
                Ok(Some(Self { outside: Some((outside, of_outside)), inside }))
            }
            Kind::Link => Err(GitError::Link(place)),
        }
    }

    /// Returns the directory of the repository, if it is not in the project, as [`Self::of`] finds it, and makes nothing. `None` also
    /// if it does not name the project.
    pub fn outside_of(project: &Path) -> Option<PathBuf> {
        let place = project.join(GIT);
        let outside =
            matches!(kind(&place), Ok(Kind::File)).then(|| outside(project, &place).ok())?;
        outside.filter(|it| !it.starts_with(project))
    }
}

/// What is at a path.
enum Kind {
    Absent,
    Directory,
    File,
    Link,
}

fn kind(path: &Path) -> Result<Kind, GitError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(Kind::Directory),
        Ok(found) if found.is_symlink() => Ok(Kind::Link),
        Ok(_) => Ok(Kind::File),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kind::Absent),
        Err(source) => Err(GitError::File { path: path.to_owned(), source }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, GitError> {
    let read = read_file(path, Links::Refuse, MAX_FILE);
    read.map_err(|error| GitError::File { path: path.to_owned(), source: error.into() })
}

/// Returns the path in the text of a file of git, after `prefix`. It is empty if the text has another form.
pub(super) fn target<'a>(text: &'a [u8], prefix: &[u8]) -> &'a Path {
    let path = text.strip_prefix(prefix).unwrap_or_default().trim_ascii_start();
    let end = path.iter().rposition(|it| !matches!(it, b'\n' | b'\r')).map_or(0, |it| it + 1);
    Path::new(OsStr::from_bytes(&path[..end]))
}

/// Returns the path in a file of git, after `prefix`. A relative path begins at the directory of the file.
fn path_in(file: &Path, prefix: &str) -> Result<PathBuf, GitError> {
    let text = read(file)?;
    let path = file.parent().unwrap_or(file).join(target(&text, prefix.as_bytes()));
    path.canonicalize().map_err(|source| GitError::File { path, source })
}

/// Returns the repository that the file `.git` of a project names, `place`: the common directory of a worktree, or the repository of
/// a submodule. A box can write to the file, so the repository must name the project, too.
fn outside(project: &Path, place: &Path) -> Result<PathBuf, GitError> {
    let own = path_in(place, "gitdir:")?;
    let foreign = || GitError::Foreign { file: place.to_owned(), to: own.clone() };
    let common = own.join(COMMON);
    if matches!(kind(&common)?, Kind::Absent) || read(&common)? == OWN.as_bytes() {
        let is_own = is_repository(&own) && worktree_of(&own)?.as_deref() == Some(project);
        return if is_own { Ok(own) } else { Err(foreign()) };
    }
    let (back, common) = (path_in(&own.join("gitdir"), "")?, path_in(&common, "")?);
    let is_own = back == place && own.parent() == Some(&common.join("worktrees"));
    if is_own && is_repository(&common) { Ok(common) } else { Err(foreign()) }
}

/// Returns the project that the repository of a submodule names: `worktree = PATH` in its `config`.
fn worktree_of(repository: &Path) -> Result<Option<PathBuf>, GitError> {
    let config = repository.join(CONFIG);
    if matches!(kind(&config)?, Kind::Absent) {
        return Ok(None);
    }
    let config = String::from_utf8_lossy(&read(&config)?).into_owned();
    let value = config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "worktree").then(|| value.trim().trim_matches('"').to_owned())
    });
    Ok(value.and_then(|it| repository.join(it).canonicalize().ok()))
}

/// Returns whether the entries of `inner`, a path relative to a repository, have the names of branches and objects.
pub(super) fn is_named(inner: &Path) -> bool {
    inner.iter().next().is_some_and(|first| NAMED.iter().any(|name| first == *name))
}

/// Returns whether a directory, whose entries `has` knows, is a repository without `.git` around it. Its objects and refs may be in
/// another directory.
pub(super) fn is_bare(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has(COMMON) || (has("objects") && has("refs")))
}

/// Returns whether a directory has its own objects, and is a repository.
fn is_repository(directory: &Path) -> bool {
    directory.join("HEAD").is_file() && directory.join("objects").is_dir()
}

/// Returns the files `.git` of the checkouts of submodules in the project, whose repositories have one of the files `kept`.
fn checkouts(project: &Path, kept: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
    let configs = kept.iter().filter(|it| it.ends_with(CONFIG)).filter_map(|it| it.parent());
    let mut found = Vec::new();
    for repository in configs.filter(|it| it.iter().count() > 1) {
        let checkout = worktree_of(&project.join(repository))?;
        let file = checkout.and_then(|it| Some(it.strip_prefix(project).ok()?.join(GIT)));
        if let Some(file) = file
            && matches!(kind(&project.join(&file))?, Kind::File)
        {
            found.push(file);
        }
    }
    Ok(found)
}

/// Returns what is protected in the repository `root/path`, relative to `root`. The repository must have no links yet, except among
/// its hooks, where git writes nothing.
fn protected(root: &Path, path: &Path) -> Result<Protected, GitError> {
    let kept = kept_of(root, path)?;
    check_special(root, path, &kept)?;
    Ok(Protected { kept, guarded: vec![path.to_owned()] })
}

/// Returns what a box may only read in the repository `root/path`, and in those of its submodules and worktrees, relative to `root`.
fn kept_of(root: &Path, path: &Path) -> Result<Vec<PathBuf>, GitError> {
    let mut repositories = vec![path.to_owned()];
    make_missing(&root.join(path))?;
    let has_more = reads_more(&read(&root.join(path).join(CONFIG))?);
    for worktree in directories(root, &path.join("worktrees"))? {
        if has_more {
            make(&root.join(&worktree).join(CONFIG_OF_WORKTREE), "")?;
        }
        repositories.push(worktree);
    }
    let mut left = vec![path.join(MODULES)];
    let mut looked = 0;
    while let Some(directory) = left.pop() {
        for inner in directories(root, &directory)? {
            looked += 1;
            if PARTS.iter().any(|it| root.join(&inner).join(it).exists()) {
                make_missing(&root.join(&inner))?;
                left.push(inner.join(MODULES));
                repositories.push(inner);
            } else {
                left.push(inner);
            }
            if looked > MAX_DIRECTORIES || repositories.len() > MAX_REPOSITORIES {
                return Err(GitError::TooMany(root.join(path)));
            }
        }
    }
    let kept = repositories.iter().map(|it| kept_in(root, it));
    Ok(kept.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Returns the directories in `root/path`, relative to `root`. Links are left out, since git follows none there.
fn directories(root: &Path, path: &Path) -> Result<Vec<PathBuf>, GitError> {
    let directory = root.join(path);
    if !matches!(kind(&directory)?, Kind::Directory) {
        return Ok(Vec::new());
    }
    let failed = |source| GitError::File { path: directory.clone(), source };
    let entries = fs::read_dir(&directory).map_err(failed)?.collect::<io::Result<Vec<_>>>();
    let entries = entries.map_err(failed)?.into_iter();
    let directories = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
    Ok(directories.map(|it| path.join(it.file_name())).collect())
}

/// Returns what a box may only read in one repository, relative to `root`.
fn kept_in(root: &Path, repository: &Path) -> Result<Vec<PathBuf>, GitError> {
    let mut kept = Vec::new();
    for name in KEPT {
        let path = repository.join(name);
        let whole = root.join(&path);
        match kind(&whole)? {
            Kind::Link => return Err(GitError::Link(whole)),
            // Through another name of a file, a box could write to it.
            Kind::File if fs::symlink_metadata(&whole).is_ok_and(|it| it.nlink() > 1) => {
                return Err(GitError::Link(whole));
            }
            Kind::Absent => {}
            Kind::Directory | Kind::File => kept.push(path),
        }
    }
    Ok(kept)
}

/// Makes what git would read in a repository and a box could make.
fn make_missing(repository: &Path) -> Result<(), GitError> {
    let hooks = repository.join(HOOKS);
    if matches!(kind(&hooks)?, Kind::Absent) {
        let made = DirBuilder::new().mode(0o755).create(&hooks);
        made.map_err(|source| GitError::File { path: hooks, source })?;
    }
    make(&repository.join(CONFIG), "")?;
    let common = repository.join(COMMON);
    make(&common, OWN)?;
    if read(&common)? != OWN.as_bytes() {
        return Err(GitError::Elsewhere(common));
    }
    if reads_more(&read(&repository.join(CONFIG))?) {
        make(&repository.join(CONFIG_OF_WORKTREE), "")?;
    }
    Ok(())
}

/// Makes a file, unless there is something at its path.
fn make(path: &Path, text: &str) -> Result<(), GitError> {
    if !matches!(kind(path)?, Kind::Absent) {
        return Ok(());
    }
    let made = fs::File::create_new(path).and_then(|mut it| it.write_all(text.as_bytes()));
    made.map_err(|source| GitError::File { path: path.to_owned(), source })
}

/// Returns whether a `config` can make git read `config.worktree`.
fn reads_more(config: &[u8]) -> bool {
    config.to_ascii_lowercase().windows(WORKTREE_CONFIG.len()).any(|it| it == WORKTREE_CONFIG)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Scene(tempfile::TempDir);

    impl Scene {
        fn new(files: &[(&str, &str)]) -> Self {
            let scene = Self(tempfile::tempdir().unwrap());
            for (path, text) in files {
                let path = scene.at(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            scene
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        /// Returns the repository of a project: where it is, and what is kept.
        fn found(&self, project: &str) -> Result<String, String> {
            let root = self.at("").display().to_string();
            let found = Repository::of(&self.at(project));
            let found = found.map_err(|it| it.to_string().replace(&root, ""))?;
            let Some(Repository { outside, inside }) = found else {
                return Ok("none".to_owned());
            };
            let listed = |Protected { mut kept, guarded }: Protected| {
                kept.sort();
                let kept = kept.iter().map(|it| it.display().to_string());
                let guarded = guarded.iter().map(|it| format!("({})", it.display()));
                kept.chain(guarded).collect::<Vec<_>>().join(" ")
            };
            let outside = outside.map(|(it, of)| format!("; {}: {}", it.display(), listed(of)));
            Ok((listed(inside) + &outside.unwrap_or_default()).replace(&root, ""))
        }
    }

    #[test]
    fn what_git_starts_is_kept_in_the_repository_and_its_submodules() {
        let scene = Scene::new(&[
            ("p/.git/HEAD", ""),
            ("p/.git/config", "[core]"),
            ("p/.git/objects/x", ""),
            ("p/.git/modules/lib/a/HEAD", ""),
            ("p/.git/modules/lib/a/objects/x", ""),
            ("p/.git/modules/lib/a/modules/b/HEAD", ""),
            ("p/.git/modules/lib/a/modules/b/objects/x", ""),
            ("p/.git/worktrees/w/gitdir", ""),
            ("p/checkout/.git", "gitdir: ../.git/modules/lib/a"),
            ("bare/file", ""),
        ]);
        let worktree =
            "[extensions]\n\tworktreeConfig = true\n[core]\n\tworktree = ../../../../checkout\n";
        fs::write(scene.at("p/.git/modules/lib/a/config"), worktree).unwrap();
        insta::assert_snapshot!(scene.found("p").unwrap().replace(' ', "\n"), @"
        .git/commondir
        .git/config
        .git/hooks
        .git/modules/lib/a/commondir
        .git/modules/lib/a/config
        .git/modules/lib/a/config.worktree
        .git/modules/lib/a/hooks
        .git/modules/lib/a/modules/b/commondir
        .git/modules/lib/a/modules/b/config
        .git/modules/lib/a/modules/b/hooks
        .git/worktrees/w/gitdir
        checkout/.git
        (.git)
        ");
        assert!(scene.at("p/.git/hooks").is_dir(), "a box must not be the one who makes it");
        // A box removes a part of a repository, and hopes that the next start does not take it for one.
        fs::remove_file(scene.at("p/.git/modules/lib/a/HEAD")).unwrap();
        assert!(scene.found("p").unwrap().contains(".git/modules/lib/a/config"));
        fs::write(scene.at("p/.git/commondir"), "../evil\n").unwrap();
        assert_eq!(scene.found("p").unwrap_err(), "p/.git/commondir leads to another repository");
        assert_eq!(scene.found("bare").as_deref(), Ok("none"));
    }

    #[test]
    fn a_worktree_and_a_submodule_have_their_repository_elsewhere() {
        let scene = Scene::new(&[
            ("p/.git/HEAD", ""),
            ("p/.git/config", ""),
            ("p/.git/objects/x", ""),
            ("p/.git/worktrees/w/commondir", "../..\n"),
            ("p/.git/modules/s/HEAD", ""),
            ("p/.git/modules/s/objects/x", ""),
            ("p/.git/modules/s/config", "[core]\n\tworktree = ../../../s\n"),
            ("p/s/.git", "gitdir: ../.git/modules/s\n"),
        ]);
        fs::create_dir(scene.at("w")).unwrap();
        let worktree = scene.at("p/.git/worktrees/w");
        fs::write(scene.at("w/.git"), format!("gitdir: {}\n", worktree.display())).unwrap();
        fs::write(worktree.join("gitdir"), format!("{}\n", scene.at("w/.git").display())).unwrap();
        insta::assert_snapshot!(scene.found("w").unwrap().replace(' ', "\n"), @"
        .git;
        p/.git:
        commondir
        config
        hooks
        modules/s/commondir
        modules/s/config
        modules/s/hooks
        worktrees/w/commondir
        worktrees/w/gitdir
        ()
        ");
        insta::assert_snapshot!(scene.found("p/s").unwrap(), @".git; p/.git/modules/s: commondir config hooks ()");
    }

    /// A box writes `.git` of its project, and hopes to get another directory at its next start.
    #[test]
    fn a_repository_that_does_not_name_the_project_is_refused() {
        let scene = Scene::new(&[
            ("keys/HEAD", ""),
            ("keys/objects/x", ""),
            ("keys/config", ""),
            ("other/.git/HEAD", ""),
            ("other/.git/config", ""),
            ("other/.git/objects/x", ""),
            ("p/.git", "gitdir: ../keys"),
            ("q/.git", "gitdir: fake"),
            ("q/fake/commondir", "../../other/.git"),
            ("q/fake/gitdir", "../.git"),
        ]);
        let foreign = "leads to";
        assert_eq!(
            scene.found("p").unwrap_err(),
            format!("p/.git {foreign} keys, which is no repository of this project")
        );
        let error = scene.found("q").unwrap_err();
        assert!(error.starts_with("q/.git leads to q/fake"), "{error}");
        fs::write(scene.at("p/.git"), "gitdir: nowhere").unwrap();
        assert!(scene.found("p").unwrap_err().starts_with("cannot use p/nowhere: No such file"));
    }

    #[test]
    fn a_link_is_refused_where_it_could_be_written_through() {
        let scene =
            Scene::new(&[("p/.git/HEAD", ""), ("p/.git/objects/x", ""), ("elsewhere/x", "")]);
        symlink("../../elsewhere", scene.at("p/.git/hooks")).unwrap();
        let error = scene.found("p").unwrap_err();
        assert_eq!(error, "p/.git/hooks is a link, so a box could change what git starts");
        fs::create_dir(scene.at("q")).unwrap();
        symlink("../p/.git", scene.at("q/.git")).unwrap();
        assert!(scene.found("q").unwrap_err().starts_with("q/.git is a link"));
    }
}

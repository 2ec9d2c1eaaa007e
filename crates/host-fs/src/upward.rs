//! Searches the ancestors of a directory for files that the user did not name.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::known::Known;
use crate::named_path;
use crate::trust::{Stranger, Trusted};

/// The entries that mark the root of a repository of git, Jujutsu or Mercurial. A path of a checkout must not lead into them,
/// because their files are not checked in. In worktrees and submodules, `.git` is a file.
pub const REPOSITORIES: [&str; 3] = [".git", ".jj", ".hg"];

/// The limits of a search.
#[derive(Debug, Clone)]
pub struct Search {
    /// The home directories. The search does not go above them.
    pub homes: Known,
    /// The users whose files may be used.
    pub trusted: Trusted,
}

/// The repository that contains a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repository {
    /// The root of the repository, and its entry from [`REPOSITORIES`].
    At(PathBuf, &'static str),
    /// The root of a repository that is not used, its entry from [`REPOSITORIES`], and the reason.
    Unused(PathBuf, &'static str, String),
    /// No repository exists within the limits of the search.
    None,
}

impl Search {
    /// Returns the limits of a search by this user. The homes are `$HOME` and the homes of all trusted users. `variable`
    /// returns the value of an environment variable.
    pub fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let trusted = Trusted::of_user(&variable);
        let home = named_path(variable("HOME")).into_iter();
        Self { homes: Known::of(home.chain(homes(&trusted.users))), trusted }
    }

    /// Returns the ancestors of `start`, the nearest first, up to the first home, `/`, or the border of the file system.
    /// Returns none if `start` is a home. `start` is the path of a directory, without links.
    pub fn above<'p>(&self, start: &'p Path) -> impl Iterator<Item = &'p Path> {
        let device = |path: &Path| fs::metadata(path).ok().map(|it| it.dev());
        let own = device(start);
        let pairs = start.ancestors().zip(start.ancestors().skip(1));
        let searched = pairs.take_while(move |(below, directory)| {
            !self.is_home(below) && own.is_some() && device(directory) == own
        });
        searched.map(|(_, directory)| directory)
    }

    /// Returns whether `directory`, a path without links, is a user's home or `/`: its files do not belong to one
    /// checkout. A home with two mount points is recognized at both.
    pub fn is_home(&self, directory: &Path) -> bool {
        directory == Path::new("/") || self.homes.same(directory).is_some()
    }

    /// Finds the root of the nearest repository, from `start` upward. A repository in a user's home itself is not used. A
    /// repository above `start` is used only if no untrusted user can change its root or a directory in between.
    /// `start` is the path of a directory, without links.
    pub fn repository(&self, start: &Path) -> Repository {
        let Some((found, name)) = std::iter::once(start)
            .chain(self.above(start))
            .find_map(|directory| Some((directory, mark(directory)?)))
        else {
            return Repository::None;
        };
        let is_home = self.is_home(found).then(|| "it is a home directory".to_owned());
        match is_home.or_else(|| self.untrusted_user_on_path(start, found, name)) {
            Some(reason) => Repository::Unused(found.to_owned(), name, reason),
            None => Repository::At(found.to_owned(), name),
        }
    }

    /// Returns why an untrusted user could have made the repository `found`, or can change a directory between `found`
    /// and `start`. `None` if no untrusted user could, or if `found` is `start`.
    fn untrusted_user_on_path(&self, start: &Path, found: &Path, name: &str) -> Option<String> {
        if start == found {
            return None;
        }
        let between = start.ancestors().take_while(|it| *it != found);
        let mut places = between.map(Path::to_owned).chain([found.join(name)]);
        places.find_map(|place| match self.trusted.untrusted_user_on_path(&place) {
            Ok(untrusted_user_on_path) => Some(reason(untrusted_user_on_path?)),
            Err(error) => Some(error.to_string()),
        })
    }
}

/// Returns the home directories of `users` from [passwd(5)](https://man7.org/linux/man-pages/man5/passwd.5.html). They are
/// used in addition to `$HOME`, which may be unset or the home of another user.
fn homes(users: &[u32]) -> Vec<PathBuf> {
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let fields = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let of_users = fields.filter_map(|fields| {
        let (user, home) = (fields.get(2)?.parse().ok()?, fields.get(5)?);
        (users.contains(&user) && home.starts_with('/')).then(|| PathBuf::from(home))
    });
    of_users.collect()
}

fn reason(untrusted_user_on_path: Stranger) -> String {
    match untrusted_user_on_path {
        Stranger::Owner(uid) => {
            format!("it, or a directory in it, belongs to another user (uid {uid})")
        }
        untrusted_user_on_path => untrusted_user_on_path.to_string(),
    }
}

/// Returns the first entry of [`REPOSITORIES`] that exists in `directory`.
fn mark(directory: &Path) -> Option<&'static str> {
    REPOSITORIES.into_iter().find(|name| directory.join(name).symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// The directory `a/b/c`, and a search that trusts this user.
    fn scene() -> (tempfile::TempDir, PathBuf, Search) {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        fs::create_dir_all(real.join("a/b/c")).unwrap();
        (root, real, Search { homes: Known::default(), trusted: Trusted::this_user() })
    }

    #[test]
    fn the_nearest_repository_counts() {
        let (_root, at, search) = scene();
        assert_eq!(search.repository(&at.join("a/b/c")), Repository::None);
        for (name, place) in [(".git", "a"), (".hg", "a/b"), (".jj", "a/b/c")] {
            fs::create_dir(at.join(place).join(name)).unwrap();
            let found = Repository::At(at.join(place), name);
            assert_eq!(search.repository(&at.join("a/b/c")), found);
        }
        fs::write(at.join("a/b/c/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(search.repository(&at.join("a/b/c")), Repository::At(at.join("a/b/c"), ".git"));
        assert_eq!(search.repository(&at.join("a")), Repository::At(at.join("a"), ".git"));
    }

    #[test]
    fn the_search_ends_at_a_home_which_is_no_repository() {
        let (_root, at, mut search) = scene();
        search.homes = Known::of([at.join("a")]);
        let above: Vec<_> = search.above(&at.join("a/b/c")).map(Path::to_owned).collect();
        assert_eq!(above, [at.join("a/b"), at.join("a")]);
        assert_eq!(search.above(&at.join("a")).count(), 0);
        fs::create_dir(at.join(".git")).unwrap();
        assert_eq!(search.repository(&at.join("a/b")), Repository::None);
        fs::create_dir(at.join("a/.git")).unwrap();
        for start in ["a", "a/b"] {
            let Repository::Unused(_, _, why) = search.repository(&at.join(start)) else {
                panic!()
            };
            assert_eq!(why, "it is a home directory");
        }
    }

    #[test]
    fn the_search_of_a_user_ends_at_each_of_their_homes() {
        let (_root, at, _) = scene();
        let home = at.join("a");
        let search = Search::of_user(|name| (name == "HOME").then(|| home.clone().into()));
        assert!(search.is_home(&home) && !search.is_home(&at.join("a/b")));
        let own = rustix::process::geteuid().as_raw();
        assert!(search.trusted.users.contains(&own));
        let accounts = homes(&[own]);
        assert!(accounts.iter().filter(|it| it.exists()).all(|it| search.is_home(it)));
    }

    #[test]
    fn another_file_system_is_not_searched() {
        let (_root, _at, search) = scene();
        let proc = Path::new("/proc/self");
        assert_ne!(fs::metadata("/").unwrap().dev(), fs::metadata(proc).unwrap().dev());
        assert_eq!(search.above(Path::new("/proc")).count(), 0);
        assert_eq!(search.above(Path::new("/none/such")).count(), 0);
    }

    #[test]
    fn a_repository_that_others_could_have_made_is_not_used() {
        let (_root, at, search) = scene();
        fs::create_dir(at.join("a/.git")).unwrap();
        let set = |path: &str, mode| {
            fs::set_permissions(at.join(path), Permissions::from_mode(mode)).unwrap();
        };
        for path in ["a/.git", "a", "a/b", "a/b/c"] {
            set(path, 0o777);
            let found = search.repository(&at.join("a/b/c"));
            let Repository::Unused(place, ".git", why) = found else { panic!("{path}: {found:?}") };
            assert_eq!(place, at.join("a"));
            assert!(why.starts_with("everybody can write to "), "{why}");
            set(path, 0o755);
        }
        assert_eq!(search.repository(&at.join("a/b/c")), Repository::At(at.join("a"), ".git"));
        let nobody = Trusted { users: vec![u32::MAX - 1], groups: Vec::new() };
        let search = Search { homes: Known::default(), trusted: nobody };
        let Repository::Unused(_, _, why) = search.repository(&at.join("a/b")) else { panic!() };
        assert!(why.contains("belongs to another user (uid "), "{why}");
        let own = search.repository(&at.join("a"));
        assert_eq!(own, Repository::At(at.join("a"), ".git"), "its own directory is its own");
    }
}

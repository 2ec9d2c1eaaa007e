//! Paths of commands, compared as text.

use crate::pattern::is_glob_match;
use crate::protected::{CREDENTIALS, HOOKS, SETTINGS};

/// The system's directories.
const SYSTEM: [&str; 17] = [
    "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root",
    "sbin", "srv", "sys", "usr", "var",
];
/// Directories in `/usr` and `/var` without which the system does not work.
const INNER: [(&str, &[&str]); 2] =
    [("usr", &["bin", "lib", "lib32", "lib64", "libexec", "sbin", "share"]), ("var", &["lib"])];
/// The system's directories that commands must not write to.
const WRITE_PROTECTED: [&str; 11] =
    ["etc", "dev", "boot", "proc", "sys", "usr", "bin", "sbin", "lib", "lib32", "lib64"];
/// Files in `/dev` that are no disks.
const HARMLESS: [&str; 12] = [
    "null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty", "fd", "shm",
    "pts",
];
/// The beginnings of the names of disks in `/dev`.
const DISKS: [&str; 14] = [
    "sd", "nvme", "hd", "vd", "xvd", "loop", "dm-", "mmcblk", "md", "disk", "mapper", "mem",
    "kmem", "nbd",
];

/// The directory at which a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Root,
    Home,
    /// An unknown directory, and the number of directories above it.
    Unknown(usize),
    /// A directory that the command has chosen, and that is known only when it runs.
    Chosen,
}

/// A path of a command, without `.` and `..`. Its names can be globs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    start: Start,
    names: Vec<String>,
}

impl Path {
    /// Reads a path. `directory` is the directory of the command, if it is known.
    pub(crate) fn of(text: &str, directory: Option<&Self>) -> Self {
        let (start, rest) = start(text);
        let mut path = match (start, directory) {
            (Start::Unknown(_), Some(directory)) => directory.clone(),
            _ => Self { start, names: Vec::new() },
        };
        rest.split('/').for_each(|it| path.enter(it));
        path.without_proc()
    }

    /// Returns the directory after a `cd` to what is known only when the command runs.
    pub(crate) const fn chosen() -> Self {
        Self { start: Start::Chosen, names: Vec::new() }
    }

    /// Returns whether the path begins in a directory that the command has chosen, and that is known only when it runs.
    pub(crate) fn is_chosen(&self) -> bool {
        self.start == Start::Chosen
    }

    /// Returns whether it is a home directory.
    pub(crate) fn is_home(&self) -> bool {
        match self.names().as_slice() {
            [] => self.start == Start::Home,
            ["root"] | ["home", _] => self.start == Start::Root,
            _ => false,
        }
    }

    /// Returns whether it is the standard input.
    pub(crate) fn is_input(&self) -> bool {
        let is_input = |it: &[&str]| {
            matches!(it, ["dev", "stdin"] | ["dev", "fd", "0"] | ["proc", _, "fd", "0"])
        };
        self.absolute().is_some_and(|it| is_input(&it))
    }

    fn enter(&mut self, name: &str) {
        match name {
            "" | "." => (),
            ".." if self.names.pop().is_some() => (),
            ".." => match self.start {
                Start::Root | Start::Chosen => (),
                Start::Home => {
                    self.start = Start::Root;
                    self.names.push("home".to_owned());
                }
                Start::Unknown(above) => self.start = Start::Unknown(above + 1),
            },
            _ => self.names.push(name.to_owned()),
        }
    }

    /// `/proc/PID/root` is `/`.
    fn without_proc(mut self) -> Self {
        while self.start == Start::Root
            && self.names.len() >= 3
            && self.names[0] == "proc"
            && self.names[2] == "root"
        {
            self.names.drain(..3);
        }
        self
    }

    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    /// Returns the names of an absolute path.
    fn absolute(&self) -> Option<Vec<&str>> {
        (self.start == Start::Root).then(|| self.names())
    }

    /// Returns whether it is the root directory, a home directory, a directory of the system, or all files in one.
    pub(crate) fn is_root_like(&self) -> bool {
        let mut names = self.names();
        if names.last().is_some_and(|it| is_all(it)) {
            names.pop();
        }
        match (self.start, names.as_slice()) {
            (Start::Root | Start::Home, []) => true,
            (Start::Root, [name]) => SYSTEM.iter().any(|it| is_glob_match(name, it)),
            (Start::Root, ["home", _]) => true,
            (Start::Root, [outer, inner]) => {
                INNER.iter().any(|(name, all)| name == outer && all.contains(inner))
            }
            (Start::Unknown(above), []) => above > 2,
            _ => false,
        }
    }

    /// Returns whether it is a disk, or the system's memory.
    pub(crate) fn is_disk(&self) -> bool {
        let is_disk = |name: &str| DISKS.iter().any(|it| name.starts_with(it));
        self.absolute()
            .is_some_and(|it| matches!(it.as_slice(), ["dev", name, ..] if is_disk(name)))
    }

    /// Returns whether it is a connection of bash.
    pub(crate) fn is_connection(&self) -> bool {
        let names = self.absolute();
        names.is_some_and(|it| matches!(it.as_slice(), ["dev", "tcp" | "udp", _, ..]))
    }

    /// Returns whether it is in a directory of the system that commands must not write to.
    pub(crate) fn is_write_protected(&self) -> bool {
        let Some(names) = self.absolute() else {
            return false;
        };
        match names.as_slice() {
            ["usr", "local" | "src", _, ..] | ["proc", "self" | "thread-self", ..] => false,
            ["dev", name, ..] => !HARMLESS.iter().any(|it| name.starts_with(it)),
            [name, ..] => WRITE_PROTECTED.iter().any(|it| is_glob_match(name, it)),
            [] => false,
        }
    }

    /// Returns whether the file runs programs of others: a hook of git, or the settings of an agent.
    pub(crate) fn is_hook(&self) -> bool {
        self.has_any(&HOOKS)
    }

    /// Returns whether it is in a directory of such files, and not only the directory itself.
    pub(crate) fn is_in_hooks(&self) -> bool {
        let mut parent = self.clone();
        parent.names.pop().is_some() && parent.is_hook()
    }

    /// Returns whether the file has settings of the project or of the user.
    pub(crate) fn is_settings(&self) -> bool {
        self.has_any(&SETTINGS) || self.last().is_some_and(is_environment)
    }

    /// Returns whether it has credentials.
    pub(crate) fn is_credential(&self) -> bool {
        let is_shadow = matches!(self.absolute().as_deref(), Some(["etc", "shadow" | "gshadow"]));
        is_shadow || self.has_any(&CREDENTIALS)
    }

    /// Returns whether the path has one of these paths in it, such as `.git/config`. The first name must be spelled out: in a shell, a
    /// glob such as `*` does not match a name that begins with a point.
    fn has_any(&self, paths: &[&str]) -> bool {
        let names = self.names();
        let has = |path: &str| {
            let wanted: Vec<_> = path.split('/').collect();
            let is_it = |found: &[&str]| {
                let mut rest = found.iter().zip(&wanted).skip(1);
                found[0] == wanted[0] && rest.all(|(it, name)| is_glob_match(it, name))
            };
            names.windows(wanted.len()).any(is_it)
        };
        paths.iter().any(|it| has(it))
    }

    /// Returns the file of this name in the directory that the path names.
    pub(crate) fn join(&self, name: &str) -> Self {
        let mut path = self.clone();
        path.enter(name);
        path
    }

    /// Returns the last name.
    pub(crate) fn last(&self) -> Option<&str> {
        self.names.last().map(String::as_str)
    }
}

/// Returns whether a file has the variables of a project. A template of one has no values.
fn is_environment(name: &str) -> bool {
    let is_example =
        [".example", ".sample", ".template", ".dist"].iter().any(|it| name.ends_with(it));
    name == ".env" || (name.starts_with(".env.") && !is_example)
}

/// Returns whether a glob describes all files of a directory.
fn is_all(glob: &str) -> bool {
    glob.contains('*') && glob.chars().all(|it| "*?.[]!^".contains(it))
}

/// Returns the directory at which a path begins, and the rest of the path.
fn start(text: &str) -> (Start, &str) {
    if text.starts_with('/') {
        return (Start::Root, text);
    }
    let (first, rest) = text.split_once('/').unwrap_or((text, ""));
    let is_user = first.starts_with('~') && !first.contains(['*', '?', '.']);
    if first == "$HOME" || (is_user && first != "~+" && first != "~-") {
        return (Start::Home, rest);
    }
    match first {
        "~+" | "$PWD" => (Start::Unknown(0), rest),
        "~-" | "$OLDPWD" => (Start::Chosen, rest),
        _ => (Start::Unknown(0), text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        Path::of(text, None)
    }

    #[test]
    fn what_a_system_needs_is_root_like() {
        for text in [
            "/",
            "//",
            "/.",
            "/*",
            "/./",
            "/../",
            "/usr/../",
            "/root/..",
            "/usr",
            "/usr/",
            "/etc/*",
            "/e*",
            "/?sr",
            "/[a-z]*",
            "/.*",
            "~",
            "~/",
            "~/*",
            "~root",
            "$HOME",
            "$HOME/",
            "$HOME/*",
            "/home/app",
            "/home/*",
            "/usr/bin",
            "/proc/self/root",
            "/proc/1/root/etc",
            "../../..",
            "../../../*",
        ] {
            assert!(path(text).is_root_like(), "{text}");
        }
        for text in [
            "",
            ".",
            "*",
            "./*",
            "target",
            "/tmp",
            "/tmp/*",
            "/usr/local/x",
            "/var/cache/apt",
            "/var/lib/apt/lists/*",
            "~/x",
            "$HOME/.cache",
            "/home/app/x",
            "/workspace",
            "..",
            "../x",
            "etc",
            "~x.log",
        ] {
            assert!(!path(text).is_root_like(), "{text}");
        }
        assert!(Path::of("*", Some(&path("/"))).is_root_like());
        assert!(Path::of("..", Some(&path("/usr"))).is_root_like());
        assert!(Path::of("~+/x/..", Some(&path("/"))).is_root_like());
        assert!(Path::of("../*", Some(&Path::chosen())).is_chosen() && path("~-").is_chosen());
        assert!(!Path::of("/usr", Some(&Path::chosen())).is_chosen());
        assert!(path("~").is_home() && path("/home/app/").is_home() && !path("/home").is_home());
    }

    #[test]
    fn files_have_kinds() {
        assert!(path("/dev/sda1").is_disk() && path("/dev//nvme0n1").is_disk());
        assert!(!path("/dev/null").is_disk() && !path("dev/sda").is_disk());
        assert!(path("/dev/tcp/1.2.3.4/5").is_connection() && !path("/dev/tcp").is_connection());
        for text in ["/etc/x", "/usr/bin/x", "/bin/x", "/dev/x", "/tmp/../etc/x", "/proc/sys/x"] {
            assert!(path(text).is_write_protected(), "{text}");
        }
        for text in [
            "/dev/null",
            "/dev/fd/3",
            "/dev/shm/x",
            "/usr/local/bin/x",
            "/usr/src/x",
            "/tmp/x",
            "etc/x",
        ] {
            assert!(!path(text).is_write_protected(), "{text}");
        }
        assert!(path(".git/hooks/pre-commit").is_hook() && path("a/.git/./hook*/x").is_hook());
        assert!(path(".claude/settings.json").is_hook() && !path(".github/x").is_hook());
        assert!(path("x/.claude/a").is_in_hooks() && !path(".claude").is_in_hooks());
        assert!(path("/dev//stdin").is_input() && path("/proc/7/fd/0").is_input());
        assert!(!path("/dev/fd/1").is_input() && !path("dev/stdin").is_input());
        assert!(path(".git/config").is_settings() && path("x/.env.local").is_settings());
        assert!(path("~/.bashrc").is_settings() && !path(".env.example").is_settings());
        assert!(path("~/.ssh/id_ed25519").is_credential() && path("/etc/shadow").is_credential());
        assert!(
            path("/root/.docker/config.json").is_credential() && !path("x/ssh").is_credential()
        );
    }
}

//! Finds and executes a program the way a shell does.

use std::convert::Infallible;
use std::ffi::{CString, NulError};

use box_image::defaults::SEARCH_PATH;
use nix::errno::Errno;
use nix::unistd::execve;

/// A program that could not be executed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotExecuted {
    /// 127 where it was not found, 126 where it cannot be executed.
    pub(crate) status: u8,
    /// Why, for the program's own standard error.
    pub(crate) message: String,
}

/// Becomes the program `argv[0]` with exactly the environment `env`.
///
/// A name without a slash is looked up in the `PATH` of `env`. Returns only where that failed.
pub(crate) fn execute(argv: &[String], env: &[String]) -> NotExecuted {
    let program = argv.first().map_or("", String::as_str);
    match try_execute(program, argv, env) {
        Ok(never) => match never {},
        Err(error) => NotExecuted {
            status: if error == Errno::ENOENT { 127 } else { 126 },
            message: format!("{program}: {}", error.desc()),
        },
    }
}

fn try_execute(program: &str, argv: &[String], env: &[String]) -> nix::Result<Infallible> {
    let argv = c_strings(argv).map_err(|_| Errno::EINVAL)?;
    let env_strings = c_strings(env).map_err(|_| Errno::EINVAL)?;
    let mut result = Errno::ENOENT;
    for path in candidates(program, env) {
        let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
        let Err(error) = execve(&path, &argv, &env_strings);
        match error {
            Errno::ENOENT | Errno::ENOTDIR => {}
            // Another directory may hold one that can be executed.
            Errno::EACCES => result = error,
            _ => return Err(error),
        }
    }
    Err(result)
}

fn c_strings(strings: &[String]) -> Result<Vec<CString>, NulError> {
    strings.iter().map(|string| CString::new(string.as_str())).collect()
}

/// Returns the paths at which `program` may be, in the order of trial.
fn candidates(program: &str, env: &[String]) -> Vec<String> {
    if program.is_empty() {
        return Vec::new();
    }
    if program.contains('/') {
        return vec![program.to_owned()];
    }
    let path = env.iter().find_map(|variable| variable.strip_prefix("PATH="));
    let directories = path.unwrap_or(SEARCH_PATH).split(':');
    let absolute = directories.filter(|directory| directory.starts_with('/'));
    absolute.map(|directory| format!("{}/{program}", directory.trim_end_matches('/'))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn names_are_looked_up_and_paths_are_not() {
        let env = strings(&["HOME=/", "PATH=/a/bin:/b/:bin::/"]);
        assert_eq!(candidates("sh", &env), ["/a/bin/sh", "/b/sh", "/sh"]);
        assert_eq!(candidates("./sh", &env), ["./sh"]);
        let default = candidates("sh", &[]);
        assert_eq!(default.first().map(String::as_str), Some("/usr/local/sbin/sh"));
        assert_eq!(default.last().map(String::as_str), Some("/bin/sh"));
        assert_eq!(candidates("", &env), Vec::<String>::new());
    }

    #[test]
    fn the_status_tells_missing_from_unusable() {
        let run = |program: &str| execute(&strings(&[program]), &strings(&["PATH=/etc:/usr/lib"]));
        let missing = run("no-such-program");
        assert_eq!(missing.status, 127);
        assert_eq!(missing.message, "no-such-program: No such file or directory");
        assert_eq!(run("passwd").status, 126, "a file that is not executable");
        assert_eq!(run("/etc").status, 126, "a directory");
        assert_eq!(execute(&[], &[]).status, 127);
    }
}

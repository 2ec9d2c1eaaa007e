//! Finds and executes a program the way a shell does.

use std::convert::Infallible;
use std::ffi::{CString, NulError};

use box_image::rules::{program_paths, search_path};
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
    for path in program_paths(program, search_path(env)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
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

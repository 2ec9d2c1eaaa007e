//! Finds and executes a program as a shell does.

use std::convert::Infallible;
use std::ffi::{CString, NulError};
use std::fs::File;
use std::io::Read as _;

use box_contract::rules::{program_paths, search_path};
use nix::errno::Errno;
use nix::unistd::execve;

/// The first bytes of a 32-bit ELF file: `EI_MAG` and `ELFCLASS32`
/// ([elf(5)](https://man7.org/linux/man-pages/man5/elf.5.html)).
const ELF_32_BIT: [u8; 5] = *b"\x7FELF\x01";

/// A program that could not be executed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotExecuted {
    /// 127 if the program was not found, 126 if it cannot be executed.
    pub(crate) status: u8,
    /// The reason, for the program's standard error.
    pub(crate) message: String,
}

/// Replaces this process with the program `argv[0]`, with exactly the environment `env`. Returns only if that failed.
///
/// A name without a slash is looked up in the `PATH` of `env`. For example, `ls` is found as `/bin/ls`.
pub(crate) fn execute(argv: &[String], env: &[String]) -> NotExecuted {
    let program = argv.first().map_or("", String::as_str);
    match try_execute(program, argv, env) {
        Ok(never) => match never {},
        Err((error, path)) => NotExecuted {
            status: if error == Errno::ENOENT { 127 } else { 126 },
            message: format!("{program}: {}", reason(error, &path)),
        },
    }
}

/// Executes the first of the program's paths that can be executed. If there is none, returns an error and its path.
fn try_execute(
    program: &str,
    argv: &[String],
    env: &[String],
) -> Result<Infallible, (Errno, String)> {
    let invalid = |_| (Errno::EINVAL, String::new());
    let argv = c_strings(argv).map_err(invalid)?;
    let env_strings = c_strings(env).map_err(invalid)?;
    let mut result = (Errno::ENOENT, String::new());
    for path in program_paths(program, search_path(env)) {
        let Err(error) = execve(&c_string(&path).map_err(invalid)?, &argv, &env_strings);
        match error {
            Errno::ENOENT | Errno::ENOTDIR => {}
            // Another directory of `PATH` can have a file that can be executed.
            Errno::EACCES => result = (error, path),
            _ => return Err((error, path)),
        }
    }
    Err(result)
}

/// Returns why a program could not be executed. The kernel's `ENOEXEC` has one text for all unknown formats, so 32-bit
/// programs get a separate text.
fn reason(error: Errno, path: &str) -> &'static str {
    let is_of_32_bits = || {
        let mut start = [0; ELF_32_BIT.len()];
        let read = File::open(path).and_then(|mut it| it.read_exact(&mut start));
        read.is_ok() && start == ELF_32_BIT
    };
    match error {
        Errno::ENOEXEC if is_of_32_bits() => {
            "it is a program of 32 bits, and a box runs those of 64"
        }
        _ => error.desc(),
    }
}

fn c_string(string: &str) -> Result<CString, NulError> {
    CString::new(string)
}

fn c_strings(strings: &[String]) -> Result<Vec<CString>, NulError> {
    strings.iter().map(|string| c_string(string)).collect()
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

    #[test]
    fn a_program_of_32_bits_is_named_as_one() {
        let path = std::env::temp_dir().join(format!("program-of-32-bits-{}", std::process::id()));
        let reason = |start: &[u8]| {
            std::fs::write(&path, start).unwrap();
            reason(Errno::ENOEXEC, path.to_str().unwrap())
        };
        assert_eq!(
            reason(b"\x7FELF\x01\x01\x01"),
            "it is a program of 32 bits, and a box runs those of 64"
        );
        for other in [b"\x7FELF\x02\x01\x01".as_slice(), b"\x7FELF", b"#!"] {
            assert_eq!(reason(other), Errno::ENOEXEC.desc());
        }
        std::fs::remove_file(&path).unwrap();
    }
}

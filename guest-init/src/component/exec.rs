//! Finds and executes a program as a shell does.

use std::convert::Infallible;
use std::ffi::{CString, NulError, OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;

use box_contract::rules::{program_paths_of, search_path_of};
use nix::errno::Errno;
use nix::unistd::execve;

/// The first bytes of a 32-bit ELF file: `EI_MAG` and `ELFCLASS32`
/// ([elf(5)](https://man7.org/linux/man-pages/man5/elf.5.html)).
const ELF_32_BIT: [u8; 5] = *b"\x7FELF\x01";

/// The greatest length of an argument or a variable, with its NUL byte: `MAX_ARG_STRLEN`
/// ([execve(2)](https://man7.org/linux/man-pages/man2/execve.2.html)).
const MAX_WORD: usize = 128 << 10;

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
pub(crate) fn execute(argv: &[OsString], env: &[OsString]) -> NotExecuted {
    let program = argv.first().map_or(OsStr::new(""), OsString::as_os_str);
    match try_execute(program, argv, env) {
        Ok(never) => match never {},
        Err((error, path)) => NotExecuted {
            status: if error == Errno::ENOENT { 127 } else { 126 },
            message: format!("{}: {}", program.display(), reason(error, &path, argv, env)),
        },
    }
}

/// Executes the first of the program's paths that can be executed. If there is none, returns an error and its path.
fn try_execute(
    program: &OsStr,
    argv: &[OsString],
    env: &[OsString],
) -> Result<Infallible, (Errno, OsString)> {
    let invalid = |_| (Errno::EINVAL, OsString::new());
    let argv = c_strings(argv).map_err(invalid)?;
    let env_strings = c_strings(env).map_err(invalid)?;
    let mut result = (Errno::ENOENT, OsString::new());
    for path in program_paths_of(program, search_path_of(env)) {
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
fn reason(error: Errno, path: &OsStr, argv: &[OsString], env: &[OsString]) -> String {
    let is_of_32_bits = || {
        let mut start = [0; ELF_32_BIT.len()];
        let read = File::open(path).and_then(|mut it| it.read_exact(&mut start));
        read.is_ok() && start == ELF_32_BIT
    };
    match error {
        Errno::ENOEXEC if is_of_32_bits() => {
            "it is a program of 32 bits, and a box runs those of 64".to_owned()
        }
        Errno::E2BIG => too_long(argv, env),
        _ => error.desc().to_owned(),
    }
}

/// Returns which limit of the kernel the words of a command exceed.
fn too_long(argv: &[OsString], env: &[OsString]) -> String {
    let is_long = |word: &&OsString| word.len() >= MAX_WORD;
    let (most, variable) = (MAX_WORD - 1, env.iter().find(is_long));
    if let Some(place) = argv.iter().position(|it| is_long(&it)) {
        let size = argv[place].len();
        return format!("its argument {place} has {size} bytes, and Linux takes at most {most}");
    }
    if let Some(variable) = variable {
        let name = variable.as_bytes().split(|it| *it == b'=').next().unwrap_or_default();
        let (name, size) = (OsStr::from_bytes(name).display(), variable.len());
        return format!("its variable {name} has {size} bytes, and Linux takes at most {most}");
    }
    let words = argv.iter().chain(env);
    let size: usize = words.map(|it| it.len() + 1 + size_of::<usize>()).sum();
    format!(
        "its arguments and variables have {size} bytes with their pointers, and Linux takes a quarter of the limit of the \
         stack, which is 2097152 unless the box declares another"
    )
}

fn c_string(string: &OsStr) -> Result<CString, NulError> {
    CString::new(string.as_bytes())
}

fn c_strings(strings: &[OsString]) -> Result<Vec<CString>, NulError> {
    strings.iter().map(|string| c_string(string)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<OsString> {
        list.iter().map(OsString::from).collect()
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
    fn what_is_too_long_for_linux_is_named_with_the_limit() {
        let run = |words: &[&str], env: &[&str]| {
            let failed = execute(&strings(&[&["/bin/true"], words].concat()), &strings(env));
            assert_eq!(failed.status, 126);
            failed.message
        };
        let long = "x".repeat(MAX_WORD);
        let message = "/bin/true: its argument 2 has 131072 bytes, and Linux takes at most 131071";
        assert_eq!(run(&["a", &long], &[]), message);
        let variable = format!("A={}", &long[2..]);
        let message = "/bin/true: its variable A has 131072 bytes, and Linux takes at most 131071";
        assert_eq!(run(&[], &[&variable]), message);
        let many = run(&[&long[1..]; 100], &[]);
        let message =
            "/bin/true: its arguments and variables have 13108018 bytes with their pointers, ";
        assert!(many.starts_with(message), "{many}");
    }

    #[test]
    fn a_program_of_32_bits_is_named_as_one() {
        let path = std::env::temp_dir().join(format!("program-of-32-bits-{}", std::process::id()));
        let reason = |start: &[u8]| {
            std::fs::write(&path, start).unwrap();
            reason(Errno::ENOEXEC, path.as_os_str(), &[], &[])
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

//! Finds the interpreter and the shared libraries of a program.

use std::path::Path;
use std::process::Command;

use crate::{Result, program};

/// Returns the absolute paths of the interpreter and the shared libraries of a program, sorted.
///
/// # Errors
/// `ldd` is missing or refuses the program.
pub(crate) fn libraries(path: &Path) -> Result<Vec<String>> {
    let mut command = Command::new("ldd");
    let text = program::run(command.arg(path))?;
    Ok(parse_ldd(&String::from_utf8_lossy(&text)))
}

/// Parses lines of the forms `NAME => PATH (ADDRESS)` and `PATH (ADDRESS)`.
fn parse_ldd(text: &str) -> Vec<String> {
    let paths = text.lines().filter_map(|line| {
        let line = line.split_once(" => ").map_or(line, |(_, path)| path);
        let path = line.trim().split(" (").next()?;
        path.starts_with('/').then(|| path.to_owned())
    });
    let mut paths: Vec<_> = paths.collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_from_what_ldd_prints() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x7f)\n\
                    \tlibgone.so => not found\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(
            parse_ldd(text),
            ["/lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib64/ld-linux-x86-64.so.2"]
        );
        assert_eq!(parse_ldd("\tstatically linked\n"), Vec::<String>::new());
    }

    #[test]
    fn a_dynamic_program_has_the_c_library_among_its_own() {
        let own = std::env::current_exe().unwrap();
        assert!(libraries(&own).unwrap().iter().any(|path| path.ends_with("/libc.so.6")));
    }
}

//! The files that a program needs in order to start: its interpreter and its shared libraries.

use std::path::Path;
use std::process::Command;

use crate::{Result, program};

/// `p_type` of the segment that names the interpreter (ELF specification, "Program Header").
const PT_INTERP: u32 = 3;

/// Returns whether a file is a 64-bit little-endian ELF file that a loader must interpret.
pub(crate) fn is_dynamic(file: &[u8]) -> bool {
    segments(file).is_some_and(|mut types| types.any(|kind| kind == PT_INTERP))
}

fn segments(file: &[u8]) -> Option<impl Iterator<Item = u32>> {
    let is_elf64 = file.starts_with(b"\x7fELF\x02\x01");
    let start = usize::try_from(u64::from_le_bytes(*file.get(0x20..)?.first_chunk()?)).ok()?;
    let size = usize::from(u16::from_le_bytes(*file.get(0x36..)?.first_chunk()?));
    let count = usize::from(u16::from_le_bytes(*file.get(0x38..)?.first_chunk()?));
    let headers = file.get(start..)?.chunks(size.max(1)).take(count);
    let kind = |header: &[u8]| Some(u32::from_le_bytes(*header.first_chunk()?));
    is_elf64.then(|| headers.filter_map(kind))
}

/// Returns the absolute paths of the interpreter and the shared libraries of a program, sorted.
///
/// # Errors
/// `ldd` is missing or refuses the program.
pub(crate) fn libraries(path: &Path) -> Result<Vec<String>> {
    let mut command = Command::new("ldd");
    let text = program::run(command.arg(path))?;
    Ok(parse_ldd(&String::from_utf8_lossy(&text)))
}

/// Reads lines of the forms `NAME => PATH (ADDRESS)` and `PATH (ADDRESS)`.
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
    fn only_a_dynamic_program_is_dynamic() {
        let own = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&own).unwrap();
        assert!(is_dynamic(&bytes));
        assert!(libraries(&own).unwrap().iter().any(|path| path.ends_with("/libc.so.6")));
        assert!(!is_dynamic(b"#!/bin/sh\n"));
        assert!((0..64).all(|length| !is_dynamic(&bytes[..length])));
    }
}

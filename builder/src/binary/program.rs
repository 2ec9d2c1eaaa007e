//! Determines whether and how Linux can execute a file.
//!
//! Only headers are read, and at most 64 KiB of each kind, regardless of the sizes that they declare. Sources:
//! [elf(5)](https://man7.org/linux/man-pages/man5/elf.5.html), and Linux's `fs/binfmt_elf.c` (limits of program
//! headers and interpreter) and `fs/binfmt_script.c` (the line after `#!`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use box_contract::Platform;
use box_contract::rules::PATH_MAX;
use object::elf;
use oci_image::Found;

use super::ProgramError;

/// How a program starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Directly: the program is linked statically.
    Static,
    /// By the file at this path, which must be in the agent's root: a dynamic linker such as
    /// `/lib64/ld-linux-x86-64.so.2`, or the interpreter of a script such as `/usr/bin/env`.
    By(Vec<u8>),
}

/// The number of bytes at the start of a file that Linux looks at (`BINPRM_BUF_SIZE`).
const HEAD: usize = 256;
/// The maximum size of the program headers in bytes (`load_elf_phdrs`), and the limit for the dynamic section.
const MAX_TABLE: u64 = 64 << 10;

/// The names of processors by `e_machine`, for messages.
const MACHINES: [(u16, &str); 9] = [
    (elf::EM_X86_64, "x86_64"),
    (elf::EM_AARCH64, "aarch64"),
    (elf::EM_386, "32-bit x86"),
    (elf::EM_ARM, "32-bit Arm"),
    (elf::EM_RISCV, "RISC-V"),
    (elf::EM_PPC64, "PowerPC"),
    (elf::EM_S390, "IBM Z"),
    (elf::EM_LOONGARCH, "LoongArch"),
    (elf::EM_MIPS, "MIPS"),
];

/// The first bytes of files that are mistaken for Linux binaries.
const OTHERS: [(&[u8], &str); 5] = [
    (b"\xef\xbb\xbf#!", "a script that begins with a byte order mark; save it without one"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"\xca\xfe\xba\xbe", "a macOS program or a Java class"),
    (b"MZ", "a Windows program"),
    (b"<!DOCTYPE", "a web page"),
];

/// Returns the `e_machine` of a platform.
const fn machine_of(platform: Platform) -> u16 {
    match platform {
        Platform::LinuxAmd64 => elf::EM_X86_64,
        Platform::LinuxArm64 => elf::EM_AARCH64,
    }
}

/// Returns the name of a processor.
fn machine_name(number: u16) -> String {
    let name = MACHINES.iter().find(|(it, _)| *it == number);
    name.map_or_else(|| format!("machine {number}"), |(_, it)| (*it).to_owned())
}

/// Returns how a file starts on a platform.
///
/// # Errors
/// [`ProgramError`] if Linux would not start the file.
pub fn inspect(file: &File, platform: Platform) -> Result<Program, ProgramError> {
    inspect_bytes(file, platform)
}

/// Like [`inspect`], for a file of which only the first bytes are known.
///
/// # Errors
/// Like [`inspect`], and an error if the known bytes are not enough.
pub(crate) fn inspect_head(head: &[u8], platform: Platform) -> Result<Program, ProgramError> {
    inspect_bytes(&head, platform)
}

fn inspect_bytes(file: &dyn ReadAt, platform: Platform) -> Result<Program, ProgramError> {
    let head = file.read_up_to(0, HEAD as u64)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        return script(line, head.len() == HEAD);
    }
    if head.starts_with(b"\x7fELF") {
        return Elf::parse(file, &head, platform)?.program();
    }
    if head.is_empty() {
        return Err(ProgramError::NotAProgram("empty"));
    }
    if let Some(Found::Compressed { what, .. }) = oci_image::compressed(&head) {
        return Err(ProgramError::Foreign(what));
    }
    if oci_image::is_lfs_pointer(&head) {
        return Err(ProgramError::LfsPointer);
    }
    let known = OTHERS.iter().find(|(start, _)| head.starts_with(start));
    Err(known
        .map_or(ProgramError::NotAProgram("neither an ELF program nor a script"), |(_, it)| {
            ProgramError::Foreign(it)
        }))
}

/// Reads the first line of a script. `line` is the start of the file after `#!`. `cut` is true if the file may have
/// more bytes.
fn script(line: &[u8], cut: bool) -> Result<Program, ProgramError> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = line.iter().position(|byte| *byte == b'\n');
    if end.is_none() && cut {
        return Err(ProgramError::Script("is longer than the 255 bytes that Linux reads"));
    }
    let line = line[..end.unwrap_or(line.len())].trim_ascii_start();
    if line.ends_with(b"\r") {
        return Err(ProgramError::Script("ends as on Windows (CR LF); save it with LF line ends"));
    }
    let name = line.iter().position(blank).unwrap_or(line.len());
    let interpreter = &line[..name];
    if !interpreter.starts_with(b"/") || interpreter.contains(&0) {
        return Err(ProgramError::Script(
            "does not name an interpreter by its absolute path, as \"#!/bin/sh\" does",
        ));
    }
    Ok(Program::By(interpreter.to_vec()))
}

/// The fields of an ELF file's header that are used here, and its program headers.
struct Elf<'file> {
    file: &'file dyn ReadAt,
    kind: u16,
    entry: u64,
    segments: Vec<Segment>,
}

/// A program header: its type, and the range of its bytes in the file.
struct Segment {
    kind: u32,
    offset: u64,
    size: u64,
}

impl<'file> Elf<'file> {
    fn parse(
        file: &'file dyn ReadAt,
        head: &[u8],
        platform: Platform,
    ) -> Result<Self, ProgramError> {
        const SHORT: ProgramError = ProgramError::Elf("its header is cut off");
        let identity = head.get(..20).ok_or(SHORT)?;
        check_machine(identity, platform)?;
        let header = head.get(..64).ok_or(SHORT)?;
        let count = u64::from(u16::from_le_bytes(at(header, 56)));
        if u16::from_le_bytes(at(header, 54)) != 56 || count == 0 || count * 56 > MAX_TABLE {
            return Err(ProgramError::Elf("it has no proper program headers"));
        }
        let table = read_exact(file, u64::from_le_bytes(at(header, 32)), count * 56)?;
        let segment = |header: &[u8]| Segment {
            kind: u32::from_le_bytes(at(header, 0)),
            offset: u64::from_le_bytes(at(header, 8)),
            size: u64::from_le_bytes(at(header, 32)),
        };
        let segments = table.chunks_exact(56).map(segment).collect();
        Ok(Self {
            file,
            kind: u16::from_le_bytes(at(header, 16)),
            entry: u64::from_le_bytes(at(header, 24)),
            segments,
        })
    }

    fn segment(&self, kind: u32) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.kind == kind)
    }

    fn program(&self) -> Result<Program, ProgramError> {
        if !matches!(self.kind, elf::ET_EXEC | elf::ET_DYN) {
            return Err(ProgramError::NotAProgram("an object file or a core dump"));
        }
        if self.segment(elf::PT_LOAD).is_none() {
            return Err(ProgramError::Elf("it has no loadable segment"));
        }
        if let Some(segment) = self.segment(elf::PT_INTERP) {
            return self.interpreter(segment).map(Program::By);
        }
        // A static-pie program has the same type as a shared library.
        if self.kind == elf::ET_DYN && (self.entry == 0 || self.needs_libraries()?) {
            return Err(ProgramError::NotAProgram("a shared library"));
        }
        Ok(Program::Static)
    }

    fn interpreter(&self, segment: &Segment) -> Result<Vec<u8>, ProgramError> {
        const BAD: ProgramError =
            ProgramError::Elf("it does not name its dynamic linker by an absolute path");
        // The size includes the terminating NUL.
        if !(2..=PATH_MAX as u64).contains(&segment.size) {
            return Err(BAD);
        }
        let path = read_exact(self.file, segment.offset, segment.size)?;
        let Some((0, path)) = path.split_last() else { return Err(BAD) };
        if !path.starts_with(b"/") || path.contains(&0) {
            return Err(BAD);
        }
        Ok(path.to_vec())
    }

    /// Returns whether the dynamic section names a library. A program with libraries needs an interpreter, which loads them.
    fn needs_libraries(&self) -> Result<bool, ProgramError> {
        let Some(segment) = self.segment(elf::PT_DYNAMIC) else { return Ok(false) };
        let needed = elf::DT_NEEDED.cast_unsigned();
        let section = read_exact(self.file, segment.offset, segment.size.min(MAX_TABLE))?;
        let mut tags = section.chunks_exact(16).map(|entry| u64::from_le_bytes(at(entry, 0)));
        Ok(tags.any(|tag| tag == needed))
    }
}

/// Checks word size, byte order and processor, which all ELF files have at the same offsets.
fn check_machine(identity: &[u8], platform: Platform) -> Result<(), ProgramError> {
    let expected = machine_of(platform);
    let little = identity[5] == elf::ELFDATA2LSB;
    let bytes = [identity[18], identity[19]];
    let found = if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) };
    if found == expected && identity[4] == elf::ELFCLASS64 && little {
        return Ok(());
    }
    let mut name = machine_name(found);
    if found == expected {
        name.push_str(" with another word size or byte order");
    }
    Err(ProgramError::WrongMachine { expected: machine_name(expected), found: name })
}

/// Returns the `SIZE` bytes at `offset`. The caller has checked the bounds.
fn at<const SIZE: usize>(bytes: &[u8], offset: usize) -> [u8; SIZE] {
    let mut number = [0; SIZE];
    number.copy_from_slice(&bytes[offset..offset + SIZE]);
    number
}

fn read_exact(file: &dyn ReadAt, offset: u64, size: u64) -> Result<Vec<u8>, ProgramError> {
    let bytes = file.read_up_to(offset, size)?;
    if bytes.len() as u64 == size {
        return Ok(bytes);
    }
    Err(ProgramError::Elf("it is cut off"))
}

/// The bytes of a file.
trait ReadAt {
    /// Reads `size` bytes of the file at `offset`, or fewer at its end.
    fn read_up_to(&self, offset: u64, size: u64) -> io::Result<Vec<u8>>;
}

impl ReadAt for File {
    fn read_up_to(&self, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        let size = size.min(self.metadata()?.len().saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        if !bytes.is_empty() {
            self.read_exact_at(&mut bytes, offset)?;
        }
        Ok(bytes)
    }
}

impl ReadAt for &[u8] {
    fn read_up_to(&self, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(self.len() - start);
        Ok(self[start..start + size].to_vec())
    }
}

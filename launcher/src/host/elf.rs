//! Writes small ELF executables with one segment ([elf(5)](https://man7.org/linux/man-pages/man5/elf.5.html)): the
//! guest of `guest.rs`, and the init that `floor_probe.rs` starts.

/// The sizes of the ELF header and of the one program header after it.
const HEADERS: [u16; 2] = [64, 56];
/// The offset in the file of its content, which begins with the code.
pub(crate) const CODE_AT: usize = (HEADERS[0] + HEADERS[1]) as usize;

/// The permissions of the segment in memory, as its ELF flags.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access {
    /// Readable and executable.
    Execute = 5,
    /// Readable, writable and executable.
    WriteExecute = 7,
}

/// Returns an executable for x86-64. Its only segment is the whole file, loaded at the address `load`. The code is at
/// the beginning of `content`.
pub(crate) fn executable(load: u64, access: Access, content: &[u8]) -> Vec<u8> {
    let [header, program_header] = HEADERS;
    let size = (CODE_AT + content.len()) as u64;
    let half = |number: u16| number.to_le_bytes();
    let word = |number: u32| number.to_le_bytes();
    let long = |number: u64| number.to_le_bytes();
    let mut file = b"\x7fELF\x02\x01\x01".to_vec(); // 64 bits, little-endian, version 1
    file.resize(16, 0);
    file.extend([half(2), half(62)].concat()); // an executable for x86-64
    file.extend(word(1)); // version 1
    file.extend([long(load + CODE_AT as u64), long(header.into()), long(0)].concat());
    file.extend(word(0)); // no flags
    file.extend([half(header), half(program_header), half(1)].concat()); // one program header
    file.extend([half(0), half(0), half(0)].concat()); // no sections
    file.extend([word(1), word(access as u32)].concat()); // to be loaded
    file.extend([long(0), long(load), long(load)].concat()); // from the start of the file
    file.extend([long(size), long(size), long(0x1000)].concat()); // all of it
    file.extend_from_slice(content);
    file
}

//! Extracts a plain ELF kernel from libkrunfw's shared library.
//!
//! libkrunfw is a shared library with the kernel as data, and with the kernel's load address, entry address and size as
//! numbers in its code. If a box contained the library, each host would have to execute its code. So the kernel is
//! extracted when the box is built, and the box contains an ELF file that is only read: one segment, at the physical
//! address to which libkrun would have mapped it, and the entry point.
//!
//! Source: [libkrunfw's](https://github.com/containers/libkrunfw) `utils/bin2cbundle.py`, which generates
//! `krunfw_get_kernel(load_addr, entry_addr, size)` for the array `KERNEL_BUNDLE`.

use std::ops::Range;

use box_contract::kernel::{Need, needs};
use box_contract::{KernelName, RunPlan};
use memchr::memmem;
use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, elf};

use crate::Config;

/// Why no kernel can be extracted from a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// The file is neither a libkrunfw library nor an ELF kernel for x86-64.
    #[error("it is neither libkrunfw.so for x86-64 nor an uncompressed ELF kernel")]
    NotAKernel,
    /// The library has the right symbols, but not the expected code or data.
    #[error("it is a libkrunfw whose {0} this version does not understand")]
    Unknown(&'static str),
    /// The file contains another kernel than the one that was named.
    #[error("it is not the kernel \"{}\", but {found:?}", wanted.name())]
    Other {
        /// The expected kernel.
        wanted: KernelName,
        /// The version of the found kernel.
        found: String,
    },
    /// The kernel was compiled without options that the box needs. The list is not empty.
    #[error("it was compiled without {}", lacks(.0))]
    Lacks(Vec<Need>),
}

fn lacks(needs: &[Need]) -> String {
    let one = |need: &Need| format!("CONFIG_{}, which {} needs", need.option, need.by);
    needs.iter().map(one).collect::<Vec<_>>().join("; without ")
}

/// A kernel ready for a box: an uncompressed ELF file with physical load addresses, in two pieces. The data is
/// borrowed from the source file, which can have hundreds of megabytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel<'file> {
    /// The first bytes: the ELF headers. Empty if the source file itself is the kernel.
    pub head: Vec<u8>,
    /// The bytes after `head`.
    pub data: &'file [u8],
    /// The version in the kernel's data, such as `Linux version 6.12.113`. Empty if it has none.
    pub version: String,
}

/// The kernel in a libkrunfw library: its bytes, its load address and its entry address.
struct Bundle<'data> {
    load: u64,
    entry: u64,
    data: &'data [u8],
}

/// Extracts the kernel from a libkrunfw library. An ELF kernel is returned unchanged.
///
/// # Errors
/// [`KernelError`].
pub fn extract(file: &[u8]) -> Result<Kernel<'_>, KernelError> {
    let elf_file = ElfFile64::<Endianness>::parse(file).map_err(|_| KernelError::NotAKernel)?;
    let header = elf_file.elf_header();
    if header.e_machine(elf_file.endian()) != elf::EM_X86_64 {
        return Err(KernelError::NotAKernel);
    }
    let (head, data) = match header.e_type(elf_file.endian()) {
        elf::ET_EXEC => (Vec::new(), file),
        elf::ET_DYN => wrap(&bundle(&elf_file)?),
        _ => return Err(KernelError::NotAKernel),
    };
    Ok(Kernel { head, data, version: version(file) })
}

/// Like [`extract`], and checks that the kernel is the `wanted` one. Every kernel is accepted for [`KernelName::Krunfw`],
/// because there are many builds of libkrunfw.
///
/// # Errors
/// [`KernelError`].
pub fn extract_named(wanted: KernelName, file: &[u8]) -> Result<Kernel<'_>, KernelError> {
    let kernel = extract(file)?;
    if wanted == KernelName::Lean && !KernelName::is_lean(&kernel.version) {
        return Err(KernelError::Other { wanted, found: kernel.version });
    }
    Ok(kernel)
}

/// Like [`extract`], and checks that the kernel has all options that a box with this plan needs. A kernel that does not contain
/// its configuration, such as that of libkrunfw, is accepted if the plan does not need Landlock, which libkrunfw's lacks.
///
/// # Errors
/// [`KernelError`].
pub fn extract_for<'file>(plan: &RunPlan, file: &'file [u8]) -> Result<Kernel<'file>, KernelError> {
    let kernel = extract(file)?;
    let config = Config::of(kernel.data);
    let has = |option: &str| config.as_ref().map_or(option != Need::LANDLOCK, |it| it.has(option));
    let lacking: Vec<_> = needs(plan).into_iter().filter(|need| !has(need.option)).collect();
    if lacking.is_empty() { Ok(kernel) } else { Err(KernelError::Lacks(lacking)) }
}

/// Finds the kernel in a libkrunfw library.
fn bundle<'data>(file: &ElfFile64<'data, Endianness>) -> Result<Bundle<'data>, KernelError> {
    let symbol = |name: &str| {
        let found = file.dynamic_symbols().find(|it| it.name() == Ok(name));
        let address = found.ok_or(KernelError::NotAKernel)?.address();
        Ok(address)
    };
    let code = bytes_at(file, symbol("krunfw_get_kernel")?)?;
    let data = bytes_at(file, symbol("KERNEL_BUNDLE")?)?;
    let [load, entry, size] = stored_numbers(code).ok_or(KernelError::Unknown("code"))?;
    let length = usize::try_from(size).map_err(|_| KernelError::Unknown("size"))?;
    let data = data.get(..length).ok_or(KernelError::Unknown("size"))?;
    let loaded: Range<u64> = load..load.saturating_add(size);
    if !loaded.contains(&entry) || load % 4096 != 0 {
        return Err(KernelError::Unknown("addresses"));
    }
    Ok(Bundle { load, entry, data })
}

/// Returns the data of a section from a virtual address to the section's end.
fn bytes_at<'data>(
    file: &ElfFile64<'data, Endianness>,
    address: u64,
) -> Result<&'data [u8], KernelError> {
    let holds = |start: u64, size: u64| (start..start.saturating_add(size)).contains(&address);
    let section = file.sections().find(|it| holds(it.address(), it.size()));
    let bytes =
        section.and_then(|it| it.data().ok()?.get(usize::try_from(address - it.address()).ok()?..));
    bytes.ok_or(KernelError::Unknown("sections"))
}

/// Reads the three numbers that `krunfw_get_kernel` stores through its three pointers, in the order of the parameters.
///
/// A compiler writes each as `mov qword [register], imm32`: `REX.W C7 /0` without displacement
/// ([Intel SDM](https://www.intel.com/sdm) vol. 2, MOV). The function is a few dozen bytes long and ends with `ret`.
fn stored_numbers(code: &[u8]) -> Option<[u64; 3]> {
    let mut numbers = Vec::new();
    let mut rest = code.get(..code.len().min(128))?;
    while numbers.len() < 3 {
        if let [0x48, 0xc7, 0x00..=0x07, a, b, c, d, ..] = rest {
            numbers.push(u64::from(u32::from_le_bytes([*a, *b, *c, *d])));
            rest = &rest[7..];
        } else if let [0xc3, ..] | [] = rest {
            return None;
        } else {
            rest = &rest[1..];
        }
    }
    numbers.try_into().ok()
}

/// Returns the headers of an ELF file with one segment, and the segment's data. Trailing zeros are left out, because guest
/// memory is zero at the start.
fn wrap<'data>(bundle: &Bundle<'data>) -> (Vec<u8>, &'data [u8]) {
    const DATA_OFFSET: u64 = 0x1000;
    let length = bundle.data.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let used = &bundle.data[..length];
    let mut file = Vec::with_capacity(0x1000);
    // e_ident: 64-bit, little-endian, version 1, System V ABI.
    file.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.extend_from_slice(&elf::ET_EXEC.to_le_bytes());
    file.extend_from_slice(&elf::EM_X86_64.to_le_bytes());
    file.extend_from_slice(&1u32.to_le_bytes()); // e_version
    file.extend_from_slice(&bundle.entry.to_le_bytes());
    file.extend_from_slice(&64u64.to_le_bytes()); // e_phoff: right after this header
    file.extend_from_slice(&0u64.to_le_bytes()); // e_shoff: no sections
    file.extend_from_slice(&0u32.to_le_bytes()); // e_flags
    for half in [64u16, 56, 1, 64, 0, 0] {
        file.extend_from_slice(&half.to_le_bytes()); // sizes and counts of the headers
    }
    file.extend_from_slice(&elf::PT_LOAD.to_le_bytes());
    file.extend_from_slice(&(elf::PF_R | elf::PF_W | elf::PF_X).to_le_bytes());
    let (in_file, in_memory) = (length as u64, bundle.data.len() as u64);
    for word in [DATA_OFFSET, bundle.load, bundle.load, in_file, in_memory, 0x1000] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.resize(0x1000, 0);
    (file, used)
}

/// Finds the version in `linux_banner`, the line that the kernel prints first.
fn version(file: &[u8]) -> String {
    const BANNER: &[u8] = b"Linux version ";
    let mut after = memmem::find_iter(file, BANNER).filter_map(|at| file.get(at + BANNER.len()..));
    let starts = |rest: &&[u8]| rest.first().is_some_and(u8::is_ascii_digit);
    let Some(rest) = after.find(starts) else { return String::new() };
    let release = rest.iter().take(64).take_while(|byte| byte.is_ascii_graphic());
    format!("Linux version {}", release.map(|byte| char::from(*byte)).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_from_both_ways_that_compilers_write_them() {
        // Unoptimized: through rax, loaded from the stack in between. Optimized: through the argument registers rdi, rsi and rdx.
        let plain = b"\x55\x48\x89\xe5\x48\x8b\x45\xf8\x48\xc7\x00\x00\x00\x00\x01\x48\x8b\x45\xf0\
                      \x48\xc7\x00\x23\x01\x00\x01\x48\x8b\x45\xe8\x48\xc7\x00\x00\x00\x49\x01\x5d\xc3";
        let optimized = b"\x48\xc7\x07\x00\x00\x00\x01\x48\xc7\x06\x23\x01\x00\x01\
                          \x48\xc7\x02\x00\x00\x49\x01\xc3";
        let expected = Some([0x0100_0000, 0x0100_0123, 0x0149_0000]);
        assert_eq!(stored_numbers(plain), expected);
        assert_eq!(stored_numbers(optimized), expected);
        assert_eq!(stored_numbers(b"\x48\xc7\x07\x00\x00\x00\x01\xc3"), None);
        assert_eq!(stored_numbers(b""), None);
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        for bad in [b"".as_slice(), b"#!/bin/sh\n", b"\x7fELF", &[0; 4096]] {
            assert_eq!(extract(bad), Err(KernelError::NotAKernel));
        }
    }

    #[test]
    fn a_wrapped_kernel_is_an_elf_kernel_itself() {
        let mut data = b"code Linux version 6.12.1 (x)".to_vec();
        data.resize(8192, 0);
        let (head, used) = wrap(&Bundle { load: 0x100_0000, entry: 0x100_0001, data: &data });
        assert!(std::ptr::eq(used.as_ptr(), data.as_ptr()), "no copy");
        let elf = [&head, used].concat();
        let kernel = extract(&elf).unwrap();
        assert_eq!(kernel.version, "Linux version 6.12.1");
        assert!(kernel.head.is_empty() && std::ptr::eq(kernel.data, elf.as_slice()), "no copy");
        let file = ElfFile64::<Endianness>::parse(elf.as_slice()).unwrap();
        assert_eq!(file.entry(), 0x100_0001);
        let segment = object::Object::segments(&file).next().unwrap();
        assert_eq!(object::ObjectSegment::size(&segment), 8192);
    }
}

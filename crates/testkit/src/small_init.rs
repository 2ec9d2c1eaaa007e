//! Makes an init of less than two hundred bytes, for builds of boxes that are not booted. It is also a valid kernel.

use box_contract::wire::INIT_MARK;

/// Returns an ELF file for x86-64 with one segment. The segment has no code, but [`INIT_MARK`], by which an init is recognized.
pub fn bytes() -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // ET_EXEC, EM_X86_64.
    file.extend([2u16, 62].into_iter().flat_map(u16::to_le_bytes));
    file.extend(1u32.to_le_bytes());
    file.extend([0x40_0000u64, 64, 0].into_iter().flat_map(u64::to_le_bytes));
    file.extend(0u32.to_le_bytes());
    file.extend([64u16, 56, 1, 64, 0, 0].into_iter().flat_map(u16::to_le_bytes));
    // PT_LOAD, readable and executable.
    file.extend([1u32, 5].into_iter().flat_map(u32::to_le_bytes));
    file.extend([120u64, 0x40_0000, 0, 4, 4, 1].into_iter().flat_map(u64::to_le_bytes));
    file.extend(b"code");
    file.extend(INIT_MARK.as_bytes());
    file
}

//! Fields of the structures on the disk: little-endian numbers at known offsets.

/// Writes a field of 32 bits.
pub(crate) fn set32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..][..4].copy_from_slice(&value.to_le_bytes());
}

/// Writes the low half of `value` into a field of 16 bits.
pub(crate) fn set16(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..][..2].copy_from_slice(&value.to_le_bytes()[..2]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_little_endian() {
        let mut bytes = [0; 8];
        set32(&mut bytes, 1, 0x1122_3344);
        set16(&mut bytes, 6, 0x5566_7788);
        assert_eq!(bytes, [0, 0x44, 0x33, 0x22, 0x11, 0, 0x88, 0x77]);
    }
}

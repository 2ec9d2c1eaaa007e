//! CRC-32C (Castagnoli), with which ext4 protects its metadata.

/// Continues the checksum `crc` over `bytes` without inversion, as the kernel's `crc32c()`. A new one starts from `u32::MAX`.
pub(crate) fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!crc, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, B.4: the examples of iSCSI, which inverts the result.
    #[test]
    fn the_examples_of_rfc_3720_hold() {
        let ascending: Vec<u8> = (0..32).collect();
        for (bytes, expected) in [
            ([0; 32].as_slice(), 0x8A91_36AA),
            (&[0xFF; 32], 0x62A8_AB43),
            (&ascending, 0x46DD_794E),
            (b"123456789", 0xE306_9283),
        ] {
            assert_eq!(!crc32c(u32::MAX, bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_checksum_continues_another() {
        let whole = crc32c(u32::MAX, b"123456789");
        assert_eq!(crc32c(crc32c(u32::MAX, b"1234"), b"56789"), whole);
    }
}

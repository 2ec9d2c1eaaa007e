//! CRC-32C (Castagnoli) as the kernel's `crc32c()` computes it: no inversion at the end.

/// The polynomial 0x1EDC6F41 with its bits reversed.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// The effect of each byte on the remainder.
const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        table[byte as usize] = remainder(byte);
        byte += 1;
    }
    table
}

const fn remainder(mut value: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
        bit += 1;
    }
    value
}

/// Returns the checksum of `bytes`, started from all ones.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, &byte| {
        let [low, ..] = crc.to_le_bytes();
        crc >> 8 ^ TABLE[usize::from(low ^ byte)]
    })
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
            assert_eq!(!crc32c(bytes), expected, "{bytes:?}");
        }
    }
}

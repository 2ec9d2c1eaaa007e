//! Sizes as people read them.

/// Writes a number of bytes with the largest fitting binary unit.
pub(crate) fn readable(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(size);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        let sizes = [0, 1023, 1024, 1_572_864, 1 << 33, u64::MAX].map(readable);
        let expected =
            ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 MiB", "8.0 GiB", "17179869183.9 GiB"];
        assert_eq!(sizes, expected);
    }
}

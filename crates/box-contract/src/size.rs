//! Sizes with their units, as Boxfiles and command lines have them.

use safe_text::BINARY;

/// The units of a size, and their bytes.
pub const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    BINARY[2],
    BINARY[1],
    BINARY[0],
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// The form of a size, for people.
pub const FORM: &str =
    "a size is a whole number and one of B, KiB, MiB, GiB, KB, MB, GB: \"512MiB\"";

/// Reads a size in bytes, such as `512MiB`; returns `None` for anything else, and above 64 bits.
pub fn parse(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Writes a size as [`parse`] reads it, in the greatest binary unit that gives a whole number.
/// [`readable`](safe_text::readable) is for people, and rounds.
pub fn written(bytes: u64) -> String {
    let whole = BINARY.into_iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    let (unit, factor) = whole.unwrap_or(UNITS[0]);
    format!("{}{unit}", bytes / factor)
}

/// Splits a text after its first digits.
pub fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_whole_number_and_a_unit() {
        assert_eq!(parse("512MiB"), Some(512 << 20));
        assert_eq!(parse("1KB"), Some(1000));
        for size in ["0B", "1000B", "1KiB", "1025KiB", "1537MiB", "3GiB"] {
            assert_eq!(written(parse(size).unwrap()), size);
        }
        for bad in ["", "1", "MiB", "-1B", "+1B", "1.5GiB", "1 GiB", "1gib", "99999999999999GiB"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}

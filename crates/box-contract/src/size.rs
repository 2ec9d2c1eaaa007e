//! Parses and formats sizes with units, for Boxfiles and command lines.

use safe_text::BINARY;

/// The units of sizes with their numbers of bytes.
pub const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    BINARY[2],
    BINARY[1],
    BINARY[0],
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Describes the form of a size, for error messages.
pub const FORM: &str =
    "a size is a whole number and one of B, KiB, MiB, GiB, KB, MB, GB: \"512MiB\"";

/// Parses a size, such as `512MiB`, and returns its bytes. Returns `None` for other texts, such as `512 MiB`, and for
/// sizes over 64 bits.
///
/// # Examples
/// ```
/// use box_contract::size;
///
/// assert_eq!(size::parse("10MiB"), Some(10 << 20));
/// assert_eq!(size::parse("10 MiB"), None);
/// assert_eq!(size::written(1536 << 20), "1536MiB");
/// ```
pub fn parse(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Returns the size that a text with another unit probably means, as [`parse`] accepts it: `64m` means `64MiB`, and `1T` `1024GiB`. Short
/// units are binary, as in docker.
pub fn intended(text: &str) -> Option<String> {
    let (number, unit) = split(text);
    let (unit, factor) = match unit.trim().to_ascii_lowercase().as_str() {
        "bytes" => ("B", 1),
        "k" | "ki" => ("KiB", 1),
        "m" | "mi" => ("MiB", 1),
        "g" | "gi" => ("GiB", 1),
        "t" | "ti" | "tib" => ("GiB", 1 << 10),
        unit => (UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.0, 1),
    };
    let number = number.parse::<u64>().ok()?.checked_mul(factor)?;
    let intended = format!("{number}{unit}");
    parse(&intended).map(|_| intended)
}

/// Parses a size of a command line, where short units and lower case are common: `512MiB`, `512m` or `1T`.
///
/// # Examples
/// ```
/// use box_contract::size;
///
/// assert_eq!(size::of_option("512m"), Some(512 << 20));
/// assert_eq!(size::of_option("512"), None);
/// ```
pub fn of_option(text: &str) -> Option<u64> {
    let is_word = text.bytes().all(|it| it.is_ascii_alphanumeric());
    intended(text).filter(|_| is_word).and_then(|it| parse(&it))
}

/// Formats a size as [`parse`] accepts it, in the greatest binary unit that gives a whole number. For display, use
/// [`readable`](safe_text::readable), which rounds.
pub fn written(bytes: u64) -> String {
    let whole = BINARY.into_iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    let (unit, factor) = whole.unwrap_or(UNITS[0]);
    format!("{}{unit}", bytes / factor)
}

/// Splits a text after its leading digits.
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

    #[test]
    fn near_misses_of_sizes_are_understood() {
        assert_eq!(intended("64m").as_deref(), Some("64MiB"));
        assert_eq!(intended("64 MiB").as_deref(), Some("64MiB"));
        assert_eq!(intended("1 gb").as_deref(), Some("1GB"));
        assert_eq!(intended("512mb").as_deref(), Some("512MB"));
        assert_eq!(intended("512mib").as_deref(), Some("512MiB"));
        assert_eq!(intended("2T").as_deref(), Some("2048GiB"));
        for text in ["64", "m", "1.5GiB", "99999999999999999999m", "99999999999T"] {
            assert_eq!(intended(text), None, "{text}");
        }
    }

    #[test]
    fn an_option_takes_short_units() {
        let sizes = [("512MiB", 512 << 20), ("512M", 512 << 20), ("4g", 4 << 30), ("1KB", 1000)];
        assert!(sizes.iter().all(|(text, bytes)| of_option(text) == Some(*bytes)));
        assert!(["", "1", "1 G", "-1G", "1.5G", "G"].iter().all(|it| of_option(it).is_none()));
    }
}

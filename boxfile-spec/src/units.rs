//! Sizes and durations with their units.

pub(crate) use box_contract::size::{
    FORM as SIZE_FORM, intended as intended_size, parse as size, written as show_size,
};

/// Bytes of a MiB.
pub(crate) const MIB: u64 = 1 << 20;
/// Bytes of a GiB.
pub(crate) const GIB: u64 = 1 << 30;

/// The help for a malformed duration.
pub(crate) const DURATION_FORM: &str = "a duration is a number and ms, s, m or h, down to the millisecond: \"500ms\", \"1.5s\", \"10m\"";

/// Reads a duration in milliseconds: `500ms`, `1.5s`, `10m` or `2h`. Returns `None` for anything else, for example for
/// `10 m`, for fractions of a millisecond, and above 64 bits.
pub(crate) fn duration(text: &str) -> Option<u64> {
    if let Some(number) = text.strip_suffix("ms") {
        return digits(number);
    }
    for (unit, ms) in [("m", 60_000), ("h", 3_600_000)] {
        if let Some(number) = text.strip_suffix(unit) {
            return digits(number)?.checked_mul(ms);
        }
    }
    let number = text.strip_suffix('s')?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "000"));
    if fraction.is_empty() || fraction.len() > 3 {
        return None;
    }
    let thousandths = digits(&format!("{fraction:0<3}"))?;
    digits(whole)?.checked_mul(1000)?.checked_add(thousandths)
}

/// Writes a duration of `ms` milliseconds: in seconds if it is a whole number of seconds (`3s`), else in milliseconds
/// (`1500ms`).
pub(crate) fn show_duration(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

/// Reads a number that consists of ASCII digits only: `parse` alone would accept a sign.
fn digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0B", 0),
            ("64MiB", 64 * MIB),
            ("2GiB", 2 * GIB),
            ("1KiB", 1024),
            ("1KB", 1000),
            ("3MB", 3_000_000),
            ("1GB", 1_000_000_000),
            ("18446744073709551615B", u64::MAX),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "64",
            "MiB",
            "64 MiB",
            "64mib",
            "64M",
            "1.5GiB",
            "-1B",
            "+1B",
            "18446744073709551616B",
            "17179869184GiB",
        ] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, ms) in [
            ("500ms", 500),
            ("3s", 3000),
            ("1.5s", 1500),
            ("0.001s", 1),
            ("0s", 0),
            ("1.05s", 1050),
            ("10m", 600_000),
            ("2h", 7_200_000),
        ] {
            assert_eq!(duration(text), Some(ms), "{text}");
        }
        for text in [
            "",
            "s",
            "ms",
            "5",
            "1.5ms",
            "1.5m",
            "m",
            "1d",
            "5124095576031h",
            "1.s",
            ".5s",
            "1.0005s",
            "-1s",
            "+1s",
            "1.+5s",
            "1 s",
            "99999999999999999999s",
            "18446744073709551s9",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(number in any::<u64>()) {
            prop_assert_eq!(size(&show_size(number)), Some(number));
            prop_assert_eq!(duration(&show_duration(number)), Some(number));
        }
    }
}

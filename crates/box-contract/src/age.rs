//! Parses times with units, for command lines.

use crate::size::split;

/// Parses a time such as `90s`, `10m`, `12h` or `7d`, and returns its seconds. Returns `None` for other texts, such as `10 m`,
/// and for times over 64 bits.
pub fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_whole_number_and_a_unit() {
        let times = ["90s", "10m", "12h", "7d"].map(seconds);
        assert_eq!(times, [90, 600, 43_200, 604_800].map(Some));
        for wrong in ["", "s", "5", "-1s", "+1s", "1w", "1.5h", "10 m", "9999999999999999999d"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}

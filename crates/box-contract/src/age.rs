//! Times: ages with units, for command lines, and points in time for people.

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

/// Shows a time in seconds since 1970 as UTC: `2023-11-14 22:13:20` (the proleptic Gregorian calendar).
pub fn utc(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 0000-03-01, so that a leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00"),
            (1_700_000_000, "2023-11-14 22:13:20"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
        for extreme in [i64::MIN, i64::MAX] {
            assert!(utc(extreme).ends_with(|it: char| it.is_ascii_digit()));
        }
    }

    #[test]
    fn a_time_has_a_whole_number_and_a_unit() {
        let times = ["90s", "10m", "12h", "7d"].map(seconds);
        assert_eq!(times, [90, 600, 43_200, 604_800].map(Some));
        for wrong in ["", "s", "5", "-1s", "+1s", "1w", "1.5h", "10 m", "9999999999999999999d"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}

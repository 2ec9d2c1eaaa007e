//! Points in time on the command line.

use box_contract::age;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// Milliseconds before now.
    Ago(u64),
    /// Milliseconds since 1970.
    At(u64),
}

impl Since {
    /// Returns the point in milliseconds since 1970.
    pub(crate) const fn time_ms(self, now: u64) -> u64 {
        match self {
            Self::Ago(ms) => now.saturating_sub(ms),
            Self::At(ms) => ms,
        }
    }
}

/// Parses a point in time: a duration before now, such as `90s`, or seconds since 1970, such as `1700000000`.
pub(crate) fn since(text: &str) -> Result<Since, &'static str> {
    let wrong = "write how long ago, as 90s, 10m, 2h or 1d, or a time in seconds since 1970";
    if let Ok(number) = text.parse::<u64>() {
        return number.checked_mul(1000).map(Since::At).ok_or(wrong);
    }
    // Accepts a sign in front, for example `+90s`.
    let ago = age::seconds(text.strip_prefix('+').unwrap_or(text));
    ago.and_then(|it| it.checked_mul(1000)).map(Since::Ago).ok_or(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_points_or_distances() {
        assert_eq!(since("90s"), Ok(Since::Ago(90_000)));
        assert_eq!(since("2h"), Ok(Since::Ago(7_200_000)));
        assert_eq!(since("1700000000"), Ok(Since::At(1_700_000_000_000)));
        for wrong in
            ["", "s", "-1s", "1w", "1.5h", "10 m", "99999999999999999999", "9999999999999999999d"]
        {
            assert!(since(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Since::Ago(5).time_ms(3), 0);
    }
}

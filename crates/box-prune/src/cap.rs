//! The size limit of a store.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use box_contract::{age, size};
use rustix::fs::statvfs;
use safe_text::shown;

/// The environment variable with the size limit of the store, for example `50G`, `0` or `none`.
pub const VARIABLE: &str = "BOXBUILD_STORE_MAX";
/// The default limit on a large disk.
const MAX_DEFAULT: u64 = 20 << 30;
/// The default limit is at most this fraction of the disk: a tenth.
const PART: u64 = 10;

/// The size limit of a store.
///
/// ```
/// use box_prune::Cap;
///
/// assert_eq!(Cap::parse("50G"), Ok(Cap::Bytes(50 << 30)));
/// assert_eq!(Cap::parse("none"), Ok(Cap::None));
/// assert!(Cap::parse("50").is_err());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cap {
    /// 20 GiB, or a tenth of the store's disk if that is less.
    #[default]
    Default,
    /// A number of bytes.
    Bytes(u64),
    /// No limit.
    None,
}

impl Cap {
    /// Parses the value of the option `--max-size`.
    ///
    /// # Errors
    /// A message with the expected form.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let wrong = "write a size such as 50G or 512MiB, 0, or none";
        match text {
            "none" => Ok(Self::None),
            "0" => Ok(Self::Bytes(0)),
            _ => size::of_option(text).map(Self::Bytes).ok_or(wrong),
        }
    }

    /// Parses the value of [`VARIABLE`].
    ///
    /// # Errors
    /// A message with the variable and its value.
    pub fn from_variable(value: Option<OsString>) -> Result<Self, String> {
        let Some(value) = value.filter(|it| !it.is_empty()) else { return Ok(Self::Default) };
        let text = value.to_string_lossy();
        let wrong = || format!("{VARIABLE} is {:?}, which is not a size", shown(&text));
        Self::parse(&text).map_err(|_| wrong())
    }

    /// Returns the limit in bytes for the store in the directory `root`, or `None` if there is no limit. The default is 20 GiB if
    /// the size of the disk is unknown because [statvfs(3)](https://man7.org/linux/man-pages/man3/statvfs.3.html) fails.
    pub fn bytes(self, root: &Path) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes(bytes) => Some(bytes),
            Self::Default => {
                let disk = statvfs(root).ok();
                let size = disk.map_or(0, |it| it.f_blocks.saturating_mul(it.f_frsize));
                Some(if size == 0 { MAX_DEFAULT } else { MAX_DEFAULT.min(size / PART) })
            }
        }
    }
}

/// Parses the time since the last use, for example `12h`.
///
/// # Errors
/// A message with the expected form.
pub fn age(text: &str) -> Result<Duration, &'static str> {
    age::seconds(text).map(Duration::from_secs).ok_or("write a time such as 90s, 10m, 12h or 7d")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_unless_it_is_nothing() {
        for (text, cap) in [
            ("0", Cap::Bytes(0)),
            ("none", Cap::None),
            ("50G", Cap::Bytes(50 << 30)),
            ("50g", Cap::Bytes(50 << 30)),
            ("2T", Cap::Bytes(2 << 40)),
            ("512MiB", Cap::Bytes(512 << 20)),
            ("1GB", Cap::Bytes(1_000_000_000)),
        ] {
            assert_eq!(Cap::parse(text), Ok(cap));
        }
        for wrong in ["", "50", "G", "-1G", "1.5G", "1 G", "None", "99999999999T"] {
            assert!(Cap::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_default_is_a_part_of_a_disk_that_is_small() {
        let directory = tempfile::tempdir().unwrap();
        let disk = statvfs(directory.path()).unwrap();
        let tenth = disk.f_blocks * disk.f_frsize / 10;
        assert_eq!(Cap::Default.bytes(directory.path()), Some(tenth.min(20 << 30)));
        assert_eq!(Cap::Default.bytes(Path::new("/none")), Some(20 << 30));
        assert_eq!(Cap::None.bytes(directory.path()), None);
    }

    #[test]
    fn the_variable_that_is_wrong_is_named() {
        let read = |text: &str| Cap::from_variable(Some(text.into()));
        assert_eq!((Cap::from_variable(None), read("")), (Ok(Cap::Default), Ok(Cap::Default)));
        assert_eq!(read("0"), Ok(Cap::Bytes(0)));
        let wrong = read("much").unwrap_err();
        assert!(wrong.starts_with("BOXBUILD_STORE_MAX is \"much\","), "{wrong}");
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(age("7d"), Ok(Duration::from_secs(7 * 24 * 60 * 60)));
        assert_eq!(age("0s"), Ok(Duration::ZERO));
        for wrong in ["", "7", "d", "1w", "-1s", "99999999999999999999s", "9999999999999999999d"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}

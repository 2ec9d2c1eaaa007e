//! The values of the options of `boxlaunch run`.

use std::fmt::Display;
use std::str::FromStr;

use box_contract::age;
use box_contract::rules::{MAX_SCRATCH_BYTES, MAX_TIMEOUT, MIN_DISK_BYTES};
use boxlaunch::boxes::is_entry_name;
use boxlaunch::host::state_dir::ENTRY_NAME_FORM;
use boxlaunch::mounts::roots_disk::DiskChoice;
use boxlaunch::mounts::volumes::VolumePlace;
use cli_common::size_between;
use egress_rules::Local;

/// The longest `--lifetime` and `--idle`, in seconds: a year.
const MAX_LIFETIME: u32 = 365 * 24 * 60 * 60;

/// Parses a value of `--disk`: `none`, or a size.
pub(super) fn disk_choice(text: &str) -> Result<DiskChoice, String> {
    if text == DiskChoice::Memory.to_string() {
        return Ok(DiskChoice::Memory);
    }
    let size = size_between(MIN_DISK_BYTES, MAX_SCRATCH_BYTES, None)(text);
    size.map(DiskChoice::Size).map_err(|reason| format!("{reason}, or `none`"))
}

/// Parses a value of `--network-local`: an address, a network or `localhost`, with an optional port. For example,
/// `127.0.0.1:5432`.
pub(super) fn local_host(text: &str) -> Result<Local, String> {
    let address = match text.strip_prefix("localhost") {
        Some(port) if port.is_empty() || port.starts_with(':') => format!("127.0.0.1{port}"),
        _ => text.to_owned(),
    };
    let form = if is_host_name(text) {
        "names are not allowed: write an address, such as 10.0.0.1:5432"
    } else {
        "write an address or a network, such as 127.0.0.1:5432, 10.0.0.0/8 or [fd00::1]:443"
    };
    Local::parse(&address).ok_or_else(|| form.to_owned())
}

/// Returns whether a text is a host's name with an optional port, and not an address. An address of IPv6 has several colons.
fn is_host_name(text: &str) -> bool {
    text.contains(|it: char| it.is_ascii_alphabetic()) && text.matches(':').count() <= 1
}

/// Parses a value of `--name`.
pub(super) fn entry_name(text: &str) -> Result<String, &'static str> {
    if is_entry_name(text) { Ok(text.to_owned()) } else { Err(ENTRY_NAME_FORM) }
}

/// Parses a value of `--volume`.
pub(super) fn volume_place(text: &str) -> Result<VolumePlace, String> {
    let is_path = text.starts_with(['.', '/']) && text.contains(':');
    let more = if is_path { "; for a directory of the host there is --share" } else { "" };
    text.parse().map_err(|reason: String| reason + more)
}

/// Parses a whole number from `least` to `most`.
pub(super) fn whole_number<N: FromStr + PartialOrd + Display + Copy>(
    least: N,
    most: N,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|it| (least..=most).contains(it));
        number.ok_or_else(|| format!("write a whole number from {least} to {most}"))
    }
}

/// Parses an amount of memory, and returns whole MiB.
pub(super) fn mebibytes(least: u32, most: u32) -> impl Fn(&str) -> Result<u32, String> + Clone {
    let bytes = |mib: u32| u64::from(mib) << 20;
    let size = size_between(bytes(least), bytes(most), Some(bytes(1)));
    move |text| size(text).map(|it| u32::try_from(it >> 20).unwrap_or(most))
}

/// Parses a time that is at least `least` seconds, and returns its seconds: `90`, or with a unit `90s`, `15m`, `2h`, `1d`.
pub(in crate::cli) fn seconds(least: u32) -> impl Fn(&str) -> Result<u32, String> + Clone {
    time(least, MAX_TIMEOUT)
}

/// Parses a time from 1 second to [`MAX_LIFETIME`], as [`seconds`] does.
pub(super) fn lifetime() -> impl Fn(&str) -> Result<u32, String> + Clone {
    time(1, MAX_LIFETIME)
}

fn time(least: u32, most: u32) -> impl Fn(&str) -> Result<u32, String> + Clone {
    move |text| {
        let with_unit = || age::seconds(text).and_then(|it| u32::try_from(it).ok());
        let number = text.parse().ok().or_else(with_unit);
        number.filter(|it| (least..=most).contains(it)).ok_or_else(|| {
            format!("write a number of seconds from {least} to {most}, or a time with s, m, h or d, such as 15m")
        })
    }
}

/// Parses a time limit from a millisecond to [`MAX_TIMEOUT`], and returns milliseconds: as [`seconds`] does, and also `0.5`, `1.5s` and
/// `500ms`.
pub(in crate::cli) fn milliseconds(text: &str) -> Result<u64, String> {
    let with_unit = || age::seconds(text)?.checked_mul(1000);
    let number = match text.strip_suffix("ms") {
        Some(number) => number.parse().ok(),
        None => decimal(text.strip_suffix('s').unwrap_or(text)).or_else(with_unit),
    };
    let most = u64::from(MAX_TIMEOUT) * 1000;
    number.filter(|it| (1..=most).contains(it)).ok_or_else(|| {
        format!("write a time from 1ms to {MAX_TIMEOUT} seconds, such as 90, 0.5, 500ms or 15m")
    })
}

/// Parses seconds with at most three decimals, and returns milliseconds.
fn decimal(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 3 {
        return None;
    }
    let milliseconds: u64 = format!("{decimals:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_can_be_less_than_a_second() {
        for (text, expected) in [
            ("90", 90_000),
            ("0.5", 500),
            ("1.25s", 1250),
            ("0.001", 1),
            ("500ms", 500),
            ("2s", 2000),
            ("15m", 900_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(milliseconds(text), Ok(expected), "{text}");
        }
        for text in
            ["", "0", "0ms", ".5", "1.", "0.0001", "-1", "1.5m", "2d", "s", "ms", "+1", "1e3"]
        {
            milliseconds(text).unwrap_err();
        }
    }
}

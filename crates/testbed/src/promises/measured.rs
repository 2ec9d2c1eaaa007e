//! The last measurements of the promises, in SPECIFICATION.md.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{ALL, Bound, Promise};

/// The environment variable with the file to which [`Promise::check`] adds each measured value. A line has the time in seconds since
/// 1970, the value and the promise: `1796023020 102.8 examples/hello is ready …`.
pub const MEASURED: &str = "BOXBUILD_TESTS_MEASURED";

/// The name of this file in the build output.
pub const MEASURED_FILE: &str = "measured";

/// A value, and when it was measured, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Value {
    number: f64,
    seconds: u64,
}

/// Adds a value to the file of [`MEASURED`].
pub(super) fn note(promise: &Promise, value: f64) {
    if let Some(path) = std::env::var_os(MEASURED) {
        note_to(Path::new(&path), promise, value);
    }
}

/// Adds a value to a file like that of [`MEASURED`], unless it breaks the promise.
pub fn note_to(path: &Path, promise: &Promise, value: f64) {
    if !promise.is_kept_by(value) {
        return;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let line = format!("{now} {value} {}\n", promise.what);
    let file = File::options().create(true).append(true).open(path);
    // A check does not fail because its value is lost.
    drop(file.and_then(|mut file| file.write_all(line.as_bytes())));
}

/// Returns SPECIFICATION.md with the values of the file of [`MEASURED`]. A row without a value there stays as it is. Of several values
/// of a promise, the worst one of the last day counts. `date` returns the date of a time: `2026-11-30`.
///
/// # Errors
/// The error of `date`.
pub fn with_measured<E>(
    page: &str,
    noted: &str,
    mut date: impl FnMut(u64) -> Result<String, E>,
) -> Result<String, E> {
    let values = values(noted);
    let mut lines = Vec::new();
    for line in page.lines() {
        let what = line.strip_prefix("| ").and_then(|row| row.split(" | ").next());
        let promise = ALL.iter().find(|(_, promise)| Some(promise.what) == what);
        let value = promise.and_then(|(_, promise)| Some((promise, values.get(promise.what)?)));
        lines.push(match (value, line.rsplit_once(" | ")) {
            (Some((promise, value)), Some((row, _))) => {
                let shown = format!("{} {}", rounded(value.number), promise.unit);
                format!("{row} | {}, {} |", shown.trim_end(), date(value.seconds)?)
            }
            _ => line.to_owned(),
        });
    }
    Ok(lines.join("\n") + "\n")
}

fn values(noted: &str) -> BTreeMap<&'static str, Value> {
    const DAY: u64 = 24 * 60 * 60;
    let mut values: BTreeMap<&str, Value> = BTreeMap::new();
    for line in noted.lines() {
        let Some((promise, new)) = parse(line) else { continue };
        let is_worse = |old: &Value| match promise.bound {
            Bound::AtMost | Bound::Exactly => new.number > old.number,
            Bound::AtLeast => new.number < old.number,
        };
        let keeps = values
            .get(promise.what)
            .is_some_and(|old| old.seconds + DAY > new.seconds && !is_worse(old));
        if !keeps {
            values.insert(promise.what, new);
        }
    }
    values
}

fn parse(line: &str) -> Option<(&'static Promise, Value)> {
    let mut words = line.splitn(3, ' ');
    let value = Value { seconds: words.next()?.parse().ok()?, number: words.next()?.parse().ok()? };
    let what = words.next()?;
    ALL.iter().find(|(_, promise)| promise.what == what).map(|(_, promise)| (promise, value))
}

/// Returns a number with three digits, or all digits before the point: `0.734`, `9.05`, `102.8`, `2353`.
fn rounded(number: f64) -> String {
    let decimals = match number.abs() {
        0.0..10.0 => 2,
        10.0..1000.0 => 1,
        _ => 0,
    };
    let text = format!("{number:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promises::{BOX_INIT_SIZE, HELLO_START, SHARED_BASE};

    fn dated(page: &str, noted: &str) -> String {
        with_measured(page, noted, |seconds| Ok::<_, ()>(format!("day {seconds}"))).unwrap()
    }

    #[test]
    fn the_worst_value_of_the_last_day_replaces_the_old_one() {
        let (start, base) = (HELLO_START.what, SHARED_BASE.what);
        let page = format!(
            "# Title\n| {start} | at most 1 | `t` | 9 ms, old |\n| {base} | x | `t` | 1 MiB, old |\n"
        );
        let noted = format!(
            "5 103.26 {start}\n6 101 {start}\nhalf a li\n7 100.61 {base}\n8 101.5 {base}\n"
        );
        let expected = format!(
            "# Title\n| {start} | at most 1 | `t` | 103.3 ms, day 5 |\n| {base} | x | `t` | 100.6 MiB, day 7 |\n"
        );
        assert_eq!(dated(&page, &noted), expected);
        let later = format!("{noted}900000 99 {start}\n");
        assert!(dated(&page, &later).contains("| 99 ms, day 900000 |"));
        assert_eq!(dated(&page, ""), page);
    }

    #[test]
    fn a_number_has_three_digits_or_all_before_the_point() {
        let rounded = [0.734, 9.049, 20.0, 102.84, 2353.4].map(rounded);
        assert_eq!(rounded, ["0.73", "9.05", "20", "102.8", "2353"]);
    }

    #[test]
    fn a_check_notes_its_value_as_it_is_read() {
        let line = format!("7 2353.5 {}", BOX_INIT_SIZE.what);
        let (promise, value) = parse(&line).unwrap();
        assert_eq!(
            (promise.what, value),
            (BOX_INIT_SIZE.what, Value { number: 2353.5, seconds: 7 })
        );
    }
}

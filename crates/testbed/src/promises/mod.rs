//! The numbers that the project promises to its users.
//!
//! Tests and benchmarks take the limits that they check from these constants, and SPECIFICATION.md lists all of them. The
//! test of this module compares the document with the constants. It also searches the number on each page that repeats
//! it, so that all pages have the same number.
//!
//! A limit never gets worse without a reason: see `best.rs`.

#[cfg(test)]
mod best;
mod list;
mod measured;

pub use list::*;
pub use measured::{MEASURED, MEASURED_FILE, note_to, with_measured};

/// How a measured value is compared with the number of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The value must not be greater than the number.
    AtMost,
    /// The value must not be less than the number.
    AtLeast,
    /// The value must be equal to the number.
    Exactly,
}

impl Bound {
    /// Returns the words before a limit.
    const fn words(self) -> &'static str {
        match self {
            Self::AtMost => "at most",
            Self::AtLeast => "at least",
            Self::Exactly => "",
        }
    }
}

/// A number that the project promises, and the test that checks it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promise {
    /// The promise, with the wording of SPECIFICATION.md.
    pub what: &'static str,
    /// How a measured value compares with the number.
    pub bound: Bound,
    /// The number.
    pub number: f64,
    /// The unit of the number. Empty for a plain count or a ratio.
    pub unit: &'static str,
    /// What checks the promise: `FILE::TEST`, or the command of a benchmark.
    pub held_by: &'static str,
    /// Other files that repeat the number: each with the surrounding text, in which `{}` stands for the number.
    pub repeated: &'static [(&'static str, &'static str)],
}

impl Promise {
    /// Returns whether a measured value keeps the promise.
    pub fn is_kept_by(&self, value: f64) -> bool {
        match self.bound {
            Bound::AtMost => value <= self.number,
            Bound::AtLeast => value >= self.number,
            Bound::Exactly => (value - self.number).abs() < 1e-9,
        }
    }

    /// Returns the number with its bound and unit: `at most 105 ms`.
    pub fn limit(&self) -> String {
        let limit = format!("{} {} {}", self.bound.words(), self.digits(), self.unit);
        limit.trim().to_owned()
    }

    /// Returns the number in the format of the pages: `105`, `1.25`, `12,000`.
    fn digits(&self) -> String {
        let text = self.number.to_string();
        match text.len().checked_sub(3) {
            Some(at @ 2..) if !text.contains('.') => format!("{},{}", &text[..at], &text[at..]),
            _ => text,
        }
    }

    /// Checks a measured value, in the promise's unit, and prints it. A test shows it with `--nocapture`.
    ///
    /// # Panics
    /// The value breaks the promise.
    #[track_caller]
    #[allow(clippy::print_stdout, reason = "only tests and benchmarks call it")]
    pub fn check(&self, value: f64) {
        let (what, limit) = (self.what, self.limit());
        let measured = format!("{value} {}", self.unit);
        let measured = measured.trim_end();
        println!("{what}: {measured} measured, {limit} promised");
        measured::note(self, value);
        assert!(self.is_kept_by(value), "{what}: {measured} measured, {limit} promised");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Workspace;

    /// A row of a table of SPECIFICATION.md.
    struct Row<'a> {
        what: &'a str,
        limit: &'a str,
        held_by: &'a str,
        measured: &'a str,
    }

    fn rows(page: &str) -> Vec<Row<'_>> {
        let cells = |line| {
            let line: &str = str::strip_prefix(line, "| ")?.strip_suffix(" |")?;
            let [what, limit, held_by, measured] = line.split(" | ").collect::<Vec<_>>()[..] else {
                panic!("a row of SPECIFICATION.md has four cells: {line}");
            };
            Some(Row { what, limit, held_by, measured })
        };
        page.lines().filter_map(cells).filter(|row| row.what != "promise").collect()
    }

    fn read(path: &str) -> String {
        fs::read_to_string(Workspace::find().path(path)).unwrap_or_else(|it| panic!("{path}: {it}"))
    }

    #[test]
    fn the_specification_has_each_promise_with_its_number_and_its_test() {
        let page = read("SPECIFICATION.md");
        let listed: Vec<_> = rows(&page)
            .iter()
            .map(|row| format!("{} | {} | {}", row.what, row.limit, row.held_by))
            .collect();
        let row = |it: &Promise| format!("{} | {} | `{}`", it.what, it.limit(), it.held_by);
        let promised: Vec<_> = ALL.iter().map(|(_, promise)| row(promise)).collect();
        for (listed, promised) in listed.iter().zip(&promised) {
            assert_eq!(listed, promised, "a row of SPECIFICATION.md, and its constant");
        }
        assert_eq!(listed.len(), promised.len(), "rows of SPECIFICATION.md, and constants");
    }

    #[test]
    fn the_values_of_today_keep_the_promises() {
        let page = read("SPECIFICATION.md");
        for (row, (_, promise)) in rows(&page).iter().zip(ALL) {
            let (measured, date) = row.measured.rsplit_once(", ").unwrap_or_default();
            let number = measured.split(' ').next().unwrap_or_default().replace(',', "");
            let value = number.parse().unwrap_or_else(|it| panic!("{}: {it}", row.measured));
            assert!(promise.is_kept_by(value), "{}: {measured}", row.what);
            assert!(has_room(promise, value), "{}: {value} is too near or too far", row.what);
            assert!(measured.ends_with(promise.unit), "{measured} has another unit");
            let date = date.trim_start_matches("before ");
            assert!(date.starts_with("20") && date.len() == 10, "{}: {date} is no date", row.what);
        }
    }

    /// Returns whether the limit is 10 % to 50 % greater than the last value (less, for [`Bound::AtLeast`]). So a small change
    /// does not break the promise, but a large one does.
    fn has_room(promise: &Promise, value: f64) -> bool {
        match promise.bound {
            Bound::AtMost => (1.1..=1.5).contains(&(promise.number / value)),
            Bound::AtLeast => (1.1..=1.5).contains(&(value / promise.number)),
            Bound::Exactly => true,
        }
    }

    #[test]
    fn each_promise_is_used_by_the_test_that_holds_it() {
        for (name, promise) in ALL.iter().chain(COUNTS) {
            let (file, test) = match promise.held_by.split_once("::") {
                Some((file, test)) => (file, format!("fn {test}()")),
                None => ("tests/bench/src/promised.rs", String::new()),
            };
            let source = read(file);
            assert!(source.contains(&test), "{file} has no {test}");
            // An import of the constant is not enough: the code must use it.
            let imported =
                source.split_once("promises::").and_then(|(_, rest)| rest.split_once(';'));
            let code = imported.map_or(&*source, |(_, code)| code);
            assert!(code.contains(name), "{file} does not use {name}");
        }
    }

    #[test]
    fn other_pages_repeat_the_same_numbers() {
        for (name, promise) in ALL.iter().chain(COUNTS) {
            for (file, text) in promise.repeated {
                let text = text.replace("{}", &promise.digits());
                assert!(read(file).contains(&text), "{file} has no {text:?}, as {name} promises");
            }
        }
    }

    #[test]
    fn a_value_is_compared_as_the_bound_says() {
        let promise = |bound| Promise { bound, number: 2.0, ..HELLO_START };
        let kept = |bound| [1.0, 2.0, 3.0].map(|value| promise(bound).is_kept_by(value));
        assert_eq!(kept(Bound::AtMost), [true, true, false]);
        assert_eq!(kept(Bound::AtLeast), [false, true, true]);
        assert_eq!(kept(Bound::Exactly), [false, true, false]);
        assert_eq!(promise(Bound::AtMost).limit(), "at most 2 ms");
        let count = Promise { number: 12_000.0, unit: "", ..promise(Bound::Exactly) };
        assert_eq!(count.limit(), "12,000");
    }

    #[test]
    #[should_panic(expected = "116 ms measured, at most 115 ms promised")]
    fn a_broken_promise_is_named() {
        HELLO_START.check(116.0);
    }
}

//! Test programs in pieces: each piece is a process that runs some of a program's tests.

use std::sync::Arc;

use super::programs::TestProgram;
use super::times::Times;

/// The programs whose tests of one module share what is made once in a process, such as a start of the
/// virtual host: a module is never split.
pub(super) const SHARING: [&str; 1] = ["boxbuild-tests --test boot"];
/// The programs that start those of the project. Another one may do so too, but then waits for cargo in its
/// lane.
pub(super) const NEEDING_PROGRAMS: [&str; 7] = [
    "boxbuild-tests --test boot",
    "boxbuild-tests --test build",
    "boxbuild-tests --test export",
    "boxbuild-tests --test merged",
    "boxbuild-tests --test show",
    "testkit --test reproducible",
    "testkit --test vmhost",
];
/// A program is split so that each lane gets about this many of the longest pieces: the last ones to end
/// leave no processor idle for long.
const PIECES_OF_A_LANE: f64 = 4.0;
/// The shortest piece that is worth a process of its own, in seconds: many programs look at first whether
/// boxbuild is up to date.
const SHORTEST: f64 = 5.0;

/// Some tests of a program, which run in one process.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) program: Arc<TestProgram>,
    /// The tests to run; none is named where the process runs all that the program has.
    pub(super) tests: Vec<String>,
    /// The seconds that it will take.
    pub(super) expected: f64,
    /// Its number among the pieces of the program, from one, and how many there are.
    pub(super) part: (usize, usize),
}

impl Piece {
    /// Returns its name, for people.
    pub(super) fn name(&self) -> String {
        match self.part {
            (_, 1) => self.program.name.clone(),
            (number, count) => format!("{} ({number} of {count})", self.program.name),
        }
    }

    /// Returns whether it would compile the project's programs if they were not there.
    pub(super) fn needs_programs(&self) -> bool {
        needs_programs(&self.program)
    }
}

/// Returns whether a test program would compile the project's programs if they were not there.
pub(super) fn needs_programs(program: &TestProgram) -> bool {
    NEEDING_PROGRAMS.contains(&program.name.as_str())
}

/// Tests that must run in one process, and the seconds that they will take.
#[derive(Debug, Clone, PartialEq)]
struct Unit {
    tests: Vec<String>,
    expected: f64,
}

/// The tests of a program that are to run, sorted by name.
#[derive(Debug, Clone)]
pub(super) struct Selected {
    pub(super) program: Arc<TestProgram>,
    pub(super) tests: Vec<String>,
    /// Whether the program has no other tests.
    pub(super) all: bool,
}

/// Returns all pieces, those that take longest first.
pub(super) fn split(selected: &[Selected], times: &Times, lanes: usize) -> Vec<Piece> {
    let expected: Vec<Vec<f64>> =
        selected.iter().map(|it| times.expected(&it.program.name, &it.tests)).collect();
    let total: f64 = expected.iter().flatten().sum();
    let lanes = f64::from(u32::try_from(lanes).unwrap_or(u32::MAX));
    let limit = (total / lanes / PIECES_OF_A_LANE).max(SHORTEST);
    let mut pieces: Vec<Piece> = selected
        .iter()
        .zip(&expected)
        .flat_map(|(selected, expected)| pieces_of(selected, expected, limit))
        .collect();
    pieces.sort_by(|one, other| other.expected.total_cmp(&one.expected));
    pieces
}

fn pieces_of(selected: &Selected, expected: &[f64], limit: f64) -> Vec<Piece> {
    let together = SHARING.contains(&selected.program.name.as_str());
    let packed = pack(units(&selected.tests, expected, together), limit);
    let parts = packed.len();
    let whole = selected.all && parts == 1;
    let piece = |(number, unit): (usize, Unit)| Piece {
        program: Arc::clone(&selected.program),
        tests: if whole { Vec::new() } else { unit.tests },
        expected: unit.expected,
        part: (number + 1, parts),
    };
    packed.into_iter().enumerate().map(piece).collect()
}

/// Groups tests that must stay together: those of a module, or each for itself.
fn units(tests: &[String], expected: &[f64], by_module: bool) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for (test, expected) in tests.iter().zip(expected) {
        let stays = |last: &&mut Unit| by_module && module(&last.tests[0]) == module(test);
        if let Some(last) = units.last_mut().filter(stays) {
            last.tests.push(test.clone());
            last.expected += expected;
        } else {
            units.push(Unit { tests: vec![test.clone()], expected: *expected });
        }
    }
    units
}

/// Returns the outermost module of a test.
fn module(test: &str) -> &str {
    test.split_once("::").map_or("", |(module, _)| module)
}

/// Joins neighbours while they take less than `limit` seconds together.
fn pack(units: Vec<Unit>, limit: f64) -> Vec<Unit> {
    let mut packed: Vec<Unit> = Vec::new();
    for unit in units {
        let fits = |last: &&mut Unit| last.expected + unit.expected <= limit;
        match packed.last_mut().filter(fits) {
            Some(last) => {
                last.tests.extend(unit.tests);
                last.expected += unit.expected;
            }
            None => packed.push(unit),
        }
    }
    packed
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn selected(program: &str, tests: &[&str]) -> Selected {
        let tests = tests.iter().map(|&test| test.to_owned()).collect();
        Selected { program: Arc::new(TestProgram::named(program)), tests, all: true }
    }

    /// Times of tests in seconds, each as `program test`.
    fn times(of: &[(&str, &str, u64)]) -> Times {
        let mut times = Times::default();
        for (program, test, seconds) in of {
            times.note(program, test, Duration::from_secs(*seconds));
        }
        times
    }

    fn shown(pieces: &[Piece]) -> Vec<String> {
        let line = |it: &Piece| format!("{} {:?} {}", it.program.name, it.tests, it.expected);
        pieces.iter().map(line).collect()
    }

    #[test]
    fn a_long_program_is_split_and_the_longest_piece_comes_first() {
        let all = [selected("a --lib", &["x"]), selected("b --lib", &["m::p", "m::q", "n::r"])];
        let times = times(&[
            ("a --lib", "x", 8),
            ("b --lib", "m::p", 3),
            ("b --lib", "m::q", 4),
            ("b --lib", "n::r", 60),
        ]);
        let pieces = split(&all, &times, 2);
        let expected = [r#"b --lib ["n::r"] 60"#, "a --lib [] 8", r#"b --lib ["m::p", "m::q"] 7"#];
        assert_eq!(shown(&pieces), expected);
        let names: Vec<_> = pieces.iter().map(Piece::name).collect();
        assert_eq!(names, ["b --lib (2 of 2)", "a --lib", "b --lib (1 of 2)"]);
        assert_eq!(split(&all[1..], &Times::default(), 2).len(), 1, "nothing is known of it");
    }

    #[test]
    fn tests_that_share_a_boot_stay_together() {
        let tests = ["a::p", "a::q", "b::r", "c::s"];
        let known = tests.map(|test| (SHARING[0], test, 50));
        let pieces = split(&[selected(SHARING[0], &tests)], &times(&known), 2);
        let modules: Vec<_> = pieces.iter().map(|it| it.tests.join(" ")).collect();
        assert_eq!(modules, ["a::p a::q", "b::r", "c::s"]);
    }

    #[test]
    fn a_program_of_which_some_tests_are_left_out_is_told_the_names() {
        let some = Selected { all: false, ..selected("a --lib", &["x", "y"]) };
        assert_eq!(shown(&split(&[some], &Times::default(), 2)), [r#"a --lib ["x", "y"] 2"#]);
        let none = Selected { all: false, ..selected("a --lib", &[]) };
        assert!(split(&[none], &Times::default(), 2).is_empty());
    }

    #[test]
    fn neighbours_are_joined_up_to_the_limit_and_a_longer_test_is_alone() {
        let unit =
            |(number, expected): (usize, f64)| Unit { tests: vec![number.to_string()], expected };
        let joined = |times: &[f64]| -> Vec<String> {
            let units = times.iter().copied().enumerate().map(unit).collect();
            pack(units, 20.0).iter().map(|it| it.tests.join(" ")).collect()
        };
        assert_eq!(joined(&[]), [""; 0]);
        assert_eq!(joined(&[10.0, 10.0, 0.5]), ["0 1", "2"]);
        assert_eq!(joined(&[1.0, 60.0, 1.0, 0.0]), ["0", "1", "2 3"]);
        assert_eq!(joined(&[60.0, 60.0]), ["0", "1"]);
    }
}

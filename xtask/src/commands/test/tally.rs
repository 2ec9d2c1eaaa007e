//! The results of test programs, put together from those of their pieces.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ran::Ran;
use super::split::Piece;

/// The sum of the results of a program's pieces.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Sum {
    pieces: usize,
    passed: usize,
    ignored: usize,
    pub(super) failed: bool,
    /// The time of all pieces together, whether they ran at the same time or not.
    pub(super) taken: Duration,
}

impl Sum {
    /// Returns the result of one piece.
    pub(super) fn of(ran: &Ran) -> Self {
        let (passed, ignored) = (ran.heard.passed, ran.heard.ignored.len());
        Self { pieces: 1, passed, ignored, failed: !ran.passes(), taken: ran.taken }
    }

    /// Returns the result of a piece that did not start.
    pub(super) fn not_started() -> Self {
        Self { pieces: 1, failed: true, ..Self::default() }
    }

    fn add(&mut self, other: &Self) {
        self.pieces += other.pieces;
        self.passed += other.passed;
        self.ignored += other.ignored;
        self.failed |= other.failed;
        self.taken += other.taken;
    }

    /// Returns how many tests passed and were ignored, for people.
    pub(super) fn verdict(&self) -> String {
        match (self.failed, self.ignored) {
            (true, _) => "FAILED".to_owned(),
            (false, 0) => format!("{} passed", self.passed),
            (false, ignored) => format!("{} passed, {ignored} ignored", self.passed),
        }
    }
}

/// The results so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    programs: BTreeMap<String, Sum>,
    /// How many tests passed.
    pub(super) passed: usize,
}

impl Tally {
    /// Adds the result of a piece. Returns that of its program when it was the last one.
    pub(super) fn add(&mut self, piece: &Piece, result: &Sum) -> Option<Sum> {
        self.passed += result.passed;
        let sum = self.programs.entry(piece.program.name.clone()).or_default();
        sum.add(result);
        (sum.pieces == piece.part.1).then(|| sum.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::programs::TestProgram;
    use super::*;

    fn piece(number: usize, of: usize) -> Piece {
        let program = Arc::new(TestProgram::named("a --lib"));
        Piece { program, tests: Vec::new(), expected: 1.0, part: (number, of) }
    }

    fn passed(passed: usize, ignored: usize) -> Sum {
        let taken = Duration::from_secs(2);
        Sum { pieces: 1, passed, ignored, failed: false, taken }
    }

    #[test]
    fn a_program_has_ended_when_its_last_piece_has() {
        let mut tally = Tally::default();
        assert_eq!(tally.add(&piece(2, 2), &passed(5, 1)), None);
        let sum = tally.add(&piece(1, 2), &passed(2, 0)).unwrap();
        assert_eq!(sum.verdict(), "7 passed, 1 ignored");
        assert_eq!(sum.taken, Duration::from_secs(4));
        assert_eq!(tally.passed, 7);
    }

    #[test]
    fn one_failed_piece_fails_the_program() {
        let mut tally = Tally::default();
        assert_eq!(tally.add(&piece(1, 2), &Sum::not_started()), None);
        assert_eq!(tally.add(&piece(2, 2), &passed(2, 0)).unwrap().verdict(), "FAILED");
    }

    #[test]
    fn a_program_in_one_piece_has_its_result_at_once() {
        assert_eq!(
            Tally::default().add(&piece(1, 1), &passed(3, 0)).unwrap().verdict(),
            "3 passed"
        );
    }
}

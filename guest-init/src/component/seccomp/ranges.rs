//! The table of calls as ranges of numbers with one verdict.

use super::calls::Verdict;
use super::table::CALLS;

/// A range of numbers that have the same verdict. It ends before the next range's first number.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) first: u32,
    pub(super) verdict: Verdict,
}

/// The number of ranges.
pub(super) const RANGES: usize = count_ranges();
pub(super) const TABLE: [Range; RANGES] = ranges();
const fn count_ranges() -> usize {
    let (mut count, mut number) = (0, 0);
    while number <= end() {
        if begins(number) {
            count += 1;
        }
        number += 1;
    }
    count
}

const fn ranges() -> [Range; RANGES] {
    let mut ranges = [Range { first: 0, verdict: Verdict::Absent }; RANGES];
    let (mut count, mut number) = (0, 0);
    while number <= end() {
        if begins(number) {
            ranges[count] = Range { first: number, verdict: verdict(number) };
            count += 1;
        }
        number += 1;
    }
    ranges
}

/// Returns whether a number has another verdict than the previous number.
const fn begins(number: u32) -> bool {
    number == 0 || verdict(number) as u8 != verdict(number - 1) as u8
}

/// Returns the number after the last call.
const fn end() -> u32 {
    CALLS[CALLS.len() - 1].end()
}

/// Returns the verdict on a number: of the row that contains the number, or `Absent` if no row does.
pub(super) const fn verdict(number: u32) -> Verdict {
    let mut row = CALLS.len() - 1;
    while CALLS[row].first > number {
        row -= 1;
    }
    if number < CALLS[row].end() { CALLS[row].verdict } else { Verdict::Absent }
}

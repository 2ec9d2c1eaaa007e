//! A corpus of hostile layers, each with its expected outcome.
//!
//! The cases are texts in `cases/`, in a language that `case.rs` describes. Each case is run as one layer, and split over
//! two layers, because a check within one archive is easily forgotten across archives. Every name in a case contains the
//! word [`MARKER`]. A file of the host with such a name shows that a program has followed a path of an archive.

mod bytes;
mod case;
mod entry;
mod header;
mod random;

pub use case::Case;
pub use entry::{Entry, Expected, Node};
pub use random::{Random, mutate, replace_each};

/// The word in the names of each case.
pub const MARKER: &str = "evil";

const FILES: [(&str, &str); 8] = [
    ("paths", include_str!("cases/paths.txt")),
    ("links", include_str!("cases/links.txt")),
    ("breakouts", include_str!("cases/breakouts.txt")),
    ("whiteouts", include_str!("cases/whiteouts.txt")),
    ("extended", include_str!("cases/extended.txt")),
    ("numbers", include_str!("cases/numbers.txt")),
    ("shapes", include_str!("cases/shapes.txt")),
    ("system", include_str!("cases/system.txt")),
];

/// Returns all cases, in the order of their files.
///
/// # Panics
/// If a text is no valid case. The message contains the case's name.
pub fn corpus() -> Vec<Case> {
    FILES.iter().flat_map(|(file, text)| case::read(file, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_is_marked() {
        let corpus = corpus();
        let names: BTreeSet<_> = corpus.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), corpus.len(), "a name is used twice");
        for case in &corpus {
            let layer = case.one_layer();
            let marker = MARKER.as_bytes();
            assert!(layer.windows(4).any(|part| part == marker), "{} has no marker", case.name);
            assert!(!case.reason.is_empty(), "{} says not what it is", case.name);
        }
    }
}

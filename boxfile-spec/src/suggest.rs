//! What a misspelt name was probably meant to be.

/// Returns the candidate nearest to `name`: at most two edits away, one for a candidate of three
/// letters or less (there, two edits turn anything into anything).
///
/// An edit is an insertion, deletion, replacement or swap of neighbours.
pub(crate) fn nearest<'c>(name: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    let candidates = candidates.iter().copied();
    // A name can be as long as the file; what is far longer is far away.
    let close = candidates.filter(|candidate| length <= candidate.len() + 2);
    close
        .map(|candidate| (strsim::osa_distance(&name, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= (candidate.len() / 2).min(2))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = ["agent", "business", "env", "vm", "cpu-weight", "net"];

    #[test]
    fn slips_of_the_finger_are_recognised() {
        for (typed, meant) in [
            ("agnet", "agent"),
            ("Agent", "agent"),
            ("agents", "agent"),
            ("bussines", "business"),
            ("evn", "env"),
            ("cpu_weight", "cpu-weight"),
            ("cpuweight", "cpu-weight"),
        ] {
            assert_eq!(nearest(typed, &NAMES), Some(meant), "{typed}");
        }
    }

    #[test]
    fn what_is_far_away_is_not_suggested() {
        for typed in ["", "x", "xx", "network", "volume", &"agent".repeat(1000)] {
            assert_eq!(nearest(typed, &NAMES), None, "{typed:.20}");
        }
    }
}

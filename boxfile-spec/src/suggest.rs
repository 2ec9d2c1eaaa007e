//! What a misspelt name was probably meant to be.

/// Returns the candidate nearest to `name`: at most two edits away, one for a candidate of three
/// letters or less (there, two edits turn anything into anything).
pub fn nearest<'c>(name: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    candidates
        .iter()
        .map(|&candidate| (edits(&name, candidate), candidate))
        .filter(|&(edits, candidate)| edits <= (candidate.len() / 2).min(2))
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, candidate)| candidate)
}

/// Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
fn edits(name: &[char], candidate: &str) -> usize {
    let candidate: Vec<char> = candidate.chars().collect();
    // A name can be as long as the file; what is far longer is far away.
    if name.len() > candidate.len() + 2 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=candidate.len()).collect();
    for row in 1..=name.len() {
        let mut current = vec![row];
        for column in 1..=candidate.len() {
            let same = name[row - 1] == candidate[column - 1];
            let replaced = above[column - 1] + usize::from(!same);
            let mut least = replaced.min(above[column] + 1).min(current[column - 1] + 1);
            if row > 1
                && column > 1
                && name[row - 1] == candidate[column - 2]
                && name[row - 2] == candidate[column - 1]
            {
                least = least.min(before[column - 2] + 1);
            }
            current.push(least);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[candidate.len()]
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

    #[test]
    fn edits_are_counted() {
        let count = |a: &str, b| edits(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(count("kitten", "sitting"), 3);
        assert_eq!(count("ab", "ba"), 1);
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", "abc"), 0);
    }
}

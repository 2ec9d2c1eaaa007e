//! The longest starts of the virtual host in a run of the tests.

use std::fs;
use std::path::PathBuf;

use testbed::{Artefacts, Workspace};

/// The number of starts that are listed.
const LISTED: usize = 10;

/// Returns the path of the file to which the boots add their durations.
pub(super) fn file(workspace: &Workspace) -> PathBuf {
    workspace.target(Artefacts::BOOTS_FILE)
}

/// Removes the durations of an earlier run.
pub(super) fn clear(workspace: &Workspace) {
    // Removing the file fails if there is none.
    drop(fs::remove_file(file(workspace)));
}

/// Returns the summary's lines about the longest starts of the virtual host. There are none if it was not started.
pub(super) fn lines(workspace: &Workspace) -> Vec<String> {
    shown(&fs::read_to_string(file(workspace)).unwrap_or_default())
}

fn shown(text: &str) -> Vec<String> {
    let parse = |line: &str| {
        let (seconds, test) = line.split_once(' ')?;
        Some((seconds.parse::<f64>().ok()?, test.to_owned()))
    };
    let mut starts: Vec<_> = text.lines().filter_map(parse).collect();
    if starts.is_empty() {
        return Vec::new();
    }
    starts.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let sum: f64 = starts.iter().map(|(seconds, _)| seconds).sum();
    let count = starts.len();
    let mut lines =
        vec![format!("{count} starts of the virtual host took {sum:.0} s; the longest:")];
    let line = |(seconds, test): &(f64, String)| format!("    {seconds:.0} s  {test}");
    lines.extend(starts.iter().take(LISTED).map(line));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_starts_come_first() {
        let text: String = (0..12).map(|it| format!("{it}.4 a::b{it}\n")).collect();
        let lines = shown(&(text + "half a li"));
        assert_eq!(lines.len(), 1 + LISTED);
        assert_eq!(lines[0], "12 starts of the virtual host took 71 s; the longest:");
        assert_eq!(lines[1], "    11 s  a::b11");
        assert!(shown("").is_empty());
    }
}

//! The time that each test took when it ran last, kept in the build output. It decides the order and
//! nothing else: without it, or with one that cannot be read, a run is only slower.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use testkit::{KitError, Result, Workspace};

/// The programs that run longest and how long, in seconds, as measured on two processors. A wrong number
/// costs time and nothing else.
const LONGEST: [(&str, f64); 20] = [
    ("boxbuild-tests --test boot", 2140.0),
    ("boxbuild-tests --test build", 226.0),
    ("boxbuild-tests --test oracle", 150.0),
    ("intruder --test rogue", 81.0),
    ("testkit --test reproducible", 55.0),
    ("boxbuild-tests --test hostile", 41.0),
    ("boxfile-spec --test boxfile", 39.0),
    ("boxfile-spec --lib", 38.0),
    ("boxlaunch --test cli", 31.0),
    ("boxbuild-tests --test show", 25.0),
    ("egress-proxy --lib", 22.0),
    ("erofs-writer --test it", 20.0),
    ("boxbuild-tests --test sources", 16.0),
    ("testkit --test vmhost", 16.0),
    ("boxlaunch --lib", 16.0),
    ("boxbuild-tests --test merged", 14.0),
    ("testkit --test debian", 12.0),
    ("ext4-image --test it", 12.0),
    ("boxbuild-tests --test export", 8.0),
    ("box-sbom --lib", 8.0),
];
/// The time of a program of which nothing is known, in seconds.
const UNKNOWN: f64 = 2.0;

/// The seconds that each test took, by program and test.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Times(BTreeMap<String, BTreeMap<String, f64>>);

impl Times {
    /// Reads the times of the last run; there are none if they cannot be read.
    pub(super) fn read(workspace: &Workspace) -> Self {
        let bytes = fs::read(path(workspace)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Writes them for the next run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&self, workspace: &Workspace) -> Result<()> {
        let path = path(workspace);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| KitError::malformed("the times of the tests", error))?;
        fs::write(&path, text).map_err(KitError::file("write", &path))
    }

    /// Notes how long a test took.
    pub(super) fn note(&mut self, program: &str, test: &str, taken: Duration) {
        let seconds = (taken.as_secs_f64() * 100.0).round() / 100.0;
        self.0.entry(program.to_owned()).or_default().insert(test.to_owned(), seconds);
    }

    /// Returns the seconds that each of a program's tests will take: as it took, else its share of the
    /// time that such a program takes.
    pub(super) fn expected(&self, program: &str, tests: &[String]) -> Vec<f64> {
        let whole = LONGEST.iter().find(|(name, _)| *name == program);
        let count = u32::try_from(tests.len()).unwrap_or(u32::MAX).max(1);
        let share = whole.map_or(UNKNOWN, |(_, seconds)| *seconds) / f64::from(count);
        let known = |test| self.0.get(program).and_then(|known| known.get(test)).copied();
        tests.iter().map(|test| known(test).unwrap_or(share)).collect()
    }
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.target("test-times.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_test_is_expected_to_take_as_long_as_it_took() {
        let mut times = Times::default();
        times.note("a --lib", "slow", Duration::from_millis(2504));
        times.note("a --lib", "fast", Duration::from_millis(4));
        let expected = times.expected("a --lib", &tests(&["fast", "new", "slow", "newer"]));
        assert_eq!(expected, [0.0, UNKNOWN / 4.0, 2.5, UNKNOWN / 4.0]);
        times.note("a --lib", "slow", Duration::ZERO);
        assert_eq!(times.expected("a --lib", &tests(&["slow"])), [0.0]);
    }

    #[test]
    fn a_program_that_never_ran_takes_what_such_programs_take() {
        let (program, seconds) = LONGEST[0];
        let times = Times::default();
        assert_eq!(times.expected(program, &tests(&["a", "b"])), [seconds / 2.0; 2]);
        assert_eq!(times.expected("new --lib", &tests(&["a"])), [UNKNOWN]);
        assert!(times.expected("new --lib", &[]).is_empty());
    }

    #[test]
    fn what_was_written_is_read_and_a_damaged_file_is_as_good_as_none() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(directory.path());
        assert_eq!(Times::read(&workspace), Times::default());
        fs::create_dir(workspace.target("")).unwrap();
        let mut times = Times::default();
        times.note("a --lib", "slow", Duration::from_secs(3));
        times.write(&workspace).unwrap();
        assert_eq!(Times::read(&workspace), times);
        fs::write(path(&workspace), "{").unwrap();
        assert_eq!(Times::read(&workspace), Times::default());
    }
}

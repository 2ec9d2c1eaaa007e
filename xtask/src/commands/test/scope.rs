//! How much is checked: what `--quick` leaves out, and what only `--all` runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use testkit::{KitError, Result};

use super::again::Flaky;
use super::programs::TestProgram;
use super::queue::Job;
use super::split::Selected;

/// Tests that `--quick` leaves out.
struct Slow {
    program: &'static str,
    /// The start of the tests' names; empty for all.
    start: &'static str,
    /// Why they are left out, as the end of "tests that …".
    why: &'static str,
}

const fn slow(program: &'static str, start: &'static str, why: &'static str) -> Slow {
    Slow { program, start, why }
}

const BOOT: &str = "start the virtual host";
const DEBIAN: &str = "read Debian images, which are made first";
const MANY: &str = "try very many or very large inputs";
const KILLED: &str = "kill builds at every step, or damage what they wrote at every place";
const COMPILING: &str = "compile in another directory";

/// The tests that `--quick` leaves out. Every run checks that each line fits one.
const SLOW: [Slow; 20] = [
    slow("boxbuild-tests --test boot", "", BOOT),
    slow("testkit --test vmhost", "", BOOT),
    slow("testkit --test debian", "", DEBIAN),
    slow("boxbuild-tests --test oracle", "real::", DEBIAN),
    slow("boxbuild-tests --test merged", "advice::", DEBIAN),
    slow("boxbuild-tests --test show", "real::", DEBIAN),
    slow("boxbuild-tests --test build", "crash::", KILLED),
    slow("boxbuild-tests --test build", "store::a_blob_damaged", KILLED),
    slow("testkit --test reproducible", "", COMPILING),
    slow("boxbuild-tests --test oracle", "stacks::", MANY),
    slow("boxbuild-tests --test hostile", "bombs::", MANY),
    slow("boxbuild-tests --test hostile", "corpus::", MANY),
    slow("boxfile-spec --test boxfile", "linear::", MANY),
    slow("boxfile-spec --lib", "lock::tests::hostile::", MANY),
    slow("boxfile-spec --lib", "skill_md::tests::hostile::", MANY),
    slow("box-sbom --lib", "tests::beyond_the_bound", MANY),
    slow("erofs-writer --test it", "random::", MANY),
    slow("ext4-image --test it", "checked::any_size", MANY),
    slow("boxlaunch --test cli", "hostile::", MANY),
    slow("intruder --test rogue", "", MANY),
];

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Nothing that takes long.
    Quick,
    /// Everything but tests with `#[ignore]`.
    Usual,
    /// Everything.
    All,
}

/// The tests that are left out: how many for each reason.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct LeftOut(BTreeMap<&'static str, usize>);

/// The result of a run in which nothing failed.
#[derive(Debug, Default, Clone)]
pub(super) struct Checked {
    /// How many tests passed.
    pub(super) passed: usize,
    /// The tests with `#[ignore]` that did not run.
    pub(super) ignored: Vec<String>,
    pub(super) left_out: LeftOut,
    /// The tests that passed only when they were run again.
    pub(super) flaky: Vec<Flaky>,
}

impl Scope {
    /// Returns the jobs that start before any test, in this order. The static programs are compiled under a
    /// lock of their own and take longest, and clippy and the documentation use what the tests were compiled from.
    pub(super) fn jobs(self) -> &'static [Job] {
        match self {
            Self::Quick => &[Job::Programs, Job::Tests, Job::Builder],
            Self::Usual | Self::All => &[
                Job::Programs,
                Job::Tests,
                Job::Builder,
                Job::Lints,
                Job::Documents,
                Job::DocTests,
            ],
        }
    }

    /// Returns what this run left out, as lines of which the last has the sum.
    pub(super) fn summary(self, checked: &Checked) -> Vec<String> {
        let (passed, ignored) = (checked.passed, &checked.ignored);
        let left = checked.left_out.0.values().sum::<usize>() + ignored.len();
        let command =
            if ignored.is_empty() { "cargo xtask test" } else { "cargo xtask test --all" };
        let mut lines = Vec::new();
        if self == Self::Quick {
            lines.push("left out: cargo clippy, cargo doc, tests in documentation, and".to_owned());
            let reasons = checked.left_out.0.iter();
            lines.extend(reasons.map(|(why, count)| format!("    {count:>4} tests that {why}")));
        }
        if !ignored.is_empty() {
            lines.push("left out, because each takes minutes:".to_owned());
            lines.extend(ignored.iter().map(|test| format!("    {test}")));
        }
        if !checked.flaky.is_empty() {
            lines.push(
                "flaky, because they passed only when they were run again; both outputs are kept:"
                    .to_owned(),
            );
            let flaky = checked.flaky.iter();
            lines.extend(flaky.map(|it| format!("    {} ({})", it.name, it.outputs.display())));
        }
        lines.push(match left {
            0 => format!("{passed} tests passed; left out: none"),
            _ => format!("{passed} tests passed; left out: {left}, which `{command}` runs"),
        });
        lines
    }

    /// Selects the tests to run of each program, and counts the others.
    ///
    /// # Errors
    /// A line of the table of slow tests fits no test, so that a renamed test is not run unnoticed.
    pub(super) fn select(
        self,
        programs: Vec<(Arc<TestProgram>, Vec<String>)>,
    ) -> Result<(Vec<Selected>, LeftOut)> {
        let mut left_out = LeftOut::default();
        let mut used = [false; SLOW.len()];
        let mut selected = Vec::new();
        for (program, mut tests) in programs {
            let count = tests.len();
            tests.retain(|test| {
                let found = SLOW.iter().position(|slow| slow.fits(&program.name, test));
                found.inspect(|&place| used[place] = true);
                let slow = found.filter(|_| self == Self::Quick).map(|place| &SLOW[place]);
                slow.inspect(|slow| *left_out.0.entry(slow.why).or_default() += 1).is_none()
            });
            selected.push(Selected { program, all: tests.len() == count, tests });
        }
        match used.iter().position(|used| !used) {
            Some(unused) => Err(SLOW[unused].is_gone()),
            None => Ok((selected, left_out)),
        }
    }
}

impl Slow {
    fn fits(&self, program: &str, test: &str) -> bool {
        self.program == program && test.starts_with(self.start)
    }

    fn is_gone(&self) -> KitError {
        let why = format!(
            "{} has no test \"{}…\": name the tests that --quick leaves out",
            self.program, self.start
        );
        KitError::malformed("the table SLOW in xtask/src/commands/test/scope.rs", why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs() -> Vec<(Arc<TestProgram>, Vec<String>)> {
        let mut programs: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for slow in &SLOW {
            programs.entry(slow.program).or_default().push(format!("{}slow", slow.start));
        }
        programs.entry("boxbuild-tests --test oracle").or_default().push("writers::fast".into());
        let named = |(name, tests)| (Arc::new(TestProgram::named(name)), tests);
        programs.into_iter().map(named).collect()
    }

    #[test]
    fn a_quick_run_leaves_out_the_slow_tests_and_says_why() {
        let (selected, left_out) = Scope::Quick.select(programs()).unwrap();
        let tests: Vec<&String> = selected.iter().flat_map(|it| &it.tests).collect();
        assert_eq!(tests, ["writers::fast"]);
        assert!(selected.iter().all(|it| !it.all));
        let lines =
            Scope::Quick.summary(&Checked { passed: 1, left_out, ..Checked::default() }).join("\n");
        assert_eq!(
            lines,
            "\
left out: cargo clippy, cargo doc, tests in documentation, and
       1 tests that compile in another directory
       2 tests that kill builds at every step, or damage what they wrote at every place
       4 tests that read Debian images, which are made first
       2 tests that start the virtual host
      11 tests that try very many or very large inputs
1 tests passed; left out: 20, which `cargo xtask test` runs"
        );
    }

    #[test]
    fn every_other_run_leaves_out_none_but_those_with_ignore() {
        for scope in [Scope::Usual, Scope::All] {
            let (selected, left_out) = scope.select(programs()).unwrap();
            assert!(selected.iter().all(|it| it.all) && left_out == LeftOut::default());
        }
        let none = Checked { passed: 7, ..Checked::default() };
        assert_eq!(Scope::All.summary(&none), ["7 tests passed; left out: none"]);
        let flaky =
            vec![Flaky { name: "a --lib d".to_owned(), outputs: "target/flaky/a---lib-d".into() }];
        assert_eq!(
            Scope::All.summary(&Checked { flaky, ..none.clone() }).join("\n"),
            "flaky, because they passed only when they were run again; both outputs are kept:\n    \
             a --lib d (target/flaky/a---lib-d)\n7 tests passed; left out: none"
        );
        let ignored = vec!["a --lib b::c".to_owned()];
        assert_eq!(
            Scope::Usual.summary(&Checked { ignored, ..none }).join("\n"),
            "left out, because each takes minutes:\n    a --lib b::c\n\
             7 tests passed; left out: 1, which `cargo xtask test --all` runs"
        );
    }

    #[test]
    fn a_line_of_the_table_that_fits_no_test_is_an_error() {
        let mut programs = programs();
        programs.retain(|(program, _)| program.name != "box-sbom --lib");
        let error = Scope::Usual.select(programs).unwrap_err().to_string();
        assert!(error.contains("box-sbom --lib has no test"), "{error}");
    }
}

//! A test program that ran: what libtest wrote, and when.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use testkit::{Result, program};

use super::split::Piece;

/// The standard output of a process, understood as libtest's.
#[derive(Debug, Default)]
pub(super) struct Listener {
    /// How long each test took, whether it passed or not.
    pub(super) times: BTreeMap<String, Duration>,
    pub(super) passed: usize,
    /// The names of the tests with `#[ignore]` that did not run.
    pub(super) ignored: Vec<String>,
    /// The names of the tests that failed.
    pub(super) failed: Vec<String>,
    /// All lines but those of tests that passed or were ignored.
    pub(super) written: Vec<u8>,
    /// The test that runs, once its name was written.
    current: Option<String>,
    /// Whether the line with the result of all tests was written.
    has_result: bool,
    /// Whether the list of names of failed tests is being written.
    in_list: bool,
}

/// A process that ran tests.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) heard: Listener,
    pub(super) stderr: Vec<u8>,
    pub(super) status: ExitStatus,
    pub(super) taken: Duration,
}

impl Ran {
    /// Runs a test program to its end, with one thread for its tests.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn of(command: &mut Command) -> Result<Self> {
        let started = Instant::now();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|source| program::not_started(command, source))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (heard, stderr) = thread::scope(|scope| {
            let stderr = scope.spawn(|| rest(stderr));
            (heard(stdout), stderr.join().unwrap_or_default())
        });
        let status = child.wait().map_err(|source| program::not_started(command, source))?;
        Ok(Self { heard, stderr, status, taken: started.elapsed() })
    }

    /// Returns whether all tests passed.
    pub(super) fn passes(&self) -> bool {
        self.status.success() && self.heard.has_result && self.heard.failed.is_empty()
    }

    /// Returns whether all tests passed, for people.
    pub(super) fn verdict(&self) -> &'static str {
        if self.passes() { "passed" } else { "FAILED" }
    }

    /// Returns whether the process ran to its end, and wrote the result of all tests.
    pub(super) fn has_result(&self) -> bool {
        self.heard.has_result
    }

    /// Returns the names of the tests to run again after a failure: those that failed, or the one during
    /// which the process ended. None if that is not known.
    pub(super) fn to_repeat(&self) -> Vec<String> {
        if self.heard.failed.is_empty() && !self.heard.has_result {
            return self.heard.current.iter().cloned().collect();
        }
        self.heard.failed.clone()
    }

    /// Returns the command line that repeats what failed of a piece.
    pub(super) fn repeat(&self, piece: &Piece) -> String {
        let failed = self.to_repeat();
        piece.program.repeats(if failed.is_empty() { &piece.tests } else { &failed })
    }

    /// Returns everything that the process wrote, without the lines of tests that passed.
    pub(super) fn written(&self) -> Vec<u8> {
        [&self.heard.written[..], &self.stderr].concat()
    }
}

/// Reads a stream to its end; what a broken one leaves unread is missing.
fn rest(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        drop(stream.read_to_end(&mut bytes));
    }
    bytes
}

fn heard(stream: Option<impl Read>) -> Listener {
    let mut heard = Listener::default();
    let Some(stream) = stream else { return heard };
    let mut stream = BufReader::new(stream);
    let (mut line, mut before) = (Vec::new(), Instant::now());
    while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let now = Instant::now();
        if heard.line(&line, now - before) {
            before = now;
        }
        line.clear();
    }
    heard
}

impl Listener {
    /// Takes the next line of output, which came so long after the last test ended. Returns whether a
    /// test has ended.
    fn line(&mut self, line: &[u8], taken: Duration) -> bool {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        let ended = text.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
        if let Some((test, verdict)) = ended {
            return self.test(test, verdict, line, taken);
        }
        self.written.extend_from_slice(line);
        if let Some(result) = text.strip_prefix("test result: ") {
            self.result(result);
        }
        // libtest lists the names of failed tests last, under a heading that it uses twice.
        match text.strip_prefix("    ") {
            Some(name) if self.in_list => self.failed.push(name.to_owned()),
            _ if text == "failures:" => (self.in_list, self.failed) = (true, Vec::new()),
            _ if !text.is_empty() => self.in_list = false,
            _ => {}
        }
        false
    }

    /// Notes how a test ended. Its line has no verdict if a process that it started wrote there.
    fn test(&mut self, test: &str, verdict: &str, line: &[u8], taken: Duration) -> bool {
        let test = test.strip_suffix(" - should panic").unwrap_or(test);
        self.current = Some(test.to_owned());
        if verdict == "ignored" || verdict.starts_with("ignored, ") {
            self.ignored.push(test.to_owned());
        } else if verdict != "ok" {
            self.written.extend_from_slice(line);
        }
        self.times.insert(test.to_owned(), taken);
        true
    }

    fn result(&mut self, result: &str) {
        self.has_result = true;
        let counts = result.split_once(". ").map_or("", |(_, counts)| counts);
        let passed = counts.split("; ").find_map(|count| count.strip_suffix(" passed"));
        self.passed = passed.and_then(|count| count.parse().ok()).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(script: &str) -> Ran {
        Ran::of(Command::new("sh").args(["-c", script])).unwrap()
    }

    const FAILURE: &str = r#"cat <<END

running 3 tests
test a::one ... ok
test a::two ... FAILED
test a::three ... ignored, takes an hour

failures:

---- a::two stdout ----
    an indented line

failures:
    a::two

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

END
exit 101"#;

    #[test]
    fn a_failed_test_is_found_with_all_that_it_printed() {
        let ran = ran(FAILURE);
        assert!(!ran.passes());
        assert_eq!(ran.to_repeat(), ["a::two"]);
        assert_eq!((ran.heard.passed, &ran.heard.ignored[..]), (1, &["a::three".to_owned()][..]));
        let written = String::from_utf8(ran.written()).unwrap();
        assert!(written.contains("---- a::two stdout ----\n    an indented line\n"), "{written}");
        assert!(!written.contains("a::one") && !written.contains("a::three"), "{written}");
        let timed: Vec<&String> = ran.heard.times.keys().collect();
        assert_eq!(timed, ["a::one", "a::three", "a::two"]);
    }

    #[test]
    fn tests_that_pass_leave_a_count() {
        let ran = ran("echo 'test x - should panic ... ok'; \
             echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured'");
        assert!(ran.passes() && ran.to_repeat().is_empty());
        assert!(ran.heard.passed == 1 && ran.heard.ignored.is_empty());
        assert!(ran.heard.times.contains_key("x"));
    }

    #[test]
    fn a_process_that_dies_names_the_test_that_ran() {
        let ran = ran("echo 'test a ... ok'; printf 'test b ... '; echo dying >&2; kill -9 $$");
        assert!(!ran.passes());
        assert_eq!(ran.to_repeat(), ["b"]);
        assert_eq!(ran.written(), b"test b ... dying\n");
        assert!(!self::ran("true").passes(), "without a result nothing has passed");
    }

    #[test]
    fn each_test_took_the_time_since_the_one_before() {
        let mut heard = Listener::default();
        let second = Duration::from_secs(1);
        assert!(!heard.line(b"running 2 tests\n", second));
        assert!(heard.line(b"test a ... ok\n", second));
        assert!(heard.line(b"test b ... FAILED\n", second * 2));
        let expected = [("a".to_owned(), second), ("b".to_owned(), second * 2)];
        assert_eq!(heard.times, expected.into());
    }
}

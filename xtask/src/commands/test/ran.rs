//! Runs a test program, and parses its output, which has libtest's format.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use testbed::{Result, program};

/// The parsed standard output of a test program, which libtest writes.
#[derive(Debug, Default)]
pub(super) struct Listener {
    pub(super) passed: usize,
    /// The number of tests with `#[ignore]` that did not run.
    pub(super) ignored: usize,
    /// The names of the failed tests. Some may be missing, because another process may have written between them.
    failed: Vec<String>,
    /// The number of failed tests.
    failures: usize,
    /// All lines except the lines of passed and ignored tests.
    pub(super) written: Vec<u8>,
    /// Whether the line with the result of all tests has been read.
    has_result: bool,
    /// Whether the current line is in a list of failed tests.
    in_list: bool,
}

/// A finished process of a test program.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) heard: Listener,
    pub(super) stderr: Vec<u8>,
    pub(super) status: ExitStatus,
    pub(super) taken: Duration,
}

impl Ran {
    /// Runs a test program to its end.
    ///
    /// # Errors
    /// The program does not start.
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
        let Listener { has_result, failures, ref failed, .. } = self.heard;
        self.status.success() && has_result && failures == 0 && failed.is_empty()
    }

    /// Returns the names of the failed tests. If a name is missing, because a process that a test has started has written between
    /// the names, returns an empty list.
    pub(super) fn failed(&self) -> &[String] {
        let Listener { failures, ref failed, .. } = self.heard;
        if failed.len() == failures { failed } else { &[] }
    }

    /// Returns whether a signal has ended the process.
    pub(super) fn is_killed(&self) -> bool {
        self.status.code().is_none()
    }

    /// Returns the result for the display, such as `12 passed, 2 ignored`.
    pub(super) fn verdict(&self) -> String {
        let Listener { passed, ignored, .. } = self.heard;
        match ignored {
            _ if !self.passes() => "FAILED".to_owned(),
            0 => format!("{passed} passed"),
            _ => format!("{passed} passed, {ignored} ignored"),
        }
    }

    /// Returns the output of the process, without the lines of passed and ignored tests.
    pub(super) fn written(&self) -> Vec<u8> {
        [&self.heard.written[..], &self.stderr].concat()
    }
}

/// Reads a stream to its end. After a read error, the rest is missing.
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
    let mut line = Vec::new();
    while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        heard.line(&line);
        line.clear();
    }
    heard
}

impl Listener {
    /// Parses the next line of output.
    fn line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        let ended = text.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
        if ended.is_some_and(|(_, verdict)| verdict == "ok" || verdict.starts_with("ignored")) {
            return;
        }
        self.written.extend_from_slice(line);
        if let Some(result) = text.strip_prefix("test result: ") {
            self.result(result);
        }
        // libtest writes the heading `failures:` twice. The names of failed tests follow the second one.
        match text.strip_prefix("    ") {
            Some(name) if self.in_list => self.failed.push(name.to_owned()),
            _ if text == "failures:" => (self.in_list, self.failed) = (true, Vec::new()),
            _ if !text.is_empty() => self.in_list = false,
            _ => {}
        }
    }

    fn result(&mut self, result: &str) {
        self.has_result = true;
        let counts = result.split_once(". ").map_or("", |(_, counts)| counts);
        let count = |of: &str| {
            let found = counts.split("; ").find_map(|count| count.strip_suffix(of));
            found.and_then(|count| count.parse().ok()).unwrap_or(0)
        };
        (self.passed, self.ignored) = (count(" passed"), count(" ignored"));
        self.failures = count(" failed");
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
        assert_eq!(
            (&ran.heard.failed[..], ran.verdict()),
            (&["a::two".to_owned()][..], "FAILED".into())
        );
        assert_eq!((ran.heard.passed, ran.heard.ignored), (1, 1));
        let written = String::from_utf8(ran.written()).unwrap();
        assert!(written.contains("---- a::two stdout ----\n    an indented line\n"), "{written}");
        assert!(!written.contains("a::one") && !written.contains("a::three"), "{written}");
    }

    #[test]
    fn names_that_are_not_understood_are_missing() {
        let torn = FAILURE.replace("    a::two\n\ntest", "    a::two\nbye\n    b::three\n\ntest");
        let torn = ran(&torn.replace("1 failed", "2 failed"));
        assert!(!torn.passes() && torn.failed().is_empty());
        assert_eq!(ran(FAILURE).failed(), ["a::two"]);
        assert!(!ran("echo 'test result: ok. 1 passed; 1 failed; 0 ignored'").passes());
    }

    #[test]
    fn tests_that_pass_leave_a_count() {
        let ran = ran("echo 'test x - should panic ... ok'; \
             echo 'test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured'");
        assert!(ran.passes() && ran.heard.failed.is_empty());
        assert_eq!(ran.verdict(), "1 passed, 2 ignored");
    }

    #[test]
    fn a_process_that_dies_has_not_passed() {
        let ran = ran("echo 'test a ... ok'; echo dying >&2; kill -9 $$");
        assert!(!ran.passes());
        assert_eq!(ran.written(), b"dying\n");
        assert!(!self::ran("true").passes(), "without a result nothing has passed");
    }
}

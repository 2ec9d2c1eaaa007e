//! Progress lines, with the elapsed time whenever nothing else is printed for a while.

use std::io::Write;
use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Writes lines. While [`Progress::watch`] runs, it also writes the elapsed time (a sign of life) after every
/// interval of silence.
#[derive(Debug)]
pub(crate) struct Progress<W> {
    output: Mutex<Output<W>>,
    interval: Duration,
}

#[derive(Debug)]
struct Output<W> {
    to: W,
    /// The time at which the last line or step name was written. A sign of life shows the time since then.
    announced: Instant,
    /// The time of the last write.
    written: Instant,
    /// Whether the next byte starts a line.
    at_line_start: bool,
    /// The name of a step, if nothing was written since [`Progress::begin`] wrote it.
    at_name: Option<String>,
    /// Whether a child process writes to the same terminal at the moment.
    lent: bool,
    /// The names of the jobs that run in parallel, for signs of life.
    doing: String,
}

impl<W: Write + Send> Progress<W> {
    /// Creates a writer of lines to `to`. [`Self::watch`] writes a sign of life after every `interval` of silence.
    pub(crate) fn new(to: W, interval: Duration) -> Self {
        let now = Instant::now();
        let output = Output {
            to,
            announced: now,
            written: now,
            at_line_start: true,
            at_name: None,
            lent: false,
            doing: String::new(),
        };
        Self { output: Mutex::new(output), interval }
    }

    pub(crate) fn line(&self, text: &str) {
        let mut output = self.lock();
        output.write_line(text);
        output.announced = output.written;
    }

    /// Sets the text for signs of life.
    pub(crate) fn doing(&self, what: &str) {
        what.clone_into(&mut self.lock().doing);
    }

    /// Writes the name of a step that begins.
    pub(crate) fn begin(&self, name: &str) {
        let mut output = self.lock();
        output.start_line();
        output.write(name.as_bytes());
        (output.announced, output.at_line_start) = (output.written, false);
        output.at_name = Some(name.to_owned());
    }

    /// Writes the result of a step, on the line of the step's name if nothing was written since.
    pub(crate) fn end(&self, name: &str, verdict: &str, taken: Duration) {
        let mut output = self.lock();
        let ended = format!("{name:<45} {verdict:>10} {:>7.1} s\n", taken.as_secs_f64());
        let is_last = output.at_name.as_deref() == Some(name);
        let rest = ended.strip_prefix(name).filter(|_| is_last);
        if rest.is_none() {
            output.start_line();
        }
        output.write(rest.unwrap_or(&ended).as_bytes());
        (output.announced, output.at_line_start) = (output.written, true);
    }

    /// Forwards the output of a child process.
    pub(crate) fn relay(&self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            let mut output = self.lock();
            if output.at_name.is_some() {
                output.start_line();
            }
            output.write(bytes);
            output.at_line_start = *last == b'\n';
        }
    }

    /// Runs `work` without signs of life, because a child process shows its progress on the terminal.
    pub(crate) fn lend<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut output = self.lock();
        output.start_line();
        output.lent = true;
        drop(output);
        let value = work();
        let mut output = self.lock();
        (output.lent, output.written) = (false, Instant::now());
        value
    }

    /// Runs `work`, and writes a sign of life after every interval of silence.
    pub(crate) fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            let (running, ended) = mpsc::channel();
            scope.spawn(move || self.tick(&ended));
            let value = work();
            drop(running);
            value
        })
    }

    /// Runs `work`, and writes signs of life until `work` sends its first message.
    pub(crate) fn watch_until<T: Send>(&self, work: impl FnOnce(Sender<()>) -> T + Send) -> T {
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            let work = scope.spawn(move || work(sender));
            self.watch(|| receiver.recv().ok());
            work.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Writes signs of life until the other end of the channel is dropped.
    fn tick(&self, ended: &Receiver<()>) {
        let mut wait = self.interval;
        while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = self.lock().sign_of_life(self.interval);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Output<W>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> Output<W> {
    /// Writes the elapsed time if nothing was written for an interval. Returns the time until the next check.
    fn sign_of_life(&mut self, interval: Duration) -> Duration {
        let silent = self.written.elapsed();
        if silent < interval {
            return interval - silent;
        }
        if !self.lent {
            let silent = self.announced.elapsed().as_secs_f64();
            let line = format!("    … {silent:.0} s  {}", self.doing);
            self.write_line(line.trim_end());
        }
        interval
    }

    fn write_line(&mut self, text: &str) {
        self.start_line();
        self.write(format!("{text}\n").as_bytes());
    }

    /// Ends an unfinished line.
    fn start_line(&mut self) {
        if !self.at_line_start {
            self.write(b"\n");
            self.at_line_start = true;
        }
    }

    /// Ignores errors, because a closed terminal must not stop the work.
    fn write(&mut self, bytes: &[u8]) {
        drop(self.to.write_all(bytes).and_then(|()| self.to.flush()));
        self.written = Instant::now();
        self.at_name = None;
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const INTERVAL: Duration = Duration::from_millis(5);

    fn written(progress: Progress<Vec<u8>>) -> String {
        String::from_utf8(progress.output.into_inner().unwrap().to).unwrap()
    }

    fn text_so_far(progress: &Progress<Vec<u8>>) -> String {
        String::from_utf8(progress.lock().to.clone()).unwrap()
    }

    #[test]
    fn a_silent_child_yields_signs_of_life_until_it_ends() {
        let progress = Progress::new(Vec::new(), INTERVAL);
        progress.line("installing");
        progress.watch(|| {
            // The child ends when it is killed, and prints nothing before.
            let mut child = Command::new("sleep").arg("600").spawn().unwrap();
            while text_so_far(&progress).matches("    … ").count() < 3 {
                thread::sleep(INTERVAL);
            }
            child.kill().unwrap();
            child.wait().unwrap();
        });
        progress.line("installed");
        let text = written(progress);
        assert!(
            text.starts_with("installing\n    … ") && text.ends_with(" s\ninstalled\n"),
            "{text}"
        );
    }

    #[test]
    fn signs_of_life_say_what_is_being_done() {
        let progress = Progress::new(Vec::new(), Duration::from_secs(600));
        progress.doing("one, two");
        progress.lock().sign_of_life(Duration::ZERO);
        progress.doing("");
        progress.lock().sign_of_life(Duration::ZERO);
        assert_eq!(written(progress), "    … 0 s  one, two\n    … 0 s\n");
    }

    #[test]
    fn the_first_output_ends_the_signs_of_life() {
        let progress = Progress::new(Vec::new(), INTERVAL);
        let signs = || text_so_far(&progress).matches("    … ").count();
        let (before, after) = progress.watch_until(|output| {
            while signs() < 3 {
                thread::sleep(INTERVAL);
            }
            output.send(()).unwrap();
            thread::sleep(INTERVAL * 10);
            let before = signs();
            thread::sleep(INTERVAL * 10);
            (before, signs())
        });
        assert_eq!(before, after);
    }

    #[test]
    fn quick_work_yields_none() {
        let progress = Progress::new(Vec::new(), Duration::from_secs(600));
        assert_eq!(progress.watch(|| 7), 7);
        assert_eq!(written(progress), "");
    }

    #[test]
    fn nothing_is_added_while_the_terminal_is_lent() {
        let progress = Progress::new(Vec::new(), Duration::ZERO);
        progress.lend(|| progress.lock().sign_of_life(Duration::ZERO));
        assert_eq!(text_so_far(&progress), "");
        progress.lock().sign_of_life(Duration::ZERO);
        assert!(written(progress).starts_with("    … "));
    }

    #[test]
    fn a_step_is_one_line_unless_something_is_written_before_its_end() {
        let progress = Progress::new(Vec::new(), INTERVAL);
        let taken = Duration::from_millis(1250);
        progress.begin("one");
        progress.end("one", "ok", taken);
        progress.begin("two");
        progress.line("a line");
        progress.end("two", "FAILED", taken);
        progress.begin("three");
        progress.begin("four");
        progress.end("three", "ok", taken);
        let end = |verdict| format!("{:45} {verdict:>7}     1.2 s\n", "");
        let (ok, failed) = (end("ok"), end("FAILED"));
        let expected = format!("one{ok}two\na line\ntwo{failed}three\nfour\nthree{}", &ok[2..]);
        assert_eq!(written(progress), expected);
    }

    #[test]
    fn a_line_never_continues_what_a_child_wrote() {
        let progress = Progress::new(Vec::new(), INTERVAL);
        progress.relay(b"test one ... ok\ntest two ... ");
        progress.relay(b"");
        progress.line("next");
        progress.line("last");
        assert_eq!(written(progress), "test one ... ok\ntest two ... \nnext\nlast\n");
    }
}

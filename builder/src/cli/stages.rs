//! The progress of a build: a line on the terminal for a stage that takes longer than a second, and
//! the duration of each stage with `--verbose`.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use boxbuild::Step;
use safe_text::readable;

use super::terminal;

/// How long a stage runs before its line is shown, and how long a status line of another writer stays.
const UNSEEN: Duration = Duration::from_secs(1);
/// The interval at which the line is updated.
const TICK: Duration = Duration::from_millis(250);

/// The stages of a command.
pub(crate) struct Stages {
    current: Arc<Mutex<Option<Stage>>>,
    /// Ends the display thread when it is dropped.
    _shown: Option<Sender<()>>,
}

/// The current stage.
struct Stage {
    title: String,
    started: Instant,
    /// The number of bytes read, and of bytes in total, if known.
    bytes: Option<(u64, u64)>,
}

impl Stages {
    /// Starts without a stage. Prints no progress if `silent`.
    pub(crate) fn new(silent: bool) -> Self {
        let current = Arc::new(Mutex::new(None));
        let watched = !silent && terminal::shows_status();
        let shown = watched.then(|| show(Arc::clone(&current)));
        Self { current, _shown: shown }
    }

    /// Ends the current stage, and begins another one.
    pub(crate) fn begin(&self, title: &str) {
        self.enter(Stage::new(title.to_owned(), None));
    }

    /// Ends the current stage.
    pub(crate) fn end(&self) {
        if let Some(stage) = lock(&self.current).take() {
            stage.finish();
        }
    }

    /// Returns the function that a build has to call at each of its steps.
    pub(crate) fn observer(&self) -> impl Fn(Step) + Sync {
        |step| match step {
            Step::Decode { layers, bytes } => {
                let layers =
                    if layers == 1 { "1 layer".into() } else { format!("{layers} layers") };
                self.enter(Stage::new(format!("decoding {layers}"), Some((0, bytes))));
            }
            Step::Read { bytes } => {
                if let Some(Stage { bytes: Some((read, _)), .. }) = &mut *lock(&self.current) {
                    *read += bytes;
                }
            }
            Step::Compose => self.begin("composing the root"),
            Step::Write => self.begin("writing the rootfs"),
        }
    }

    fn enter(&self, stage: Stage) {
        if let Some(before) = lock(&self.current).replace(stage) {
            before.finish();
        }
    }
}

impl Drop for Stages {
    fn drop(&mut self) {
        self.end();
    }
}

impl Stage {
    fn new(title: String, bytes: Option<(u64, u64)>) -> Self {
        Self { title, started: Instant::now(), bytes }
    }

    /// Removes the stage's line, and prints the stage's duration as a detail.
    fn finish(self) {
        let duration = self.started.elapsed();
        if duration >= UNSEEN && terminal::shows_status() {
            terminal::status("");
        }
        terminal::detail(&self.title, format_args!("{:.1} s", duration.as_secs_f64()));
    }

    /// Returns the line of the stage after `duration`.
    fn line(&self, duration: Duration) -> String {
        let bytes =
            self.bytes.map(|(read, all)| format!("{} of {}, ", readable(read), readable(all)));
        format!("{}: {}{} s", self.title, bytes.unwrap_or_default(), duration.as_secs())
    }
}

/// Shows the stages on a separate thread, until the returned sender is dropped.
fn show(current: Arc<Mutex<Option<Stage>>>) -> Sender<()> {
    let (shown, ended) = mpsc::channel();
    let show = move || {
        while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            // Locked while the line is written, so that the line does not outlive its stage.
            let current = lock(&current);
            let stage = current.as_ref().map(|stage| (stage, stage.started.elapsed()));
            if let Some((stage, duration)) = stage.filter(|(_, duration)| *duration >= UNSEEN)
                && terminal::status_is_older_than(UNSEEN)
            {
                terminal::status(&stage.line(duration));
            }
        }
    };
    // If no thread can be started, the build has no display.
    thread::Builder::new().name("stages".to_owned()).spawn(show).ok();
    shown
}

fn lock(current: &Mutex<Option<Stage>>) -> MutexGuard<'_, Option<Stage>> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stages: &Stages) -> Option<String> {
        lock(&stages.current).as_ref().map(|stage| stage.line(Duration::from_secs(3)))
    }

    #[test]
    fn the_steps_of_a_build_are_stages() {
        let stages = Stages::new(true);
        let observer = stages.observer();
        observer(Step::Read { bytes: 7 });
        assert_eq!(line(&stages), None);
        observer(Step::Decode { layers: 2, bytes: 4 << 20 });
        observer(Step::Read { bytes: 1 << 20 });
        observer(Step::Read { bytes: 1 << 20 });
        let decoding = line(&stages).unwrap();
        assert_eq!(decoding, "decoding 2 layers: 2.0 MiB of 4.0 MiB, 3 s");
        observer(Step::Write);
        observer(Step::Read { bytes: 1 });
        assert_eq!(line(&stages).unwrap(), "writing the rootfs: 3 s");
        stages.end();
        assert_eq!(line(&stages), None);
    }
}

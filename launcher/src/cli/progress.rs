//! Shows the progress of a start on a terminal, and prints notices about the hashing and the jail.

use boxlaunch::machine::report::shown_duration;
use boxlaunch::machine::{Progress, Watch};
use safe_text::shown;

use super::screen::Screen;

/// Shows the start of a box on standard error.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    screen: &'a Screen,
    /// The box's name, safe for a terminal.
    name: String,
    /// Whether neither progress nor notices are shown.
    is_quiet: bool,
}

impl<'a> Shown<'a> {
    /// Shows the start of the box with this name.
    pub(crate) fn new(screen: &'a Screen, name: &str, is_quiet: bool) -> Self {
        Self { screen, name: shown(name), is_quiet }
    }

    /// Prints a notice about the start, unless `is_quiet` is set.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_quiet {
            self.screen.notice(text);
        }
    }
}

impl Watch for Shown<'_> {
    fn see(&self, progress: Progress<'_>) {
        let name = &self.name;
        if self.is_quiet {
            return;
        }
        match progress {
            Progress::Verifying => self.screen.show_status(&format!("verifying {name}…")),
            Progress::Hashed(time) => self.screen.notice(&format!(
                "boxlaunch: verified {name} in {}, before its start\n",
                shown_duration(time)
            )),
            Progress::Confined([]) => {}
            Progress::Confined(missing) => {
                let missing: Vec<_> = missing.iter().map(|it| shown(&it.to_string())).collect();
                self.screen.notice(&format!(
                    "boxlaunch: this host's jail lacks {}; `boxlaunch doctor` says more\n",
                    missing.join(", ")
                ));
            }
            Progress::Starting(time) => {
                self.screen.show_status(&format!("starting {name}… {} s", time.as_secs()));
            }
            Progress::Ended => self.screen.clear_status(),
        }
    }
}

//! The guest's console, for errors that cannot be sent to the launcher.

use std::fs::OpenOptions;
use std::io::{self, Write};

/// Writes one line to the kernel's console, in one call. A failure cannot be reported.
pub fn say(line: &str) {
    if let Ok(mut console) = OpenOptions::new().write(true).open("/dev/console") {
        drop(console.write_all(format!("box-init: {line}\r\n").as_bytes()));
    }
}

/// Makes a panic speak on the console; the caller of the panicking code then ends the start.
pub(crate) fn speak_of_panics() {
    std::panic::set_hook(Box::new(|info| say(&format!("panic: {info}"))));
}

/// Makes a panic speak on standard error: the console, if that was there when init started. For processes
/// that live among workloads, where `/dev/console` may be anything.
pub(crate) fn speak_of_panics_on_stderr() {
    std::panic::set_hook(Box::new(|info| drop(writeln!(io::stderr(), "box-init: panic: {info}"))));
}

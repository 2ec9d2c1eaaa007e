//! The guest's console, for errors that cannot be sent to the launcher.

use std::fs::OpenOptions;
use std::io::{self, Write};

/// Writes one line to the kernel's console, in one call. Errors are ignored.
pub fn say(line: &str) {
    if let Ok(mut console) = OpenOptions::new().write(true).open("/dev/console") {
        drop(console.write_all(format!("box-init: {line}\r\n").as_bytes()));
    }
}

/// Prints panics on the console. The caller of the panicking code then ends the box.
pub(crate) fn print_panics() {
    std::panic::set_hook(Box::new(|info| say(&format!("panic: {info}"))));
}

/// Prints panics on standard error, which is the console if the console was ready when init started. In a component, a
/// workload can have replaced `/dev/console`.
pub(crate) fn speak_of_panics_on_stderr() {
    std::panic::set_hook(Box::new(|info| drop(writeln!(io::stderr(), "box-init: panic: {info}"))));
}

//! The guest's console and libkrun's log, which arrive interleaved from the VMM process.
//!
//! libkrun writes each line of a console without a terminal as a record of its log, for example:
//!
//! ```text
//! [2026-01-31T12:00:00.000000Z ERROR init_or_kernel] the guest's line
//! [2026-01-31T12:00:00.000000Z ERROR krun_vmm::linux::vstate] a line of libkrun
//! ```
//!
//! The guest decides how much it writes, so only two parts of bounded size are kept: the end in memory, and the start
//! in a file if the caller provides one.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};

use safe_text::shown_lines;

use crate::streams::output::Lines;

/// The size of the end that is kept in memory, in bytes.
pub const MAX_TAIL: usize = 64 << 10;
/// The greatest size of the file, in bytes, without its closing line.
pub const MAX_FILE: usize = 1 << 20;
const TRUNCATED: &[u8] = b"[truncated: the console's file is full]\n";
/// The name of the console in libkrun's log.
const CONSOLE_TARGET: &str = " ERROR init_or_kernel] ";
/// The mark that libkrun puts before a console line that it broke.
const BROKEN: &str = "[missing newline]";
/// The text that libkrun logs when KVM gives up.
pub(crate) const INTERNAL_ERROR: &str = "KVM_EXIT_INTERNAL_ERROR";

/// The kept part of the console.
#[derive(Debug, Default)]
pub struct Console {
    lines: Lines,
    tail: VecDeque<u8>,
    file: Option<File>,
    /// How many more bytes may be written to the file.
    room: usize,
    /// While a line is incomplete, whether the guest wrote it. A long line arrives in several parts.
    begun: Option<bool>,
    internal_error: bool,
}

impl Console {
    /// Returns a console that keeps its end in memory, and its start in `file`, if there is one.
    pub fn new(file: Option<File>) -> Self {
        Self { file, room: MAX_FILE, ..Self::default() }
    }

    /// Adds bytes that the VMM process wrote.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, data: &[u8]) -> io::Result<()> {
        self.lines.push(data).iter().try_for_each(|line| self.take(line))
    }

    /// Adds the last line, which may be incomplete.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(&mut self) -> io::Result<()> {
        self.lines.finish().map_or(Ok(()), |line| self.take(&line))
    }

    /// Returns the end of the console, safe for a terminal.
    pub fn tail(&self) -> String {
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        shown_lines(&String::from_utf8_lossy(&bytes))
    }

    /// Returns whether libkrun reported that KVM gave up on the guest.
    pub const fn kvm_gave_up(&self) -> bool {
        self.internal_error
    }

    /// Adds a line of the console, or a part of a line. Only the first part of a line has libkrun's prefix.
    fn take(&mut self, line: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        let (from_guest, text) = self.begun.map_or_else(|| undecorated(text), |it| (it, text));
        self.begun = (!line.ends_with(b"\n")).then_some(from_guest);
        self.internal_error |= !from_guest && text.contains(INTERNAL_ERROR);
        let record = format!("{text}\n");
        self.tail.extend(record.as_bytes());
        let surplus = self.tail.len().saturating_sub(MAX_TAIL);
        self.tail.drain(..surplus);
        self.write_file(record.as_bytes())
    }

    /// Writes a line to the file if it fits. Otherwise the file is full, and gets its closing line once.
    fn write_file(&mut self, data: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if data.len() <= self.room {
            self.room -= data.len();
            return match file.write_all(data) {
                // The file is a pipe with a slow reader. The box must not wait for it, so the file gets no more lines.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.room = 0;
                    Ok(())
                }
                written => written,
            };
        }
        let is_first = std::mem::take(&mut self.room) > 0;
        if is_first { file.write_all(TRUNCATED) } else { Ok(()) }
    }
}

/// Returns whether the guest wrote a line, and the line. Removes libkrun's prefix from a line of the guest.
fn undecorated(line: &str) -> (bool, &str) {
    let parts = line.strip_prefix('[').and_then(|rest| rest.split_once(CONSOLE_TARGET));
    match parts {
        // The guest cannot forge the prefix, because its text begins after libkrun's.
        Some((timestamp, text)) if !timestamp.contains(' ') => {
            (true, text.strip_prefix(BROKEN).unwrap_or(text))
        }
        _ => (false, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: &str = "[2026-01-31T12:00:00.000000Z ERROR init_or_kernel] ";
    const LIBKRUN: &str = "[2026-01-31T12:00:00.000000Z ERROR krun_vmm::linux::vstate] ";

    #[test]
    fn the_guests_lines_lose_their_decoration() {
        let mut console = Console::new(None);
        console.push(format!("{GUEST}one\r\n{LIBKRUN}two\npanic").as_bytes()).unwrap();
        console.push(b"ked\n").unwrap();
        console.push(format!("{GUEST}{BROKEN}x\n{GUEST}\nlast").as_bytes()).unwrap();
        console.finish().unwrap();
        assert_eq!(console.tail(), format!("one\n{LIBKRUN}two\npanicked\nx\n\nlast\n"));
    }

    #[test]
    fn only_libkrun_can_say_that_kvm_gave_up() {
        let mut console = Console::new(None);
        let claim = "Received KVM_EXIT_INTERNAL_ERROR signal";
        console.push(format!("{GUEST}{claim}\n{GUEST}{LIBKRUN}{claim}\n").as_bytes()).unwrap();
        assert!(!console.kvm_gave_up());
        console.push(format!("{LIBKRUN}{claim}\n").as_bytes()).unwrap();
        assert!(console.kvm_gave_up());
    }

    #[test]
    fn no_part_of_a_long_line_of_the_guest_is_libkruns() {
        let mut console = Console::new(None);
        let claim = format!("{LIBKRUN}Received KVM_EXIT_INTERNAL_ERROR signal\n");
        for _ in 0..2 {
            let part = if console.begun.is_none() { GUEST } else { LIBKRUN };
            console.push(format!("{part}{}", "x".repeat(10_000)).as_bytes()).unwrap();
            assert_eq!(console.begun, Some(true));
        }
        console.push(claim.as_bytes()).unwrap();
        assert!(!console.kvm_gave_up());
        console.push(claim.as_bytes()).unwrap();
        assert!(console.kvm_gave_up());
    }

    #[test]
    fn a_pipe_whose_reader_pauses_is_not_waited_for() {
        let (_reader, writer) = io::pipe().unwrap();
        nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))
            .unwrap();
        let mut console = Console::new(Some(File::from(std::os::fd::OwnedFd::from(writer))));
        for _ in 0..10_000 {
            console.push(format!("{GUEST}{}\n", "=".repeat(60)).as_bytes()).unwrap();
        }
        assert_eq!(console.room, 0);
    }

    #[test]
    fn memory_and_file_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("console");
        let mut console = Console::new(Some(File::create(&path).unwrap()));
        for number in 0..40_000 {
            console.push(format!("{GUEST}line {number} {}\n", "=".repeat(40)).as_bytes()).unwrap();
        }
        console.push(&vec![b'z'; 10_000]).unwrap();
        assert_eq!(console.tail().len(), MAX_TAIL);
        let written = std::fs::read(&path).unwrap();
        assert!(written.len() <= MAX_FILE + TRUNCATED.len());
        assert!(written.starts_with(b"line 0 =") && written.ends_with(TRUNCATED));
        assert_eq!(written.windows(TRUNCATED.len()).filter(|w| *w == TRUNCATED).count(), 1);
    }
}

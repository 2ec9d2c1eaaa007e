//! The devices that an attack uses, a read-only and a writable share, and the report.

mod calls;

use core::fmt::{self, Write as _};

use crate::console::Console;
use crate::fs::opcode::LOOKUP;
use crate::fs::{Answer, Fs, ROOT};
use crate::text::Line;

/// One of the two shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The read-only share.
    ReadOnly,
    /// The writable share.
    Writable,
}

/// Both shares.
pub const SIDES: [Side; 2] = [Side::ReadOnly, Side::Writable];

/// The devices, and the outcomes of the current attack's requests.
#[derive(Debug)]
pub struct Ground {
    read_only: Fs,
    writable: Fs,
    console: Console,
    /// The node of the shared directory on each device, indexed by [`Side`].
    bases: [u64; 2],
    /// The number of look-ups in a flood.
    pub flood: u32,
    outcomes: Line,
    /// The last outcome, and how often in a row it occurred.
    last: Option<(Answer, u32)>,
}

impl Ground {
    /// Creates the ground from devices that are started.
    pub const fn new(read_only: Fs, writable: Fs, console: Console) -> Self {
        Self {
            read_only,
            writable,
            console,
            bases: [ROOT; 2],
            flood: 0,
            outcomes: Line::new(),
            last: None,
        }
    }

    /// Returns the device of `side`.
    pub const fn fs(&mut self, side: Side) -> &mut Fs {
        match side {
            Side::ReadOnly => &mut self.read_only,
            Side::Writable => &mut self.writable,
        }
    }

    /// Prints a line on the console at once.
    pub fn say(&mut self, words: fmt::Arguments<'_>) {
        self.console.say(words);
    }

    /// Adds `answer` to the outcomes, and returns it.
    pub fn note(&mut self, answer: Answer) -> Answer {
        // The length of an answer is not part of the outcome.
        let outcome = if answer.is_done() { Answer::Done(0) } else { answer };
        match &mut self.last {
            Some((last, times)) if *last == outcome => *times += 1,
            _ => {
                self.write_last();
                self.last = Some((outcome, 1));
            }
        }
        answer
    }

    fn write_last(&mut self) {
        let Some((answer, times)) = self.last.take() else { return };
        let written = if times > 1 {
            write!(self.outcomes, " {times}*{answer}")
        } else {
            write!(self.outcomes, " {answer}")
        };
        // Further outcomes are cut when the line is full.
        written.ok();
    }

    /// Clears the outcomes.
    pub const fn forget_outcomes(&mut self) {
        self.last = None;
        self.outcomes.clear();
    }

    /// Prints the outcomes of an attack, and clears them.
    pub fn conclude(&mut self, number: usize, name: &str) {
        self.write_last();
        self.console.say(format_args!("result {number} {name}:{}", self.outcomes.text()));
        self.forget_outcomes();
    }

    /// Returns whether a device no longer answers.
    pub const fn is_lost(&self) -> bool {
        self.read_only.is_lost() || self.writable.is_lost()
    }

    /// Restarts both devices, and looks up the read-only share: one device has all read-only shares, numbered, below its root.
    /// Returns whether all of it succeeded.
    pub fn restart(&mut self) -> bool {
        let are_started = self.read_only.start().is_done() && self.writable.start().is_done();
        let found = self.read_only.ask(LOOKUP, ROOT).name(b"0").send();
        self.bases = [self.read_only.number(0), ROOT];
        are_started && found.is_done()
    }

    /// Returns the node of the share `side`.
    pub const fn base(&self, side: Side) -> u64 {
        self.bases[side as usize]
    }
}

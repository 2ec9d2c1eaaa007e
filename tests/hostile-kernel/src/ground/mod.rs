//! The ground of an attack: the two kinds of shared directories, and the report.

mod calls;

use core::fmt::{self, Write as _};

use crate::console::Console;
use crate::fs::opcode::LOOKUP;
use crate::fs::{Answer, Fs, ROOT};
use crate::text::Line;

/// One of the two directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one to read.
    ReadOnly,
    /// The one to write.
    Writable,
}

/// Both.
pub const SIDES: [Side; 2] = [Side::ReadOnly, Side::Writable];

/// The devices, and what came of the requests of an attack.
#[derive(Debug)]
pub struct Ground {
    read_only: Fs,
    writable: Fs,
    console: Console,
    /// The nodes of the directories that are shared, of each device.
    bases: [u64; 2],
    /// How many look-ups are a flood.
    pub flood: u32,
    outcomes: Line,
    /// The last outcome, and how often it came.
    last: Option<(Answer, u32)>,
}

impl Ground {
    /// Takes the devices, which are started.
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

    /// Returns the device of a directory.
    pub const fn fs(&mut self, side: Side) -> &mut Fs {
        match side {
            Side::ReadOnly => &mut self.read_only,
            Side::Writable => &mut self.writable,
        }
    }

    /// Says something at once.
    pub fn say(&mut self, words: fmt::Arguments<'_>) {
        self.console.say(words);
    }

    /// Notes what came of a request.
    pub fn note(&mut self, answer: Answer) -> Answer {
        // How much came back is no outcome.
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
        // A line that is full has said enough.
        written.ok();
    }

    /// Forgets what came of the requests so far.
    pub const fn forget_outcomes(&mut self) {
        self.last = None;
        self.outcomes.clear();
    }

    /// Says what came of an attack.
    pub fn conclude(&mut self, number: usize, name: &str) {
        self.write_last();
        self.console.say(format_args!("result {number} {name}:{}", self.outcomes.text()));
        self.forget_outcomes();
    }

    /// Returns whether a device is gone.
    pub const fn is_lost(&self) -> bool {
        self.read_only.is_lost() || self.writable.is_lost()
    }

    /// Starts both devices again, and finds the shared directories. All that can only be read are below one root.
    pub fn restart(&mut self) -> bool {
        let are_started = self.read_only.start().is_done() && self.writable.start().is_done();
        let found = self.read_only.ask(LOOKUP, ROOT).name(b"0").send();
        self.bases = [self.read_only.number(0), ROOT];
        are_started && found.is_done()
    }

    /// Returns the node of a directory that is shared.
    pub const fn base(&self, side: Side) -> u64 {
        self.bases[side as usize]
    }
}

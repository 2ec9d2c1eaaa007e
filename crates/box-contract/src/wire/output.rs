//! The output of programs, and its flow control.

use std::io;

use super::frame::{Body, invalid, put};
use super::program_id::ProgramId;
use super::sizes::{FRAME_COST, WINDOW};

/// Bytes that a program wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The program.
    pub id: ProgramId,
    /// The standard stream.
    pub stream: Stream,
    /// At most [`MAX_OUTPUT`](super::MAX_OUTPUT) bytes.
    pub data: Vec<u8>,
}

impl Output {
    /// Returns the number of bytes that the frame uses of its program's [`WINDOW`]. The receiver later grants
    /// the same number again ([`Credit`](super::Credit)).
    pub fn cost(&self) -> u32 {
        output_cost(self.data.len())
    }
}

/// Returns the number of bytes that a frame with `length` bytes of output uses of its program's window.
pub fn output_cost(length: usize) -> u32 {
    FRAME_COST.saturating_add(u32::try_from(length).unwrap_or(u32::MAX))
}

/// The cost of a program's output that the receiver has passed on and not granted again ([`Credit`](super::Credit)).
#[derive(Debug, Default)]
pub struct Window(u32);

impl Window {
    /// Records output of this cost as passed on. Returns the number of bytes to grant, or `None` if it is less than a
    /// quarter of the window, so that grants are neither too frequent nor too late.
    pub fn passed(&mut self, cost: u32) -> Option<u32> {
        self.0 = self.0.saturating_add(cost);
        (self.0 >= WINDOW / 4).then(|| std::mem::take(&mut self.0))
    }
}

/// A standard stream of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// File descriptor 1 of the program.
    Stdout,
    /// File descriptor 2 of the program.
    Stderr,
}

impl Body for Output {
    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        let stream = match self.stream {
            Stream::Stdout => 1,
            Stream::Stderr => 2,
        };
        put(frame, &[self.id.byte()?, stream], &self.data);
        Ok(())
    }

    fn decode(mut body: Vec<u8>) -> io::Result<Self> {
        let &[id, stream, ..] = body.as_slice() else {
            return Err(invalid("an output frame without its source"));
        };
        let stream = match stream {
            1 => Stream::Stdout,
            2 => Stream::Stderr,
            _ => return Err(invalid("an output frame of an unknown stream")),
        };
        body.drain(..2);
        Ok(Self { id: id.into(), stream, data: body })
    }
}

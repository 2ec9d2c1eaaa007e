//! Mutated frames of the control channel. A seed always gives the same frames.

use box_contract::wire::{
    Credit, Failed, GuestMessage, Output, ProgramId, QuestionEnded, Stream, Usage,
};

use crate::peer::{exited, output, question, ready};

/// A pseudorandom sequence (xorshift64*, Vigna 2016).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap_or_default() % limit
    }
}

/// Returns messages that init may send.
fn messages() -> Vec<GuestMessage> {
    let failed = Failed { step: "start".to_owned(), message: "it cannot".to_owned() };
    let empty = Output { id: ProgramId(1), stream: Stream::Stderr, data: Vec::new() };
    vec![
        ready(),
        output(0, 40),
        output(255, 3),
        GuestMessage::Output(empty),
        exited(ProgramId::AGENT, 3),
        exited(ProgramId::BUSINESS, 1),
        exited(ProgramId(7), 255),
        GuestMessage::Credit(Credit { id: ProgramId(1), bytes: 64 }),
        GuestMessage::Usage(Usage { components: Vec::new() }),
        GuestMessage::Failed(failed),
        GuestMessage::Question(question(7, 20)),
        GuestMessage::QuestionEnded(QuestionEnded { question: 7, denial: None }),
    ]
}

/// Valid frames, and the pseudorandom sequence that mutates them.
pub(crate) struct Mutations {
    numbers: Numbers,
    frames: Vec<Vec<u8>>,
}

impl Mutations {
    pub(crate) fn new(seed: u64) -> Self {
        let frame = |message: &GuestMessage| {
            let mut bytes = Vec::new();
            message.write(&mut bytes).unwrap();
            bytes
        };
        Self { numbers: Numbers::new(seed), frames: messages().iter().map(frame).collect() }
    }

    /// Returns a frame with one to four changes. In seven of eight frames the length field is corrected afterwards.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let chosen = self.numbers.below(self.frames.len());
        let mut frame = self.frames[chosen].clone();
        for _ in 0..=self.numbers.below(4) {
            self.change(&mut frame);
        }
        if self.numbers.below(8) > 0 {
            let length = u32::try_from(frame.len().saturating_sub(4)).unwrap();
            frame.resize(frame.len().max(4), 0);
            frame[..4].copy_from_slice(&length.to_le_bytes());
        }
        frame
    }

    fn change(&mut self, frame: &mut Vec<u8>) {
        let at = self.numbers.below(frame.len());
        let byte = u8::try_from(self.numbers.below(256)).unwrap();
        match self.numbers.below(5) {
            0 => frame[at] = byte,
            1 => frame[at] ^= 1 << (byte % 8),
            2 => frame.insert(at, byte),
            // A digit, because most numbers in a frame are decimal numbers in JSON.
            3 => frame[at] = b'0' + byte % 10,
            _ if frame.len() > 5 => drop(frame.remove(at)),
            _ => {}
        }
    }

    /// Returns a mutated frame that does not end the run: it is a valid message, but not one that init sends only once.
    pub(crate) fn harmless(&mut self) -> Vec<u8> {
        loop {
            let frame = self.next();
            let mut rest = frame.as_slice();
            let message = GuestMessage::read(&mut rest);
            let ends = |message: &GuestMessage| match message {
                // The box has no task, so a verification is an error, too.
                GuestMessage::Hello(_)
                | GuestMessage::Ready(_)
                | GuestMessage::Failed(_)
                | GuestMessage::Verification(_) => true,
                GuestMessage::Exited(exited) => exited.id == ProgramId::AGENT,
                _ => false,
            };
            if rest.is_empty() && matches!(&message, Ok(Some(message)) if !ends(message)) {
                return frame;
            }
        }
    }
}

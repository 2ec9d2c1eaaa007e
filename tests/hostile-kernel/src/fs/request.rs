//! A request that is being made: a header, and whatever is put after it.

use super::{Answer, Fs, HEADER};

/// A request, in the memory of the device that it is for.
#[derive(Debug)]
pub struct Request<'a> {
    fs: &'a mut Fs,
    opcode: u32,
    node: u64,
    user: u32,
    length: usize,
    /// The length in the header, instead of the true one.
    claimed: Option<u32>,
    room: usize,
}

impl<'a> Request<'a> {
    pub(super) const fn new(fs: &'a mut Fs, opcode: u32, node: u64) -> Self {
        let room = 64 << 10;
        Self { fs, opcode, node, user: 0, length: HEADER, claimed: None, room }
    }

    /// Puts bytes after it.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.fs.request.write(self.length, bytes);
        self.length += bytes.len();
        self
    }

    /// Puts a name after it, which ends with a NUL.
    #[must_use]
    pub fn name(self, name: &[u8]) -> Self {
        self.bytes(name).bytes(&[0])
    }

    /// Puts numbers of 32 bits after it.
    #[must_use]
    pub fn words(self, words: &[u32]) -> Self {
        words.iter().fold(self, |request, word| request.bytes(&word.to_le_bytes()))
    }

    /// Puts numbers of 64 bits after it.
    #[must_use]
    pub fn longs(self, longs: &[u64]) -> Self {
        longs.iter().fold(self, |request, long| request.bytes(&long.to_le_bytes()))
    }

    /// Lets the header lie about the length.
    #[must_use]
    pub const fn claim(mut self, length: u32) -> Self {
        self.claimed = Some(length);
        self
    }

    /// Sends it as another user than root, whose group has the same number.
    #[must_use]
    pub const fn user(mut self, user: u32) -> Self {
        self.user = user;
        self
    }

    /// Leaves room for so many bytes of an answer only.
    #[must_use]
    pub const fn room(mut self, room: usize) -> Self {
        self.room = room;
        self
    }

    /// Writes it, and returns how long it is; whoever calls this sends it.
    pub(crate) fn prepare(self) -> usize {
        let length = self.length;
        self.finish();
        length
    }

    /// Sends it, and waits for the answer.
    pub fn send(self) -> Answer {
        let Self { length, room, .. } = self;
        let fs = self.finish();
        fs.send(length, room)
    }

    fn finish(self) -> &'a mut Fs {
        let length = self.claimed.unwrap_or(u32::try_from(self.length).unwrap_or(u32::MAX));
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4..8].copy_from_slice(&self.opcode.to_le_bytes());
        header[8] = 1;
        header[16..24].copy_from_slice(&self.node.to_le_bytes());
        header[24..28].copy_from_slice(&self.user.to_le_bytes());
        header[28..32].copy_from_slice(&self.user.to_le_bytes());
        self.fs.request.write(0, &header);
        self.fs
    }
}

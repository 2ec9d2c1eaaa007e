//! A builder of FUSE requests: a header, and any bytes after it.

use super::{Answer, Fs, HEADER};

/// A request under construction in the memory of `fs`.
#[derive(Debug)]
pub struct Request<'a> {
    fs: &'a mut Fs,
    opcode: u32,
    node: u64,
    user: u32,
    length: usize,
    /// The length to write into the header. `None`: the true length.
    claimed: Option<u32>,
    room: usize,
}

impl<'a> Request<'a> {
    pub(super) const fn new(fs: &'a mut Fs, opcode: u32, node: u64) -> Self {
        let room = 64 << 10;
        Self { fs, opcode, node, user: 0, length: HEADER, claimed: None, room }
    }

    /// Appends bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.fs.request.write(self.length, bytes);
        self.length += bytes.len();
        self
    }

    /// Appends a name and a NUL.
    #[must_use]
    pub fn name(self, name: &[u8]) -> Self {
        self.bytes(name).bytes(&[0])
    }

    /// Appends little-endian 32-bit numbers.
    #[must_use]
    pub fn words(self, words: &[u32]) -> Self {
        words.iter().fold(self, |request, word| request.bytes(&word.to_le_bytes()))
    }

    /// Appends little-endian 64-bit numbers.
    #[must_use]
    pub fn longs(self, longs: &[u64]) -> Self {
        longs.iter().fold(self, |request, long| request.bytes(&long.to_le_bytes()))
    }

    /// Sets the length in the header, which need not be the true one.
    #[must_use]
    pub const fn claim(mut self, length: u32) -> Self {
        self.claimed = Some(length);
        self
    }

    /// Sets the user ID and the group ID in the header. The default is 0.
    #[must_use]
    pub const fn user(mut self, user: u32) -> Self {
        self.user = user;
        self
    }

    /// Sets the size of the answer's buffer in bytes. The default is 64 KiB.
    #[must_use]
    pub const fn room(mut self, room: usize) -> Self {
        self.room = room;
        self
    }

    /// Writes the request and returns its length in bytes. The caller sends it.
    pub(crate) fn prepare(self) -> usize {
        let length = self.length;
        self.finish();
        length
    }

    /// Sends the request, and waits for the answer.
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

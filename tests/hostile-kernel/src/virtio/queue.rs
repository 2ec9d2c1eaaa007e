//! A queue of virtio: descriptors of memory, those that are offered to the device, and those that it has used (2.7).

use crate::machine::Shared;

/// The flags of a descriptor: there is a next one; the device writes to it.
pub const NEXT: u16 = 1;
/// The device writes to it.
pub const WRITE: u16 = 2;

const DESCRIPTOR: usize = 16;
/// A ring's flags, and its index of 16 bits.
const RING_HEADER: usize = 4;
const INDEX_AT: usize = 2;
const USED_ENTRY: usize = 8;

/// A descriptor.
#[derive(Debug, Clone, Copy, Default)]
pub struct Piece {
    /// Where its memory is.
    pub address: u64,
    /// How much that is.
    pub length: u32,
    /// [`NEXT`] and [`WRITE`].
    pub flags: u16,
    /// The next one of its chain.
    pub next: u16,
}

/// A queue.
#[derive(Debug)]
pub struct Queue {
    memory: Shared,
    size: u16,
    offered: u16,
    seen: u16,
}

impl Queue {
    /// Makes one with so many descriptors.
    pub fn new(size: u16) -> Self {
        let length = Self::used_at(size) + RING_HEADER + usize::from(size) * USED_ENTRY + 2;
        Self { memory: Shared::take(length), size, offered: 0, seen: 0 }
    }

    const fn available_at(size: u16) -> usize {
        size as usize * DESCRIPTOR
    }

    const fn used_at(size: u16) -> usize {
        (Self::available_at(size) + RING_HEADER + size as usize * 2 + 2).next_multiple_of(4)
    }

    /// Returns how many descriptors it has.
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// Returns where its three parts are.
    pub const fn addresses(&self) -> [u64; 3] {
        let base = self.memory.address();
        [base, base + Self::available_at(self.size) as u64, base + Self::used_at(self.size) as u64]
    }

    /// Makes it as good as new.
    pub fn clear(&mut self) {
        for at in 0..self.memory.length() {
            self.memory.write(at, &[0]);
        }
        (self.offered, self.seen) = (0, 0);
    }

    /// Writes a descriptor.
    pub fn describe(&mut self, index: u16, piece: Piece) {
        let mut bytes = [0; DESCRIPTOR];
        bytes[..8].copy_from_slice(&piece.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&piece.length.to_le_bytes());
        bytes[12..14].copy_from_slice(&piece.flags.to_le_bytes());
        bytes[14..].copy_from_slice(&piece.next.to_le_bytes());
        self.memory.write(usize::from(index) * DESCRIPTOR, &bytes);
    }

    /// Offers the chain that begins with a descriptor, which need not exist.
    pub fn offer(&mut self, head: u16) {
        let ring = Self::available_at(self.size);
        let slot = usize::from(self.offered % self.size);
        self.memory.write(ring + RING_HEADER + slot * 2, &head.to_le_bytes());
        self.offered = self.offered.wrapping_add(1);
        self.set_offered(self.offered);
    }

    /// Says how many chains were offered.
    pub fn set_offered(&mut self, index: u16) {
        let ring = Self::available_at(self.size);
        self.memory.write(ring + INDEX_AT, &index.to_le_bytes());
    }

    /// Returns how many chains the device has used that nobody has looked at.
    pub fn waiting(&self) -> u16 {
        let mut index = [0; 2];
        self.memory.read(Self::used_at(self.size) + INDEX_AT, &mut index);
        u16::from_le_bytes(index).wrapping_sub(self.seen)
    }

    /// Takes the next chain that the device has used: how much it has written.
    pub fn take(&mut self) -> Option<u32> {
        if self.waiting() == 0 {
            return None;
        }
        let slot = usize::from(self.seen % self.size) * USED_ENTRY;
        let mut length = [0; 4];
        self.memory.read(Self::used_at(self.size) + RING_HEADER + slot + 4, &mut length);
        self.seen = self.seen.wrapping_add(1);
        Some(u32::from_le_bytes(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_comes_back_once() {
        let mut queue = Queue::new(4);
        queue.describe(0, Piece { address: 1, length: 2, flags: WRITE, next: 0 });
        queue.offer(0);
        assert_eq!(queue.take(), None);
        let used = Queue::used_at(4);
        queue.memory.write(used, &[0, 0, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!((queue.waiting(), queue.take(), queue.take()), (1, Some(9), None));
    }
}

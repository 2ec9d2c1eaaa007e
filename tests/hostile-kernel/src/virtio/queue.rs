//! A split virtqueue (virtio 1.2, 2.7): descriptors, the available ring for the device, and the used ring from the device.

use crate::machine::Shared;

/// `VIRTQ_DESC_F_NEXT`: the chain continues with [`Piece::next`].
pub const NEXT: u16 = 1;
/// `VIRTQ_DESC_F_WRITE`: the device writes to the memory.
pub const WRITE: u16 = 2;

const DESCRIPTOR: usize = 16;
/// The size of a ring's header: flags and index, 16 bits each.
const RING_HEADER: usize = 4;
const INDEX_AT: usize = 2;
const USED_ENTRY: usize = 8;

/// A descriptor of a range of memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Piece {
    /// The physical address of the memory.
    pub address: u64,
    /// The size of the memory in bytes.
    pub length: u32,
    /// [`NEXT`], [`WRITE`], both or none.
    pub flags: u16,
    /// The index of the chain's next descriptor, used with [`NEXT`].
    pub next: u16,
}

/// A virtqueue in memory that the device accesses.
#[derive(Debug)]
pub struct Queue {
    memory: Shared,
    size: u16,
    offered: u16,
    seen: u16,
}

impl Queue {
    /// Creates a queue with `size` descriptors.
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

    /// Returns the number of descriptors.
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// Returns the addresses of the descriptors, the available ring and the used ring.
    pub const fn addresses(&self) -> [u64; 3] {
        let base = self.memory.address();
        [base, base + Self::available_at(self.size) as u64, base + Self::used_at(self.size) as u64]
    }

    /// Resets the queue to its initial state.
    pub fn clear(&mut self) {
        for at in 0..self.memory.length() {
            self.memory.write(at, &[0]);
        }
        (self.offered, self.seen) = (0, 0);
    }

    /// Writes the descriptor `index`.
    pub fn describe(&mut self, index: u16, piece: Piece) {
        let mut bytes = [0; DESCRIPTOR];
        bytes[..8].copy_from_slice(&piece.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&piece.length.to_le_bytes());
        bytes[12..14].copy_from_slice(&piece.flags.to_le_bytes());
        bytes[14..].copy_from_slice(&piece.next.to_le_bytes());
        self.memory.write(usize::from(index) * DESCRIPTOR, &bytes);
    }

    /// Offers the chain that begins with descriptor `head`. The descriptor need not exist.
    pub fn offer(&mut self, head: u16) {
        let ring = Self::available_at(self.size);
        let slot = usize::from(self.offered % self.size);
        self.memory.write(ring + RING_HEADER + slot * 2, &head.to_le_bytes());
        self.offered = self.offered.wrapping_add(1);
        self.set_offered(self.offered);
    }

    /// Sets the available ring's index: the number of chains that were offered.
    pub fn set_offered(&mut self, index: u16) {
        let ring = Self::available_at(self.size);
        self.memory.write(ring + INDEX_AT, &index.to_le_bytes());
    }

    /// Returns how many used chains [`Self::take`] has not yet returned.
    pub fn waiting(&self) -> u16 {
        let mut index = [0; 2];
        self.memory.read(Self::used_at(self.size) + INDEX_AT, &mut index);
        u16::from_le_bytes(index).wrapping_sub(self.seen)
    }

    /// Takes the next used chain, and returns the number of bytes that the device wrote.
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

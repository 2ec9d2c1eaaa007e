//! Virtio devices over MMIO ([virtio 1.2, 4.2](https://docs.oasis-open.org/virtio/virtio/v1.2/virtio-v1.2.html)).

mod queue;

use core::hint::black_box;
use core::str;

pub use queue::{NEXT, Piece, Queue, WRITE};

use crate::machine::Registers;

/// The values of the first two registers: "virt", and the version. The offsets of the other registers follow.
const MAGIC: u32 = 0x7472_6976;
const VERSION: u32 = 2;
const DEVICE_ID: usize = 0x08;
const FEATURES: usize = 0x20;
const FEATURES_SELECT: usize = 0x24;
const QUEUE_SELECT: usize = 0x30;
const QUEUE_SIZE: usize = 0x38;
const QUEUE_READY: usize = 0x44;
const NOTIFY: usize = 0x50;
const STATUS: usize = 0x70;
/// The registers for the low halves of a queue's three addresses. Each high half follows its low half.
const DESCRIPTORS: usize = 0x80;
const AVAILABLE: usize = 0x90;
const USED: usize = 0xa0;
const CONFIG: usize = 0x100;
/// The values of the status register during a start. Each includes the bits before it.
const ACKNOWLEDGE: u32 = 1;
const DRIVER: u32 = ACKNOWLEDGE | 2;
const FEATURES_OK: u32 = DRIVER | 8;
const DRIVER_OK: u32 = FEATURES_OK | 4;
/// `VIRTIO_F_EVENT_IDX`: the device interrupts only at the index that the driver sets. This kernel never sets one.
pub const QUIET: u32 = 1 << 29;
/// `VIRTIO_F_VERSION_1`, in the features' second word.
const VERSION_1: u32 = 1;

/// The number of iterations in [`dawdle`].
const DAWDLED: u32 = 4000;

/// A virtio device.
#[derive(Debug, Clone, Copy)]
pub struct Device {
    registers: Registers,
}

/// Returns the devices on the kernel's command line, such as `virtio_mmio.device=4K@0xd0000000:5`.
pub fn devices(command_line: &[u8]) -> impl Iterator<Item = Device> {
    let words = str::from_utf8(command_line).unwrap_or_default().split_ascii_whitespace();
    words.filter_map(|word| Device::at(address(word)?))
}

fn address(word: &str) -> Option<usize> {
    let (_, place) = word.strip_prefix("virtio_mmio.device=")?.split_once("@0x")?;
    usize::from_str_radix(place.split_once(':')?.0, 16).ok()
}

impl Device {
    /// Returns the device whose registers are at `base`, or `None` if there is none.
    pub fn at(base: usize) -> Option<Self> {
        let registers = Registers::at(base)?;
        (registers.read(0) == MAGIC && registers.read(4) == VERSION).then_some(Self { registers })
    }

    /// Returns the address of the device's registers.
    pub const fn base(self) -> usize {
        self.registers.base()
    }

    /// Returns the virtio device ID.
    pub fn kind(self) -> u32 {
        self.registers.read(DEVICE_ID)
    }

    /// Reads a 32-bit word at `offset` of the device's configuration space.
    pub fn config(self, offset: usize) -> u32 {
        self.registers.read(CONFIG + offset)
    }

    /// Resets the device, and negotiates `features` (bits 0 to 31) and version 1. The caller sets the queues next.
    pub fn begin(self, features: u32) {
        for status in [0, ACKNOWLEDGE, DRIVER] {
            self.registers.write(STATUS, status);
        }
        for (word, features) in [(0, features), (1, VERSION_1)] {
            self.registers.write(FEATURES_SELECT, word);
            self.registers.write(FEATURES, features);
        }
        self.registers.write(STATUS, FEATURES_OK);
    }

    /// Sets the addresses of `queue` as the device's queue `index`.
    pub fn set_queue(self, index: u32, queue: &Queue) {
        let [descriptors, available, used] = queue.addresses();
        self.set_places(index, queue.size(), [descriptors, available, used]);
    }

    /// Sets a queue's addresses for descriptors, available ring and used ring, which need not be valid.
    pub fn set_places(self, index: u32, size: u16, places: [u64; 3]) {
        self.registers.write(QUEUE_SELECT, index);
        self.registers.write(QUEUE_SIZE, size.into());
        for (register, place) in [DESCRIPTORS, AVAILABLE, USED].into_iter().zip(places) {
            let [low, high] = halves(place);
            self.registers.write(register, low);
            self.registers.write(register + 4, high);
        }
        self.registers.write(QUEUE_READY, 1);
    }

    /// Completes the start: the device serves its queues.
    pub fn go(self) {
        self.registers.write(STATUS, DRIVER_OK);
    }

    /// Notifies the device of new chains in queue `index`.
    pub fn notify(self, index: u32) {
        self.registers.write(NOTIFY, index);
    }
}

/// Spends some microseconds without leaving the guest. Reading a register and PAUSE both leave it, which takes many times
/// longer on the virtual host.
pub fn dawdle() {
    (0..DAWDLED).for_each(|turn| {
        black_box(turn);
    });
}

/// Returns the low and the high 32 bits of a number.
fn halves(number: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_on_the_command_line() {
        assert_eq!(address("virtio_mmio.device=4K@0xd0001000:6"), Some(0xd000_1000));
        for other in ["virtio_mmio.device=4K", "quiet", "virtio_mmio.device=4K@0xd0001000"] {
            assert_eq!(address(other), None);
        }
    }

    #[test]
    fn a_number_has_two_halves() {
        assert_eq!(halves(0x1_0000_0002), [2, 1]);
    }
}

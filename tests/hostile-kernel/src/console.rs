//! The VM's virtio console, on which the kernel reports to the host.

use core::fmt::{self, Write as _};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::machine::Shared;
use crate::text::Line;
use crate::virtio::{Device, Piece, Queue, dawdle};

/// The virtio device ID of a console.
pub const KIND: u32 = 3;
/// The transmit queues: the text of port 0, and control messages.
const TEXT: u32 = 1;
const CONTROL: u32 = 3;
/// `VIRTIO_CONSOLE_PORT_OPEN` for port 0 (virtio 1.2, 5.3.6.2).
const PORT_OPEN: [u8; 8] = [0, 0, 0, 0, 6, 0, 1, 0];
/// How often [`send`] polls for the device to use a message, before it continues.
const PATIENCE: u32 = 20_000;

/// The virtio console.
#[derive(Debug)]
pub struct Console {
    device: Device,
    text: Queue,
    memory: Shared,
}

impl Console {
    /// Starts `device` and opens its port 0.
    pub fn start(device: Device) -> Self {
        let (text, mut control) = (Queue::new(16), Queue::new(16));
        let mut memory = Shared::take(4096);
        DEVICE.store(device.base(), Ordering::Relaxed);
        device.begin(0);
        device.set_queue(TEXT, &text);
        device.set_queue(CONTROL, &control);
        device.go();
        memory.write(0, &PORT_OPEN);
        send(device, CONTROL, &mut control, &memory, PORT_OPEN.len());
        Self { device, text, memory }
    }

    /// Writes a line, and waits until the device has used it.
    pub fn say(&mut self, words: fmt::Arguments<'_>) {
        let mut line = Line::new();
        // A line that is too long is cut.
        line.write_fmt(words).ok();
        line.end();
        self.memory.write(0, line.bytes());
        send(self.device, TEXT, &mut self.text, &self.memory, line.bytes().len());
    }
}

fn send(device: Device, index: u32, queue: &mut Queue, memory: &Shared, length: usize) {
    let length = u32::try_from(length).unwrap_or(0);
    queue.describe(0, Piece { address: memory.address(), length, ..Piece::default() });
    queue.offer(0);
    device.notify(index);
    for _ in 0..PATIENCE {
        if queue.take().is_some() {
            return;
        }
        dawdle();
    }
}

/// The address of the console's registers, for [`last_words`].
static DEVICE: AtomicUsize = AtomicUsize::new(0);

/// Reports the kernel's panic on the console.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "a kernel's panic is its own"))]
pub(crate) fn last_words(info: &core::panic::PanicInfo<'_>) {
    if let Some(device) = Device::at(DEVICE.load(Ordering::Relaxed)) {
        Console::start(device).say(format_args!("the kernel has failed: {info}"));
    }
}

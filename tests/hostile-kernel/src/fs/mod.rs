//! A client of FUSE over virtio-fs that can send malformed requests (`linux/fuse.h`, and virtio 1.2, 5.11).

mod answer;
pub mod opcode;
mod request;

pub use answer::{Answer, Attributes, Errno};
pub use request::Request;

use crate::machine::Shared;
use crate::virtio::{Device, NEXT, Piece, QUIET, Queue, WRITE, dawdle};

/// The virtio device ID of a file system.
pub const KIND: u32 = 26;
/// The index of the queue for urgent requests, and of the queue for all others.
const URGENT: u32 = 0;
pub(crate) const REQUESTS: u32 = 1;
/// The node of a device's root directory.
pub const ROOT: u64 = 1;
/// The size of a request's header and of an answer's header, in bytes.
pub(crate) const HEADER: usize = 40;
pub(crate) const ANSWER_HEADER: usize = 16;
const DESCRIPTORS: u16 = 1024;
/// The largest request and the largest answer, in bytes.
const MAX_REQUEST: usize = 256 << 10;
const MAX_ANSWER: usize = 64 << 10;
/// The size of a device's tag, in bytes. A shorter tag is padded with NUL.
const TAG: usize = 36;
/// How often [`Fs::wait`] polls for an answer, before the request is lost.
const PATIENCE: u32 = 20_000;

/// A virtio-fs device, its queues, and one request and answer.
#[derive(Debug)]
pub struct Fs {
    pub(crate) device: Device,
    pub(crate) queue: Queue,
    urgent: Queue,
    pub(crate) request: Shared,
    pub(crate) answer: Shared,
    /// Whether the device has not answered a request. Further requests are not sent.
    is_lost: bool,
}

impl Fs {
    /// The version of FUSE that this client implements: major and minor.
    pub const VERSION: [u32; 2] = [7, 38];

    /// Allocates the queues and buffers for `device`, and does not start it.
    pub fn new(device: Device) -> Self {
        let (queue, urgent) = (Queue::new(DESCRIPTORS), Queue::new(DESCRIPTORS));
        let (request, answer) = (Shared::take(MAX_REQUEST), Shared::take(MAX_ANSWER));
        Self { device, queue, urgent, request, answer, is_lost: false }
    }

    /// Returns whether `tag` is the device's tag.
    pub fn has_tag(device: Device, tag: &[u8]) -> bool {
        let byte = |at: usize| device.config(at & !3).to_le_bytes()[at & 3];
        (0..TAG).all(|at| byte(at) == tag.get(at).copied().unwrap_or(0))
    }

    /// Resets and starts the device, which then has no nodes except [`ROOT`].
    pub fn start(&mut self) -> Answer {
        self.is_lost = false;
        self.device.begin(QUIET);
        self.queue.clear();
        self.urgent.clear();
        self.device.set_queue(URGENT, &self.urgent);
        self.device.set_queue(REQUESTS, &self.queue);
        self.device.go();
        self.init(Self::VERSION, 0)
    }

    /// Sends INIT, with a `version` and `flags` that need not be valid.
    pub fn init(&mut self, version: [u32; 2], flags: u32) -> Answer {
        let [major, minor] = version;
        self.ask(opcode::INIT, 0).words(&[major, minor, 1 << 20, flags]).bytes(&[0; 48]).send()
    }

    /// Begins a request for `node`.
    pub fn ask(&mut self, opcode: u32, node: u64) -> Request<'_> {
        Request::new(self, opcode, node)
    }

    /// Sends the first `length` bytes of the request's memory, with `room` bytes for the answer.
    pub(crate) fn send(&mut self, length: usize, room: usize) -> Answer {
        self.describe(length, room);
        self.exchange(0)
    }

    /// Writes the descriptors of a request and its answer. libkrun requires a separate descriptor for the answer's header.
    pub(crate) fn describe(&mut self, length: usize, room: usize) {
        let piece = |memory: &Shared, at: usize, length: usize, flags, next| Piece {
            address: memory.address() + at as u64,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            flags,
            next,
        };
        let header = room.min(ANSWER_HEADER);
        let more = room - header;
        self.queue.describe(0, piece(&self.request, 0, length, NEXT, 1));
        let flags = if more > 0 { NEXT | WRITE } else { WRITE };
        self.queue.describe(1, piece(&self.answer, 0, header, flags, 2));
        self.queue.describe(2, piece(&self.answer, header, more, WRITE, 0));
    }

    /// Offers the chain that begins with descriptor `head`, and waits for the answer.
    pub(crate) fn exchange(&mut self, head: u16) -> Answer {
        if self.is_lost {
            return Answer::Lost;
        }
        self.answer.write(0, &[0; ANSWER_HEADER]);
        self.queue.offer(head);
        self.device.notify(REQUESTS);
        self.wait().map_or(Answer::Lost, |written| Answer::read(&self.answer, written))
    }

    /// Waits until the device has used a chain, and returns the number of bytes that it wrote.
    pub(crate) fn wait(&mut self) -> Option<u32> {
        for _ in 0..PATIENCE {
            if let Some(written) = self.queue.take() {
                return Some(written);
            }
            dawdle();
        }
        self.is_lost = true;
        None
    }

    /// Returns whether a request was lost since the last [`Self::start`].
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Copies `bytes.len()` bytes at offset `at` from the last answer's payload.
    pub fn payload(&self, at: usize, bytes: &mut [u8]) {
        self.answer.read(ANSWER_HEADER + at, bytes);
    }

    /// Returns the 64-bit number at offset `at` of the last answer's payload.
    pub fn number(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        self.payload(at, &mut bytes);
        u64::from_le_bytes(bytes)
    }
}

//! How much one frame carries, and how much may be on its way.

/// The greatest length of a frame after its length field, in bytes.
pub const MAX_FRAME: usize = 64 * 1024;
/// The greatest number of bytes that one [`GuestMessage::Output`](super::GuestMessage::Output) carries.
pub const MAX_OUTPUT: usize = 32 * 1024;
/// The number of bytes that a program may write, on both streams together, before the host has granted more. Those of
/// the components' own programs and of a command fit a Unix socket's buffer (`net.core.wmem_default`) together.
pub const WINDOW: u32 = 64 * 1024;
/// The cost of a frame beside its bytes; a socket's buffer counts no more for it.
pub const FRAME_COST: u32 = 1024;
/// The number of bytes of input that the host may send before init has granted more.
pub const INPUT_WINDOW: u32 = 64 * 1024;

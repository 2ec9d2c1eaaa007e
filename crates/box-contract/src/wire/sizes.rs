//! The sizes of frames and of windows.

/// The maximum length of a frame after its length field, in bytes.
pub const MAX_FRAME: usize = 64 * 1024;
/// The maximum number of bytes of a command's arguments, variables and working directory, each with a NUL byte at its
/// end and 8 bytes for its address: as much as Linux passes to a program whose stack may grow to 8 MiB
/// ([execve(2)](https://man7.org/linux/man-pages/man2/execve.2.html), "Limits on size of arguments and environment").
pub const MAX_WORDS: usize = 2 << 20;
/// The maximum number of data bytes in a [`GuestMessage::Output`](super::GuestMessage::Output).
pub const MAX_OUTPUT: usize = 32 * 1024;
/// The number of bytes that a program may write, on both streams together, before the host grants more
/// ([`Credit`](super::Credit)). The windows of the components' main programs and of one command fit together into a Unix
/// socket's buffer (`net.core.wmem_default`), because the VMM blocks if that buffer is full.
pub const WINDOW: u32 = 64 * 1024;
/// The cost of a frame in addition to its data, in bytes: at least the overhead that a socket's buffer accounts for it.
pub const FRAME_COST: u32 = 1024;
/// The number of input bytes that the host may send to a command before init grants more.
pub const INPUT_WINDOW: u32 = 64 * 1024;

//! What the entries of a tree take of memory while a box is built, as estimates.

/// Bytes that an entry takes at most at one time, from what was read of it to the written rootfs. A million empty files
/// take 440 bytes each at the peak of a build, its programs and buffers included.
pub const LEAF: usize = 340;

/// Bytes for the place of a file's content, until the content is written.
pub const CONTENT: usize = 128;

/// Bytes that a directory takes beyond an entry: a block of names, and another one in the image that is written.
pub const DIRECTORY: usize = 760;

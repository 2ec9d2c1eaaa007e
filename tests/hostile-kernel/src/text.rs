//! Lines of text in fixed buffers: the kernel has no allocator.

use core::fmt;

/// The size of a line's buffer in bytes, including the newline.
const MAX: usize = 1024;

/// A line of text in a fixed buffer.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; MAX],
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

impl Line {
    /// Creates an empty line.
    pub const fn new() -> Self {
        Self { bytes: [0; MAX], length: 0 }
    }

    /// Returns the line's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Returns the line as text, or an empty text if it is not UTF-8.
    pub fn text(&self) -> &str {
        core::str::from_utf8(self.bytes()).unwrap_or_default()
    }

    /// Empties the line.
    pub const fn clear(&mut self) {
        self.length = 0;
    }

    /// Appends the newline.
    pub const fn end(&mut self) {
        self.bytes[self.length] = b'\n';
        self.length += 1;
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte stays free for the newline.
        for byte in text.bytes() {
            if self.length == MAX - 1 {
                return Err(fmt::Error);
            }
            self.bytes[self.length] = byte;
            self.length += 1;
        }
        Ok(())
    }
}

/// Any bytes, displayed as escaped ASCII: `a\x00b\n`.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(to, "{}", byte.escape_ascii()))
    }
}

#[cfg(test)]
mod tests {
    use core::fmt::Write as _;

    use super::*;

    #[test]
    fn a_line_is_cut_where_it_is_full() {
        let mut line = Line::new();
        assert!(write!(line, "{:>2000}", "x").is_err());
        line.end();
        assert_eq!(line.bytes().len(), MAX);
        line.clear();
        write!(line, "{}", Shown(b"a\0b\n")).unwrap();
        assert_eq!(line.text(), "a\\x00b\\n");
    }
}

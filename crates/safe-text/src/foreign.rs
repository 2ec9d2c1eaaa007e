//! A writer for foreign bytes.

use std::io::{self, Write};

use super::Harmless;

/// Writes the bytes of a program, an image or a box: unchanged, or through [`Harmless`] for a
/// terminal.
///
/// When it is dropped, it writes the result of [`Harmless::finish`]. An error of this last write is
/// lost.
#[derive(Debug)]
pub struct ForeignWriter<W: Write> {
    to: W,
    filter: Option<Harmless>,
}

impl<W: Write> ForeignWriter<W> {
    /// Writes to `to`. The bytes are filtered only if a terminal shows them (`is_shown`).
    pub fn new(to: W, is_shown: bool) -> Self {
        Self { to, filter: is_shown.then(Harmless::default) }
    }
}

impl<W: Write> Write for ForeignWriter<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let Some(filter) = &mut self.filter else { return self.to.write(data) };
        self.to.write_all(filter.push(data).as_bytes()).map(|()| data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl<W: Write> Drop for ForeignWriter<W> {
    fn drop(&mut self) {
        let rest = self.filter.as_mut().map(Harmless::finish).unwrap_or_default();
        // A caller that needs the error of an earlier write calls `flush` before it drops the
        // writer.
        drop(self.to.write_all(rest.as_bytes()).and_then(|()| self.to.flush()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_for_a_terminal_are_harmless_and_others_are_as_they_are() {
        let written = |is_shown| {
            let mut bytes = Vec::new();
            let mut writer = ForeignWriter::new(&mut bytes, is_shown);
            writer.write_all(b"\x1b[2J\x1b[31mred\r\n").unwrap();
            writer.write_all(b"\xff\x1b[32mgreen\xe2").unwrap();
            writer.flush().unwrap();
            drop(writer);
            bytes
        };
        assert_eq!(written(false), b"\x1b[2J\x1b[31mred\r\n\xff\x1b[32mgreen\xe2");
        let shown = "\u{fffd}[2J\u{1b}[31mred\u{1b}[0m\n\u{fffd}\u{1b}[32mgreen\u{fffd}\u{1b}[0m";
        assert_eq!(String::from_utf8(written(true)).unwrap(), shown);
    }
}

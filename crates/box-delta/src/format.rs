//! The bytes of a delta: a header, and then the steps. All numbers of the header are little-endian; those of the steps are
//! [LEB128](https://en.wikipedia.org/wiki/LEB128).

use std::io::{self, Read, Write};

use box_digest::Digest;

/// The first bytes of a delta, with the version of the format.
const MAGIC: [u8; 8] = *b"boxdelt1";
/// The maximum number of sources.
pub const MAX_SOURCES: usize = 32;
/// The maximum length of a prefix, in bytes: 24 MiB.
pub const MAX_PREFIX: u64 = 24 << 20;
/// The maximum number of bytes that one frame makes: 8 MiB.
pub const MAX_FRAME: u64 = 8 << 20;
/// Returns how many bytes all prefixes of a delta may have together, for a blob of `size` bytes. Each frame reads its whole prefix,
/// so without a limit a small delta could keep a host busy for hours.
pub(crate) const fn prefix_budget(size: u64) -> u64 {
    size.saturating_mul(8).saturating_add(64 << 20)
}

/// Returns how many steps the delta of a blob of `size` bytes may have.
pub(crate) const fn max_steps(size: u64) -> u64 {
    (size / 1024).saturating_add(1024)
}

/// The base of the numbers of a LEB128, and the flag for a further byte.
const MORE: u8 = 0x80;

/// A range of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The index of the source.
    pub source: usize,
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// One step of a delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Copies a range of a source.
    Copy(Extent),
    /// Decompresses the zstd frame that follows the step.
    Frame {
        /// What the frame may repeat. A length of 0 stands for nothing.
        prefix: Extent,
        /// The number of bytes that the frame makes.
        makes: u64,
        /// The number of bytes of the frame.
        size: u64,
    },
}

/// The digest and the size of each source.
pub(crate) type Sources = Vec<(Digest, u64)>;

pub(crate) fn write_header(sources: &[(Digest, u64)], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&MAGIC)?;
    let count = u16::try_from(sources.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    out.write_all(&count.to_le_bytes())?;
    for (digest, size) in sources {
        out.write_all(digest.as_bytes())?;
        out.write_all(&size.to_le_bytes())?;
    }
    Ok(())
}

/// Reads the header. `None` if it is no header of this version.
pub(crate) fn read_header(from: &mut dyn Read) -> io::Result<Option<Sources>> {
    let (mut magic, mut count) = ([0; 8], [0; 2]);
    from.read_exact(&mut magic)?;
    from.read_exact(&mut count)?;
    let count = usize::from(u16::from_le_bytes(count));
    if magic != MAGIC || count > MAX_SOURCES {
        return Ok(None);
    }
    let mut sources = Vec::with_capacity(count);
    for _ in 0..count {
        let (mut digest, mut size) = ([0; 32], [0; 8]);
        from.read_exact(&mut digest)?;
        from.read_exact(&mut size)?;
        sources.push((Digest::from_bytes(digest), u64::from_le_bytes(size)));
    }
    Ok(Some(sources))
}

impl Step {
    pub(crate) fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let (kind, extent) = match self {
            Self::Copy(extent) => (0, extent),
            Self::Frame { prefix, .. } => (1, prefix),
        };
        let Extent { source, offset, length } = extent;
        for number in [kind, source as u64, offset, length] {
            write_number(number, out)?;
        }
        if let Self::Frame { makes, size, .. } = self {
            write_number(makes, out)?;
            write_number(size, out)?;
        }
        Ok(())
    }

    /// Reads a step. `None` if it is no step.
    pub(crate) fn read(from: &mut dyn Read) -> io::Result<Option<Self>> {
        let mut number = || read_number(from);
        let [Some(kind), Some(source), Some(offset), Some(length)] =
            [number()?, number()?, number()?, number()?]
        else {
            return Ok(None);
        };
        let Ok(source) = usize::try_from(source) else { return Ok(None) };
        let extent = Extent { source, offset, length };
        Ok(match kind {
            0 => Some(Self::Copy(extent)),
            1 => match [number()?, number()?] {
                [Some(makes), Some(size)] => Some(Self::Frame { prefix: extent, makes, size }),
                _ => None,
            },
            _ => None,
        })
    }
}

fn write_number(mut number: u64, out: &mut dyn Write) -> io::Result<()> {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.write_all(&[low & !MORE]);
        }
        out.write_all(&[low | MORE])?;
    }
}

/// Reads a number. `None` if it has more than 64 bits or is not the shortest form.
fn read_number(from: &mut dyn Read) -> io::Result<Option<u64>> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        from.read_exact(&mut byte)?;
        let bits = u64::from(byte[0] & !MORE);
        if shift > 0 && byte[0] == 0 || (bits << shift) >> shift != bits {
            return Ok(None);
        }
        number |= bits << shift;
        if byte[0] < MORE {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_step_is_read_as_it_was_written(
            source in 0..300_usize, offset: u64, length: u64, makes: u64, size: u64, is_copy: bool,
        ) {
            let extent = Extent { source, offset, length };
            let step = if is_copy { Step::Copy(extent) } else { Step::Frame { prefix: extent, makes, size } };
            let mut bytes = Vec::new();
            step.write(&mut bytes).unwrap();
            let mut rest = &*bytes;
            prop_assert_eq!(Step::read(&mut rest).unwrap(), Some(step));
            prop_assert!(rest.is_empty());
            // Every beginning of a step has an end too early.
            let cut = Step::read(&mut &bytes[..bytes.len() - 1]);
            prop_assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }

        #[test]
        fn bytes_that_are_read_as_a_number_are_its_only_form(bytes: [u8; 11]) {
            let mut rest = &bytes[..];
            if let Ok(Some(number)) = read_number(&mut rest) {
                let mut written = Vec::new();
                write_number(number, &mut written).unwrap();
                prop_assert_eq!(&bytes[..bytes.len() - rest.len()], &*written);
            }
        }
    }
}

//! Unpacks the kernel in a bzImage ([Linux/x86 boot protocol](https://docs.kernel.org/arch/x86/boot.html)).
//!
//! An emulated CPU takes seconds to unpack a kernel, so the real host unpacks it once. QEMU then starts the ELF file at
//! its PVH entry.

use std::io::Read as _;

use zstd::stream::read::Decoder;

use crate::{HostError, Result};

/// The first bytes of a Zstandard frame ([RFC 8878](https://www.rfc-editor.org/rfc/rfc8878)), which Debian 13 uses.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The first bytes of LZ4's [legacy frame](https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md), which Debian 12 uses.
const LZ4_LEGACY: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];
/// The maximum size of a kernel, in bytes.
const MAX_KERNEL: usize = 1 << 28;

/// Returns the ELF kernel of a bzImage, or `None` if its compression is neither LZ4 nor Zstandard.
///
/// # Errors
/// The file is no bzImage, or its payload is damaged.
pub(crate) fn extract(image: &[u8]) -> Result<Option<Vec<u8>>> {
    let payload = payload(image).ok_or_else(|| malformed("it is no bzImage"))?;
    let unpack = match payload.first_chunk() {
        Some(&LZ4_LEGACY) => unpack_lz4,
        Some(&ZSTD) => unpack_zstd,
        _ => return Ok(None),
    };
    // The last four bytes are the unpacked size, which the kernel's build appends.
    let (frame, size) = payload.split_last_chunk().ok_or_else(|| malformed("it is cut off"))?;
    let kernel = unpack(frame).ok_or_else(|| malformed("its compressed data is damaged"))?;
    if kernel.len() != u32::from_le_bytes(*size) as usize || !kernel.starts_with(b"\x7fELF") {
        return Err(malformed("it does not unpack to an ELF file of the size that it names"));
    }
    Ok(Some(kernel))
}

fn malformed(reason: &str) -> HostError {
    HostError::malformed("the virtual host's kernel", reason)
}

/// Returns the bytes between `payload_offset` and `payload_offset + payload_length`.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let is_bz_image = image.get(0x202..0x206)? == b"HdrS";
    let setup_sectors = usize::from(*image.get(0x1f1)?);
    let number = |at: usize| Some(u32::from_le_bytes(*image.get(at..)?.first_chunk()?) as usize);
    let start = (setup_sectors + 1) * 512 + number(0x248)?;
    let end = start.checked_add(number(0x24c)?)?;
    is_bz_image.then(|| image.get(start..end))?
}

fn unpack_zstd(frame: &[u8]) -> Option<Vec<u8>> {
    let mut kernel = Vec::new();
    let decoder = Decoder::new(frame).ok()?;
    decoder.take(MAX_KERNEL as u64).read_to_end(&mut kernel).ok()?;
    Some(kernel)
}

fn unpack_lz4(frame: &[u8]) -> Option<Vec<u8>> {
    let mut frame = frame.strip_prefix(&LZ4_LEGACY)?;
    let mut kernel = Vec::new();
    while let Some((size, rest)) = frame.split_first_chunk() {
        let (block, rest) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        unpack_block(block, &mut kernel)?;
        frame = rest;
    }
    frame.is_empty().then_some(kernel)
}

/// Unpacks one independent [LZ4 block](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md).
fn unpack_block(mut block: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let floor = out.len();
    while let Some((token, rest)) = block.split_first() {
        block = rest;
        let count = length(usize::from(token >> 4), &mut block)?;
        let (literals, rest) = block.split_at_checked(count)?;
        out.extend_from_slice(literals);
        block = rest;
        if block.is_empty() {
            break;
        }
        let (offset, rest) = block.split_first_chunk()?;
        block = rest;
        let count = length(usize::from(token & 15), &mut block)? + 4;
        repeat(out, floor, usize::from(u16::from_le_bytes(*offset)), count)?;
    }
    Some(())
}

/// Returns the length that begins with `count`. If `count` is 15, reads the additional bytes of the length from `block`.
fn length(mut count: usize, block: &mut &[u8]) -> Option<usize> {
    if count < 15 {
        return Some(count);
    }
    loop {
        let (byte, rest) = block.split_first()?;
        *block = rest;
        count += usize::from(*byte);
        if *byte != 255 {
            return Some(count);
        }
    }
}

/// Appends the `count` bytes that begin `offset` bytes before the end of `out`, and not before `floor`. The source and the
/// appended bytes may overlap.
fn repeat(out: &mut Vec<u8>, floor: usize, offset: usize, count: usize) -> Option<()> {
    let start = out.len().checked_sub(offset).filter(|start| offset > 0 && *start >= floor)?;
    if out.len() + count > MAX_KERNEL {
        return None;
    }
    if offset >= count {
        out.extend_from_within(start..start + count);
    } else {
        for at in start..start + count {
            out.push(out[at]);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bzImage whose kernel consists of "\x7fELF", 300 times "ab" and "end".
    fn image() -> Vec<u8> {
        let mut block = vec![0x6f];
        block.extend_from_slice(b"\x7fELFab");
        block.extend_from_slice(&[2, 0, 255, 255, 69]); // 4 + 15 + 579 = 598 bytes from 2 back
        block.extend_from_slice(b"\x30end");
        let mut frame = LZ4_LEGACY.to_vec();
        frame.extend_from_slice(&u32::try_from(block.len()).unwrap().to_le_bytes());
        frame.extend_from_slice(&block);
        image_of(&frame, 607)
    }

    fn image_of(frame: &[u8], size: u32) -> Vec<u8> {
        let payload = [frame, &size.to_le_bytes()].concat();
        let mut image = vec![0; 1024 + 16];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248] = 16;
        let length = u32::try_from(payload.len()).unwrap();
        image[0x24c..0x250].copy_from_slice(&length.to_le_bytes());
        image.extend_from_slice(&payload);
        image
    }

    #[test]
    fn a_kernel_is_unpacked() {
        let kernel = extract(&image()).unwrap().unwrap();
        assert_eq!(kernel, [b"\x7fELF".to_vec(), b"ab".repeat(300), b"end".to_vec()].concat());
    }

    #[test]
    fn a_kernel_of_debian_13_is_unpacked() {
        let kernel = [b"\x7fELF".to_vec(), b"ab".repeat(300)].concat();
        let frame = zstd::encode_all(&*kernel, 1).unwrap();
        let whole = image_of(&frame[..20], 604);
        assert!(extract(&whole).is_err(), "cut off");
        let whole = image_of(&frame, 604);
        assert_eq!(extract(&whole).unwrap().unwrap(), kernel);
        assert!(extract(&image_of(&frame, 603)).is_err(), "another size");
    }

    #[test]
    fn other_compressions_are_left_to_the_kernel() {
        let mut image = image();
        image[1040] = 0x1f;
        assert!(extract(&image).unwrap().is_none());
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let whole = image();
        assert!((0..whole.len()).all(|length| extract(&whole[..length]).is_err()));
        for at in 1044..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            if let Ok(Some(kernel)) = extract(&damaged) {
                assert_eq!(kernel.len(), 607);
            }
        }
    }
}

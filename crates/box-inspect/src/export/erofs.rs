//! The form `erofs`: the file system of the rootfs, unchanged.

use std::io::{Read, Write};

use box_layout::Blob;
use host_fs::FileError;

use super::Written;
use crate::error::{ExportError, ROOTFS};
use crate::opened::{OpenBox, OpenError};
use crate::verify;

/// How many bytes are copied at once.
const CHUNK: usize = 1 << 20;

/// Copies the rootfs of a box, if it matches the listing.
///
/// # Errors
/// [`ExportError`]. The bytes that `out` then has may be wrong.
pub fn copy_rootfs(opened: &OpenBox, out: &mut dyn Write) -> Result<Written, ExportError> {
    verify::files(opened)?;
    let rootfs = opened.open_rootfs().map_err(OpenError::from)?;
    Written::count(out, |out| rootfs.parts().iter().try_for_each(|part| copy_part(part, out)))
}

/// Copies a part of the rootfs and verifies its digest.
fn copy_part(part: &Blob, out: &mut dyn Write) -> Result<(), ExportError> {
    let copied = Written::count(out, |out| {
        let (mut file, mut buffer) = (&part.file, vec![0; CHUNK]);
        loop {
            match file.read(&mut buffer).map_err(FileError::of("read", ROOTFS))? {
                0 => return Ok(()),
                read => out.write_all(&buffer[..read]).map_err(ExportError::Write)?,
            }
        }
    })?;
    let (role, expected) = (part.role(), part.descriptor.digest);
    if copied.digest == expected {
        return Ok(());
    }
    Err(ExportError::damaged(&format!("its {role} {expected} has the digest {}", copied.digest)))
}

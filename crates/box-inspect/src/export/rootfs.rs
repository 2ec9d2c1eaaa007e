//! The form `erofs`: the rootfs image as it is.

use std::io::{Read, Write};

use box_image::manifest::ROOTFS_TYPE;

use super::{ExportError, Written};
use crate::opened::{self, OpenBox};

/// How many bytes are copied at once.
const CHUNK: usize = 1 << 20;

/// Copies the rootfs image of a box.
///
/// # Errors
/// [`ExportError`]; what was written then is not the image.
pub fn copy_rootfs(opened: &OpenBox, out: &mut dyn Write) -> Result<Written, ExportError> {
    let mut rootfs = opened::rootfs(opened)?;
    let written = Written::count(out, |out| {
        let mut buffer = vec![0; CHUNK];
        loop {
            match rootfs.read(&mut buffer).map_err(ExportError::Rootfs)? {
                0 => return Ok(()),
                read => out.write_all(&buffer[..read]).map_err(ExportError::Write)?,
            }
        }
    })?;
    let named = opened.manifest.blob(ROOTFS_TYPE).map(|blob| blob.digest);
    if named == Some(written.digest) { Ok(written) } else { Err(ExportError::DamagedRootfs) }
}

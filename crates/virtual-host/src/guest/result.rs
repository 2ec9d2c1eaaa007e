//! Writes the results to their disk, as a tar archive.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use tar::{Builder, Header};

use super::commands::collected;
use crate::plan::{End, HOME, OUT, RESULT, STREAMS, Status, end_name, status_name};
use crate::{HostError, Result};

/// Writes the commands' statuses, their output, and the files that they left.
pub(super) fn leave(disk: &Path, ended: &[Status]) -> Result<()> {
    let write = || {
        let device = File::options().write(true).open(disk)?;
        let mut archive = Builder::new(BufWriter::new(device));
        add_all(&mut archive, ended)?;
        let device = archive.into_inner()?.into_inner().map_err(io::Error::other)?;
        device.sync_all()
    };
    write().map_err(HostError::guest("leave its result"))
}

fn add_all(archive: &mut Builder<impl Write>, ended: &[Status]) -> io::Result<()> {
    for (number, status) in ended.iter().enumerate() {
        add(archive, &status_name(number), status)?;
        for stream in STREAMS {
            let path = collected(number, stream);
            let name = path.strip_prefix(HOME).unwrap_or(&path);
            archive.append_path_with_name(&path, name)?;
        }
    }
    archive.append_dir_all(OUT.trim_start_matches('/'), OUT)?;
    let uptime = fs::read_to_string("/proc/uptime")?;
    let uptime = uptime.split(' ').next().unwrap_or_default().to_owned();
    add(archive, &end_name(), &End { uptime })
}

/// Adds a JSON document.
fn add(archive: &mut Builder<impl Write>, name: &str, value: &impl Serialize) -> io::Result<()> {
    debug_assert!(name.starts_with(RESULT), "the names of commands' files differ");
    let bytes = serde_json::to_vec(value)?;
    let mut header = Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, bytes.as_slice())
}

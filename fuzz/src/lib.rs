//! The bodies of the fuzz targets.
#![forbid(unsafe_code)]

mod archive;
mod boot;
mod boxfile;
mod bundle;
mod cap_http;
mod command;
mod delta;
mod egress;
mod image;
mod layer;
mod service;
mod skill;
mod ssh_agent;

use std::path::Path;

use tempfile::TempDir;

pub use archive::archive;
pub use boot::{frames, plan};
pub use boxfile::boxfile;
pub use bundle::bundle;
pub use cap_http::cap_http;
pub use command::command;
pub use delta::delta;
pub use egress::{first_bytes, proxy};
pub use image::{index, manifest};
pub use layer::layer;
pub use service::service_answer;
pub use skill::skill_md;
pub use ssh_agent::ssh_agent;

/// Makes a directory, in `/dev/shm` if that exists.
fn in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    directory.expect("a directory can be made")
}

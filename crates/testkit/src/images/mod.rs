//! Makes OCI image layouts from declared files, without other programs.
//!
//! ```no_run
//! use testkit::images::{Compression, Config, Image, Layer};
//!
//! let layer = Layer::new().dir("/etc", 0o755).file("/etc/motd", 0o644, "Hello.\n");
//! let image = Image::new(Config::default()).with(layer.to_tar());
//! image.write_layout("images/agent".as_ref(), "latest", Compression::Gzip)?;
//! # Ok::<(), testkit::FileError>(())
//! ```
//!
//! The same declaration gives the same bytes on every host.

mod archive;
mod blobs;
mod docker;
mod layer;
mod layout;
mod tar_entry;
mod types;

pub use archive::pack;
pub use blobs::LayoutDir;
pub use docker::Saved;
pub use layer::{Layer, LayerTar};
pub use layout::{Compression, Config, Image};
pub use tar_entry::{Entry, Kind};

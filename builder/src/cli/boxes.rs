//! The box that a command reads.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use box_find::{BoxReference, FindError};
use box_inspect::opened::OpenBox;

use super::failure::Failure;
use super::locate;
use super::options::StoreOption;

/// The box that a command reads, and the store that it may be in.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct BoxArgument {
    /// The box: a directory such as NAME.box or ./DIR, its name in the store, HOST/NAME:TAG of a registry, or sha256:...; with
    /// @sha256:... after it, it must have this digest
    #[arg(id = "box", value_name = "BOX")]
    pub(crate) reference: PathBuf,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

impl BoxArgument {
    /// Parses the word of the command line.
    pub(crate) fn parse(&self) -> Result<BoxReference, FindError> {
        BoxReference::parse(self.reference.as_os_str())
    }

    /// Opens the box.
    pub(crate) fn open(&self) -> Result<OpenBox, Failure> {
        open(self.reference.as_os_str(), self.store.store.as_deref())
    }
}

/// Opens the box that a word of the command line names.
pub(crate) fn open(word: &OsStr, store: Option<&Path>) -> Result<OpenBox, Failure> {
    Ok(BoxReference::parse(word)?.find(locate::stores(store))?.open()?)
}

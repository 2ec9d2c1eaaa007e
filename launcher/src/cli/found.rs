//! The box that a command line names.

use std::ffi::OsStr;
use std::path::PathBuf;

use box_cache::Held;
use box_find::{BoxReference, FindError, Found};
use box_layout::OpenBox;
use safe_text::{shell_word, shown, with_causes};

use super::error::CommandError;
use super::paths;

/// The box that a command is about, and the store that it may be in.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct BoxArgument {
    /// The box: a directory such as NAME.box or ./DIR, its name in the store, HOST/NAME:TAG of a registry, or sha256:...; with
    /// @sha256:... after it, it must have this digest.
    #[arg(id = "box", value_name = "BOX")]
    pub(crate) reference: PathBuf,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Where the store is.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct StoreOption {
    /// The directory of the store [default: $BOXBUILD_STORE, $XDG_CACHE_HOME/boxbuild, ~/.cache/boxbuild]. That of
    /// $BOXBUILD_STORE_RO is read as well.
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
}

impl BoxArgument {
    /// Returns the word of the command line.
    pub(crate) fn word(&self) -> &OsStr {
        self.reference.as_os_str()
    }

    /// Returns the words that name the same box on another command line.
    pub(crate) fn shell_words(&self) -> String {
        let store = self.store.store.as_ref().map(|it| format!("--store {} ", shell_word(it)));
        store.unwrap_or_default() + &shell_word(self.word())
    }

    /// Finds the box.
    pub(crate) fn find(&self) -> Result<Found, FindError> {
        BoxReference::parse(self.word())?.find(paths::stores(self.store.store.as_deref()))
    }

    /// Opens the box.
    pub(crate) fn open(&self) -> Result<OpenBox, CommandError> {
        open(self.find()?)
    }

    /// Returns whether the command line says by its digest which box it means.
    pub(crate) fn names_digest(&self) -> bool {
        BoxReference::parse(self.word()).is_ok_and(|it| it.names_digest())
    }
}

/// Opens a box that was found, to run it.
pub(crate) fn open(found: Found) -> Result<OpenBox, CommandError> {
    let opened = found.open()?;
    boxlaunch::opened::check_owners(&opened)?;
    Ok(opened)
}

/// Opens a box that was found and starts now. The store keeps it as long as the second value is there, which ends with this
/// process.
pub(crate) fn open_to_run(found: Found) -> Result<(OpenBox, Option<Held>), CommandError> {
    let (opened, held) = found.open_to_run()?;
    boxlaunch::opened::check_owners(&opened)?;
    Ok((opened, held))
}

impl From<FindError> for CommandError {
    fn from(error: FindError) -> Self {
        Self::new(&error, shown(&with_causes(&error)))
    }
}

//! The store on a command line: the option `--store`, the argument for a box, and the commands that both programs have for it.

mod archive;
mod size;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Once;

use box_archive::ArchiveError;
use box_cache::{Store, StoreError, StoredBoxes, is_store, waiting_text};
use box_contract::ErrorCode;
use box_find::{BoxReference, FindError, Found, Stores};
use host_fs::own::{self, STORE_RO};
use safe_text::{shell_path, shell_word};

use crate::Explanation;
use crate::policy::PolicyError;

pub use archive::{LoadArgs, SaveArgs, Saving, attachments};
pub use size::{PruneArgs, after_adding, after_adding_alone, cap, result};

/// How a program reads its environment and prints notes.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Reads an environment variable.
    pub variable: fn(&str) -> Option<OsString>,
    /// Prints a line on standard error, unless the program is quiet.
    pub note: fn(&str),
    /// Returns whether the program prints only errors and results.
    pub is_quiet: fn() -> bool,
}

/// An error of a command about the store.
#[derive(Debug, thiserror::Error)]
pub enum CommandFault {
    /// The command line asks for something impossible.
    #[error("{message}")]
    Usage {
        /// The message.
        message: String,
        /// The help, if there is one.
        help: Option<Cow<'static, str>>,
    },
    /// There is no store, or the box is not in it.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The policy of this host does not accept a box.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// An archive of boxes cannot be read or written.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl From<&CommandFault> for Explanation {
    fn from(fault: &CommandFault) -> Self {
        match fault {
            CommandFault::Usage { help: Some(help), .. } => (ErrorCode::Usage, help.clone()).into(),
            CommandFault::Usage { help: None, .. } => ErrorCode::Usage.into(),
            CommandFault::Find(error) => error.into(),
            CommandFault::Store(error) => error.into(),
            CommandFault::Policy(error) => error.into(),
            CommandFault::Archive(error) => error.into(),
        }
    }
}

/// Where the store is.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct StoreOption {
    /// The directory of the store [default: $BOXBUILD_STORE, $XDG_CACHE_HOME/boxbuild, ~/.cache/boxbuild]. The store at
    /// $BOXBUILD_STORE_RO is read, too
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
}

impl StoreOption {
    /// Returns the argument of a box in this store.
    pub fn argument(&self, reference: &Path) -> BoxArgument {
        BoxArgument { reference: reference.to_owned(), store: self.clone() }
    }

    /// Returns the directory of the store.
    ///
    /// # Errors
    /// [`FindError::NoStore`] if neither the command line nor the environment names one.
    pub fn root(&self, program: &Program) -> Result<PathBuf, FindError> {
        own::store(self.store.as_deref(), program.variable).ok_or(FindError::NoStore)
    }

    /// Returns the stores in which to look for boxes. A missing store is no error, because a box in a directory needs none.
    pub fn stores(&self, program: &Program) -> Stores {
        let is_named = self.store.is_some();
        let note = Some(program.note);
        Stores { own: self.root(program).ok(), is_named, base: base_store(program), note }
    }

    /// Returns `--store DIR ` for another command line, or nothing if the option is absent.
    pub fn shell_words(&self) -> String {
        self.store.as_deref().map(|it| named(it) + " ").unwrap_or_default()
    }

    /// Opens the store for writing. Prints a note if it has to wait for another process.
    ///
    /// # Errors
    /// [`CommandFault`] if the store or the shared read-only store cannot be opened.
    pub fn open(&self, program: &Program) -> Result<Store, CommandFault> {
        let root = self.root(program)?;
        let text = waiting_text(&root);
        let base = Stores { base: base_store(program), ..Stores::default() }.base()?;
        let note = program.note;
        Ok(Store::open_waiting(&root, move || note(&text))?.with_base(base))
    }
}

/// Returns the option that names a store on a command line.
pub(crate) fn named(root: &Path) -> String {
    format!("--store {}", shell_path(root))
}

/// Returns the directory of the shared read-only store, if the environment names one. Prints a warning, once, if the
/// directory is no store.
pub fn base_store(program: &Program) -> Option<PathBuf> {
    static WARNED: Once = Once::new();
    let base = own::base_store(program.variable)?;
    if !is_store(&base) {
        let text = format!("warning: {STORE_RO} is {}, which contains no store", base.display());
        WARNED.call_once(|| (program.note)(&text));
    }
    Some(base)
}

/// Opens the stores for reading. Returns `None` if there is no usable one.
///
/// # Errors
/// [`CommandFault`] if a store is of another version, or is in use for too long.
pub fn stored_boxes(stores: &Stores) -> Result<Option<StoredBoxes>, CommandFault> {
    let Some(root) = stores.own.as_deref().or(stores.base.as_deref()) else { return Ok(None) };
    match stores.boxes(root) {
        Err(
            StoreError::NotAStore { .. }
            | StoreError::NotADirectory(_)
            | StoreError::Shared(_)
            | StoreError::Replaceable { .. },
        ) => Ok(None),
        boxes => Ok(Some(boxes?.with_base(stores.base()?))),
    }
}

/// The box that a command is about, and the store that it may be in.
#[derive(Debug, Clone, clap::Args)]
pub struct BoxArgument {
    /// The box: a directory such as NAME.box or ./DIR, a name in the store, HOST/NAME:TAG of a registry, or sha256:...; a box
    /// with @sha256:... after it must have that digest
    #[arg(id = "box", value_name = "BOX")]
    pub reference: PathBuf,
    /// Where the store is.
    #[command(flatten)]
    pub store: StoreOption,
}

impl BoxArgument {
    /// Returns the argument as it was written.
    pub fn word(&self) -> &OsStr {
        self.reference.as_os_str()
    }

    /// Returns the argument of another box, in the same store.
    #[must_use]
    pub fn sibling(&self, reference: &Path) -> Self {
        self.store.argument(reference)
    }

    /// Returns the words that name the same box on another command line.
    pub fn shell_words(&self) -> String {
        self.store.shell_words() + &shell_word(self.word())
    }

    /// Parses the argument.
    ///
    /// # Errors
    /// [`FindError`] if it is malformed.
    pub fn parse(&self) -> Result<BoxReference, FindError> {
        BoxReference::parse(self.word())
    }

    /// Finds the box.
    ///
    /// # Errors
    /// [`FindError`] if the argument is malformed or the box is not found.
    pub fn find(&self, program: &Program) -> Result<Found, FindError> {
        self.parse()?.find(self.store.stores(program))
    }

    /// Returns whether the argument contains the digest of the box.
    pub fn names_digest(&self) -> bool {
        self.parse().is_ok_and(|it| it.names_digest())
    }
}

//! The commands about the store that `boxbuild` shares with `boxlaunch`.

use std::env;
use std::ffi::OsStr;
use std::io;

use box_find::BoxReference;
use box_inspect::opened::OpenBox;
use cli_common::Explanation;
use cli_common::store::{
    BoxArgument, CommandFault, LoadArgs, Program, PruneArgs, SaveArgs, StoreOption,
};

use super::failure::{Explain, Failure};
use super::terminal;

/// `boxbuild`, for the shared commands.
pub(crate) const PROGRAM: Program = Program {
    variable: |name| env::var_os(name),
    note: terminal::note,
    is_quiet: terminal::is_quiet,
};

/// Removes the least recently used boxes and files of the store, until it is small enough.
///
/// First removes boxes and cached build steps in the order of their last use, then everything that no box refers to. Keeps a
/// box if it runs, if it was pulled or loaded, if `build --name` named it, if a NAME.box points to it, or if it was built or
/// used within the last hour. Everything that is removed can be built or fetched again. `boxbuild build`, `pull`, `load` and
/// `fetch` also check the size of the store.
#[derive(Debug, clap::Args)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    pub(crate) prune: PruneArgs,
}

/// Runs `boxbuild gc`.
pub(crate) fn gc(args: &GcArgs) -> Result<(), Failure> {
    args.prune.run(&PROGRAM)?.iter().for_each(|it| terminal::result(it));
    Ok(())
}

/// Runs `boxbuild save`.
pub(crate) fn save(args: &SaveArgs) -> Result<(), Failure> {
    args.run(&PROGRAM, io::stdout())?.iter().for_each(|it| terminal::result(it));
    Ok(())
}

/// Runs `boxbuild load`.
pub(crate) fn load(args: &LoadArgs) -> Result<(), Failure> {
    terminal::result(&args.run(&PROGRAM, io::stdin())?);
    Ok(())
}

/// Opens the box of a command.
pub(crate) fn open(subject: &BoxArgument) -> Result<OpenBox, Failure> {
    Ok(subject.find(&PROGRAM)?.open()?)
}

/// Opens the box that a word of the command line names.
pub(crate) fn open_word(word: &OsStr, store: &StoreOption) -> Result<OpenBox, Failure> {
    Ok(BoxReference::parse(word)?.find(store.stores(&PROGRAM))?.open()?)
}

impl Explain for CommandFault {
    fn explain(&self) -> Explanation {
        match self {
            Self::Store(error) => error.explain(),
            error => error.into(),
        }
    }
}

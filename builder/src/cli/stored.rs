//! The commands about the store that `boxbuild` shares with `boxlaunch`.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use box_contract::{ComponentName, ErrorCode};
use box_digest::Digest;
use box_inspect::diff::PathError;
use box_inspect::opened::OpenBox;
use box_tree::listing::FindError;
use cli_common::Explanation;
use cli_common::output::check_links;
use cli_common::policy::{HostPolicy, check_stored};
use cli_common::store::{BoxArgument, CommandFault, LoadArgs, Program, PruneArgs, SaveArgs};

use safe_text::{shell_word, shown};

use super::deltas;
use super::failure::{Explain, Failure, chain};
use super::terminal;

/// `boxbuild`, for the shared commands.
pub(crate) const PROGRAM: Program = Program {
    variable: |name| env::var_os(name),
    note: terminal::note,
    is_quiet: terminal::is_quiet,
};

/// Checks the path of an output: it must not be in a box or a store, and no link that a box left may lead it elsewhere.
pub(super) fn check_output(output: &Path) -> Result<(), Failure> {
    check_links(&PROGRAM, output)?;
    Ok(box_archive::check_output(output)?)
}

/// Removes the least recently used boxes and files of the store, until it is small enough.
///
/// First removes boxes and cached build steps in the order of their last use, then everything that no box refers to. Keeps a
/// box if it runs, if `boxlaunch start` can start it again, if it was pulled or loaded, if `build --name` named it, if a NAME.box
/// points to it, or if it was built or used within the last hour. Everything that is removed can be built or fetched again. `boxbuild build`, `pull`, `load` and
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

/// Writes boxes to one file, for a host without a registry, and prints their digests.
///
/// The file is an OCI image layout: an archive if its name ends in .tar, else a directory. It contains blobs that several
/// boxes share once, and the names that the command line gives for boxes of the store. The same boxes give the same bytes.
/// Existing files are never overwritten. With --since, it has only what a host with an older box lacks.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct SaveSinceArgs {
    #[command(flatten)]
    pub(crate) save: SaveArgs,
    /// Leave out what a host that has this older box does not need: its blobs, and what deltas make of them. Takes one box to
    /// save. A host without the older box cannot load the file
    #[arg(long, value_name = "BASE")]
    since: Option<PathBuf>,
}

/// Returns the examples at the end of the help of `save`.
pub(crate) fn save_examples() -> String {
    SaveArgs::examples("boxbuild")
        + "\n  boxbuild save app@sha256:... --since app-v1 -o update.tar    for hosts that have app-v1"
}

/// Runs `boxbuild save`.
pub(crate) fn save(args: &SaveSinceArgs) -> Result<(), Failure> {
    let SaveSinceArgs { save, since } = args;
    let stdout = io::stdout();
    let found = save.find(&PROGRAM, &stdout)?;
    let saved = match since {
        None => found.write(&PROGRAM, stdout, None)?,
        Some(base) => {
            let base = save.sibling(base).find(&PROGRAM)?.open()?;
            let only = found.only("--since")?;
            if only.digest == base.digest {
                let message = format!("--since names the box that is saved: {}", base.digest);
                let help = "name the older box that the other host has, for example by its digest";
                return Err(Failure::new((ErrorCode::Usage, help), message));
            }
            found.check_place(&PROGRAM)?;
            let made = deltas::of_files(&base, only)?;
            found.write(&PROGRAM, stdout, Some((&base, made)))?
        }
    };
    saved.iter().for_each(|it| terminal::result(it));
    Ok(())
}

/// Runs `boxbuild load`.
pub(crate) fn load(args: &LoadArgs) -> Result<(), Failure> {
    let policy = HostPolicy::read(PROGRAM.variable)?;
    terminal::result(&args.run(&PROGRAM, policy.as_ref(), io::stdin())?);
    Ok(())
}

/// Opens the box of a command.
pub(crate) fn open(subject: &BoxArgument) -> Result<OpenBox, Failure> {
    Ok(subject.find(&PROGRAM)?.open()?)
}

/// Opens the box of a command that verifies it: a damaged box is a difference.
pub(crate) fn open_undamaged(subject: &BoxArgument) -> Result<OpenBox, Failure> {
    open(subject).map_err(damaged)
}

/// Sets the exit code of a damaged box for a command that verifies it.
pub(crate) fn damaged(failure: Failure) -> Failure {
    let damaged = ErrorCode::BoxDamaged;
    if failure.has(damaged) { failure.with_exit(damaged.exit_verified()) } else { failure }
}

/// Asks the policy of this host about a box that is about to start on the virtual host.
pub(crate) fn check_policy(subject: &BoxArgument, digest: &Digest) -> Result<(), Failure> {
    if let Some(policy) = HostPolicy::read(PROGRAM.variable)? {
        check_stored(&policy, &PROGRAM, subject, digest, subject.names_digest())?;
    }
    Ok(())
}

/// Returns the failure of a path that a box lacks.
pub(crate) fn missing(subject: &BoxArgument, error: &PathError) -> Failure {
    let Explanation { code, help } = error.explain();
    let FindError::Missing { directory, name, .. } = &error.error else {
        return Failure::new(Explanation { code, help }, chain(error));
    };
    let component = error.component.map(ComponentName::name);
    let of = component.map(|it| format!("the {it} of ")).unwrap_or_default();
    let message = format!("{of}the box {} has no {directory}/{name}", subject.reference.display());
    let option = component.map(|it| format!("--component {it} ")).unwrap_or_default();
    let path = if directory.is_empty() { "/".to_owned() } else { shell_word(directory) };
    let words = subject.shell_words();
    let list =
        || format!("`boxbuild ls {words} {option}{path} --depth 1` lists what is there").into();
    Failure::new(Explanation { code, help: help.or_else(|| Some(list())) }, shown(&message))
}

impl Explain for CommandFault {
    fn explain(&self) -> Explanation {
        match self {
            Self::Store(error) => error.explain(),
            error => error.into(),
        }
    }
}

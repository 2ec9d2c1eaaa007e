//! The store's commands, which boxlaunch shares with boxbuild, and the import of a box file before it is started.

use std::env;
use std::io;
use std::path::Path;

use box_archive::{Archive, Names, Plan};
use box_digest::Digest;
use box_find::{BoxReference, Found};
use cli_common::policy::{HostPolicy, check_file, check_stored};
use cli_common::store::{
    BoxArgument, CommandFault, LoadArgs, Program, SaveArgs, after_adding_alone, cap,
};
use safe_text::shown;

use super::error::Failure;
use super::terminal::{is_quiet, notice, print};

/// The callbacks of this program for the shared commands.
pub(crate) const PROGRAM: Program = Program { variable: |name| env::var_os(name), note, is_quiet };

/// Prints a notice, except with `--quiet`.
fn note(text: &str) {
    if !is_quiet() {
        notice(&format!("{}\n", shown(text)));
    }
}

/// Runs `boxlaunch save`.
pub(crate) fn save(args: &SaveArgs) -> Result<u8, Failure> {
    print_result(args.run(&PROGRAM, io::stdout())?)
}

/// Runs `boxlaunch load`.
pub(crate) fn load(args: &LoadArgs) -> Result<u8, Failure> {
    let policy = HostPolicy::read(PROGRAM.variable)?;
    print_result(Some(args.run(&PROGRAM, policy.as_ref(), io::stdin())?))
}

/// Prints the result of a command, if there is one.
pub(crate) fn print_result(result: Option<String>) -> Result<u8, Failure> {
    result.map_or(Ok(()), |it| print(&(it + "\n")))?;
    Ok(0)
}

/// Finds the box to start. If the command line names a file, first loads its box into the store: see [`in_store`].
pub(crate) fn find(subject: &BoxArgument, is_told: bool) -> Result<Found, Failure> {
    match in_store(subject, is_told)? {
        None => Ok(subject.find(&PROGRAM)?),
        Some(digest) => {
            let stores = subject.store.stores(&PROGRAM);
            Ok(BoxReference::of_digest(digest).find(stores)?)
        }
    }
}

/// Asks the policy of this host about a box that is about to start. `has_digest` is whether the command line names its digest.
/// [`find`] has asked about a box in a file already.
pub(crate) fn check_policy(
    subject: &BoxArgument,
    digest: &Digest,
    has_digest: bool,
) -> Result<(), Failure> {
    let Some(policy) = HostPolicy::read(PROGRAM.variable)? else { return Ok(()) };
    if !is_file(&BoxReference::parse(subject.word())?) {
        check_stored(&policy, &PROGRAM, subject, digest, has_digest)?;
    }
    Ok(())
}

fn is_file(reference: &BoxReference) -> bool {
    reference.path().is_some_and(Path::is_file)
}

/// If the argument names a file, asks the policy of this host about the box of that file, and loads the box into the store, unless
/// the store already contains it. `FILE@sha256:…` selects one of several boxes. Returns the digest of the box, or `None` if the
/// argument names no file.
pub(crate) fn in_store(subject: &BoxArgument, is_told: bool) -> Result<Option<Digest>, Failure> {
    let reference = BoxReference::parse(subject.word())?;
    let Some(path) = reference.path().filter(|_| is_file(&reference)) else { return Ok(None) };
    let archive = Archive::open(path)?;
    let only = archive.one_box(reference.pinned())?;
    if let Some(policy) = HostPolicy::read(PROGRAM.variable)? {
        check_file(&policy, &path.to_string_lossy(), &only).map_err(CommandFault::from)?;
    }
    let digest = only.remote.digest;
    let found = BoxReference::of_digest(digest).find(subject.store.stores(&PROGRAM));
    if found.and_then(Found::open).is_ok() {
        return Ok(Some(digest));
    }
    let cap = cap(&PROGRAM)?;
    let store = subject.store.open(&PROGRAM)?;
    let plan = Plan::new(&archive, vec![only], &store)?;
    if is_told {
        note(&plan.line());
    }
    plan.load(&store, Names::None)?;
    after_adding_alone(&PROGRAM, &store, cap, !is_told);
    Ok(Some(digest))
}

//! The store's commands, which boxlaunch shares with boxbuild, and the import of a box file before it is started.

use std::env;
use std::io;
use std::path::Path;

use box_archive::{Archive, Loaded, Names, Plan};
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
    let stdout = io::stdout();
    print_result(args.find(&PROGRAM, &stdout)?.write(&PROGRAM, stdout, None)?)
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

/// A box that is about to start.
pub(crate) struct ToStart {
    /// The box.
    pub(crate) found: Found,
    /// Whether it came from a file, so that the policy has accepted it already.
    pub(crate) is_accepted: bool,
}

/// Finds the box to start. If the command line names a file, first loads its box into the store: see [`in_store`].
pub(crate) fn find(subject: &BoxArgument, is_told: bool) -> Result<ToStart, Failure> {
    match in_store(subject, is_told)? {
        None => Ok(ToStart { found: subject.find(&PROGRAM)?, is_accepted: false }),
        Some(digest) => {
            let stores = subject.store.stores(&PROGRAM);
            let found = BoxReference::of_digest(digest).find(stores)?;
            Ok(ToStart { found, is_accepted: true })
        }
    }
}

/// Asks the policy of this host about a box that is about to start. `has_digest` is whether the command line names its digest.
///
/// A box from a file was judged by [`find`]. Only its answer counts: a second look at the path could find another file there.
pub(crate) fn check_policy(
    subject: &BoxArgument,
    digest: &Digest,
    has_digest: bool,
) -> Result<(), Failure> {
    let Some(policy) = HostPolicy::read(PROGRAM.variable)? else { return Ok(()) };
    check_stored(&policy, &PROGRAM, subject, digest, has_digest)?;
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
    let mut only = archive.one_box(reference.pinned())?;
    if let Some(policy) = HostPolicy::read(PROGRAM.variable)? {
        check_file(&policy, &path.to_string_lossy(), &mut only).map_err(CommandFault::from)?;
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
    let loaded = plan.load(&store, Names::None)?;
    if is_told {
        loaded.iter().filter_map(Loaded::not_kept).for_each(|it| note(&it));
    }
    after_adding_alone(&PROGRAM, &store, cap, !is_told);
    Ok(Some(digest))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cli_common::store::StoreOption;
    use testkit::TestBox;
    use testkit::test_box::config;

    use super::*;

    #[test]
    fn a_directory_that_becomes_a_file_was_not_accepted_as_one() {
        let (made, dir) = (TestBox::new(&config()), tempfile::tempdir().unwrap());
        let path = dir.path().join("x.box");
        fs::rename(made.path(), &path).unwrap();
        let store = StoreOption { store: Some(dir.path().join("store")) };
        let start = find(&BoxArgument { reference: path.clone(), store }, false).unwrap();
        fs::rename(&path, dir.path().join("away")).unwrap();
        fs::write(&path, "a file").unwrap();
        assert!(!start.is_accepted);
    }
}

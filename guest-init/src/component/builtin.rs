//! Commands that init's program performs itself: a health check, the two directions of `boxlaunch cp`, `boxlaunch ls`, and the question
//! about hidden files. Their process already has only the rights of a command. It reports errors on standard error.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;

use box_contract::wire::Builtin;
use box_contract::{ComponentPlan, Health};
use box_copy::{Author, CopyEnd, LeftOut, by_path};
use nix::sys::prctl::set_dumpable;

use super::{health, hidden, listing};

/// The exit status of a failed task.
const FAILED: u8 = 1;

/// Returns the program that performs a task. `None` if init's program performs the task itself.
pub(crate) fn program(builtin: Builtin, plan: &ComponentPlan) -> Option<&[String]> {
    match (builtin, &plan.health) {
        (Builtin::Check, Some(Health::Exec { argv })) => Some(argv),
        _ => None,
    }
}

/// Performs a task with its arguments, and returns the exit status.
pub(crate) fn run(builtin: Builtin, arguments: &[OsString], plan: &ComponentPlan) -> u8 {
    // The process is a copy of the holder. Its memory has data that the component must not see.
    let _ = set_dumpable(false);
    let done = match (builtin, arguments) {
        (Builtin::Check, _) => match &plan.health {
            Some(check) => health::ask(check),
            None => Err("it declares no health check".to_owned()),
        },
        (Builtin::Hidden, _) => hidden::report(io::stdin().lock(), io::stdout().lock()),
        (Builtin::Pack, [path]) => pack(Path::new(path)),
        (Builtin::Unpack, [path]) => unpack(Path::new(path)),
        (Builtin::List, [path]) => listing::report(Path::new(path), io::stdout().lock()),
        (Builtin::Pack | Builtin::Unpack | Builtin::List, _) => Err("it needs one path".to_owned()),
        (Builtin::Skills(_), _) => Err("skills are the host's to load".to_owned()),
    };
    // The process ends without its destructors, which would flush.
    let done = done.and_then(|()| io::stdout().flush().map_err(|error| error.to_string()));
    match done {
        Ok(()) => 0,
        Err(reason) => {
            drop(writeln!(io::stderr(), "{reason}"));
            FAILED
        }
    }
}

/// Unpacks the archive on standard input to `path`. Follows symbolic links in `path` and at its end, because the process has only
/// the rights of a command.
fn unpack(path: &Path) -> Result<(), String> {
    let unpack = |to| box_copy::unpack(io::stdin().lock(), to, Author::User);
    let unpacked = CopyEnd::destination(path, by_path).map(CopyEnd::following).and_then(unpack);
    unpacked.map(drop).map_err(|error| error.to_string())
}

fn pack(path: &Path) -> Result<(), String> {
    let pack = |from| box_copy::pack(&from, io::stdout().lock());
    let packed = CopyEnd::source(path, by_path).and_then(pack);
    let left_out = packed.map_err(|error| error.to_string())?;
    if left_out != LeftOut::default() {
        drop(writeln!(io::stderr(), "{left_out}"));
    }
    Ok(())
}

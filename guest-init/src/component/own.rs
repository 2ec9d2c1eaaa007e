//! Tasks that init's own program does as a command: a health check, and the two directions of `boxlaunch cp`. The process
//! has the rights of a command by then, and reports errors on standard error.

use std::io::{self, Write as _};
use std::path::Path;

use box_copy::LeftOut;
use box_image::wire::Own;
use box_image::{ComponentPlan, Health};

use super::{exec, health};

/// The status where it fails.
const FAILED: u8 = 1;

/// Does what is asked for; returns the exit status.
pub(crate) fn run(own: Own, arguments: &[String], plan: &ComponentPlan, env: &[String]) -> u8 {
    let done = match (own, arguments) {
        (Own::Check, _) => match &plan.health {
            Some(Health::Exec { argv }) => return execute(argv, env),
            Some(check) => health::ask(check),
            None => Err("the Boxfile declares no health check for it".to_owned()),
        },
        (Own::Pack, [path]) => pack(Path::new(path)),
        (Own::Unpack, [path]) => {
            box_copy::unpack(io::stdin().lock(), Path::new(path)).map_err(|it| it.to_string())
        }
        (Own::Pack | Own::Unpack, _) => Err("it needs one path".to_owned()),
    };
    match done {
        Ok(()) => 0,
        Err(why) => {
            drop(writeln!(io::stderr(), "{why}"));
            FAILED
        }
    }
}

fn pack(path: &Path) -> Result<(), String> {
    let left_out = box_copy::pack(path, io::stdout().lock()).map_err(|error| error.to_string())?;
    if left_out != LeftOut(0) {
        drop(writeln!(io::stderr(), "{left_out}"));
    }
    Ok(())
}

/// Becomes a program; returns the exit status where that fails.
fn execute(argv: &[String], env: &[String]) -> u8 {
    let failed = exec::execute(argv, env);
    drop(writeln!(io::stderr(), "{}", failed.message));
    failed.status
}

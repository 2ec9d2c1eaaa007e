//! `cargo xtask kernel`: compiles the lean kernel of a box.

use std::process::ExitCode;

use testbed::{KitError, Result, Workspace, lean_kernel};

use super::Outcome;
use tool_output::say;

/// The number of builds.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Compile it twice, in two directories and with different numbers of processes, and compare.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let workspace = Workspace::find();
    if options.check {
        return check(&workspace).map(|()| ExitCode::SUCCESS);
    }
    let kernel = say::watch(|| lean_kernel::build(&workspace, &mut say::note))?;
    let about = &kernel.about;
    say::note(&format!("compiled from {} by {}", about.source, about.compiler));
    say::note(&format!("sha256:{}", about.sha256));
    say::result(&kernel.elf().display().to_string());
    Ok(ExitCode::SUCCESS)
}

fn check(workspace: &Workspace) -> Result<()> {
    let [one, other] = say::watch(|| lean_kernel::build_twice(workspace, &mut say::note))?;
    if one != other {
        let reason = format!("the first build has sha256 {one}, the second {other}");
        return Err(KitError::malformed("the kernel", reason));
    }
    say::result(&format!("two builds, each with sha256:{one}"));
    Ok(())
}

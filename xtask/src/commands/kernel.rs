//! `cargo xtask kernel`: compiles the lean kernel of a box.

use std::path::PathBuf;
use std::process::ExitCode;

use testbed::lean_kernel::{self, Locked};
use testbed::{KitError, Result, Workspace};

use super::Outcome;
use tool_output::say;

/// Where the kernel comes from.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Compile it twice, in two directories and with different numbers of processes, and compare.
    #[arg(long)]
    check: bool,
    /// Take the kernel from DIR, where another machine has compiled it, if it is the one of kernel/lean.lock.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    from: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let workspace = Workspace::find();
    if options.check {
        return check(&workspace).map(|()| ExitCode::SUCCESS);
    }
    let kernel = match &options.from {
        Some(from) => lean_kernel::take(&workspace, from)?,
        None => say::watch(|| lean_kernel::build(&workspace, &mut say::note))?,
    };
    if Locked::update(&workspace, &kernel)? {
        say::note("kernel/lean.lock has the new kernel now: commit it with the change");
    }
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
    if let Some(locked) =
        Locked::of_this_machine(workspace)?.filter(|locked| locked.sha256() != one)
    {
        let reason = format!("kernel/lean.lock has sha256 {}, both builds {one}", locked.sha256());
        return Err(KitError::malformed("the kernel", reason));
    }
    say::result(&format!("two builds, each with sha256:{one}"));
    Ok(())
}

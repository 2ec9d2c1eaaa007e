//! `cargo xtask kernel`: compiles the kernels of `kernel/`, the box's and the virtual host's.

use std::process::ExitCode;

use testkit::lean_kernel::{GUEST, HOST, Recipe};
use testkit::{KitError, Result, Workspace};

use super::Outcome;
use crate::say;

/// Which kernel to compile, and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Compile the virtual host's kernel instead.
    #[arg(long)]
    host: bool,
    /// Compile it twice, in two directories and with different numbers of processes, and compare.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let workspace = Workspace::find();
    let recipe = if options.host { HOST } else { GUEST };
    if options.check {
        return check(&recipe, &workspace).map(|()| ExitCode::SUCCESS);
    }
    let kernel = say::watch(|| recipe.build(&workspace, &mut say::note))?;
    let about = &kernel.about;
    say::note(&format!("compiled from {} by {}", about.source, about.compiler));
    say::note(&format!("sha256:{}", about.sha256));
    say::result(&kernel.elf().display().to_string());
    Ok(ExitCode::SUCCESS)
}

fn check(recipe: &Recipe, workspace: &Workspace) -> Result<()> {
    let [one, other] = say::watch(|| recipe.build_twice(workspace, &mut say::note))?;
    if one != other {
        let why = format!("the first build has sha256 {one}, the second {other}");
        return Err(KitError::malformed("the kernel", why));
    }
    say::result(&format!("two builds, each with sha256:{one}"));
    Ok(())
}

//! `cargo xtask demo`: builds the example and boots it.

mod boot;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use testkit::lean_kernel::GUEST;
use testkit::{Artefacts, KitError, Profile, Result, Workspace, hello, program};

use super::{Outcome, setup};
use crate::{cargo, say};

/// What those read whose box had another kernel than the lean one.
const SLOWER: &str = "the box had another kernel than the lean one; after `cargo xtask kernel`, which takes minutes, the demo takes that \
    one, with which a start takes less than half as long";

/// The box that the demo boots, and the programs for it.
#[derive(Debug)]
struct Demo {
    workspace: Workspace,
    artefacts: Artefacts,
    /// The guest's kernel bundle.
    kernel: PathBuf,
    bundle: PathBuf,
}

pub(crate) fn run() -> Outcome {
    let workspace = Workspace::find();
    let demo = Demo {
        kernel: setup::for_demo(&workspace)?,
        artefacts: Artefacts::locate(&workspace, Profile::Dev),
        bundle: workspace.target("demo/hello.box"),
        workspace,
    };
    say::note("compiling boxbuild, boxlaunch, box-init and the agent; minutes the first time");
    say::step("compiling", || compile(&demo.workspace))?;
    let images = demo.workspace.path("examples/hello/images");
    say::step("assembling the two images", || {
        hello::write_images(&demo.artefacts.hello_agent, &images)
    })?;
    let digest = say::step("building the box", || build(&demo))?;
    let report = say::step("booting the box", || boot::boot(&demo))?;
    report::write(&report, &demo.workspace.target("demo/report.json"))?;
    say::result(&report::for_people(&report, &digest));
    if GUEST.find(&demo.workspace)?.is_none() {
        say::note(SLOWER);
    }
    Ok(if report::is_good(&report) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compile(workspace: &Workspace) -> Result<()> {
    // Its optimized form takes minutes more to compile, and the example has little to build.
    cargo::run(&mut Artefacts::builder_alone(workspace))?;
    cargo::build_boxlaunch(workspace)?;
    cargo::run(&mut Artefacts::init_build(workspace))?;
    cargo::run(&mut Artefacts::static_build(workspace, &["hello-agent"]))
}

/// Builds the box and returns its digest. The images are made again each time, so what an earlier
/// demo locked does not count.
fn build(demo: &Demo) -> Result<String> {
    let lock = demo.workspace.target("demo/Boxfile.lock");
    if lock.exists() {
        let removed = fs::remove_file(&lock);
        removed.map_err(|source| KitError::File { what: "remove", path: lock.clone(), source })?;
    }
    let mut boxbuild = Command::new(&demo.artefacts.boxbuild);
    boxbuild.arg("build").arg("-f").arg(demo.workspace.path("examples/hello/Boxfile"));
    boxbuild.arg("-o").arg(&demo.bundle).arg("--init").arg(&demo.artefacts.box_init);
    boxbuild.arg("--kernel").arg(&demo.kernel);
    boxbuild.arg("--lock-file").arg(&lock);
    boxbuild.arg("--store").arg(demo.workspace.target("demo/store"));
    let digest = program::run(&mut boxbuild)?;
    Ok(String::from_utf8_lossy(&digest).trim().to_owned())
}

/// Returns the command that `boxlaunch run` gets to run in the business component.
fn business_command() -> [&'static str; 3] {
    ["/bin/sh", "-c", "echo \"business runs on $(hostname), and its root is:\"; ls /"]
}

/// Returns the words of a run of the box at `bundle`. The demo judges the budget itself: a start that is
/// stopped at its end would not show its phases.
fn run_words<'a>(bundle: &'a Path, options: &[&'a str]) -> Vec<String> {
    let mut words = ["run", "--json", "--budget", "report"].map(str::to_owned).to_vec();
    words.extend(options.iter().map(|&option| option.to_owned()));
    words.push(bundle.to_string_lossy().into_owned());
    words.push("--".to_owned());
    words.extend(business_command().map(str::to_owned));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_stops_no_run_of_the_demo() {
        let words = run_words(Path::new("/x.box"), &["--startup-timeout", "20"]);
        let options = words.split(|it| it == "/x.box").next().unwrap();
        assert!(options.windows(2).any(|it| it == ["--budget", "report"]), "{words:?}");
    }
}

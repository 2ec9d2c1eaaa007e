//! `cargo xtask demo`: builds an example and boots it.

mod assistant;
mod boot;
mod hello;

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use serde_json::Value;
use testbed::lean_kernel;
use testbed::{Artefacts, KitError, Result, Workspace, program};
use tool_output::{cargo, say};

use super::{Outcome, setup};

/// The hint if the demo's box does not have the lean kernel.
const SLOWER: &str = "`cargo xtask kernel` compiles a kernel, in minutes, with which the demo's box starts in less than half of the time";

/// What the times of the demo do not show.
const UNOPTIMIZED: &str = "boxlaunch is not optimized here, so that it compiles sooner; the one of `cargo xtask install` starts boxes faster";

/// The choice of an example.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  cargo xtask demo assistant")]
pub(crate) struct Options {
    /// The directory of the example below `examples`.
    #[arg(value_enum, default_value_t = Example::Hello)]
    example: Example,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Example {
    /// An agent that answers its health check, and a business component with a shell.
    Hello,
    /// An agent that repairs a project with the help of a model.
    Assistant,
}

pub(crate) fn run(options: &Options) -> Outcome {
    match options.example {
        Example::Hello => hello::run(),
        Example::Assistant => assistant::run(),
    }
}

/// The box that a demo boots, and the programs for it.
#[derive(Debug)]
struct Demo {
    /// The name of the example's directory.
    name: &'static str,
    workspace: Workspace,
    artefacts: Artefacts,
    /// The guest's kernel.
    kernel: PathBuf,
    bundle: PathBuf,
}

impl Demo {
    /// Provides the prerequisites of the demo, and meanwhile compiles its programs. `package` is the example's.
    fn compiled(name: &'static str, package: &str) -> Result<Self> {
        let workspace = Workspace::find();
        setup::for_static_programs()?;
        let kernel = say::step("compiling boxbuild, boxlaunch, box-init and the example", || {
            thread::scope(|scope| {
                let prerequisites = scope.spawn(|| setup::for_demo(&workspace));
                compile(&workspace, package)?;
                prerequisites.join().unwrap_or_else(|panic| resume_unwind(panic))
            })
        })?;
        Ok(Self {
            name,
            kernel,
            artefacts: Artefacts::locate_demo(&workspace),
            bundle: workspace.target(&format!("demo/{name}.box")),
            workspace,
        })
    }

    /// Returns a path in the example's directory.
    fn example(&self, path: &str) -> PathBuf {
        self.workspace.path(&format!("examples/{}/{path}", self.name))
    }

    /// Builds the box and returns its digest. Removes the lock of an earlier demo first, because the images may have changed.
    fn build(&self) -> Result<String> {
        let lock = self.workspace.target(&format!("demo/{}.lock", self.name));
        if lock.exists() {
            fs::remove_file(&lock).map_err(KitError::file("remove", &lock))?;
        }
        let mut build = self.artefacts.box_build(&self.artefacts.box_init, &self.kernel);
        build.arg("--file").arg(self.example("Boxfile")).arg("--output").arg(&self.bundle);
        build.arg("--lock-file").arg(&lock);
        build.arg("--store").arg(self.workspace.target("demo/store"));
        let digest = program::run(&mut build)?;
        Ok(String::from_utf8_lossy(&digest).trim().to_owned())
    }

    /// Prints the result of the demo, and returns its exit code.
    fn conclude(&self, text: &str, is_good: bool) -> Outcome {
        say::result(text);
        say::note(UNOPTIMIZED);
        let lean = lean_kernel::find(&self.workspace)?.map(|lean| lean.elf());
        if lean.as_ref() != Some(&self.kernel) {
            say::note(SLOWER);
        }
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Compiles boxbuild, boxlaunch, box-init, and the example's package. What is in the box is optimized, because its bytes are the
/// box's digest. Both builds have directories of their own, and so run at the same time.
fn compile(workspace: &Workspace, package: &str) -> Result<()> {
    let mut in_box =
        [Artefacts::init_build(workspace), Artefacts::static_build(workspace, &[package])];
    thread::scope(|scope| {
        let in_box = scope.spawn(move || in_box.iter_mut().try_for_each(cargo::captured));
        cargo::run(&mut Artefacts::demo_build(workspace))?;
        in_box.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Writes a report as JSON.
fn write_report(report: &Value, path: &Path) -> Result<()> {
    fs::write(path, format!("{report:#}\n")).map_err(KitError::file("write", path))
}

/// Returns a description of the host on which a report's box ran, and of the clock of its times.
fn place(report: &Value) -> &'static str {
    match report["host"].as_str() {
        Some("kvm") => "this machine's KVM (real time)",
        _ => "the virtual host (virtual time: 1 ns per instruction)",
    }
}

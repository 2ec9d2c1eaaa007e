//! Starts or stops a box hundreds of times, uses very many files in one, or runs many environments, to find rare faults.
//!
//! `cargo run -p boxbuild-soak -- --help` prints the options. All boxes run on the virtual host. All output is printed with
//! [`say`].
#![forbid(unsafe_code)]

mod environments;
mod files;
mod starts;
mod stops;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use testbed::prerequisites::{bare_target, for_demo, for_virtual_host, with_busybox};
use testbed::{Artefacts, KitError, Result, VirtualHost, Workspace, deaf, hello, program};
use tool_output::say;

const HELP: &str = "\
Examples:
  cargo run -p boxbuild-soak -- --starts 1000
  cargo run -p boxbuild-soak -- --stops 100
  cargo run -p boxbuild-soak -- --files 100000
  cargo run -p boxbuild-soak -- --environments 20";

/// The path of the box on the virtual host.
const BOX: &str = "/deaf";
/// The number of starts in one run of the virtual host.
const AT_ONCE: u16 = 25;
/// The number of bytes by which the virtual host's files grow in each run. Without a difference, the deterministic emulator
/// would repeat the same run.
const SHIFT: usize = 4096;

/// The result of a soak: the exit code, or the error that prevented the soak.
type Outcome = Result<ExitCode>;

/// Start a box hundreds of times on the virtual host, or stop one as often, give one very many files, or run many
/// environments; fails unless it succeeds each time.
#[derive(Debug, Parser)]
#[command(name = "boxbuild-soak", bin_name = "cargo run -p boxbuild-soak --", after_help = HELP)]
struct Options {
    /// The box's directory [default: the one of `cargo xtask demo`]
    #[arg(value_name = "BOX")]
    bundle: Option<PathBuf>,
    /// How often it starts; rounded up to a multiple of 25.
    #[arg(long, default_value_t = 500, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..))]
    starts: u32,
    /// How often a box with an agent that ignores SIGTERM is started and stopped, instead; rounded up to a multiple
    /// of 25.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["bundle", "starts"],
          value_parser = clap::value_parser!(u32).range(1..))]
    stops: Option<u32>,
    /// With how many files in a directory of the host a box works, instead; rounded up to a multiple of 1000.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["bundle", "starts", "stops"],
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    files: Option<u32>,
    /// How many environments run at the same time, each with a project of its own, instead.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["bundle", "starts", "stops", "files"],
          value_parser = clap::value_parser!(u32).range(1..=100))]
    environments: Option<u32>,
}

fn main() -> ExitCode {
    say::exit_code(match Options::parse() {
        Options { stops: Some(times), .. } => stops::run(times),
        Options { files: Some(count), .. } => files::run(count),
        Options { environments: Some(count), .. } => environments::run(count),
        Options { bundle, starts, .. } => starts::run(bundle.as_deref(), starts),
    })
}

/// Builds the programs, and a box whose agent ignores SIGTERM. Returns the programs and the box's directory.
fn deaf_box(workspace: &Workspace, folder: &Path) -> Result<(Artefacts, PathBuf)> {
    let guest = say::watch(|| for_demo(workspace, &mut say::note))?;
    say::watch(|| bare_target(&mut say::note))?;
    let programs = say::step("compiling", || Artefacts::build(workspace))?;
    let bundle = say::step("building the box", || build(workspace, &programs, &guest, folder))?;
    Ok((programs, bundle))
}

/// Runs a script on a virtual host with that box, and prints its output. `more` adds to the host.
fn run_script(
    script: &str,
    memory: u32,
    limit: Duration,
    more: impl FnOnce(VirtualHost, &Artefacts) -> VirtualHost,
) -> Outcome {
    let workspace = Workspace::find();
    let scratch = tempfile::tempdir().map_err(KitError::file("make", &std::env::temp_dir()))?;
    let (programs, bundle) = deaf_box(&workspace, scratch.path())?;
    let kernel = say::watch(|| for_virtual_host(&workspace, &mut say::note))?;
    let host = with_busybox(VirtualHost::new(&kernel, &programs.boxlaunch), &workspace)?;
    let host = more(host.disk(&bundle, BOX), &programs);
    let machine = host.machine()?;
    let output = host.memory(memory).time_limit(limit).run(&["sh", "-c", script])?;
    let message = [output.stderr, output.stdout].concat();
    say::result(&format!("{}\non {machine}", String::from_utf8_lossy(&message).trim_end()));
    Ok(if output.status == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the box whose agent ignores SIGTERM, and returns its directory.
fn build(
    workspace: &Workspace,
    programs: &Artefacts,
    kernel: &Path,
    folder: &Path,
) -> Result<PathBuf> {
    hello::write_images(&programs.hello_agent, &folder.join("images"))?;
    let (example, boxfile) = (workspace.path("examples/hello/Boxfile"), folder.join("Boxfile"));
    let text = fs::read_to_string(&example).map_err(KitError::file("read", &example))?;
    fs::write(&boxfile, deaf::boxfile(&text)).map_err(KitError::file("write", &boxfile))?;
    let bundle = folder.join("deaf.box");
    let mut build = programs.box_build(&programs.box_init, kernel);
    build.arg("--file").arg(boxfile).arg("--output").arg(&bundle);
    program::run(build.arg("--store").arg(folder.join("store")))?;
    Ok(bundle)
}

/// Returns the host with an additional file of `round` times [`SHIFT`] bytes.
fn shifted(host: &VirtualHost, file: &Path, round: u32) -> Result<VirtualHost> {
    let size = SHIFT * usize::try_from(round).unwrap_or_default();
    fs::write(file, vec![0; size]).map_err(KitError::file("write", file))?;
    Ok(host.clone().file(file, "/shift"))
}

//! `cargo xtask bench`: how long a box of two images of full size takes from a cold store, and how
//! long other programs take for the like, in one run and in turn; with `--start`, the same of starts; with `--files`,
//! how long files of the host take in a box; with `--network`, how fast a box gets a file through its filter.

mod files;
mod measure;
mod network;
mod peers;
mod places;
mod promised;
mod report;
mod start;

use std::fs;
use std::path::Path;

use testkit::debian::BenchImages;
use testkit::prerequisites::{Package, microsandbox, packages, with_program};
use testkit::{KitError, Result, VirtualHost, Workspace};
use tool_output::{cargo, say};

use super::{Outcome, setup};
use measure::{Sample, measure};
use peers::{Contest, Peer};

/// The comparison to make, and how often each program runs.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask bench --runs 9\n  cargo xtask bench --start\n  cargo xtask bench --files --runs 1"
)]
pub(crate) struct Options {
    /// How often each program runs; the medians count.
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Compare how long a start takes, on the virtual host, instead of how long a build takes.
    #[arg(long)]
    start: bool,
    /// Compare how long files of a shared directory take in a box and on the host, on the virtual host.
    #[arg(long, conflicts_with = "start")]
    files: bool,
    /// Compare how fast a box gets a file of another host through its filter, with how fast its host gets it, on the virtual
    /// host.
    #[arg(long, conflicts_with_all = ["start", "files"])]
    network: bool,
    /// How many small files there are.
    #[arg(long, default_value_t = 10_000, value_name = "N", requires = "files",
          value_parser = clap::value_parser!(u32).range(1..=500_000))]
    count: u32,
}

pub(crate) fn run(options: &Options) -> Outcome {
    match options {
        Options { start: true, .. } => start::run(options.runs),
        Options { files: true, .. } => files::run(options.runs, options.count),
        Options { network: true, .. } => network::run(options.runs),
        _ => builds(options),
    }
}

/// Gives the virtual host the program that makes file systems for a benchmark.
fn with_mke2fs(host: VirtualHost) -> Result<VirtualHost> {
    with_program(host, &Package::E2fs.path()?, "/bench/mke2fs")
}

/// Runs a benchmark's script on the virtual host, with the number of its runs; returns what it prints.
fn scripted(host: &VirtualHost, runs: u32) -> Result<String> {
    let output = host.run(&["sh", "/bench/script", &runs.to_string()])?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status != 0 {
        return Err(KitError::Failed {
            command: "the benchmark's script on the virtual host".to_owned(),
            status: format!("exit status: {}", output.status),
            output: text(&output.stderr),
        });
    }
    Ok(text(&output.stdout))
}

fn builds(options: &Options) -> Outcome {
    let workspace = Workspace::find();
    let contest = prepare(&workspace)?;
    let mut samples: Vec<(Peer, Vec<Sample>)> = Vec::new();
    for number in 1..=options.runs {
        for peer in Peer::ALL {
            let shown = format!("run {number} of {}: {}", options.runs, peer.name());
            let sample = say::step(&shown, || once(&contest, peer))?;
            match samples.iter_mut().find(|(it, _)| *it == peer) {
                Some((_, list)) => list.push(sample),
                None => samples.push((peer, vec![sample])),
            }
        }
    }
    let mut report = report::of(&samples);
    report["boxbuild_bytes"] = contest.boxbuild_bytes()?.into();
    let path = workspace.target("bench/report.json");
    fs::write(&path, format!("{report:#}\n")).map_err(KitError::file("write", &path))?;
    say::result(report::for_people(&report).trim_end());
    Ok(promised::judge(&promised::of_builds(&report)))
}

/// Makes sure of everything, and lays out the images as each program wants them.
fn prepare(workspace: &Workspace) -> Result<Contest> {
    let wanted = [Package::Umoci, Package::Erofs, Package::Libdeflate, Package::Time];
    say::watch(|| packages(&wanted, &mut say::note))?;
    let kernel = setup::for_demo(workspace)?;
    let msb = say::watch(|| microsandbox(workspace, &mut say::note))?;
    let images = say::watch(|| BenchImages::make(workspace, &mut say::note))?;
    let programs = cargo::build_programs(workspace)?;
    let inputs = workspace.target("bench/inputs");
    fs::create_dir_all(&inputs).map_err(KitError::file("make", &inputs))?;
    Contest::new(programs, kernel, msb, &images, &inputs)
}

/// Lets a program do its work once, in an empty directory.
fn once(contest: &Contest, peer: Peer) -> Result<Sample> {
    let scratch = contest.inputs.parent().unwrap_or(Path::new("."));
    let room = tempfile::tempdir_in(scratch).map_err(KitError::file("make", scratch))?;
    let commands = contest.commands(peer, room.path());
    commands.into_iter().try_fold(Sample::default(), |sum, mut command| {
        Ok(sum.and(measure(&mut command, room.path())?))
    })
}

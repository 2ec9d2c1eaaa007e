//! `boxbuild-bench`: measures the build of a box of two full-size images from a cold store, and similar work of other programs.
//! The programs run in turn.

use std::fs;
use std::path::Path;

use testbed::debian::BenchImages;
use testbed::prerequisites::{Package, for_demo, microsandbox, packages};
use testbed::{KitError, Result, Workspace};
use tool_output::{cargo, say};

use super::measure::{Sample, measure};
use super::peers::{Contest, Peer};
use super::{Outcome, promised, report};

/// Measures all programs, prints a table and writes `target/bench/report.json`.
pub(super) fn run(runs: u32) -> Outcome {
    let workspace = Workspace::find();
    let contest = prepare(&workspace)?;
    let mut samples: Vec<(Peer, Vec<Sample>)> = Vec::new();
    for number in 1..=runs {
        for peer in Peer::ALL {
            let shown = format!("run {number} of {runs}: {}", peer.name());
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

/// Installs and builds all programs, and makes the images in each program's format.
fn prepare(workspace: &Workspace) -> Result<Contest> {
    let wanted = [Package::Umoci, Package::Erofs, Package::Libdeflate, Package::Time];
    say::watch(|| packages(&wanted, &mut say::note))?;
    let kernel = say::watch(|| for_demo(workspace, &mut say::note))?;
    let msb = say::watch(|| microsandbox(workspace, &mut say::note))?;
    let images = say::watch(|| BenchImages::make(workspace, &mut say::note))?;
    let programs = cargo::build_programs(workspace)?;
    let inputs = workspace.target("bench/inputs");
    fs::create_dir_all(&inputs).map_err(KitError::file("make", &inputs))?;
    Contest::new(programs, kernel, msb, &images, &inputs)
}

/// Measures one run of a program in an empty directory.
fn once(contest: &Contest, peer: Peer) -> Result<Sample> {
    let scratch = contest.inputs.parent().unwrap_or(Path::new("."));
    let room = tempfile::tempdir_in(scratch).map_err(KitError::file("make", scratch))?;
    let commands = contest.commands(peer, room.path());
    commands.into_iter().try_fold(Sample::default(), |sum, mut command| {
        Ok(sum.and(measure(&mut command, room.path())?))
    })
}

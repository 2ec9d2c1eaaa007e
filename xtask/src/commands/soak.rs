//! `cargo xtask soak`: starts a box hundreds of times on the virtual host, for faults that a few starts
//! do not show.

mod files;
mod stops;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use box_budget::Measurement;
use box_image::Phase;
use testkit::prerequisites::bare_target;
use testkit::{Artefacts, KitError, Result, VirtualHost, Workspace, deaf, hello, program};
use tool_output::{cargo, say};

use super::{Outcome, setup};

/// The box in the virtual host.
const BOX: &str = "/deaf";
/// How often the box starts in one run of the virtual host.
const AT_ONCE: u16 = 25;
/// By how many bytes the machine of each run differs from the one before. Equal runs would take the same
/// way to the last instruction, and show nothing new.
const SHIFT: usize = 4096;

/// The box to start, and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
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
}

/// The starts so far.
#[derive(Debug, Default)]
struct Tally {
    totals: Vec<f64>,
    /// The runs of the virtual host in which a start failed or hung.
    failed: u32,
    /// The widest spread of the starts in one run, as a part of the shortest.
    spread: f64,
}

pub(crate) fn run(options: &Options) -> Outcome {
    if let Some(times) = options.stops {
        return stops::run(times);
    }
    if let Some(count) = options.files {
        return files::run(count);
    }
    let workspace = Workspace::find();
    let bundle = options.bundle.clone().unwrap_or_else(|| workspace.target("demo/hello.box"));
    let kernel = setup::for_virtual_host(&workspace)?;
    let host = VirtualHost::new(&kernel, cargo::build_boxlaunch(&workspace)?);
    let machine = host.machine()?;
    let scratch = tempfile::tempdir().map_err(KitError::file("make", &bundle))?;
    let mut tally = Tally::default();
    for round in 0..options.starts.div_ceil(AT_ONCE.into()) {
        let host = shifted(&host, &scratch.path().join(round.to_string()), round)?;
        match box_budget::measure(host, &bundle, AT_ONCE, &[]) {
            Ok(measurement) => tally.add(&measurement),
            Err(error) => {
                tally.failed += 1;
                say::note(&format!("run {round} failed: {error}"));
            }
        }
        say::note(&tally.line());
    }
    say::result(&format!("{}\non {machine}", tally.line()));
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the programs, and the box whose agent ignores SIGTERM; returns them and its directory.
fn deaf_box(workspace: &Workspace, folder: &Path) -> Result<(Artefacts, PathBuf)> {
    let guest = setup::for_demo(workspace)?;
    say::watch(|| bare_target(&mut say::note))?;
    let programs = say::step("compiling", || Artefacts::build(workspace))?;
    let bundle = say::step("building the box", || build(workspace, &programs, &guest, folder))?;
    Ok((programs, bundle))
}

/// Builds the box, and returns its directory.
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

/// Returns a host with one file more, whose size depends on the round.
fn shifted(host: &VirtualHost, file: &Path, round: u32) -> Result<VirtualHost> {
    let size = SHIFT * usize::try_from(round).unwrap_or_default();
    fs::write(file, vec![0; size]).map_err(KitError::file("write", file))?;
    Ok(host.clone().file(file, "/shift"))
}

impl Tally {
    fn add(&mut self, measurement: &Measurement) {
        let totals = measurement.figures(Phase::Total);
        self.spread = self.spread.max((totals.max - totals.min) / totals.min);
        self.totals.extend(measurement.runs.iter().map(|run| run.total));
    }

    fn line(&self) -> String {
        let (least, most) = self
            .totals
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(least, most), it| (least.min(*it), most.max(*it)));
        format!(
            "{} starts, {least:.1} to {most:.1} ms of virtual time, at most {:.1} % apart in one run; {} failed",
            self.totals.len(),
            self.spread * 100.0,
            self.failed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_extremes_and_the_failures() {
        let tally = Tally { totals: vec![312.04, 309.96, 315.0], failed: 1, spread: 0.0123 };
        assert_eq!(
            tally.line(),
            "3 starts, 310.0 to 315.0 ms of virtual time, at most 1.2 % apart in one run; 1 failed"
        );
    }
}

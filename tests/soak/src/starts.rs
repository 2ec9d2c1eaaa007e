//! Starts a box many times.

use std::path::Path;
use std::process::ExitCode;

use box_contract::Phase;
use box_layout::OpenBox;
use boxbuild::budget::Measurement;
use testbed::prerequisites::for_virtual_host;
use testbed::{KitError, VirtualHost, Workspace};
use tool_output::{cargo, say};

use super::{AT_ONCE, Outcome, shifted};

/// The results of all starts so far.
#[derive(Debug, Default)]
struct Tally {
    totals: Vec<f64>,
    /// The number of runs of the virtual host in which a start failed or hung.
    failed: u32,
    /// The largest spread in one run, relative to the run's shortest start.
    spread: f64,
}

/// Starts the box `bundle`, by default the box of `cargo xtask demo`, `times` times.
pub(super) fn run(bundle: Option<&Path>, times: u32) -> Outcome {
    let workspace = Workspace::find();
    let bundle = bundle.map_or_else(|| workspace.target("demo/hello.box"), Path::to_owned);
    let kernel = say::watch(|| for_virtual_host(&workspace, &mut say::note))?;
    let host = VirtualHost::new(&kernel, cargo::build_boxlaunch(&workspace)?);
    let machine = host.machine()?;
    let scratch = tempfile::tempdir().map_err(KitError::file("make", &bundle))?;
    let opened = OpenBox::open(&bundle)
        .map_err(|error| KitError::malformed("the box", error.to_string()))?;
    let mut tally = Tally::default();
    for round in 0..times.div_ceil(AT_ONCE.into()) {
        let host = shifted(&host, &scratch.path().join(round.to_string()), round)?;
        match boxbuild::budget::measure(host, &opened, AT_ONCE, &[]) {
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

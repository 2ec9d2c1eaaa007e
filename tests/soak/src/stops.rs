//! Starts and stops a box many times whose agent ignores SIGTERM.

use std::process::ExitCode;
use std::time::Duration;

use testbed::deaf::{self, Stop};
use testbed::prerequisites::{for_virtual_host, with_busybox};
use testbed::{KitError, VirtualHost, Workspace};
use tool_output::say;

use super::{AT_ONCE, BOX, Outcome, deaf_box, shifted};

/// The timeout of one run of the virtual host, in real time.
const MAX_TIME: Duration = Duration::from_secs(60 * 60);

/// The results of all stops so far.
#[derive(Debug, Default)]
struct Tally {
    asked: u32,
    stops: Vec<Stop>,
}

pub(super) fn run(times: u32) -> Outcome {
    let workspace = Workspace::find();
    let scratch = tempfile::tempdir().map_err(KitError::file("make", &std::env::temp_dir()))?;
    let (programs, bundle) = deaf_box(&workspace, scratch.path())?;
    let kernel = say::watch(|| for_virtual_host(&workspace, &mut say::note))?;
    let host = with_busybox(VirtualHost::new(&kernel, &programs.boxlaunch), &workspace)?;
    let host = host.disk(&bundle, BOX).time_limit(MAX_TIME);
    let machine = host.machine()?;
    let mut tally = Tally::default();
    for round in 0..times.div_ceil(AT_ONCE.into()) {
        let host = shifted(&host, &scratch.path().join(round.to_string()), round)?;
        match host.run(&["sh", "-c", &deaf::script(BOX, AT_ONCE.into())]) {
            Ok(output) => {
                let failed = tally.failed();
                tally.add(&String::from_utf8_lossy(&output.stdout));
                if tally.failed() > failed {
                    let message = [output.stdout, output.stderr].concat();
                    say::note(&format!("run {round}:\n{}", String::from_utf8_lossy(&message)));
                }
            }
            Err(error) => {
                tally.add("");
                say::note(&format!("run {round} failed: {error}"));
            }
        }
        say::note(&tally.line());
    }
    say::result(&format!("{}\non {machine}", tally.line()));
    Ok(if tally.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Tally {
    /// Adds the stops of one run from its script's output.
    fn add(&mut self, output: &str) {
        self.asked += u32::from(AT_ONCE);
        self.stops.extend(deaf::stops(output));
    }

    fn good(&self) -> impl Iterator<Item = &Stop> {
        self.stops.iter().filter(|stop| stop.is_good())
    }

    fn failed(&self) -> u32 {
        self.asked.saturating_sub(u32::try_from(self.good().count()).unwrap_or(u32::MAX))
    }

    fn line(&self) -> String {
        let taken = || self.stops.iter().map(|stop| stop.taken_ms);
        let (least, most) = (taken().min().unwrap_or(0), taken().max().unwrap_or(0));
        let incomplete = self.stops.iter().filter(|stop| !stop.is_complete).count();
        format!(
            "{} stops, {least} to {most} ms of virtual time, {incomplete} logs not complete; {} failed",
            self.stops.len(),
            self.failed()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_extremes_and_what_is_missing_has_failed() {
        let mut tally = Tally::default();
        tally.add(&format!("1 2\n{}1400 1 3\n", "1010 1 2\n".repeat(22)));
        assert_eq!(
            tally.line(),
            "23 stops, 1010 to 1400 ms of virtual time, 1 logs not complete; 3 failed"
        );
    }
}

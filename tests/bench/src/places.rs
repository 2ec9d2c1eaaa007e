//! Measures the same work on the host and in a box, both on the virtual host, and computes the report from the script's output.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use testbed::lean_kernel;
use testbed::prerequisites::{Package, for_demo, host_kernel, packages, with_busybox};
use testbed::{Artefacts, KitError, Result, VirtualHost, Workspace, hello, program};
use tool_output::{cargo, say};

use super::report::median;
use super::scripted;
use crate::Outcome;

/// A work: the name in the script, and the label in the table.
pub(super) type Work = (&'static str, &'static str);

/// A comparison of the host with a box.
#[derive(Debug)]
pub(super) struct Contest<'a> {
    /// The name of the comparison, of its box, and of its report.
    pub(super) name: &'a str,
    /// The works to measure.
    pub(super) works: &'a [Work],
    /// The box's Boxfile.
    pub(super) boxfile: &'a str,
    /// The script for the virtual host. Its argument is the number of runs.
    pub(super) script: &'a str,
    /// The script that does the works, on the host and in the box.
    pub(super) work: &'a str,
    /// The values of variables in `work`, such as `("COUNT", 20)`.
    pub(super) amounts: &'a [(&'a str, u32)],
    /// The packages that the comparison needs besides the emulator and a shell.
    pub(super) packages: &'a [Package],
}

impl Contest<'_> {
    /// Measures on a virtual host that `equip` completes, prints a table and writes `target/bench/NAME.json`.
    pub(super) fn run(
        &self,
        runs: u32,
        equip: impl FnOnce(VirtualHost, &Workspace, &Artefacts) -> Result<VirtualHost>,
    ) -> Outcome {
        let workspace = Workspace::find();
        let bench = workspace.target("bench");
        fs::create_dir_all(&bench).map_err(KitError::file("make", &bench))?;
        let room = tempfile::tempdir_in(&bench).map_err(KitError::file("make", &bench))?;
        let (host, programs) = self.prepare(&workspace, room.path())?;
        let host = equip(host, &workspace, &programs)?;
        let doing = format!("using {} on the virtual host", self.name);
        let printed = say::step(&doing, || scripted(&host, runs))?;
        let report = report(self.works, &printed, &host.machine()?.to_string())?;
        let path = bench.join(format!("{}.json", self.name));
        fs::write(&path, format!("{report:#}\n")).map_err(KitError::file("write", &path))?;
        say::result(table(self.works, &report).trim_end());
        Ok(ExitCode::SUCCESS)
    }

    fn prepare(&self, workspace: &Workspace, room: &Path) -> Result<(VirtualHost, Artefacts)> {
        say::watch(|| for_demo(workspace, &mut say::note))?;
        let wanted = [&[Package::Qemu, Package::Busybox], self.packages].concat();
        say::watch(|| packages(&wanted, &mut say::note))?;
        let host_kernel = say::watch(|| host_kernel(workspace, &mut say::note))?;
        let kernel = say::watch(|| lean_kernel::build(workspace, &mut say::note))?;
        let programs = cargo::build_programs(workspace)?;
        hello::write_images(&programs.hello_agent, &room.join("images"))?;
        let work = self.amounts.iter().fold(self.work.to_owned(), |text, (name, amount)| {
            text.replace(name, &amount.to_string())
        });
        for (name, text) in [("Boxfile", self.boxfile), ("work", &*work), ("script", self.script)] {
            let path = room.join(name);
            fs::write(&path, text).map_err(KitError::file("write", &path))?;
        }
        let bundle = format!("{}.box", self.name);
        let mut build = programs.box_build(&programs.box_init, &kernel.elf());
        build.args(["--quiet", "--store", "store", "--output", &bundle]);
        program::run(build.current_dir(room))?;
        let host = VirtualHost::new(&host_kernel, &programs.boxlaunch)
            .disk(room.join(&bundle), format!("/{bundle}"))
            .file(room.join("script"), "/bench/script")
            .file(room.join("work"), "/bench/work");
        Ok((with_busybox(host, workspace)?, programs))
    }
}

/// Makes the report from the script's output.
fn report(works: &[Work], printed: &str, machine: &str) -> Result<Value> {
    let mut found = Map::new();
    for (work, _) in works {
        let [host, shared] = ["host", "box"].map(|place| median_ms(printed, place, work));
        let (host, shared) = (host?, shared?);
        found.insert(
            (*work).to_owned(),
            json!({ "host_ms": host, "box_ms": shared, "ratio": shared / host }),
        );
    }
    Ok(json!({ "works": found, "machine": machine }))
}

/// Returns the median time of `work` at `place`, which is `host` or `box`, in milliseconds.
fn median_ms(printed: &str, place: &str, work: &str) -> Result<f64> {
    let start = format!("took {place} {work} ");
    let taken = printed.lines().filter_map(|line| line.strip_prefix(&start)?.parse::<u32>().ok());
    let taken: Vec<u32> = taken.collect();
    if taken.is_empty() {
        return Err(KitError::malformed("the script's output", format!("it has no {start}")));
    }
    Ok(f64::from(median(taken)) / 1000.0)
}

/// Formats a report as a table.
fn table(works: &[Work], report: &Value) -> String {
    let figure = |work: &str, name: &str| report["works"][work][name].as_f64().unwrap_or_default();
    let line = |(work, about): &(&str, &str)| {
        let [host, shared, ratio] = ["host_ms", "box_ms", "ratio"].map(|it| figure(work, it));
        format!("{about:<28}{host:>9.0} ms {shared:>9.0} ms {ratio:>7.1}\n")
    };
    let head = format!("{:<28}{:>12} {:>12} {:>7}\n", "", "host", "box", "ratio");
    head + &works.iter().map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKS: [Work; 2] = [("read", "read it"), ("write", "write it")];

    #[test]
    fn the_medians_of_both_places_are_compared() {
        let printed: String = WORKS
            .iter()
            .flat_map(|(work, _)| {
                [("host", 1000), ("box", 3000), ("box", 9000), ("box", 1)].map(|it| (it, work))
            })
            .map(|((place, taken), work)| format!("took {place} {work} {taken}\n"))
            .collect();
        let report = report(&WORKS, &printed, "QEMU").unwrap();
        assert_eq!(report["works"]["read"], json!({ "host_ms": 1.0, "box_ms": 3.0, "ratio": 3.0 }));
        assert!(table(&WORKS, &report).contains("read it"), "{report}");
        assert!(super::report(&WORKS, "", "QEMU").is_err());
    }
}

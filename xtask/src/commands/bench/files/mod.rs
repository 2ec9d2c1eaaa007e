//! `cargo xtask bench --files`: how long files of a shared directory take in a box, and in the same directory of the host,
//! in one run of the virtual host.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use serde_json::{Map, Value, json};
use testkit::lean_kernel::GUEST;
use testkit::prerequisites::{Package, host_kernel, packages, with_busybox};
use testkit::{KitError, Result, VirtualHost, Workspace, hello, program};

use super::report::median;
use super::{scripted, with_mke2fs};
use crate::commands::{Outcome, setup};
use crate::{cargo, say};

/// The memory of the virtual host in MiB.
const MEMORY_MIB: u32 = 4096;
/// How long the run may take. Most of it is for small files.
const TIME_LIMIT: Duration = Duration::from_secs(7200);
/// The disk of the virtual host that both work on, in MiB.
const DISK_MIB: u32 = 2048;
/// The size of the large file in MiB.
const LARGE_MIB: u32 = 1000;
/// The works as the script names them, and for people.
const WORKS: [(&str, &str); 6] = [
    ("write", "write 1000 MiB, and fsync"),
    ("read", "read it"),
    ("make", "make small files"),
    ("list", "list them with `ls -l`"),
    ("read-small", "read them"),
    ("remove", "remove them"),
];
const BOXFILE: &str = "box \"files\"
agent {
    image \"oci:images/business\"
    entrypoint \"/bin/sleep\" \"infinity\"
    health \"none\"
    limits memory=\"256MiB\"
}
vm cpus=1 memory=\"512MiB\"
";

/// Measures, prints a table and writes `target/bench/files.json`.
pub(super) fn run(runs: u32, count: u32) -> Outcome {
    let workspace = Workspace::find();
    let bench = workspace.target("bench");
    fs::create_dir_all(&bench).map_err(KitError::file("make", &bench))?;
    let room = tempfile::tempdir_in(&bench).map_err(KitError::file("make", &bench))?;
    let host = prepare(&workspace, room.path(), count)?;
    let printed = say::step("using files on the virtual host", || scripted(&host, runs))?;
    let report = report(&printed, &host.machine()?.qemu)?;
    let path = bench.join("files.json");
    fs::write(&path, format!("{report:#}\n")).map_err(KitError::file("write", &path))?;
    say::result(table(&report).trim_end());
    Ok(ExitCode::SUCCESS)
}

fn prepare(workspace: &Workspace, room: &Path, count: u32) -> Result<VirtualHost> {
    setup::for_demo(workspace)?;
    say::watch(|| packages(&[Package::Qemu, Package::Busybox, Package::E2fs], &mut say::note))?;
    let host_kernel = say::watch(|| host_kernel(workspace, &mut say::note))?;
    let kernel = say::watch(|| GUEST.build(workspace, &mut say::note))?;
    let programs = cargo::build_programs(workspace)?;
    hello::write_images(&programs.hello_agent, &room.join("images"))?;
    let amounts = [("SIZE", LARGE_MIB), ("COUNT", count)];
    let work = amounts.iter().fold(include_str!("work.sh").to_owned(), |text, (name, amount)| {
        text.replace(name, &amount.to_string())
    });
    for (name, text) in
        [("Boxfile", BOXFILE), ("work", &*work), ("script", include_str!("script.sh"))]
    {
        let path = room.join(name);
        fs::write(&path, text).map_err(KitError::file("write", &path))?;
    }
    let mut build = Command::new(&programs.boxbuild);
    build.args(["build", "--quiet", "--store", "store", "--output", "files.box"]);
    build.arg("--init").arg(&programs.box_init).arg("--kernel").arg(kernel.elf());
    program::run(build.current_dir(room))?;
    let host = VirtualHost::new(&host_kernel, &programs.boxlaunch);
    let host = host.memory(MEMORY_MIB).result_disk(DISK_MIB).time_limit(TIME_LIMIT);
    let host = host
        .disk(room.join("files.box"), "/files.box")
        .file(room.join("script"), "/bench/script")
        .file(room.join("work"), "/bench/work");
    with_busybox(with_mke2fs(host)?, workspace)
}

/// Makes the report of what the script printed.
fn report(printed: &str, emulator: &str) -> Result<Value> {
    let mut works = Map::new();
    for (work, _) in WORKS {
        let [host, shared] = ["host", "box"].map(|place| median_ms(printed, place, work));
        let (host, shared) = (host?, shared?);
        works.insert(
            work.to_owned(),
            json!({ "host_ms": host, "box_ms": shared, "ratio": shared / host }),
        );
    }
    Ok(json!({ "works": works, "emulator": emulator }))
}

/// Returns the median of what a work took at a place, in milliseconds.
fn median_ms(printed: &str, place: &str, work: &str) -> Result<f64> {
    let start = format!("took {place} {work} ");
    let taken = printed.lines().filter_map(|line| line.strip_prefix(&start)?.parse::<u32>().ok());
    let taken: Vec<u32> = taken.collect();
    if taken.is_empty() {
        return Err(KitError::malformed("the script's output", format!("it has no {start}")));
    }
    Ok(f64::from(median(taken)) / 1000.0)
}

fn table(report: &Value) -> String {
    let figure = |work: &str, name: &str| report["works"][work][name].as_f64().unwrap_or_default();
    let line = |(work, about): &(&str, &str)| {
        let [host, shared, ratio] = ["host_ms", "box_ms", "ratio"].map(|it| figure(work, it));
        format!("{about:<28}{host:>9.0} ms {shared:>9.0} ms {ratio:>7.1}\n")
    };
    let head = format!("{:<28}{:>12} {:>12} {:>7}\n", "", "host", "box", "ratio");
    head + &WORKS.iter().map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_medians_of_both_places_are_compared() {
        let printed: String = WORKS
            .iter()
            .flat_map(|(work, _)| {
                [("host", 1000), ("box", 3000), ("box", 9000), ("box", 1)].map(|it| (it, work))
            })
            .map(|((place, taken), work)| format!("took {place} {work} {taken}\n"))
            .collect();
        let report = report(&printed, "QEMU").unwrap();
        assert_eq!(report["works"]["read"], json!({ "host_ms": 1.0, "box_ms": 3.0, "ratio": 3.0 }));
        assert!(table(&report).contains("read it"), "{}", table(&report));
        assert!(super::report("", "QEMU").is_err());
    }
}

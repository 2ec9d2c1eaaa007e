//! `cargo xtask bench --network`: how fast a box gets files of another host through its filter, and how fast its host gets
//! them, in one run of the virtual host.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use testkit::lean_kernel::GUEST;
use testkit::prerequisites::{Package, host_kernel, packages, with_busybox};
use testkit::{KitError, Result, VirtualHost, Workspace, hello, program};

use super::places::{self, Work};
use super::scripted;
use crate::commands::{Outcome, setup};
use crate::{cargo, say};

/// The memory of the virtual host in MiB.
const MEMORY_MIB: u32 = 2048;
/// How long the run may take.
const TIME_LIMIT: Duration = Duration::from_secs(1800);
/// The size of the large file in bytes, and the number of small ones.
const AMOUNTS: [(&str, u32); 2] = [("SIZE", 30_000_000), ("COUNT", 20)];
/// The works as the script names them, and for people.
const WORKS: [Work; 4] = [
    ("proxy-large", "30 MB, by the proxy"),
    ("direct-large", "30 MB, by its name alone"),
    ("proxy-small", "20 programs, one request each"),
    ("direct-small", "the same by the name alone"),
];
/// The limit of the rate is out of the way.
const BOXFILE: &str = "box \"network\"
agent {
    image \"oci:images/business\"
    entrypoint \"/bin/sleep\" \"infinity\"
    health \"none\"
    limits memory=\"64MiB\"
}
network \"filtered\" {
    allow \"*.test.example\" \"127.0.0.2\"
    limits rate=\"16GiB\"
}
vm cpus=1 memory=\"256MiB\"
";

/// Measures, prints a table and writes `target/bench/network.json`.
pub(super) fn run(runs: u32) -> Outcome {
    let workspace = Workspace::find();
    let bench = workspace.target("bench");
    fs::create_dir_all(&bench).map_err(KitError::file("make", &bench))?;
    let room = tempfile::tempdir_in(&bench).map_err(KitError::file("make", &bench))?;
    let host = prepare(&workspace, room.path())?;
    let printed = say::step("using the network on the virtual host", || scripted(&host, runs))?;
    let report = places::report(&WORKS, &printed, &host.machine()?.qemu)?;
    let path = bench.join("network.json");
    fs::write(&path, format!("{report:#}\n")).map_err(KitError::file("write", &path))?;
    say::result(places::table(&WORKS, &report).trim_end());
    Ok(ExitCode::SUCCESS)
}

fn prepare(workspace: &Workspace, room: &Path) -> Result<VirtualHost> {
    setup::for_demo(workspace)?;
    say::watch(|| packages(&[Package::Qemu, Package::Busybox], &mut say::note))?;
    let host_kernel = say::watch(|| host_kernel(workspace, &mut say::note))?;
    let kernel = say::watch(|| GUEST.build(workspace, &mut say::note))?;
    let programs = cargo::build_programs(workspace)?;
    hello::write_images(&programs.hello_agent, &room.join("images"))?;
    let work = AMOUNTS.iter().fold(include_str!("work.sh").to_owned(), |text, (name, amount)| {
        text.replace(name, &amount.to_string())
    });
    for (name, text) in
        [("Boxfile", BOXFILE), ("work", &*work), ("script", include_str!("script.sh"))]
    {
        let path = room.join(name);
        fs::write(&path, text).map_err(KitError::file("write", &path))?;
    }
    let mut build = Command::new(&programs.boxbuild);
    build.args(["build", "--quiet", "--store", "store", "--output", "network.box"]);
    build.arg("--init").arg(&programs.box_init).arg("--kernel").arg(kernel.elf());
    program::run(build.current_dir(room))?;
    let host = VirtualHost::new(&host_kernel, &programs.boxlaunch);
    let host = host.memory(MEMORY_MIB).time_limit(TIME_LIMIT);
    let host = host
        .disk(room.join("network.box"), "/network.box")
        .file(&programs.peers, "/bin/peers")
        .file(room.join("script"), "/bench/script")
        .file(room.join("work"), "/bench/work");
    with_busybox(host, workspace)
}

//! `cargo xtask bench --files`: how long files of a shared directory take in a box, and in the same directory of the host,
//! in one run of the virtual host.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use testkit::lean_kernel::GUEST;
use testkit::prerequisites::{Package, host_kernel, packages, with_busybox};
use testkit::{KitError, Result, VirtualHost, Workspace, hello, program};

use super::places::{self, Work};
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
const WORKS: [Work; 6] = [
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
    let report = places::report(&WORKS, &printed, &host.machine()?.qemu)?;
    let path = bench.join("files.json");
    fs::write(&path, format!("{report:#}\n")).map_err(KitError::file("write", &path))?;
    say::result(places::table(&WORKS, &report).trim_end());
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

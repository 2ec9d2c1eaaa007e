//! `boxbuild-bench --start`: measures a command in a Debian image, from the launcher's start to its end, with boxlaunch, with
//! libkrun alone and with microsandbox. All run on one virtual host.

mod prepare;
mod report;

pub(super) use report::Starter;

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use testbed::lean_kernel;
use testbed::prerequisites::{
    Package, for_demo, host_kernel, kernel_bundle, microsandbox, packages, with_busybox,
    with_program,
};
use testbed::{KitError, Result, VirtualHost, Workspace};
use tool_output::{cargo, say};

use self::prepare::Parts;
use super::{promised, scripted};
use crate::Outcome;

/// The virtual host's memory in MiB, for the guest, microsandbox (75 MiB), the kernel and the host's own files.
const MEMORY_MIB: u32 = 2048;
/// The timeout of the run. Each boot takes some seconds.
const MAX_TIME: Duration = Duration::from_secs(1800);

/// Measures all programs, prints a table and writes `target/bench/start.json`.
pub(super) fn run(runs: u32) -> Outcome {
    let workspace = Workspace::find();
    let (host, parts) = prepare(&workspace)?;
    let report = say::step("booting all in turn on the virtual host", || measure(&host, runs))?;
    drop(parts);
    let path = workspace.target("bench/start.json");
    fs::write(&path, format!("{report:#}\n")).map_err(KitError::file("write", &path))?;
    say::result(report::for_people(&report).trim_end());
    Ok(promised::judge(&promised::of_starts(&report)))
}

fn prepare(workspace: &Workspace) -> Result<(VirtualHost, Parts)> {
    say::watch(|| for_demo(workspace, &mut say::note))?;
    say::watch(|| packages(&[Package::Qemu, Package::Busybox, Package::E2fs], &mut say::note))?;
    let host_kernel = say::watch(|| host_kernel(workspace, &mut say::note))?;
    let lean = say::watch(|| lean_kernel::build(workspace, &mut say::note))?;
    let kernel = say::watch(|| kernel_bundle(workspace, None, &mut say::note))?;
    let msb = say::watch(|| microsandbox(workspace, &mut say::note))?;
    let images = say::watch(|| testbed::debian::DebianImages::make(workspace, &mut say::note))?;
    let programs = cargo::build_programs(workspace)?;
    let parts = say::step("building the boxes", || {
        Parts::make(workspace, &programs, [&kernel, &lean.elf()], &images.agent)
    })?;
    let library = Path::new(kernel.file_name().unwrap_or_default());
    let host = VirtualHost::new(&host_kernel, &programs.boxlaunch);
    let host = host
        .memory(MEMORY_MIB)
        .time_limit(MAX_TIME)
        // microsandbox searches this path for the kernel, by its file name in the package.
        .file(&kernel, format!("/bench/microsandbox/lib/{}", library.display()));
    let host = with_program(host, &msb, "/bench/microsandbox/bin/msb")?;
    Ok((with_busybox(parts.add_to(host)?, workspace)?, parts))
}

fn measure(host: &VirtualHost, runs: u32) -> Result<Value> {
    report::of(&scripted(host, runs)?, &host.machine()?.to_string())
}

//! `boxlaunch inspect`: what a box is, without running it.

use std::path::PathBuf;
use std::process::ExitCode;

use box_image::{
    Budget, ComponentName, ComponentPlan, Digest, Health, Phase, Rlimits, RunPlan, Unsupported,
};
use boxlaunch::bundle::{Blob, Bundle};
use boxlaunch::output::printable;
use serde::Serialize;

use super::error::CommandError;
use super::{print, print_json};

/// Shows what a box is: digest, components, limits, budget, sizes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch inspect ./hello.box --json | jq .plan.budget")]
pub(crate) struct InspectArgs {
    /// The box's directory.
    #[arg(value_name = "BOX")]
    bundle: PathBuf,
    /// Print one JSON object: box, tree, epoch, kernel_version, plan, unsupported and blobs.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(rename = "box")]
    digest: Digest,
    tree: &'a str,
    epoch: u32,
    kernel_version: &'a str,
    plan: &'a RunPlan,
    /// What keeps this version from running the box.
    unsupported: Vec<Unsupported>,
    blobs: Vec<BlobReport>,
}

#[derive(Debug, Serialize)]
struct BlobReport {
    name: &'static str,
    digest: Digest,
    size: u64,
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<ExitCode, CommandError> {
    let bundle = Bundle::open(&args.bundle)?;
    if args.json {
        print_json(&report(&bundle))?;
    } else {
        print(&printable(&text(&bundle)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(bundle: &Bundle) -> Report<'_> {
    let blob = |blob: &Blob| BlobReport {
        name: blob.name,
        digest: blob.descriptor.digest,
        size: blob.descriptor.size,
    };
    Report {
        digest: bundle.digest,
        tree: &bundle.config.tree,
        epoch: bundle.config.epoch,
        kernel_version: &bundle.config.kernel_version,
        plan: bundle.plan(),
        unsupported: bundle.plan().unsupported(),
        blobs: bundle.blobs().map(blob).into(),
    }
}

fn text(bundle: &Bundle) -> String {
    let plan = bundle.plan();
    let mut text = format!("name        {}\n", plan.name);
    text += &format!("box         {}\n", bundle.digest);
    text += &format!("tree        {}\n", bundle.config.tree);
    if !bundle.config.kernel_version.is_empty() {
        text += &format!("kernel      {}\n", bundle.config.kernel_version.trim_end());
    }
    text += &format!("machine     {} CPUs, {} MiB\n", plan.vm.cpus, plan.vm.memory_mib);
    text += &format!("budget      {}\n", budget(&plan.budget));
    if !plan.skills.is_empty() {
        let names: Vec<&str> = plan.skills.iter().map(|skill| skill.name.as_str()).collect();
        text += &format!("skills      {}\n", names.join(", "));
    }
    for name in ComponentName::ALL {
        text += &plan.component(name).map_or_else(String::new, |plan| component(name, plan));
    }
    text += &unsupported(&plan.unsupported());
    text += "\nblobs\n";
    for blob in bundle.blobs() {
        let size = readable(blob.descriptor.size);
        text += &format!("  {:<8}{size:>11}  {}\n", blob.name, blob.descriptor.digest);
    }
    text
}

fn component(name: ComponentName, plan: &ComponentPlan) -> String {
    let mut text = format!("\n{}\n", name.name());
    let mut line = |label: &str, value: &str| text += &format!("  {label:<12}{value}\n");
    line("hostname", &plan.hostname);
    line("program", &format!("{:?} in {}", plan.argv, plan.workdir));
    line("user", &format!("{}:{}", plan.user.uid, plan.user.gid));
    line("namespaces", &namespaces(plan));
    let limits = plan.limits;
    let memory = readable(limits.memory_bytes);
    let limits =
        format!("{memory} of memory, CPU weight {}, {} processes", limits.cpu_weight, limits.pids);
    line("limits", &limits);
    if plan.rlimits != Rlimits::default() {
        line("rlimits", &rlimits(plan.rlimits));
    }
    if let Some(port) = plan.port {
        line("port", &port.to_string());
    }
    if let Some(check) = &plan.health {
        line("health", &health(check));
    }
    text
}

fn rlimits(plan: Rlimits) -> String {
    let Rlimits { nofile, nproc, as_bytes, cpu_seconds, core_bytes, fsize_bytes } = plan;
    let count = |value: Option<u64>, what: &str| value.map(|value| format!("{value} {what}"));
    let bytes = |value: Option<u64>, what| value.map(|value| format!("{} {what}", readable(value)));
    let all = [
        count(nofile, "open files"),
        count(nproc, "processes of its user"),
        bytes(as_bytes, "of address space"),
        count(cpu_seconds, "s of processor time"),
        bytes(core_bytes, "per core dump"),
        bytes(fsize_bytes, "per file"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ") + " (each process)"
}

/// Says what keeps this version from running the box.
fn unsupported(declared: &[Unsupported]) -> String {
    if declared.is_empty() {
        return String::new();
    }
    let line = |it: &Unsupported| format!("  {}: it {}\n", it.declaration, it.lacks);
    "\nnot enforced by this version, which therefore does not run the box\n".to_owned()
        + &declared.iter().map(line).collect::<String>()
}

fn namespaces(plan: &ComponentPlan) -> String {
    let own = plan.namespaces;
    let all = [
        ("mount", own.mount),
        ("pid", own.pid),
        ("ipc", own.ipc),
        ("uts", own.uts),
        ("net", own.net),
    ];
    let names: Vec<&str> = all.iter().filter(|(_, own)| *own).map(|(name, _)| *name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn health(check: &Health) -> String {
    match check {
        Health::Tcp { port } => format!("a TCP connection to port {port}"),
        Health::Http { port, path } => format!("GET {path} on port {port}"),
        Health::Exec { argv } => format!("{argv:?} exits with 0"),
    }
}

fn budget(budget: &Budget) -> String {
    let limit = |phase: Phase| budget.limit(phase).map(|ms| format!("{} {ms} ms", phase.name()));
    let limits: Vec<String> = Phase::ALL.into_iter().filter_map(limit).collect();
    if limits.is_empty() { "none".to_owned() } else { limits.join(", ") }
}

/// Writes a number of bytes with the largest fitting binary unit.
fn readable(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", bytes as f64 / size as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        let sizes = [0, 1023, 1024, 1_572_864, 1 << 33].map(readable);
        assert_eq!(sizes, ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 MiB", "8.0 GiB"]);
    }

    #[test]
    fn only_what_is_limited_is_shown() {
        assert_eq!(budget(&Budget::default()), "none");
        let some = Budget { kernel: Some(400), total: Some(900), ..Budget::default() };
        assert_eq!(budget(&some), "kernel 400 ms, total 900 ms");
    }

    #[test]
    fn rlimits_have_their_units() {
        let some = Rlimits { nofile: Some(64), as_bytes: Some(1 << 31), ..Rlimits::default() };
        assert_eq!(rlimits(some), "64 open files, 2.0 GiB of address space (each process)");
    }
}

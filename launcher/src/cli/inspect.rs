//! `boxlaunch inspect`: what a box is, without running it.

use std::path::PathBuf;

use box_digest::{Blake3Digest, Digest};
use box_image::text::{readable, shown};
use box_image::{ComponentName, ComponentPlan, Health, Rlimits, RunPlan, Unsupported};
use box_layout::{Blob, OpenBox};
use serde::Serialize;

use super::error::CommandError;
use super::{json_line, print};

/// Shows what a box is: digest, components, limits, budget, sizes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch inspect ./hello.box --json | jq .plan.budget")]
pub(crate) struct InspectArgs {
    /// The box's directory.
    #[arg(value_name = "BOX")]
    directory: PathBuf,
    /// Print one JSON object: box, tree, epoch, kernel_version, plan, unsupported and blobs.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(rename = "box")]
    digest: Digest,
    tree: Blake3Digest,
    epoch: u32,
    kernel_version: &'a str,
    plan: &'a RunPlan,
    /// The declarations that keep this version from running the box.
    unsupported: Vec<Unsupported>,
    blobs: Vec<BlobReport<'a>>,
}

#[derive(Debug, Serialize)]
struct BlobReport<'a> {
    name: &'a str,
    digest: Digest,
    size: u64,
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<u8, CommandError> {
    let opened = boxlaunch::open(&args.directory)?;
    let shown = if args.json { json_line(&report(&opened))? } else { text(&opened) };
    print(&shown)?;
    Ok(0)
}

fn report<'a>(opened: &'a OpenBox) -> Report<'a> {
    let blob = |blob: &'a Blob| BlobReport {
        name: blob.role(),
        digest: blob.descriptor.digest,
        size: blob.descriptor.size,
    };
    Report {
        digest: opened.digest,
        tree: opened.config.tree,
        epoch: opened.config.epoch,
        kernel_version: &opened.config.kernel_version,
        plan: opened.plan(),
        unsupported: opened.plan().unsupported(),
        blobs: opened.boot_blobs().map(blob).into(),
    }
}

/// Shows a box in lines, each of them safe for a terminal.
fn text(opened: &OpenBox) -> String {
    let plan = opened.plan();
    let mut lines = vec![
        format!("name        {}", plan.name),
        format!("box         {}", opened.digest),
        format!("tree        {}", opened.config.tree),
    ];
    if !opened.config.kernel_version.is_empty() {
        lines.push(format!("kernel      {}", opened.config.kernel_version.trim_end()));
    }
    lines.push(format!("machine     {} CPUs, {} MiB", plan.vm.cpus, plan.vm.memory_mib));
    lines.push(format!("budget      {}", plan.budget));
    if !plan.skills.is_empty() {
        let names: Vec<&str> = plan.skills.iter().map(|skill| skill.name.as_str()).collect();
        lines.push(format!("skills      {}", names.join(", ")));
    }
    lines.extend(plan.components().flat_map(|(name, plan)| component(name, plan)));
    let unsupported = plan.unsupported();
    if !unsupported.is_empty() {
        let head = "not enforced by this version, which therefore does not run the box";
        lines.extend([String::new(), head.to_owned()]);
        lines.extend(unsupported.iter().map(|it| format!("  {}: it {}", it.declaration, it.lacks)));
    }
    lines.extend([String::new(), "blobs".to_owned()]);
    for blob in opened.boot_blobs() {
        let size = readable(blob.descriptor.size);
        lines.push(format!("  {:<8}{size:>11}  {}", blob.role(), blob.descriptor.digest));
    }
    lines.iter().map(|line| shown(line) + "\n").collect()
}

fn component(name: ComponentName, plan: &ComponentPlan) -> Vec<String> {
    let mut lines = vec![String::new(), name.name().to_owned()];
    let mut line = |label: &str, value: &str| lines.push(format!("  {label:<12}{value}"));
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
    lines
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rlimits_have_their_units() {
        let some = Rlimits { nofile: Some(64), as_bytes: Some(1 << 31), ..Rlimits::default() };
        assert_eq!(rlimits(some), "64 open files, 2.0 GiB of address space (each process)");
    }
}

//! `boxbuild inspect`: what a box is, what it was made of, and its SBOM.

use std::path::PathBuf;

use box_image::text::readable;
use box_image::{ComponentName, Descriptor, Limits, RunPlan};
use box_inspect::export::Contents;
use box_inspect::opened::{self, OpenBox};
use box_sbom::Subject;
use box_tree::entries;
use box_tree::listing::Listing;
use boxfile_spec::shown;
use serde_json::{Value, json};

use super::failure::Failure;
use super::terminal;

/// Shows what a box is and what it was made of: digests, images and layers, components, sizes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild inspect hello.box\n  \
    boxbuild inspect hello.box --json | jq .images\n  \
    boxbuild inspect hello.box --sbom > hello.spdx.json   the packages in it, as SPDX 2.3")]
pub(crate) struct Args {
    /// The box's directory
    #[arg(value_name = "BOX")]
    directory: PathBuf,
    /// Print the SBOM: an SPDX 2.3 document in JSON
    #[arg(long)]
    sbom: bool,
    /// Print JSON, errors included, but for a wrong command line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let opened = opened::open(&args.directory)?;
    let listing = opened::listing(&opened)?;
    if args.sbom {
        terminal::json(sbom(&opened, &listing)?.trim_end());
        return Ok(());
    }
    if args.json {
        terminal::json(&report(&opened, &listing).to_string());
    } else {
        terminal::pieces(text(&opened, &listing).iter().map(|line| shown(line) + "\n"));
    }
    Ok(())
}

/// Returns the SBOM of a box, made of its listing and of the package databases in its rootfs.
fn sbom(opened: &OpenBox, listing: &Listing) -> Result<String, Failure> {
    let subject = Subject {
        plan: &opened.config.plan,
        listing,
        tree: opened.config.tree,
        kernel: (opened.kernel.descriptor.digest, &opened.config.kernel_version),
        init: opened.init.descriptor.digest,
    };
    let mut contents = Contents::open(opened, &listing.tree)?;
    let document = box_sbom::document(&subject, &mut contents)?;
    Ok(String::from_utf8_lossy(&document).into_owned())
}

fn report(opened: &OpenBox, listing: &Listing) -> Value {
    let config = &opened.config;
    let blob = |blob: &Descriptor| {
        json!({ "name": blob.role(), "digest": blob.digest, "size": blob.size,
                "media_type": blob.media_type })
    };
    json!({
        "box": opened.digest,
        "name": config.plan.name,
        "tree": config.tree,
        "epoch": config.epoch,
        "kernel_version": config.kernel_version,
        "entries": entries(&listing.tree).count(),
        "images": listing.origins.images,
        "program": listing.origins.program,
        "plan": config.plan,
        "unsupported": config.plan.unsupported(),
        "blobs": opened.manifest.layers.iter().map(blob).collect::<Vec<_>>(),
    })
}

/// Shows a box in lines.
fn text(opened: &OpenBox, listing: &Listing) -> Vec<String> {
    let (config, plan) = (&opened.config, &opened.config.plan);
    let mut lines = vec![
        format!("name        {}", plan.name),
        format!("box         {}", opened.digest),
        format!("tree        {}", config.tree),
        format!("entries     {}", entries(&listing.tree).count()),
        format!("epoch       {}", config.epoch),
        format!("kernel      {}", config.kernel_version.trim_end()),
        format!("machine     {} CPUs, {} MiB", plan.vm.cpus, plan.vm.memory_mib),
        format!("budget      {}", plan.budget),
    ];
    let skills = plan.skills.iter();
    lines.extend(skills.map(|it| format!("skill       {}, mode {}", it.name, it.mode.name())));
    for component in ComponentName::ALL {
        lines.extend(of_component(component, plan, listing));
    }
    let unsupported = plan.unsupported();
    if !unsupported.is_empty() {
        lines.extend([String::new(), "boxlaunch will not start this box".to_owned()]);
        lines.extend(unsupported.iter().map(|it| format!("  {it}")));
    }
    lines.extend([String::new(), "blobs".to_owned()]);
    for blob in &opened.manifest.layers {
        let size = readable(blob.size);
        lines.push(format!("  {:<10}{size:>11}  {}", blob.role(), blob.digest));
    }
    lines
}

fn of_component(name: ComponentName, plan: &RunPlan, listing: &Listing) -> Vec<String> {
    let Some(component) = plan.component(name) else { return Vec::new() };
    let mut lines = vec![String::new(), name.name().to_owned()];
    let mut line = |label: &str, value: &str| lines.push(format!("  {label:<10}{value}"));
    if let Some(image) = listing.origins.images.iter().find(|image| image.component == name) {
        for (at, layer) in (1..).zip(&image.layers) {
            line(&format!("layer {at}"), &layer.to_string());
        }
    }
    if let Some(digest) = listing.origins.program.filter(|_| name == ComponentName::Agent) {
        line("file", &digest.to_string());
    }
    line("root", &component.root);
    line("program", &format!("{:?} in {}", component.argv, component.workdir));
    line("user", &format!("{}:{}", component.user.uid, component.user.gid));
    let Limits { memory_bytes, cpu_weight, pids, .. } = component.limits;
    let memory = readable(memory_bytes);
    line("limits", &format!("{memory} of memory, CPU weight {cpu_weight}, {pids} processes"));
    lines
}

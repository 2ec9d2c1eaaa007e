//! `boxbuild budget`: measures the start of a box on the virtual host, and holds it to its budget.

use std::path::{Path, PathBuf};

use box_budget::{Measurement, exceeded};
use box_image::{ErrorCode, exit};
use serde_json::json;
use virtual_host::{HostKernel, VirtualHost, kernel};

use super::failure::Failure;
use super::stages::Stages;
use super::{installed, locate, terminal};

/// Measures how long a box takes to start, and compares that with its budget. Needs no KVM.
///
/// The box starts on the virtual host, an emulated machine whose clock is its instruction counter: the times are
/// the same on every machine and however busy it is, but can be compared only with each other. The
/// median of the starts is held to the budget of the box's Boxfile. Exits with 4 if a phase is over.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Needs qemu-system-x86_64. The virtual host's kernel, a Debian package, is fetched with \
    apt-get and\nkept in $XDG_CACHE_HOME/boxbuild/virtual-host or ~/.cache/boxbuild/virtual-host.\n\n\
    Examples:\n  \
    boxbuild budget hello.box\n  \
    boxbuild budget hello.box --runs 10 --json | jq .phases_ms.total.median\n  \
    boxbuild budget new.box --compare old.box"
)]
pub(crate) struct Args {
    /// The box's directory
    #[arg(value_name = "BOX")]
    directory: PathBuf,
    /// How many times to start the box
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// Also measure this box, and show both side by side
    #[arg(long, value_name = "OLD.box")]
    compare: Option<PathBuf>,
    /// Take the virtual host's kernel from this Debian package, a linux-image-*-cloud-amd64
    #[arg(long, value_name = "FILE.deb")]
    host_kernel: Option<PathBuf>,
    /// Never touch a network: the virtual host's kernel must be there already
    #[arg(long, conflicts_with = "host_kernel")]
    offline: bool,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let host = VirtualHost::new(&host_kernel(args)?, installed::boxlaunch()?);
    let new = measure(&host, &args.directory, args)?;
    let old = args.compare.as_deref().map(|old| measure(&host, old, args)).transpose()?;
    let over = exceeded(&new);
    if args.json {
        let mut report = box_budget::json(&new, old.as_ref());
        report["errors"] = json!(over.iter().collect::<Vec<_>>());
        terminal::json(&report.to_string());
    } else {
        terminal::pieces([box_budget::table(&new, old.as_ref())]);
        over.iter().for_each(|it| terminal::error(&it.text()));
    }
    if over.is_some() { Err(Failure::reported(exit::OVER_BUDGET)) } else { Ok(()) }
}

fn measure(host: &VirtualHost, bundle: &Path, args: &Args) -> Result<Measurement, Failure> {
    let stages = Stages::new(args.json);
    stages.begin(&format!("starting {} on the virtual host", bundle.display()));
    Ok(box_budget::measure(host.clone(), bundle, args.runs)?)
}

/// Returns the kernel of the virtual host: as named, the one that was used before, or the newest of Debian.
fn host_kernel(args: &Args) -> Result<HostKernel, Failure> {
    let cache = locate::host_kernels()?;
    let kernel = match &args.host_kernel {
        Some(file) => kernel::prepare_package(file, &cache)?,
        None if args.offline => HostKernel::find(&cache).ok_or_else(no_kernel)?,
        None => kernel::find_or_fetch(&cache, |command| {
            terminal::note(&format!("fetching the virtual host's kernel: {command}"));
        })?,
    };
    terminal::detail("kernel of the virtual host", kernel.version());
    if !kernel.exits_after_injection() {
        terminal::note(
            "warning: the virtual host's kernel has a kvm_amd of an unknown form: about one start in \
             a hundred hangs",
        );
    }
    Ok(kernel)
}

fn no_kernel() -> Failure {
    let help = "run this command once without --offline, or name one with --host-kernel FILE.deb";
    Failure::new((ErrorCode::Offline, help), "the virtual host's kernel was not fetched yet")
}

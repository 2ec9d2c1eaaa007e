//! `cargo xtask setup`: installs and fetches what the other subcommands need.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use box_image::KernelName;
use testkit::lean_kernel;
use testkit::prerequisites::{
    Package, bare_target, docker_registry, host_kernel, kernel_bundle, musl_target, packages,
    rust_components, spdx_validator,
};
use testkit::{HostKernel, Result, Workspace};
use tool_output::say;

use super::Outcome;

/// Names the user's own kernel, or one of the two by its name, as for `boxbuild build`.
const KERNEL_VARIABLE: &str = "BOXBUILD_KERNEL";

pub(crate) fn run() -> Outcome {
    let workspace = Workspace::find();
    for_tests(&workspace)?;
    say::note("everything that the demo and the tests need is here");
    Ok(ExitCode::SUCCESS)
}

/// Makes sure of what the demo needs, and returns the guest's kernel: the one that the user names, or the lean one if
/// it was compiled, or else libkrunfw.
pub(super) fn for_demo(workspace: &Workspace) -> Result<PathBuf> {
    say::watch(|| {
        musl_target(&mut say::note)?;
        packages(&[Package::Busybox], &mut say::note)?;
        let own = std::env::var_os(KERNEL_VARIABLE).filter(|value| !value.is_empty());
        let named = own.as_deref().and_then(OsStr::to_str).and_then(KernelName::of);
        match (own, named) {
            (None, _) => {
                let lean = lean_kernel::find(workspace)?.map(|lean| lean.elf());
                lean.map_or_else(|| kernel_bundle(workspace, None, &mut say::note), Ok)
            }
            (_, Some(KernelName::Lean)) => Ok(lean_kernel::build(workspace, &mut say::note)?.elf()),
            (_, Some(KernelName::Krunfw)) => kernel_bundle(workspace, None, &mut say::note),
            (Some(own), None) => kernel_bundle(workspace, Some(Path::new(&own)), &mut say::note),
        }
    })
}

/// Makes sure of what the virtual host needs, and returns its kernel.
pub(super) fn for_virtual_host(workspace: &Workspace) -> Result<HostKernel> {
    say::watch(|| {
        packages(&[Package::Qemu, Package::Busybox], &mut say::note)?;
        host_kernel(workspace, &mut say::note)
    })
}

/// Makes sure of what the tests need.
pub(super) fn for_tests(workspace: &Workspace) -> Result<()> {
    for_quick_tests(workspace)?;
    for_virtual_host(workspace)?;
    say::watch(|| {
        packages(&[Package::Mmdebstrap, Package::Curl], &mut say::note)?;
        lean_kernel::build(workspace, &mut say::note).map(drop)
    })
}

/// Makes sure of what the tests need that neither start the virtual host nor make Debian images.
pub(super) fn for_quick_tests(workspace: &Workspace) -> Result<()> {
    for_lints()?;
    for_demo(workspace)?;
    say::watch(|| {
        bare_target(&mut say::note)?;
        let judges = [Package::Umoci, Package::Skopeo, Package::Erofs, Package::E2fs];
        packages(&judges, &mut say::note)?;
        docker_registry(workspace, &mut say::note)?;
        spdx_validator(workspace, &mut say::note).map(drop)
    })
}

/// Makes sure of what the checks of the code's form need.
pub(super) fn for_lints() -> Result<()> {
    say::watch(|| rust_components(&mut say::note))
}

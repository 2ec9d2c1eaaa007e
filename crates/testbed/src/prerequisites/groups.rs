//! The prerequisites of the demo, the virtual host and the tests.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use box_contract::KernelName;
use virtual_host::HostKernel;

use super::{
    Package, Say, bare_target, docker_registry, host_kernel, kernel_bundle, markdown, mcp_types,
    musl_target, openssh_server, oras, packages, prometheus_parser, rust_components, sigstore,
    spdx_validator, typescript, workflows,
};
use crate::{Result, Workspace, lean_kernel};

/// The environment variable that selects the guest kernel, by its path or by the name of one of the two known kernels, as in
/// `boxbuild build`.
const KERNEL_VARIABLE: &str = "BOXBUILD_KERNEL";

/// Provides the prerequisites of the demo, and returns the guest kernel: the kernel that the user selects, or the lean
/// kernel if it was compiled, or else libkrunfw.
///
/// # Errors
/// A prerequisite is missing and unavailable.
pub fn for_demo(workspace: &Workspace, say: Say<'_>) -> Result<PathBuf> {
    musl_target(say)?;
    packages(&[Package::Busybox], say)?;
    let own = std::env::var_os(KERNEL_VARIABLE).filter(|value| !value.is_empty());
    let named = own.as_deref().and_then(OsStr::to_str).and_then(KernelName::of);
    match (own, named) {
        (None, _) => guest_kernel(workspace, say),
        (_, Some(KernelName::Lean)) => Ok(lean_kernel::build(workspace, say)?.elf()),
        (_, Some(KernelName::Krunfw)) => kernel_bundle(workspace, None, say),
        (Some(own), None) => kernel_bundle(workspace, Some(Path::new(&own)), say),
    }
}

/// Returns the lean kernel if it was compiled, or else libkrunfw, which is fetched if it is missing.
///
/// # Errors
/// No kernel is available.
pub fn guest_kernel(workspace: &Workspace, say: Say<'_>) -> Result<PathBuf> {
    let lean = lean_kernel::find(workspace)?.map(|lean| lean.elf());
    lean.map_or_else(|| kernel_bundle(workspace, None, say), Ok)
}

/// Provides the prerequisites of the virtual host, and returns its kernel.
///
/// # Errors
/// A prerequisite is missing and unavailable.
pub fn for_virtual_host(workspace: &Workspace, say: Say<'_>) -> Result<HostKernel> {
    packages(&[Package::Qemu, Package::Busybox], say)?;
    host_kernel(workspace, say)
}

/// Provides the prerequisites of `cargo xtask test`.
///
/// # Errors
/// A prerequisite is missing and unavailable.
pub fn for_tests(workspace: &Workspace, say: Say<'_>) -> Result<()> {
    rust_components(say)?;
    for_demo(workspace, say)?;
    kernel_bundle(workspace, None, say)?;
    bare_target(say)?;
    let judges = [Package::Umoci, Package::Skopeo, Package::Erofs, Package::E2fs];
    packages(&judges, say)?;
    packages(&[Package::Bsdtar, Package::Go, Package::Python, Package::Faketime], say)?;
    docker_registry(workspace, say)?;
    packages(&[Package::OpensshClient, Package::Git, Package::Libwrap], say)?;
    openssh_server(workspace, say)?;
    spdx_validator(workspace, say)?;
    prometheus_parser(workspace, say)?;
    mcp_types(workspace, say)?;
    oras(workspace, say)?;
    sigstore(workspace, say)?;
    typescript(workspace, say)?;
    packages(&[Package::Bsdutils, Package::Npm], say)?;
    markdown(workspace, say)?;
    workflows(workspace, say)?;
    packages(&[Package::Jq, Package::Shellcheck, Package::Openssl], say)?;
    packages(&[Package::Mmdebstrap, Package::Curl], say)?;
    // For the tests of host-fs, which cannot install packages themselves, because this crate depends on host-fs.
    packages(&[Package::Strace, Package::Bindfs], say)?;
    for_virtual_host(workspace, say).map(drop)
}

/// Provides the prerequisites of `cargo xtask test --landing` and `--all`. They include the lean kernel, which takes minutes to compile.
///
/// # Errors
/// A prerequisite is missing and unavailable.
pub fn for_all_tests(workspace: &Workspace, say: Say<'_>) -> Result<()> {
    for_tests(workspace, say)?;
    packages(&[Package::Passt, Package::Runc, Package::Chromium, Package::Buildah], say)?;
    packages(&[Package::Ripgrep, Package::Vim, Package::Editorconfig], say)?;
    lean_kernel::build(workspace, say).map(drop)
}

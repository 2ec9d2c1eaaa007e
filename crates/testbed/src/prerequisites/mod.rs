//! Provides programs and files that the demo and the tests need.
//!
//! Each function first checks what is missing, which takes milliseconds. Missing Debian packages are installed with
//! apt-get, and components of the Rust toolchain with rustup. All other files, such as the virtual host's kernel and the
//! guest kernel, are fetched into the build output or into the [`Cache`](crate::Cache). [`Say`] gets a line before each such step.

mod apt;
mod browser;
mod bundle;
mod docker_registry;
mod download;
mod groups;
mod host_kernel;
mod markdown;
mod mcp;
mod npm;
mod openssh_server;
mod oras;
mod prometheus;
mod pypi;
mod python;
mod rust_target;
mod sigstore;
mod spdx;
mod typescript;
mod workflows;

use std::fs::{self, File};
use std::path::Path;

use crate::{KitError, Result};
pub use apt::{Package, packages};
pub use browser::{Shown, browser};
pub use bundle::{kernel_bundle, microsandbox, pip};
pub use docker_registry::docker_registry;
pub(crate) use download::download;
pub use groups::{for_all_tests, for_demo, for_tests, for_virtual_host, guest_kernel};
pub use host_kernel::{host_kernel, with_busybox, with_program};
pub use markdown::{Markdown, MarkdownReader, markdown};
pub use mcp::{McpTypes, mcp_types};
pub use openssh_server::openssh_server;
pub use oras::{Oras, oras};
pub use prometheus::{PrometheusParser, Sample, prometheus_parser};
pub(crate) use pypi::{Platform, python_packages};
pub use python::with_python;
pub use rust_target::{BARE, MUSL, bare_target, musl_target, rust_components};
pub use sigstore::{Sigstore, Verdict, sigstore};
pub use spdx::{SpdxValidator, spdx_validator};
pub use typescript::{TypeScript, typescript};
pub use workflows::{WorkflowKind, Workflows, workflows};

/// A function that gets a line of text before an action that takes long.
pub type Say<'a> = &'a mut dyn FnMut(&str);

/// Makes a directory and locks it against other processes. Dropping the returned file releases the lock.
pub(crate) fn lock(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).map_err(KitError::file("make", folder))?;
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(KitError::file("make", &path))?;
    file.lock().map_err(KitError::file("lock", &path))?;
    Ok(file)
}

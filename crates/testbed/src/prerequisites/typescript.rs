//! The package of sdk/typescript: its compiler, and the Node.js that runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use virtual_host::VirtualHost;

use super::npm::{NpmPackages, npm_packages};
use super::{Package, Say, packages, with_program};
use crate::{KitError, Result, Workspace, elf, program};

/// The package's own list of what its compilation needs, and npm's lock.
const PACKAGE: &str = include_str!("../../../../sdk/typescript/package.json");
const LOCK: &str = include_str!("../../../../sdk/typescript/package-lock.json");

/// The compiler of TypeScript, and Node.js.
#[derive(Debug, Clone)]
pub struct TypeScript {
    packages: NpmPackages,
}

impl TypeScript {
    /// Compiles the package of sdk/typescript with its tests and examples, into `output`.
    ///
    /// # Errors
    /// The compiler finds an error, for example one of types, or cannot write.
    pub fn compile(&self, workspace: &Workspace, output: &Path) -> Result<()> {
        let modules = self.packages.folder.join("node_modules");
        let mut command = self.node();
        command.arg(modules.join("typescript/bin/tsc"));
        command.arg("--project").arg(workspace.path("sdk/typescript"));
        command.arg("--typeRoots").arg(modules.join("@types"));
        program::run(command.arg("--outDir").arg(output.join("dist")))?;
        // Node.js finds the package by its own name in its tests and examples.
        let manifest = output.join("package.json");
        fs::write(&manifest, PACKAGE).map_err(KitError::file("write", &manifest))
    }

    /// Returns a command of Node.js.
    pub fn node(&self) -> Command {
        Command::new(&self.packages.node)
    }

    /// Adds Node.js to a virtual host as `/node/node`, and script(1), with which the package opens terminals.
    ///
    /// # Errors
    /// script(1) is missing and cannot be installed, or the libraries of Node.js cannot be found.
    pub fn with_node(&self, host: VirtualHost, say: Say<'_>) -> Result<VirtualHost> {
        packages(&[Package::Bsdutils], say)?;
        let host = with_program(host, &Package::Bsdutils.path()?, "/usr/bin/script")?;
        let libraries = elf::libraries(&self.packages.node)?;
        let host = libraries.into_iter().fold(host, |host, path| host.file(path.clone(), path));
        // The program is too large for the memory of the virtual host.
        Ok(host.disk_of([(PathBuf::from("node"), self.packages.node.clone())], "/node"))
    }
}

/// Returns the compiler of sdk/typescript. If it or Node.js is missing, it is downloaded into the cache of the checks first, without
/// installing it.
///
/// # Errors
/// One of them cannot be downloaded, or has another digest.
pub fn typescript(workspace: &Workspace, say: Say<'_>) -> Result<TypeScript> {
    let packages = npm_packages(workspace, "typescript", (PACKAGE, LOCK), say)?;
    Ok(TypeScript { packages })
}

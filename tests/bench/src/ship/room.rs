//! A directory with a checkout and stores, and a registry behind a counting proxy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::{Artefacts, KitError, Result, program};

use super::line::{Line, Traffic};
use crate::measure::measure;

/// The name of the store for builds and pushes.
const BUILDER: &str = "builder";

/// The directory and the registry with which boxes are built, pushed and pulled.
#[derive(Debug)]
pub(super) struct Room {
    programs: Artefacts,
    kernel: PathBuf,
    line: Line,
    root: PathBuf,
}

impl Room {
    pub(super) fn new(
        programs: Artefacts,
        kernel: PathBuf,
        registry: &str,
        root: &Path,
    ) -> Result<Self> {
        let line = Line::to(registry)?;
        let config = format!("[registry.\"{}\"]\nplain-http = true\n", line.host);
        let room = Self { programs, kernel, line, root: root.to_owned() };
        room.write("registries.toml", &config)?;
        Ok(room)
    }

    /// Writes the checkout's file `name`.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(KitError::file("make", folder))?;
        fs::write(&path, text).map_err(KitError::file("write", &path))
    }

    /// Builds the box of a Boxfile.
    pub(super) fn build(&self, boxfile: &str) -> Result<()> {
        self.write("Boxfile", boxfile)?;
        let mut build = self.programs.box_build(&self.programs.box_init, &self.kernel);
        build.args(["--quiet", "--store", BUILDER]);
        program::run(build.current_dir(&self.root)).map(drop)
    }

    /// Pushes the box `name` to the tag `name`.
    pub(super) fn push(&self, name: &str) -> Result<Traffic> {
        self.run(&["push", name, &self.reference(name), "--store", BUILDER])
    }

    /// Pulls the tag `name` into a store.
    pub(super) fn pull(&self, name: &str, store: &str) -> Result<Traffic> {
        self.run(&["pull", &self.reference(name), "--store", store])
    }

    fn reference(&self, name: &str) -> String {
        format!("{}/bench/boxes:{name}", self.line.host)
    }

    fn run(&self, args: &[&str]) -> Result<Traffic> {
        self.line.taken();
        let mut command = Command::new(&self.programs.boxbuild);
        command.args(args).args(["--json", "--registry-config", "registries.toml"]);
        let took = measure(command.current_dir(&self.root), &self.root)?;
        Ok(Traffic { took, ..self.line.taken() })
    }

    /// Returns the total size of a store's blobs, in bytes.
    pub(super) fn stored(&self, store: &str) -> Result<u64> {
        let blobs = self.root.join(store).join("blobs");
        let entries = fs::read_dir(&blobs).map_err(KitError::file("list", &blobs))?;
        let sizes = entries.map(|it| it.and_then(|it| it.metadata()).map(|it| it.len()));
        sizes.sum::<std::io::Result<u64>>().map_err(KitError::file("list", &blobs))
    }
}

//! Prepares the files for the comparison of starts on the virtual host: the same image as a box with libkrunfw's kernel, as a
//! box with the lean kernel, and as an archive.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use box_contract::manifest::KERNEL_TYPE;
use box_contract::{Descriptor, Index, Manifest};
use testbed::{Artefacts, KitError, Result, VirtualHost, Workspace, program};

use crate::with_mke2fs;

/// The path of the CA certificates, without which microsandbox does not start.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The boxes' names in the script: with libkrunfw's kernel, and with the lean kernel.
const BOXES: [&str; 2] = ["krunfw.box", "lean.box"];

/// The files in a temporary directory, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Parts {
    room: tempfile::TempDir,
}

impl Parts {
    /// Builds a box of the image `image` with each of `kernels`, and packs the image's layout as an archive.
    ///
    /// # Errors
    /// If a program fails, or the disk is full.
    pub(super) fn make(
        workspace: &Workspace,
        programs: &Artefacts,
        kernels: [&Path; 2],
        image: &Path,
    ) -> Result<Self> {
        let bench = workspace.target("bench");
        fs::create_dir_all(&bench).map_err(KitError::file("make", &bench))?;
        let room = tempfile::tempdir_in(&bench).map_err(KitError::file("make", &bench))?;
        let parts = Self { room };
        parts.write("Boxfile", &boxfile(image))?;
        parts.write("script", include_str!("script.sh"))?;
        parts.write("timed", include_str!("timed.sh"))?;
        for (name, kernel) in BOXES.iter().zip(kernels) {
            let mut build = programs.box_build(&programs.box_init, kernel);
            build.args(["--quiet", "--store", "store", "--output", name]);
            // Each box has its own lock, because a lock pins one kernel.
            build.arg("--lock-file").arg(format!("{name}.lock"));
            program::run(build.current_dir(parts.room.path()))?;
        }
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(image).arg("-cf").arg(parts.path("debian.tar")).arg(".");
        program::run(&mut tar)?;
        Ok(parts)
    }

    /// Adds all files to the virtual host that the script needs, except the programs.
    ///
    /// # Errors
    /// If a box cannot be read, or mke2fs is missing.
    pub(super) fn add_to(&self, host: VirtualHost) -> Result<VirtualHost> {
        let host = with_mke2fs(host)?;
        let with_box =
            |host: VirtualHost, name: &&str| host.disk(self.path(name), format!("/bench/{name}"));
        Ok(BOXES
            .iter()
            .fold(host, with_box)
            .file(CERTIFICATES, CERTIFICATES)
            .file(self.path("script"), "/bench/script")
            .file(self.path("timed"), "/bench/timed")
            .file(self.kernel()?, "/bench/kernel")
            .disk(self.path("debian.tar"), "/bench/debian.tar"))
    }

    /// Returns the path of the first box's kernel, which the floor also boots.
    fn kernel(&self) -> Result<PathBuf> {
        let bundle = self.path(BOXES[0]);
        let index: Index = read_json(&bundle.join("index.json"))?;
        let manifest: Option<&Descriptor> = index.manifests.first();
        let blob = |it: &Descriptor| bundle.join("blobs/sha256").join(it.digest.hex());
        let manifest: Option<Manifest> = manifest.map(|it| read_json(&blob(it))).transpose()?;
        let kernel = manifest.as_ref().and_then(|it| it.blob(KERNEL_TYPE)).map(blob);
        kernel.ok_or_else(|| KitError::malformed("the box", "it has no kernel"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(name);
        fs::write(&path, text).map_err(KitError::file("write", &path))
    }
}

/// Returns a Boxfile with microsandbox's default VM: one CPU and 512 MiB. The agent only sleeps; the measured command runs
/// beside it.
fn boxfile(image: &Path) -> String {
    let image = image.display();
    format!(
        "box \"debian\"\n\
         agent {{\n    image \"oci:{image}\"\n    entrypoint \"/bin/sleep\" \"infinity\"\n    \
         health \"none\"\n    limits memory=\"256MiB\"\n}}\n\
         vm cpus=1 memory=\"512MiB\"\n"
    )
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).map_err(KitError::file("read", path))?;
    serde_json::from_slice(&bytes)
        .map_err(|reason| KitError::malformed(path.display().to_string(), reason))
}

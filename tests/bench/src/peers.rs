//! The compared programs, and their commands for the two images.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::debian::BenchImages;
use testbed::{Artefacts, KitError, Result, program};

/// One or more programs that process the two images. Only the result of `Floor` is not bootable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// `boxbuild build` into an empty store.
    Boxbuild,
    /// `msb load` of both archives into an empty home.
    Microsandbox,
    /// `umoci unpack` of both, then `mkfs.erofs`.
    Umoci,
    /// Only decompresses each layer once, and hashes its compressed bytes once.
    Floor,
}

impl Peer {
    pub(super) const ALL: [Self; 4] =
        [Self::Boxbuild, Self::Microsandbox, Self::Umoci, Self::Floor];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Boxbuild => "boxbuild build",
            Self::Microsandbox => "msb load",
            Self::Umoci => "umoci unpack + mkfs.erofs",
            Self::Floor => "libdeflate-gunzip + sha256sum",
        }
    }
}

#[derive(Debug)]
pub(super) struct Contest {
    programs: Artefacts,
    kernel: PathBuf,
    msb: PathBuf,
    /// The two images' layouts.
    layouts: [PathBuf; 2],
    /// The distinct gzip layers of both images.
    layers: BTreeSet<PathBuf>,
    /// The directory with the two images as archives.
    pub(super) inputs: PathBuf,
}

const ARCHIVES: [&str; 2] = ["python.tar", "node.tar"];

impl Contest {
    pub(super) fn new(
        programs: Artefacts,
        kernel: PathBuf,
        msb: PathBuf,
        images: &BenchImages,
        inputs: &Path,
    ) -> Result<Self> {
        let layouts = [images.python.clone(), images.node.clone()];
        let mut layers = BTreeSet::new();
        let mut names = BTreeSet::new();
        for (layout, archive) in layouts.iter().zip(ARCHIVES) {
            let mut tar = Command::new("tar");
            tar.arg("-C").arg(layout).arg("-cf").arg(inputs.join(archive)).arg(".");
            program::run(&mut tar)?;
            for layer in gzip_blobs(layout)? {
                if names.insert(layer.file_name().map(ToOwned::to_owned)) {
                    layers.insert(layer);
                }
            }
        }
        Ok(Self { programs, kernel, msb, layouts, layers, inputs: inputs.to_owned() })
    }

    /// Returns the size of the program `boxbuild`, in bytes.
    pub(super) fn boxbuild_bytes(&self) -> Result<u64> {
        let path = &self.programs.boxbuild;
        Ok(fs::metadata(path).map_err(KitError::file("read", path))?.len())
    }

    /// Returns the commands of `peer`. Their working directory is `room`.
    pub(super) fn commands(&self, peer: Peer, room: &Path) -> Vec<Command> {
        let mut commands = match peer {
            Peer::Boxbuild => vec![self.boxbuild(room)],
            Peer::Microsandbox => ARCHIVES.map(|archive| self.msb(archive, room)).into(),
            Peer::Umoci => self.umoci(),
            Peer::Floor => self.floor(),
        };
        for command in &mut commands {
            command.current_dir(room);
        }
        commands
    }

    fn boxbuild(&self, room: &Path) -> Command {
        let [agent, business] = self.layouts.each_ref().map(|layout| layout.display());
        let tag = BenchImages::TAG;
        let boxfile = format!(
            "box \"bench\"\nagent {{ image \"oci:{agent}:{tag}\"; }}\n\
             business {{ image \"oci:{business}:{tag}\"; }}\n"
        );
        // If this fails, boxbuild reports that the Boxfile is missing.
        drop(fs::write(room.join("Boxfile"), boxfile));
        let mut command = Command::new(&self.programs.boxbuild);
        command.args(["build", "--store", "store", "--kernel"]).arg(&self.kernel);
        command.arg("--init").arg(&self.programs.box_init);
        command
    }

    fn msb(&self, archive: &str, room: &Path) -> Command {
        let mut command = Command::new(&self.msb);
        command.args(["load", "--quiet", "--input"]).arg(self.inputs.join(archive));
        command.env("HOME", room);
        command
    }

    fn umoci(&self) -> Vec<Command> {
        let unpack = |(layout, bundle): (&PathBuf, &str)| {
            let mut command = Command::new("umoci");
            let image = format!("{}:{}", layout.display(), BenchImages::TAG);
            command.args(["unpack", "--image"]).arg(image).arg(format!("roots/{bundle}"));
            command
        };
        let mut roots = Command::new("mkdir");
        roots.arg("roots");
        let mut pack = Command::new("mkfs.erofs");
        pack.args([
            "--quiet",
            "-T0",
            "-U00000000-0000-0000-0000-000000000000",
            "rootfs.erofs",
            "roots",
        ]);
        let unpack = self.layouts.iter().zip(["agent", "business"]).map(unpack);
        std::iter::once(roots).chain(unpack).chain([pack]).collect()
    }

    fn floor(&self) -> Vec<Command> {
        let inflate = self.layers.iter().map(|layer| {
            let mut command = Command::new("sh");
            command.args(["-c", "libdeflate-gunzip -c \"$0\" > /dev/null"]).arg(layer);
            command
        });
        let mut hash = Command::new("sha256sum");
        hash.args(&self.layers);
        inflate.chain([hash]).collect()
    }
}

/// Returns the paths of a layout's gzip blobs.
pub(super) fn gzip_blobs(layout: &Path) -> Result<Vec<PathBuf>> {
    let folder = layout.join("blobs/sha256");
    let entries = fs::read_dir(&folder).map_err(KitError::file("list", &folder))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(KitError::file("list", &folder))?.path();
        let mut magic = [0; 2];
        let read = fs::File::open(&path).and_then(|mut file| file.read_exact(&mut magic));
        read.map_err(KitError::file("read", &path))?;
        if magic == [0x1f, 0x8b] {
            found.push(path);
        }
    }
    Ok(found)
}

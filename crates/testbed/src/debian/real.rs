//! Images for comparing unpackers, for example with umoci: Debian trees, and Debian packages as layers.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::diff::layer_between;
use super::kept::{kept, key_of};
use super::tree::{Base, slim_base};
use super::{DebianImages, TAG};
use crate::prerequisites::{Say, download};
use crate::{Result, Workspace, program};
use testkit::images::{Compression, Config, Image, Layer, LayerTar};

const RECIPE: &str = "2";
/// Set-uid and set-gid programs, a program with a file capability (ping), and perl.
const TOOLS: &str = "iputils-ping,libcap2-bin,sudo,openssh-client,perl,man-db";
/// Images with one layer for each Debian package: the image's name, whether its lowest layer has the essential packages,
/// and its packages. The packages are not installed, so the list fits every Debian release.
const PACKAGES: [(&str, bool, &[&str]); 8] = [
    // A thousand programs and links; perl has a hard link.
    ("git", true, &["git-man", "git", "perl"]),
    // These packages replace /bin and /sbin, which are links in the base, with directories. They contain set-uid programs.
    ("login", true, &["coreutils", "login", "passwd", "mount", "sudo", "iputils-ping"]),
    // Translations, fourteen directories deep.
    ("django", false, &["python3-django"]),
    ("vim", false, &["vim-common", "vim-runtime", "vim-tiny"]),
    ("typescript", false, &["node-typescript"]),
    ("headers", false, &["linux-libc-dev", "ruby-rspec-core"]),
    ("busybox", false, &["busybox"]),
    ("tzdata", false, &["tzdata"]),
];

/// Many images in OCI image layouts.
#[derive(Debug, Clone)]
pub struct RealImages {
    /// The name, the layout and the tag of each image.
    pub images: Vec<(&'static str, PathBuf, &'static str)>,
}

impl RealImages {
    /// Returns the images, including the two of [`DebianImages`]. Missing images are made first, which takes two
    /// minutes or more and downloads about 150 MB.
    ///
    /// # Errors
    /// mmdebstrap is missing and cannot be installed, or fails, or a package cannot be downloaded,
    /// or the disk is full.
    pub fn make(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        let pair = DebianImages::make(workspace, say)?;
        let base = slim_base(workspace, say)?;
        let key = key_of(&base);
        let packages = format!("{PACKAGES:?}");
        let edits = [edits(), more_edits()].map(|layer| layer.to_tar().diff_id().hex());
        let [first, second] = &edits;
        let recipe = [&["real", RECIPE, &key, TOOLS, &packages][..], &[first, second]].concat();
        let layout = kept(workspace, &recipe, say, |scratch, draft, say| {
            write_images(&Base::read(&base)?, scratch, draft, say)
        })?;
        let names = DEBIAN.into_iter().chain(PACKAGES.map(|(name, ..)| name));
        let mut images: Vec<_> = names.map(|name| (name, layout.clone(), name)).collect();
        images.push(("python", pair.agent, TAG));
        images.push(("node", pair.business, TAG));
        Ok(Self { images })
    }
}

/// The images of [`write_debian`].
const DEBIAN: [&str; 5] = ["essential", "tools", "removed", "again", "edited"];

fn write_images(base: &Base, scratch: &Path, layout: &Path, say: Say<'_>) -> Result<()> {
    write_debian(&base.layer, &base.tree_with(TOOLS, scratch, say)?, layout)?;
    let names = PACKAGES.map(|(.., packages)| packages).concat();
    let files = download(&names, scratch, say)?;
    let mut files = files.iter();
    for (name, on_base, packages) in PACKAGES {
        let below = on_base.then(|| base.layer.clone());
        let above = files.by_ref().take(packages.len()).map(|file| package_layer(file));
        let above: Vec<LayerTar> = above.collect::<Result<_>>()?;
        write_image(layout, name, below.into_iter().chain(above))?;
    }
    Ok(())
}

/// Writes the images [`DEBIAN`]: `essential` has the essential packages, `tools` also a layer with [`TOOLS`], `removed`
/// also a layer that removes the tools, `again` also the tools' layer a second time. `edited` is an edited `essential`.
fn write_debian(base: &LayerTar, tools: &LayerTar, layout: &Path) -> Result<()> {
    let added = layer_between(base, tools)?;
    let removed = layer_between(tools, base)?;
    let [base, added, removed] = [base, &added, &removed].map(|layer| move || layer.clone());
    write_image(layout, "essential", [base()])?;
    write_image(layout, "tools", [base(), added()])?;
    write_image(layout, "removed", [base(), added(), removed()])?;
    write_image(layout, "again", [base(), added(), removed(), added()])?;
    write_image(layout, "edited", [base(), edits().to_tar(), more_edits().to_tar()])
}

/// Returns a layer with typical changes of a base image: recreated directories, changed file types, devices, and links
/// across layers.
fn edits() -> Layer {
    Layer::new()
        .dir("./", 0o555)
        .mtime(1_700_000_000)
        .dir("usr/share/perl5", 0o750)
        .opaque("usr/share/perl5")
        .file("usr/share/perl5/README", 0o644, "made again\n")
        .whiteout("var/lib/apt/lists")
        .whiteout("etc/apt")
        .symlink("usr/share/man", "/usr/share/perl5")
        .dir("etc/hostname", 0o711)
        .owner(1000, 3_000_000_000)
        .file("etc/hostname/name", 0o2640, "box\n")
        .xattr("user.note", "a file in the place of a file")
        .hardlink("usr/local/bin/interpreter", "usr/bin/perl")
        .hardlink("usr/local/bin/sh", "bin/sh")
        .device("dev/fuse", 0o666, 10, 229)
        .fifo("run/pipe", 0o600)
}

fn more_edits() -> Layer {
    Layer::new()
        .whiteout("usr/bin/perl")
        .opaque("etc/hostname")
        .file("usr/share/man/through-a-link", 0o644, "this is in /usr/share/perl5\n")
        .file("usr/local/bin/sh", 0o755, "#!/bin/dash\n")
}

/// Returns the files of a Debian package as a layer.
fn package_layer(file: &Path) -> Result<LayerTar> {
    program::run(Command::new("dpkg-deb").arg("--fsys-tarfile").arg(file)).map(LayerTar::from)
}

fn write_image(
    layout: &Path,
    name: &str,
    layers: impl IntoIterator<Item = LayerTar>,
) -> Result<()> {
    let image = layers.into_iter().fold(Image::new(Config::default()), Image::with);
    image.write_layout(layout, name, Compression::Gzip)?;
    Ok(())
}

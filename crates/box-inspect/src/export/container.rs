//! The form `container`: an image with `boxlaunch` and a whole box, which starts the box.
//!
//! ```text
//! /usr/bin/boxlaunch     the program of the image
//! /box                   the box, an OCI image layout with all blobs
//! /var/lib/boxlaunch     for the records and receipts of boxlaunch; writable for all users, like /tmp
//! /run/boxlaunch         for its sockets; likewise
//! ```
//!
//! A layer that is the same in two images has the same bytes, so that registries and hosts keep it once. A host can share
//! an unpacked layer only if all layers below it are the same, so the layers that change least come first: the program,
//! the kernel and the init, the segments, and at last the documents and the metadata, which are different in each box.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use box_contract::manifest::{INIT_TYPE, KERNEL_TYPE, METADATA_TYPE, blob_name, documents};
use box_contract::rules::is_repository;
use box_contract::{Descriptor, Platform, RunPlan};
use box_digest::{Digest, Hasher, Sha256};
use box_layout::{Documents, OpenError};
use host_fs::FileError;
use host_fs::read::Section;
use serde_json::{Map, Value, json};

use super::image::{Layer, OciImage, put, put_file};
use super::member::Flag;
use super::{ExportError, Written, tar};

/// The most layers of an image. Docker refuses more than 125.
pub const MAX_LAYERS: usize = 100;
/// The most segments that have a layer of their own. The other layers are the program's, the one of the kernel and the
/// init, the one that the smaller segments share, and the last one.
const MAX_ALONE: usize = MAX_LAYERS - 4;

/// The directory of the box in the image.
pub const BOX: &str = "/box";
/// The program of the image.
pub const PROGRAM: &str = "/usr/bin/boxlaunch";
/// The name of the box, for `boxlaunch health` and other commands in the container.
pub const NAME: &str = "box";
/// The user and group of the container. No system gives these numbers to a user of its own.
pub const USER: u32 = 65532;
/// How many seconds the programs of the box may take to end. `docker stop` kills a container after 10 seconds.
pub const GRACE: u32 = 8;
/// The name of a label with the box digest.
pub const DIGEST_LABEL: &str = "vnd.boxbuild.box.digest";

/// The directories of `boxlaunch`, and those for temporary files, in which every user may make files.
const WRITABLE: [&str; 3] = ["run/boxlaunch/", "tmp/", "var/lib/boxlaunch/"];
/// The other directories of the program's layer. Runtimes mount the kernel's file systems and files such as
/// `/etc/resolv.conf`; on a read-only file system they cannot make the directories.
const DIRECTORIES: [&str; 9] =
    ["dev/", "etc/", "proc/", "run/", "sys/", "usr/", "usr/bin/", "var/", "var/lib/"];
/// The directories of the box.
const BOX_DIRECTORIES: [&str; 3] = ["box/", "box/blobs/", "box/blobs/sha256/"];
/// The environment of `boxlaunch`.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("PATH", "/usr/bin"),
    ("HOME", "/var/lib/boxlaunch"),
    ("BOXLAUNCH_STATE", "/var/lib/boxlaunch/state"),
    ("XDG_RUNTIME_DIR", "/run/boxlaunch"),
];
/// Other variables that container runtimes set. A variable of the box with such a name is not taken from the container.
const RUNTIMES: [&str; 2] = ["HOSTNAME", "TERM"];

/// The program `boxlaunch` of an image.
#[derive(Debug)]
pub struct Launcher {
    path: PathBuf,
    file: File,
    size: u64,
}

impl Launcher {
    /// Takes an open file as the program. `path` is for messages. The caller has checked that the program starts in an
    /// image without other files.
    ///
    /// # Errors
    /// [`ExportError::File`] if the file cannot be examined.
    pub fn new(path: &Path, file: File) -> Result<Self, ExportError> {
        let size = file.metadata().map_err(FileError::of("examine", path))?.len();
        Ok(Self { path: path.to_owned(), file, size })
    }
}

impl<'a> OciImage<'a> {
    /// Makes the image of a container that starts a box. All data of the box are read once, and compared with their
    /// digests.
    ///
    /// # Errors
    /// [`ExportError`].
    pub fn container(opened: &'a Documents, launcher: &'a Launcher) -> Result<Self, ExportError> {
        let plan = opened.plan();
        let name = Some(&plan.name).filter(|it| is_repository(it)).map_or(NAME, |it| it);
        Self::new(layers(opened, launcher)?, Some(name.to_owned()), |layers| {
            Ok(config(plan, opened.digest, layers).to_string().into_bytes())
        })
    }
}

/// Files of an image, in their order in the layer.
#[derive(Debug)]
pub(super) struct Files<'a> {
    opened: &'a Documents,
    files: Vec<(String, Content<'a>)>,
}

/// The content of an entry.
#[derive(Debug)]
enum Content<'a> {
    /// A directory with this mode.
    Directory(u16),
    Bytes(Vec<u8>),
    Blob(&'a Descriptor),
    Program(&'a Launcher),
}

impl<'a> Files<'a> {
    fn new(opened: &'a Documents, directories: &[&[&str]]) -> Self {
        let directory = |name: &str| {
            let mode = if WRITABLE.contains(&name) { 0o1777 } else { 0o755 };
            (name.to_owned(), Content::Directory(mode))
        };
        let files = directories.concat().into_iter().map(directory).collect();
        Self { opened, files }
    }

    /// Returns the layer with blobs of the box. A layer names the directories of its files, because runtimes differ in the
    /// mode of a directory that no layer names.
    fn of_blobs(opened: &'a Documents, blobs: &[&'a Descriptor]) -> Layer<'a> {
        Layer::Files(Self::new(opened, &[&BOX_DIRECTORIES]).with_blobs(blobs))
    }

    fn with_blobs(mut self, blobs: &[&'a Descriptor]) -> Self {
        let file = |blob: &&'a Descriptor| (place(&blob_name(&blob.digest)), Content::Blob(blob));
        self.files.extend(blobs.iter().map(file));
        self
    }

    /// Writes the layer.
    pub(super) fn tar(&self, out: &mut dyn Write) -> Result<Written, ExportError> {
        Written::count(out, |out| {
            for (name, content) in &self.files {
                self.write(name, content, out)?;
            }
            tar::finish(out)
        })
    }

    fn write(
        &self,
        name: &str,
        content: &Content<'_>,
        out: &mut dyn Write,
    ) -> Result<(), ExportError> {
        match content {
            Content::Directory(mode) => put(name, (Flag::Directory, *mode), 0, out),
            Content::Bytes(bytes) => put_file(name, 0o444, bytes, out),
            Content::Program(program) => {
                put(name, (Flag::File, 0o555), program.size, out)?;
                copy(&program.file, &program.path, program.size, out).map(drop)
            }
            Content::Blob(named) => {
                let blob = self.opened.open_blob(named).map_err(unread)?;
                blob.check_size().map_err(unread)?;
                put(name, (Flag::File, 0o444), named.size, out)?;
                let found = copy(&blob.file, &blob.path, named.size, out)?;
                if found == named.digest {
                    return Ok(());
                }
                Err(unread(OpenError::digest(blob.path, named.digest, found)))
            }
        }
    }
}

fn unread(error: OpenError) -> ExportError {
    crate::opened::OpenError::from(error).into()
}

/// Returns the path in the image of a file of the box.
fn place(name: &str) -> String {
    format!("{}{name}", BOX_DIRECTORIES[0])
}

/// Writes the first `size` bytes of a file and their padding. Returns their digest.
fn copy(file: &File, path: &Path, size: u64, out: &mut dyn Write) -> Result<Digest, ExportError> {
    let mut from = Section::new(file, 0, size);
    let (mut buffer, mut rest) = (vec![0; 128 << 10], size);
    let mut hasher = Hasher::<Sha256>::default();
    while rest > 0 {
        let read = match from.read(&mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            read => read,
        };
        let length = read.map_err(FileError::of("read", path))?;
        hasher.update(&buffer[..length]);
        out.write_all(&buffer[..length]).map_err(ExportError::Write)?;
        rest -= length as u64;
    }
    tar::fill_up(size, out)?;
    Ok(hasher.digest())
}

/// Returns the layers of an image, those that change least first.
fn layers<'a>(
    opened: &'a Documents,
    launcher: &'a Launcher,
) -> Result<Vec<Layer<'a>>, ExportError> {
    let mut program = Files::new(opened, &[&DIRECTORIES, &WRITABLE]);
    program.files.push((PROGRAM[1..].to_owned(), Content::Program(launcher)));
    program.files.sort_by(|(one, _), (other, _)| one.cmp(other));
    let machine: Vec<_> =
        [KERNEL_TYPE, INIT_TYPE].iter().filter_map(|it| opened.manifest.blob(it)).collect();
    let segments: Vec<_> =
        opened.parts().into_iter().filter(|it| it.media_type != METADATA_TYPE).collect();
    let (alone, shared) = shared(&segments);
    let mut layers = vec![Layer::Files(program), Files::of_blobs(opened, &machine)];
    layers.extend(alone.iter().map(|it| Files::of_blobs(opened, &[it])));
    layers.extend(Some(&shared).filter(|it| !it.is_empty()).map(|it| Files::of_blobs(opened, it)));
    let placed: BTreeSet<_> = machine.iter().chain(&segments).map(|it| it.digest).collect();
    layers.push(Layer::Files(last(opened, &placed)?));
    Ok(layers)
}

/// Divides segments into those with a layer of their own and the smallest, which share one. Both keep their order.
fn shared<'a>(segments: &[&'a Descriptor]) -> (Vec<&'a Descriptor>, Vec<&'a Descriptor>) {
    let mut sizes: Vec<_> = segments.iter().map(|it| (it.size, it.digest)).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let largest: BTreeSet<_> = sizes.iter().take(MAX_ALONE).map(|it| it.1).collect();
    segments.iter().partition(|it| largest.contains(&it.digest))
}

/// Returns the last layer: the documents of the box, and the blobs that no other layer has.
fn last<'a>(opened: &'a Documents, placed: &BTreeSet<Digest>) -> Result<Files<'a>, ExportError> {
    let manifest = opened.places.read_manifest(opened.digest).map_err(unread)?;
    let mut files = Files::new(opened, &[&BOX_DIRECTORIES]);
    let of_layout = documents(opened.digest, manifest.len() as u64);
    let documents = of_layout.map(|(name, bytes)| (place(name), Content::Bytes(bytes)));
    files.files.extend(documents);
    files.files.push((place(&blob_name(&opened.digest)), Content::Bytes(manifest)));
    let blobs = opened.manifest.blobs();
    let rest: Vec<_> = blobs.into_iter().filter(|it| !placed.contains(&it.digest)).collect();
    Ok(files.with_blobs(&rest))
}

/// Returns the command line of the image. Arguments of the container follow it: more options of `boxlaunch run`.
fn entrypoint(plan: &RunPlan) -> Vec<String> {
    let grace = GRACE.to_string();
    let start = [PROGRAM, "run", "--rm", "--name", NAME, "--jail", "best-effort", "--clean-stop"];
    let mut words: Vec<_> =
        start.into_iter().chain(["--grace", &grace]).map(str::to_owned).collect();
    let port = plan.agent.port.map(|it| format!("0.0.0.0:{it}:{it}"));
    words.extend(port.into_iter().flat_map(|it| ["--publish".to_owned(), it]));
    words.extend(variables(plan).into_iter().flat_map(|it| ["--env".to_owned(), it]));
    words.push(BOX.to_owned());
    words
}

/// Returns the variables of the box that are set at launch, and that only the user sets in a container.
fn variables(plan: &RunPlan) -> BTreeSet<String> {
    let own = ENVIRONMENT.map(|(name, _)| name);
    let names = plan.components().flat_map(|(_, it)| it.launch_env.iter().cloned());
    names.filter(|it| !own.contains(&&**it) && !RUNTIMES.contains(&&**it)).collect()
}

/// Returns the image's [config](https://github.com/opencontainers/image-spec/blob/main/config.md). `Healthcheck` is
/// [docker's](https://github.com/moby/docker-image-spec/blob/v1.3.1/spec.md), and other runtimes ignore it.
fn config(plan: &RunPlan, digest: Digest, layers: &[Digest]) -> Value {
    let port = plan.agent.port.map(|it| (format!("{it}/tcp"), json!({})));
    let (built, second) = (Platform::BUILT, 1_000_000_000_u64);
    json!({
        "architecture": built.architecture(),
        "os": built.os(),
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": port.into_iter().collect::<Map<_, _>>(),
            "Env": ENVIRONMENT.map(|(name, value)| format!("{name}={value}")),
            "Entrypoint": entrypoint(plan),
            "WorkingDir": "/",
            "Labels": {
                DIGEST_LABEL: digest.to_string(),
                "org.opencontainers.image.title": plan.name,
            },
            "StopSignal": "SIGTERM",
            "Healthcheck": {
                "Test": ["CMD", PROGRAM, "--quiet", "health", NAME],
                "Interval": 10 * second,
                "Timeout": 15 * second,
                "StartPeriod": 60 * second,
            },
        },
        "rootfs": { "type": "layers", "diff_ids": layers.iter().map(Digest::to_string).collect::<Vec<_>>() },
    })
}

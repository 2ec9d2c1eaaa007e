//! A temporary checkout with a Boxfile and its images, and methods that run `boxbuild` in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use testbed::prerequisites::kernel_bundle;
use testbed::{Artefacts, Workspace};
use testkit::images::{Compression, Config, Image, Layer, LayerTar};
use testkit::small_kernel;

/// The programs and the kernel that every build needs. The kernel is a small test file. [`krunfw`] returns a real one.
pub(crate) struct Tools {
    pub(crate) boxbuild: PathBuf,
    pub(crate) init: PathBuf,
    pub(crate) kernel: PathBuf,
    pub(crate) hello_agent: PathBuf,
}

/// Returns the tools, which the first call builds or finds.
pub(crate) fn tools() -> &'static Tools {
    static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
        let workspace = Workspace::find();
        let artefacts = Artefacts::build(&workspace).unwrap();
        let kernel = small_kernel::file(&workspace.target("")).unwrap();
        let Artefacts { boxbuild, box_init: init, hello_agent, .. } = artefacts;
        Tools { boxbuild, init, kernel, hello_agent }
    });
    &TOOLS
}

/// Downloads or finds libkrunfw, the kernel of boxes whose Boxfile declares none.
pub(crate) fn krunfw() -> PathBuf {
    kernel_bundle(&Workspace::find(), None, &mut |line| println!("{line}")).unwrap()
}

/// A temporary checkout.
pub(crate) struct Checkout {
    directory: tempfile::TempDir,
    /// Whether builds write whole boxes to `test.box`.
    whole: bool,
}

/// The arguments of a build that writes a whole box. Without arguments a build writes a thin box.
pub(crate) const WHOLE: &[&str] = &["--output", "test.box"];

/// The Boxfile of a fresh [`Checkout`].
pub(crate) const BOXFILE: &str = r#"box "test"
agent {
    image "oci:images/agent"
    health "tcp"
    limits memory="64MiB" pids=32
}
business {
    image "oci:images/business"
    limits memory="64MiB" pids=32
}
skill "greet" path="skills/greet"
vm cpus=1 memory="256MiB"
"#;

/// Returns the layer that both images of a checkout share. It is large enough for a shared segment.
fn base() -> LayerTar {
    let noise: Vec<u8> =
        (0u32..40_000).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    Layer::new()
        .mtime(1_700_000_000)
        .dir("/usr", 0o755)
        .file("/usr/base", 0o644, noise)
        .symlink("/lib", "usr/lib")
        .to_tar()
}

/// Makes an agent's image whose program file has this content.
pub(crate) fn agent_with(program: &str) -> Image {
    let program = Layer::new()
        .file("/agent/bin/agent", 0o4755, program)
        .hardlink("/agent/bin/alias", "/agent/bin/agent")
        .xattr("user.note", "kept")
        .owner(1000, 1000)
        .file("/agent/notes", 0o600, "notes");
    let entrypoint = vec!["/agent/bin/agent".to_owned()];
    Image::new(Config { entrypoint, ..Config::default() }).with(base()).with(program.to_tar())
}

/// Makes a business image whose program file has this content.
pub(crate) fn business_with(program: &str) -> Image {
    let app = Layer::new().file("/app/main", 0o755, program).whiteout("/lib");
    Image::new(Config::default()).with(base()).with(app.to_tar())
}

impl Checkout {
    /// Makes a checkout that builds, with two images and a skill.
    pub(crate) fn new() -> Self {
        let checkout = Self { directory: tempfile::tempdir().unwrap(), whole: false };
        checkout.image("agent", &agent_with("agent"));
        checkout.image("business", &business_with("app"));
        checkout.write(
            "skills/greet/SKILL.md",
            "---\nname: greet\ndescription: Greets.\n---\nGreets.\n",
        );
        checkout.write("skills/greet/tools/greet.sh", "#!/bin/sh\necho hello\n");
        checkout.write("Boxfile", BOXFILE);
        checkout
    }

    /// Copies the checkout to a new directory below `below`, and creates the files in the opposite order.
    pub(crate) fn copied(&self, below: &Path) -> Self {
        let copy = Self { directory: tempfile::tempdir_in(below).unwrap(), whole: self.whole };
        for (path, data) in files(self.root()).into_iter().rev() {
            copy.write(path.to_str().unwrap(), data);
        }
        copy
    }

    /// Makes builds write whole boxes, as with [`WHOLE`].
    pub(crate) fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file, and creates its parent directories.
    pub(crate) fn write(&self, relative: &str, content: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Reads a file as text.
    pub(crate) fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap()
    }

    /// Replaces `from`, which must occur once in the file.
    pub(crate) fn edit(&self, relative: &str, from: &str, to: &str) {
        let text = self.read(relative);
        assert_eq!(text.matches(from).count(), 1, "{from} in {text}");
        self.write(relative, text.replacen(from, to, 1));
    }

    /// Writes an image to `images/NAME` with the tag `latest`. Existing blobs stay.
    pub(crate) fn image(&self, name: &str, image: &Image) {
        let layout = self.path(&format!("images/{name}"));
        image.write_layout(&layout, "latest", Compression::Gzip).unwrap();
    }

    /// Replaces the agent's image with one that has only `layer`.
    pub(crate) fn agent_of(&self, layer: LayerTar) {
        fs::remove_dir_all(self.path("images/agent")).unwrap();
        let entrypoint = vec!["/agent".to_owned()];
        self.image("agent", &Image::new(Config { entrypoint, ..Config::default() }).with(layer));
    }

    /// Returns a `boxbuild build` command with the init, the kernel and the checkout's own store.
    pub(crate) fn command(&self) -> Command {
        let tools = tools();
        let mut command = Command::new(&tools.boxbuild);
        command.current_dir(self.root()).env_clear().arg("build");
        command.arg("--init").arg(&tools.init).arg("--kernel").arg(&tools.kernel);
        command.args(["--store", "store"]);
        if self.whole {
            command.args(WHOLE);
        }
        command
    }

    /// Returns a `boxbuild` command with the checkout's own store.
    pub(crate) fn boxbuild(&self, args: &[&str]) -> Command {
        let tools = tools();
        let mut command = Command::new(&tools.boxbuild);
        command.current_dir(self.root()).env_clear().args(args);
        command.env("BOXBUILD_INIT", &tools.init).env("BOXBUILD_KERNEL", &tools.kernel);
        command.env("BOXBUILD_STORE", self.path("store"));
        command
    }

    /// Runs `boxbuild`.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&mut self.boxbuild(args))
    }

    /// Runs `boxbuild`, which must succeed, and returns its stdout.
    pub(crate) fn result(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{}", ran.notes);
        ran.result
    }

    /// Runs `boxbuild`, which must succeed, and returns its stderr.
    pub(crate) fn notes(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{}", ran.notes);
        ran.notes
    }

    /// Runs `boxbuild`, which must fail with exit code 1 and an empty stdout, and returns its stderr.
    pub(crate) fn fails(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.result.as_str()), (1, ""), "{}", ran.notes);
        ran.notes
    }

    /// Returns the run plan in the whole box `directory`.
    pub(crate) fn plan(&self, directory: &str) -> serde_json::Value {
        let read = |path: &str| -> serde_json::Value {
            serde_json::from_slice(&fs::read(self.path(directory).join(path)).unwrap()).unwrap()
        };
        let blob = |descriptor: &serde_json::Value| {
            read(&format!("blobs/{}", descriptor["digest"].as_str().unwrap().replace(':', "/")))
        };
        let manifest = blob(&read("index.json")["manifests"][0]);
        blob(&manifest["config"])["plan"].clone()
    }

    /// Builds the box and returns its run plan.
    pub(crate) fn built_plan(&self) -> serde_json::Value {
        self.built(&["--output", "plan.box"]);
        self.plan("plan.box")
    }

    /// Runs `boxbuild build` with further arguments.
    pub(crate) fn build(&self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }

    /// Runs `boxbuild build --json`, which must succeed, and returns the report.
    pub(crate) fn built(&self, args: &[&str]) -> serde_json::Value {
        let ran = Ran::of(self.command().args(args).arg("--json"));
        assert_eq!(ran.code, 0, "{}{}", ran.notes, ran.result);
        ran.json()
    }

    /// Runs `boxbuild build`, which must fail with exit code 1 and leave no new files, and returns its stderr.
    pub(crate) fn refused(&self) -> String {
        let output = self.build(&["--output", "refused.box"]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert_eq!(output.stdout, b"");
        let left: Vec<_> =
            fs::read_dir(self.root()).unwrap().map(|it| it.unwrap().file_name()).collect();
        let expected = |name: &&std::ffi::OsString| {
            ["Boxfile", "images", "skills", "store"].iter().any(|known| name == known)
        };
        let unexpected: Vec<_> = left.iter().filter(|name| !expected(name)).collect();
        assert!(unexpected.is_empty(), "leftovers: {unexpected:?}");
        errors
    }
}

/// The exit code and the output of a command.
pub(crate) struct Ran {
    pub(crate) code: i32,
    /// The command's stdout.
    pub(crate) result: String,
    /// The command's stderr.
    pub(crate) notes: String,
}

impl Ran {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self {
            code: output.status.code().unwrap(),
            result: String::from_utf8(output.stdout).unwrap(),
            notes: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Parses stdout as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.result).unwrap_or_else(|error| panic!("{error}: {}", self.notes))
    }
}

/// Replaces digests, which change with every change of the fixtures: whole digests, their first 12 digits in messages, and the
/// lock's checksums of 16 digits.
pub(crate) fn shown(text: &str) -> String {
    let mut words = String::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some(at) = rest.find(|it: char| it.is_ascii_hexdigit()) {
            let digits =
                rest[at..].find(|it: char| !it.is_ascii_hexdigit()).unwrap_or(rest.len() - at);
            words.push_str(&rest[..at]);
            words.push_str(match digits {
                64 => "DIGEST",
                12 => "DIG",
                16 => "0123456789abcdef",
                _ => &rest[at..at + digits],
            });
            rest = &rest[at + digits..];
        }
        words.push_str(rest);
        words.push('\n');
    }
    words
}

/// Returns the path and content of every file below a directory, sorted.
pub(crate) fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let relative = path.strip_prefix(directory).unwrap().to_owned();
                found.push((relative, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

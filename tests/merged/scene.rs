//! A checkout with two images and a Boxfile with the layout "merged", and methods that run `boxbuild` in it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use testbed::{Artefacts, Workspace};
use testkit::images::{Compression, Config, Image, Layer};
use testkit::small_kernel;

struct Tools {
    boxbuild: PathBuf,
    init: PathBuf,
    kernel: PathBuf,
}

fn tools() -> &'static Tools {
    static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
        let workspace = Workspace::find();
        let Artefacts { boxbuild, box_init: init, .. } = Artefacts::build(&workspace).unwrap();
        let kernel = small_kernel::file(&workspace.target("")).unwrap();
        Tools { boxbuild, init, kernel }
    });
    &TOOLS
}

const BOXFILE: &str = r#"box "one"
agent {
    image "oci:agent"
}
business {
    image "oci:business"
}
layout "merged"
"#;

/// A temporary checkout with two images.
pub(crate) struct Scene {
    directory: tempfile::TempDir,
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
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.result).unwrap_or_else(|error| panic!("{error}: {}", self.notes))
    }
}

/// Returns the layer that both images share.
pub(crate) fn base() -> Layer {
    let base = Layer::new().mtime(1_700_000_000).dir("/etc", 0o755);
    base.file("/etc/os-release", 0o644, "NAME=base\n").file("/bin/sh", 0o755, "a shell")
}

impl Scene {
    /// Makes images of [`base`] and one more layer each, and a Boxfile that ends with `policies`.
    pub(crate) fn new(agent: Layer, business: Layer, policies: &str) -> Self {
        let scene = Self { directory: tempfile::tempdir().unwrap() };
        let entrypoint = vec!["/agent/run".to_owned()];
        let agent = agent.file("/agent/run", 0o755, "an agent");
        scene.image("agent", Config { entrypoint, ..Config::default() }, &[base(), agent]);
        scene.image("business", Config::default(), &[base(), business]);
        scene.policies(policies);
        scene
    }

    fn image(&self, name: &str, config: Config, layers: &[Layer]) {
        let image = layers.iter().fold(Image::new(config), |it, layer| it.with(layer.to_tar()));
        image.write_layout(&self.path(name), "latest", Compression::None).unwrap();
    }

    /// Replaces the Boxfile's policies.
    pub(crate) fn policies(&self, policies: &str) {
        self.write("Boxfile", &format!("{BOXFILE}{policies}"));
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs `boxbuild` in the checkout.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let tools = tools();
        let mut command = Command::new(&tools.boxbuild);
        command.current_dir(self.directory.path()).env_clear().args(arguments);
        command.env("BOXBUILD_INIT", &tools.init).env("BOXBUILD_KERNEL", &tools.kernel);
        let output = command.env("BOXBUILD_STORE", self.path("store")).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (result, notes) = (text(output.stdout), text(output.stderr));
        Ran { code: output.status.code().unwrap(), result, notes }
    }

    /// Runs `boxbuild build --json`, which must succeed, and returns its output.
    pub(crate) fn builds(&self) -> Ran {
        let ran = self.run(&["build", "--json"]);
        assert_eq!(ran.code, 0, "{}{}", ran.notes, ran.result);
        ran
    }

    /// Runs `boxbuild build`, which must fail with exit code 1 and leave neither a box nor a lock. Returns its stderr with
    /// digests replaced.
    pub(crate) fn refused(&self) -> String {
        let ran = self.run(&["build"]);
        assert_eq!((ran.code, ran.result.as_str()), (1, ""), "{}", ran.notes);
        assert!(!self.path("one.box").exists() && !self.path("Boxfile.lock").exists());
        shown(&ran.notes)
    }
}

/// Replaces digests, and their first 12 digits, which messages show.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|it: char| it.is_ascii_hexdigit()) {
        let after = &rest[at..];
        let end = after.find(|it: char| !it.is_ascii_hexdigit()).unwrap_or(after.len());
        shown.push_str(&rest[..at]);
        shown.push_str(match end {
            64 => "DIGEST",
            12 => "DIG",
            _ => &after[..end],
        });
        rest = &after[end..];
    }
    shown + rest
}

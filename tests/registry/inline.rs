//! Tests of the inline cache: builds on a host that takes the layers of an earlier build from the box in the registry.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use box_registry::CACHE_TYPE;
use serde_json::Value;
use test_server::registry::{Referrers, Registry, Rules};
use testbed::{Artefacts, Workspace};
use testkit::images::{Compression, Config, Image, Layer, LayerTar};
use testkit::small_kernel;

use crate::host::report;
use crate::schema::assert_fits;

const BOXFILE: &str = r#"box "hello"
agent {
    image "oci:images/agent"
    health "tcp"
}
business { image "oci:images/business"; }
skill "greet" path="skills/greet"
vm cpus=1 memory="2GiB"
"#;

/// Returns bytes that do not compress.
pub(crate) fn noise(length: u32, seed: u32) -> Vec<u8> {
    let number = |n: u32| (n ^ seed).wrapping_mul(2_654_435_761).rotate_left(n % 31);
    (0..length / 4).flat_map(|n| number(n).wrapping_mul(n | 1).to_le_bytes()).collect()
}

/// Returns a layer with a segment, a small file, and a program whose head a build reads.
fn layer(seed: u32) -> LayerTar {
    let program = [b"program ".to_vec(), noise(40_000, seed)].concat();
    let layer = Layer::new().dir("/usr", 0o755).file("/usr/small", 0o644, "small");
    let layer = layer.file("/usr/data", 0o644, noise(1_600_000, seed));
    layer.file("/usr/program", 0o755, program).to_tar()
}

/// A host without results of earlier builds: a checkout, an empty store, and the registry.
pub(crate) struct Ci<'r> {
    registry: &'r Registry,
    dir: tempfile::TempDir,
    tools: Artefacts,
}

impl<'r> Ci<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        let tools = Artefacts::build(&Workspace::find()).unwrap();
        let ci = Self { registry, dir: tempfile::tempdir().unwrap(), tools };
        let config = format!("[registry.\"{}\"]\nplain-http = true\n", registry.host());
        fs::write(ci.path("registries.toml"), config).unwrap();
        fs::create_dir_all(ci.path("app/skills/greet")).unwrap();
        fs::write(ci.path("app/Boxfile"), BOXFILE).unwrap();
        ci.skill("Greets.");
        let entrypoint = vec!["/usr/program".to_owned()];
        let agent = Image::new(Config { entrypoint, ..Config::default() }).with(layer(1));
        ci.image("agent", &agent.with(Layer::new().file("/top", 0o644, "top").to_tar()));
        ci.image("business", &Image::new(Config::default()).with(layer(2)).with(layer(1)));
        ci
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn image(&self, name: &str, image: &Image) {
        let layout = self.path("app/images").join(name);
        image.write_layout(&layout, "latest", Compression::Gzip).unwrap();
    }

    pub(crate) fn skill(&self, text: &str) {
        let text = format!("---\nname: greet\ndescription: Greets.\n---\n{text}\n");
        fs::write(self.path("app/skills/greet/SKILL.md"), text).unwrap();
    }

    /// Replaces the images by images whose layers are too small for a segment.
    fn small_images(&self) {
        let file = |path: &str, text: &str| Layer::new().file(path, 0o755, text).to_tar();
        let entrypoint = vec!["/agent".to_owned()];
        let agent = Image::new(Config { entrypoint, ..Config::default() });
        self.image("agent", &agent.with(file("/agent", "agent")));
        self.image("business", &Image::new(Config::default()).with(file("/app", "app")));
    }

    /// Damages every layer of the images, but not its size. A build that decodes a layer then fails.
    fn damage_layers(&self) {
        for entry in ["agent", "business"] {
            let blobs = self.path("app/images").join(entry).join("blobs/sha256");
            for blob in fs::read_dir(blobs).unwrap() {
                let blob = blob.unwrap().path();
                let bytes = fs::read(&blob).unwrap();
                if bytes.starts_with(&[0x1f, 0x8b]) {
                    fs::write(blob, vec![7; bytes.len()]).unwrap();
                }
            }
        }
    }

    pub(crate) fn reference(&self, name: &str) -> String {
        format!("{}/team/{name}", self.registry.host())
    }

    /// Returns a `boxbuild` command in the checkout.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let kernel = small_kernel::file(&Workspace::find().target("")).unwrap();
        let mut command = Command::new(&self.tools.boxbuild);
        command.args(args).env_clear().current_dir(self.path("app"));
        command.env("BOXBUILD_REGISTRIES", self.path("registries.toml"));
        command.env("BOXBUILD_INIT", &self.tools.box_init).env("BOXBUILD_KERNEL", kernel);
        command.env("BOXBUILD_STORE", self.path("store")).env("TMPDIR", self.dir.path());
        command
    }

    /// Builds and pushes, and returns the report.
    pub(crate) fn build(&self, to: &str, more: &[&str]) -> Value {
        let to = self.reference(to);
        let args = [&["build", "--push", &to, "--json"][..], more].concat();
        let report = report(&self.command(&args).output().unwrap());
        assert_fits("build", &report);
        report
    }

    /// Returns the digest of the box that this checkout makes without the registry.
    fn digest(&self) -> Value {
        report(&self.command(&["build", "--json"]).output().unwrap())["box"].clone()
    }
}

/// Returns the methods and paths of the requests since `before`, without the repository.
fn since(registry: &Registry, before: usize) -> Vec<String> {
    registry.lines().split_off(before)
}

fn registries() -> [Registry; 2] {
    [Referrers::default(), Referrers::Paged(2)]
        .map(|referrers| Registry::start(Rules { referrers, mounts: true, ..Rules::default() }))
}

#[test]
fn the_same_inputs_fetch_documents_and_send_nothing() {
    for registry in registries() {
        let first = Ci::new(&registry).build("hello:v1", &[]);
        assert!(first["pushed"]["cache_bytes"].as_u64().unwrap() > 0, "{first}");
        assert_eq!(first["output"], "hello.box");
        let (ci, before) = (Ci::new(&registry), registry.lines().len());
        ci.damage_layers();
        let again = ci.build("hello:v1", &[]);
        assert_eq!((&again["box"], &again["cached"]), (&first["box"], &true.into()));
        assert_eq!((&again["output"], &again["stored_as"]), (&Value::Null, &Value::Null));
        assert_eq!(again["pushed"]["registry_digest"], first["pushed"]["registry_digest"]);
        for count in ["sent", "bytes", "cache_bytes"] {
            assert_eq!(again["pushed"][count], 0, "{count}");
        }
        assert_eq!(
            (&again["tree"], &again["rootfs_bytes"]),
            (&first["tree"], &first["rootfs_bytes"])
        );
        let requests = since(&registry, before);
        assert!(requests.iter().all(|it| it.starts_with("GET ")), "{requests:?}");
        let blobs = requests.iter().filter(|it| it.contains("blobs/")).count();
        assert_eq!(blobs, 2, "the box's manifest and config: {requests:?}");
        assert!(!ci.path("app/hello.box").exists() && ci.path("app/Boxfile.lock").exists());
    }
}

#[test]
fn a_changed_skill_needs_no_layer_and_sends_no_segment() {
    for registry in registries() {
        Ci::new(&registry).build("hello:v1", &[]);
        let (ci, before) = (Ci::new(&registry), registry.lines().len());
        ci.skill("Greets twice.");
        let intact = Ci::new(&registry);
        intact.skill("Greets twice.");
        ci.damage_layers();
        let changed = ci.build("hello:v1", &[]);
        assert_eq!((&changed["output"], &changed["cached"]), (&Value::Null, &false.into()));
        // The metadata, the config and the listing are new.
        assert_eq!(changed["pushed"]["sent"], 3);
        assert!(changed["pushed"]["bytes"].as_u64().unwrap() < 100_000, "{changed}");
        assert!(changed["pushed"]["cache_bytes"].as_u64().unwrap() < 10_000, "{changed}");
        let fetched: usize =
            since(&registry, before).iter().filter(|it| it.contains("GET blobs")).count();
        assert!(fetched <= 6, "the box's manifest, three layers of the cache, and the heads");
        // The box is the one that a host builds from the layers.
        assert_eq!(changed["box"], intact.digest());
        // A host that pulls it gets every blob.
        let pulled =
            intact.command(&["pull", &ci.reference("hello:v1"), "--json", "--store", "new"]);
        let pulled = { pulled }.output().unwrap();
        assert_eq!(report(&pulled)["box"], changed["box"]);
        let digest = changed["box"].as_str().unwrap();
        let verified = intact.command(&["verify", digest, "--store", "new"]).output().unwrap();
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
        // The new box has a cache, too.
        let next = Ci::new(&registry);
        next.damage_layers();
        next.skill("Greets three times.");
        assert_eq!(next.build("hello:v1", &[])["output"], Value::Null);
    }
}

#[test]
fn the_cache_of_another_repository_is_mounted() {
    let [registry, _] = registries();
    let first = Ci::new(&registry).build("main:latest", &[]);
    let from = format!("--cache-from={}", Ci::new(&registry).reference("main:latest"));
    let ci = Ci::new(&registry);
    ci.damage_layers();
    let same = ci.build("copy:v1", &[&from]);
    assert_eq!((&same["box"], &same["output"]), (&first["box"], &Value::Null));
    assert_eq!((&same["pushed"]["sent"], &same["pushed"]["skipped"]), (&0.into(), &0.into()));
    ci.skill("Greets twice.");
    let changed = ci.build("branch:v1", &[&from]);
    assert_eq!((&changed["pushed"]["sent"], &changed["output"]), (&3.into(), &Value::Null));
    let pull = ["pull", &ci.reference("branch:v1"), "--json"];
    assert_eq!(report(&ci.command(&pull).output().unwrap())["box"], changed["box"]);
    let wrong =
        ci.command(&["build", "--push", &ci.reference("x:v1"), "--cache-from", "ghcr.io/a/b:v1"]);
    let wrong = { wrong }.output().unwrap();
    let message = String::from_utf8(wrong.stderr).unwrap();
    assert!(message.contains("is in another registry"), "{message}");
}

/// Whoever may push to the registry could have written the layers, so only boxes for this registry are made of them.
#[test]
fn layers_of_the_registry_become_no_result_of_this_host() {
    for is_small in [false, true] {
        let [registry, _] = registries();
        let host = || {
            let ci = Ci::new(&registry);
            if is_small {
                ci.small_images();
            }
            ci
        };
        host().build("hello:v1", &[]);
        let ci = host();
        ci.damage_layers();
        ci.skill("Greets twice.");
        let built = ci.build("hello:v1", &[]);
        assert_eq!((&built["output"], &built["stored_as"]), (&Value::Null, &Value::Null));
        for later in [&["build"][..], &["build", "--offline", "--locked"], &["build", "-o", "out"]]
        {
            let failed = ci.command(later).output().unwrap();
            let message = String::from_utf8_lossy(&failed.stderr).into_owned();
            assert_eq!(failed.status.code(), Some(1), "{is_small} {message}");
            assert!(message.contains("its bytes have the digest"), "{message}");
        }
    }
}

/// A registry that mounts nothing cannot copy a segment, so the host decodes the layers.
#[test]
fn a_segment_that_the_registry_does_not_copy_is_made_here() {
    let registry = Registry::start(Rules::default());
    Ci::new(&registry).build("main:latest", &[]);
    let ci = Ci::new(&registry);
    ci.skill("Greets twice.");
    let from = format!("--cache-from={}", ci.reference("main:latest"));
    let built = ci.build("copy:v1", &[&from]);
    assert_eq!(built["output"], "hello.box");
    assert_eq!(built["box"], ci.digest());
}

#[test]
fn a_lost_or_malformed_cache_costs_a_decoding() {
    let [registry, _] = registries();
    Ci::new(&registry).build("hello:v1", &[]);
    let is_cache = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(CACHE_TYPE);
    let layers = || -> Vec<String> {
        registry.with(|held| {
            let all = held.manifests.values().filter(|(_, it)| is_cache(it));
            let parsed = all.filter_map(|(_, it)| serde_json::from_slice::<Value>(it).ok());
            let layers = parsed.flat_map(|it| it["layers"].as_array().cloned().unwrap_or_default());
            layers.filter_map(|it| it["digest"].as_str().map(str::to_owned)).collect()
        })
    };
    let lost = layers();
    assert!(lost.len() >= 4, "{lost:?}");
    registry.with(|held| held.blobs.retain(|(_, digest), _| !lost.contains(digest)));
    let ci = Ci::new(&registry);
    ci.skill("Greets twice.");
    let built = ci.build("hello:v1", &[]);
    assert_eq!((&built["output"], &built["box"]), (&"hello.box".into(), &ci.digest()));
}

#[test]
fn without_a_cache_every_layer_is_decoded_again() {
    let [registry, _] = registries();
    let first = Ci::new(&registry).build("hello:v1", &[]);
    let ci = Ci::new(&registry);
    let before = registry.lines().len();
    let built = ci.build("hello:v1", &["--no-cache"]);
    assert_eq!((&built["box"], &built["output"]), (&first["box"], &"hello.box".into()));
    assert_eq!(built["cached"], false);
    let fetched = since(&registry, before).iter().filter(|it| it.contains("GET blobs")).count();
    assert_eq!(fetched, 0);
    // The store has the box now, and `--no-cache` does not use it.
    ci.damage_layers();
    assert_eq!(ci.build("hello:v1", &[])["cached"], true);
    let args = ["build", "--no-cache", "--push", &ci.reference("hello:v1")];
    let failed = ci.command(&args).output().unwrap();
    assert_eq!(failed.status.code(), Some(1), "{}", String::from_utf8_lossy(&failed.stderr));
}

/// A host that has built the box before gets the whole new box, so that its directory and its name are never out of date.
#[test]
fn a_host_with_an_earlier_box_builds_the_whole_box() {
    let [registry, _] = registries();
    Ci::new(&registry).build("hello:v1", &[]);
    for given in [&["--output", "out"][..], &["--name", "other"][..]] {
        let ci = Ci::new(&registry);
        let built = ci.build("hello:v1", given);
        assert_ne!(built["output"], Value::Null, "{given:?}");
    }
    let ci = Ci::new(&registry);
    ci.skill("Greets.");
    fs::create_dir(ci.path("app/hello.box")).unwrap();
    let args = ["build", "--push", &ci.reference("hello:v1")];
    let failed = ci.command(&args).output().unwrap();
    let message = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && message.contains("hello.box"), "{message}");
}

#[test]
fn what_was_sent_is_noted_before_the_name_that_was_pushed() {
    let [registry, _] = registries();
    let ci = Ci::new(&registry);
    let ran = ci.command(&["build", "--push", &ci.reference("hello:v1")]).output().unwrap();
    let notes = String::from_utf8(ran.stderr).unwrap();
    let at = |text: &str| notes.lines().position(|it| it.starts_with(text));
    let sent = notes.lines().collect::<Vec<_>>().iter().rposition(|it| it.starts_with("sent "));
    assert_eq!(sent, at("sent the build cache, "), "{notes}");
    assert!(sent.is_some() && sent < at("pushed: "), "{notes}");
}

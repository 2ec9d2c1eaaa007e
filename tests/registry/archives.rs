//! Tests of `save` and `load`: between stores, with other tools' archives, killed, and on a full disk.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use box_cache::{Owner, Store, StoredBoxes};
use box_contract::manifest::{
    ARTIFACT_TYPE, CONFIG_TYPE, KERNEL_TYPE, OCI_MANIFEST_TYPE, SEGMENT_TYPE,
};
use box_digest::Digest;
use box_layout::{OpenBox, Places};
use box_registry::{BOX_MANIFEST_TYPE, Destination, PLAIN_DIGEST, PLAIN_SIZE, push};
use oci_registry::{Registry, Repository, Tag};
use ocipkg::image::{Image as _, ImageBuilder as _, OciArchive, OciArchiveBuilder};
use serde_json::{Value, json};
use testbed::prerequisites::{Package, packages};
use testbed::promises::HOSTILE_MEMORY;
use testbed::{Artefacts, Workspace, program};
use testkit::TestBox;
use testkit::test_box::{config, segment};

use crate::pushed::Pushed;
use crate::schema::assert_fits;

/// A temporary directory with stores and archives.
struct Scene {
    dir: tempfile::TempDir,
    tools: Artefacts,
}

impl Scene {
    fn new() -> Self {
        let tools = Artefacts::build(&Workspace::find()).unwrap();
        Self { dir: tempfile::tempdir().unwrap(), tools }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns a command that runs `program` with the store `store`.
    fn command(&self, program: &Path, store: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).env_clear().current_dir(self.dir.path());
        command.env("BOXBUILD_STORE", self.path(store));
        command
    }

    fn boxlaunch(&self, store: &str, args: &[&str]) -> Output {
        self.command(&self.tools.boxlaunch, store, args).output().unwrap()
    }

    fn boxbuild(&self, store: &str, args: &[&str]) -> Output {
        self.command(&self.tools.boxbuild, store, args).output().unwrap()
    }

    /// Returns the digests and labels of all boxes in a store. Asserts that each opens and that its blobs are intact.
    fn found(&self, store: &str) -> Vec<(Digest, Option<String>)> {
        let root = self.path(store);
        let (whole, boxes) = (Store::open(&root).unwrap(), StoredBoxes::open(&root).unwrap());
        let all = boxes.all().unwrap().into_iter().map(|stored| {
            let places = Places::new(boxes.directory(&stored.digest), Some(&boxes.blobs()));
            let opened = OpenBox::open(places).unwrap();
            for blob in opened.manifest.blobs() {
                assert_eq!(whole.verify(&blob.digest).unwrap(), blob.size);
            }
            (stored.digest, stored.label.map(|it| it.text().to_owned()))
        });
        all.collect()
    }
}

/// Returns the stdout and stderr of a command that must succeed.
#[track_caller]
fn printed(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (result, notes) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{notes}{result}");
    (result, notes)
}

/// Returns the stderr of a command that must fail.
#[track_caller]
fn failed(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Makes a box `name` with one segment of `blocks` blocks. `number` determines the segment's content.
fn named(name: &str, number: u8, blocks: usize) -> TestBox {
    let mut config = config();
    config.plan.name = name.to_owned();
    TestBox::with_segments(&config, vec![segment(number, blocks)])
}

fn digest_of(files: &TestBox) -> Digest {
    OpenBox::open(files.path()).unwrap().digest
}

#[test]
fn boxes_travel_in_a_file_with_their_names() {
    let place = Scene::new();
    let (one, two) = (named("one", 1, 64), named("two", 1, 64));
    let (first, second) = (digest_of(&one).to_string(), digest_of(&two).to_string());
    let paths = [&one, &two].map(|it| it.path().to_str().unwrap());
    let saved = place.boxbuild("a", &["save", paths[0], paths[1], "-o", "boxes.tar"]);
    let (digests, notes) = printed(&saved);
    assert_eq!(digests, format!("{first}\n{second}\n"));
    assert!(notes.starts_with("saved: boxes.tar, 2 boxes, "), "{notes}");
    // `save` never overwrites a file.
    let again = failed(&place.boxbuild("a", &["save", paths[0], "-o", "boxes.tar"]));
    assert!(again.contains("boxes.tar exists") && again.contains("--output"), "{again}");
    let (digests, notes) = printed(&place.boxlaunch("b", &["load", "boxes.tar"]));
    assert_eq!(digests.lines().count(), 2);
    assert!(notes.starts_with("loading 8 of 8 blobs, "), "{notes}");
    assert!(notes.contains(": 7 of 7 blobs were new") && notes.contains(": 1 of 7"), "{notes}");
    // Saves a box by its name in the store, and pipes the archive into `load`.
    let store = Store::open(&place.path("b")).unwrap();
    let owner = place.path("Boxfile");
    fs::write(&owner, "").unwrap();
    let digest = digest_of(&one);
    store.name_box("hello", &box_cache::Named { digest, owner: Owner::Boxfile(owner) }).unwrap();
    drop(store);
    let mut save =
        place.command(&place.tools.boxlaunch, "b", &["save", "hello", &second, "-o", "-"]);
    let mut save = save.stdout(Stdio::piped()).spawn().unwrap();
    let mut load = place.command(&place.tools.boxbuild, "c", &["load", "-", "--json"]);
    let loaded = load.stdin(save.stdout.take().unwrap()).output().unwrap();
    assert!(save.wait().unwrap().success());
    let report: Value = serde_json::from_str(&printed(&loaded).0).unwrap();
    assert_fits("load", &report);
    let mut found = place.found("c");
    found.sort_by_key(|it| it.1.is_none());
    assert_eq!(found[0], (digest, Some("hello".to_owned())));
    assert_eq!((found.len(), found[1].0), (2, digest_of(&two)));
    let (report, _) = printed(&place.boxlaunch("c", &["save", "hello", "--json"]));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_fits("save", &report);
    assert_eq!(
        (&report["output"], &report["boxes"][0]["name"]),
        (&"hello.tar".into(), &"hello".into())
    );
    printed(&place.boxlaunch("c", &["verify", "hello"]));
    // Saving the same box gives the same bytes with both programs and from each store.
    printed(&place.boxbuild("c", &["save", "hello", "-o", "again.tar"]));
    printed(&place.boxbuild("a", &["save", paths[0], "-o", "plain.tar"]));
    printed(&place.boxlaunch("b", &["save", &first, "-o", "digest.tar"]));
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    assert!(read("hello.tar") == read("again.tar") && read("plain.tar") == read("digest.tar"));
    printed(&place.boxlaunch("c", &["save", "hello", &second, "-o", "dir/"]));
    printed(&place.boxlaunch("d", &["load", "dir"]));
    assert_eq!(place.found("d").len(), 2);
}

#[test]
fn a_file_of_several_boxes_needs_a_digest_to_run() {
    let place = Scene::new();
    let (one, two) = (named("one", 1, 2), named("two", 1, 2));
    let paths = [&one, &two].map(|it| it.path().to_str().unwrap());
    printed(&place.boxbuild("a", &["save", paths[0], paths[1], "-o", "boxes.tar"]));
    let errors = failed(&place.boxlaunch("b", &["run", "boxes.tar"]));
    assert!(errors.contains("boxes.tar has 2 boxes: sha256:"), "{errors}");
    assert!(errors.contains("`boxlaunch run boxes.tar@sha256:…` picks one"), "{errors}");
    assert!(!place.path("b").exists());
    let other = format!("boxes.tar@sha256:{}", "7".repeat(64));
    assert!(failed(&place.boxlaunch("b", &["run", &other])).contains("has no box sha256:777"));
    // `run` loads only the box with this digest. The run itself fails, because the test box has no kernel that starts.
    let digest = digest_of(&two);
    drop(place.boxlaunch("b", &["run", &format!("boxes.tar@{digest}")]));
    assert_eq!(place.found("b"), [(digest, None)]);
}

#[test]
fn a_name_of_another_box_is_not_taken() {
    let place = Scene::new();
    let one = named("one", 1, 2);
    let store = Store::open(&place.path("a")).unwrap();
    let owner = place.path("Boxfile");
    fs::write(&owner, "").unwrap();
    let digest = digest_of(&one);
    let path = one.path().to_str().unwrap();
    printed(&place.boxbuild("a", &["save", path, "-o", "plain.tar"]));
    printed(&place.boxbuild("a", &["load", "plain.tar"]));
    store
        .name_box("hello", &box_cache::Named { digest, owner: Owner::Boxfile(owner.clone()) })
        .unwrap();
    printed(&place.boxbuild("a", &["save", "hello", "-o", "hello.tar"]));
    let other = Store::open(&place.path("b")).unwrap();
    let named = box_cache::Named { digest: Digest::of(b"other"), owner: Owner::Boxfile(owner) };
    other.name_box("hello", &named).unwrap();
    let errors = failed(&place.boxlaunch("b", &["load", "hello.tar"]));
    assert!(errors.contains("the name hello belongs to the box of"), "{errors}");
    assert!(errors.contains("`--replace` gives the name to the box in the file"), "{errors}");
    let boxes = StoredBoxes::open(&place.path("b")).unwrap();
    assert_eq!(boxes.named("hello").unwrap().unwrap().digest, Digest::of(b"other"));
    let (result, notes) = printed(&place.boxlaunch("b", &["load", "hello.tar", "--replace"]));
    assert_eq!(result.trim(), digest.to_string());
    let before = Digest::of(b"other");
    assert!(notes.contains(&format!("the name hello moved to this box from {before}")), "{notes}");
    assert_eq!(boxes.named("hello").unwrap().unwrap().digest, digest);
}

fn skopeo(args: &[&str]) -> String {
    packages(&[Package::Skopeo], &mut |line| println!("{line}")).unwrap();
    let output = program::run(Command::new("skopeo").args(args)).unwrap();
    String::from_utf8(output).unwrap()
}

#[test]
fn skopeo_reads_what_is_saved() {
    let place = Scene::new();
    let (one, two) = (named("one", 1, 8), named("two", 2, 8));
    let store = Store::open(&place.path("a")).unwrap();
    let owner = place.path("Boxfile");
    fs::write(&owner, "").unwrap();
    for (files, name) in [(&one, "one"), (&two, "two")] {
        let (path, file) = (files.path().to_str().unwrap(), format!("{name}-plain.tar"));
        printed(&place.boxbuild("a", &["save", path, "-o", &file]));
        printed(&place.boxbuild("a", &["load", &file]));
        let digest = digest_of(files);
        store
            .name_box(name, &box_cache::Named { digest, owner: Owner::Boxfile(owner.clone()) })
            .unwrap();
    }
    drop(store);
    printed(&place.boxlaunch("a", &["save", "one", "two", "-o", "boxes.tar"]));
    for (files, name) in [(&one, "one"), (&two, "two")] {
        let from = format!("oci-archive:{}:{name}", place.path("boxes.tar").display());
        assert_eq!(
            skopeo(&["inspect", "--raw", &from]).into_bytes(),
            fs::read(files.manifest_path()).unwrap(),
            "{name}"
        );
        let (copied, to) = (place.path(name), format!("oci:{}:v1", place.path(name).display()));
        skopeo(&["copy", "--preserve-digests", &from, &to]);
        assert_eq!(OpenBox::open(&copied).unwrap().digest, digest_of(files));
        let to = format!("oci-archive:{}:{name}", place.path(&format!("{name}.tar")).display());
        skopeo(&["copy", "--preserve-digests", &from, &to]);
        printed(&place.boxlaunch("b", &["load", &format!("{name}.tar")]));
    }
    assert_eq!(place.found("b").len(), 2);
    // The archive's index is its last member.
    let file = fs::File::open(place.path("one.tar")).unwrap();
    let mut load = place.command(&place.tools.boxlaunch, "c", &["load", "-"]);
    let errors = failed(&load.stdin(file).output().unwrap());
    assert!(
        errors.contains("cannot be read as a stream") && errors.contains("write it to a file"),
        "{errors}"
    );
}

/// Copies a box from a registry into a file, as for an air-gapped host.
#[test]
fn what_skopeo_copies_from_a_registry_is_loaded() {
    let (pushed, place) = (Pushed::open(), Scene::new());
    let files = named("one", 1, 64);
    let opened = OpenBox::open(files.path()).unwrap();
    let repository = Repository::new(&pushed.registry.host(), "team/box").unwrap();
    let tag = Tag::new("v1").unwrap();
    let scratch = pushed.dir.path();
    let to =
        Destination { repository: &repository, tag: &tag, mount_from: None, reuse: true, scratch };
    push(&Registry::new(pushed.options()), &opened, &to).unwrap();
    let from = format!("docker://{}/team/box:v1", pushed.registry.host());
    let to = format!("oci-archive:{}:hello", place.path("hello.tar").display());
    skopeo(&["copy", "--src-tls-verify=false", "--preserve-digests", &from, &to]);
    let (result, _) = printed(&place.boxlaunch("a", &["load", "hello.tar"]));
    assert_eq!(result.trim(), opened.digest.to_string());
    assert_eq!(place.found("a"), [(opened.digest, Some("hello".to_owned()))]);
}

#[test]
fn ocipkg_reads_what_is_saved_and_writes_what_is_loaded() {
    let place = Scene::new();
    let files = named("one", 1, 8);
    let path = files.path().to_str().unwrap();
    printed(&place.boxbuild("a", &["save", path, "-o", "one.tar"]));
    let mut archive = OciArchive::new(&place.path("one.tar")).unwrap();
    let manifest = archive.get_manifest().unwrap();
    let own = files.manifest();
    assert_eq!(manifest.layers().len(), own.layers.len());
    let mut other = OciArchiveBuilder::new_unnamed(place.path("other.tar")).unwrap();
    for named in [manifest.config()].into_iter().chain(manifest.layers()) {
        let bytes = archive.get_blob(named.digest()).unwrap();
        let digest: Digest = named.digest().to_string().parse().unwrap();
        assert!(bytes == fs::read(files.blob_path(&digest)).unwrap(), "{digest}");
        other.add_blob(&bytes).unwrap();
    }
    // ocipkg serializes the manifest again, and writes the index last.
    drop(other.build(manifest).unwrap());
    printed(&place.boxlaunch("b", &["load", "other.tar"]));
    let found = place.found("b");
    let boxes = StoredBoxes::open(&place.path("b")).unwrap();
    let places = Places::new(boxes.directory(&found[0].0), Some(&boxes.blobs()));
    let loaded = OpenBox::open(places).unwrap();
    assert!(loaded.manifest == own && found.len() == 1);
}

/// Returns how many loads and how many saves to kill: 24 each, or `BOXBUILD_KILLS` for a soak.
fn kills() -> u32 {
    std::env::var("BOXBUILD_KILLS").map_or(24, |it| it.parse().unwrap())
}

/// Runs a command, and kills it after `time`. Returns whether the kill ended it.
fn killed_after(mut command: Command, time: Duration) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    sleep(time);
    child.kill().unwrap();
    child.wait().unwrap().code().is_none()
}

/// Makes two boxes of 24 MiB that share no large blob.
fn large() -> [TestBox; 2] {
    [named("one", 1, 6000), named("two", 2, 6000)]
}

#[test]
fn a_killed_load_leaves_nothing_half_and_the_next_goes_on() {
    let place = Scene::new();
    let boxes = large();
    let paths = [&boxes[0], &boxes[1]].map(|it| it.path().to_str().unwrap());
    printed(&place.boxbuild("a", &["save", paths[0], paths[1], "-o", "boxes.tar"]));
    for input in ["boxes.tar", "-"] {
        let load = |store: &str| {
            let mut load = place.command(&place.tools.boxlaunch, store, &["load", input]);
            load.stdin(fs::File::open(place.path("boxes.tar")).unwrap());
            load
        };
        let started = Instant::now();
        printed(&load("whole").output().unwrap());
        let length = started.elapsed();
        fs::remove_dir_all(place.path("whole")).unwrap();
        let (mut hits, mut rounds, mut kept) = (0, 0, 0);
        while hits < kills() {
            let part = f64::from(rounds % 40) / 40.0;
            hits += u32::from(killed_after(load("b"), length.mul_f64(part)));
            rounds += 1;
            let found = place.found("b");
            assert!(found.len() <= 2);
            assert_eq!(
                fs::read_dir(place.path("b/tmp")).unwrap().count(),
                0,
                "after it was opened"
            );
            kept += fs::read_dir(place.path("b/blobs")).unwrap().count();
            if found.len() == 2 {
                fs::remove_dir_all(place.path("b")).unwrap();
            }
            assert!(rounds < 40 * kills(), "{hits} of {rounds} were killed before their end");
        }
        assert!(kept > 0, "no killed load left any blob for the next one");
        printed(&load("b").output().unwrap());
        assert_eq!(place.found("b").len(), 2);
        fs::remove_dir_all(place.path("b")).unwrap();
    }
}

#[test]
fn a_killed_save_leaves_no_file() {
    let place = Scene::new();
    let boxes = large();
    let paths = [&boxes[0], &boxes[1]].map(|it| it.path().to_str().unwrap());
    for output in ["boxes.tar", "boxes"] {
        fs::create_dir(place.path("to")).unwrap();
        let to = format!("to/{output}");
        let save = || {
            let args = ["save", paths[0], paths[1], "-o", &to];
            place.command(&place.tools.boxlaunch, "a", &args)
        };
        let remove = || match output {
            "boxes" => fs::remove_dir_all(place.path(&to)).unwrap(),
            _ => fs::remove_file(place.path(&to)).unwrap(),
        };
        let started = Instant::now();
        printed(&save().output().unwrap());
        let length = started.elapsed();
        remove();
        let (mut hits, mut rounds) = (0, 0);
        while hits < kills() {
            let part = f64::from(rounds % 40) / 40.0;
            let hit = killed_after(save(), length.mul_f64(part));
            (hits, rounds) = (hits + u32::from(hit), rounds + 1);
            if place.path(&to).exists() {
                // The save was killed after it had renamed its output, or not at all.
                assert_eq!(
                    box_archive::Archive::open(&place.path(&to)).unwrap().boxes().unwrap().len(),
                    2
                );
                printed(&place.boxlaunch("b", &["load", &to]));
                remove();
            }
            assert!(rounds < 40 * kills(), "{hits} of {rounds} were killed before their end");
        }
        // The next save removes the temporary files of the killed saves.
        printed(&save().output().unwrap());
        assert_eq!(fs::read_dir(place.path("to")).unwrap().count(), 1);
        fs::remove_dir_all(place.path("to")).unwrap();
    }
}

/// Runs a script in a new mount namespace with a tmpfs of `mebibytes` MiB at `disk`.
fn on_a_small_disk(place: &Scene, mebibytes: u32, script: &str) -> Output {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let namespaces = if is_root { &["--mount"][..] } else { &["--mount", "--map-root-user"] };
    fs::create_dir_all(place.path("disk")).unwrap();
    let script = format!("mount -t tmpfs -o size={mebibytes}m,mode=0700 none disk && {script}");
    let mut command = Command::new("unshare");
    command.args(namespaces).args(["sh", "-c", &script]).current_dir(place.dir.path());
    command.env("BOXBUILD_STORE", place.path("disk/store")).env("L", &place.tools.boxlaunch);
    command.output().unwrap()
}

#[test]
fn a_full_disk_is_an_error_before_anything_is_written_and_while_it_is() {
    let place = Scene::new();
    let boxes = large();
    let path = boxes[0].path().to_str().unwrap();
    printed(&place.boxbuild("a", &["save", path, "-o", "one.tar"]));
    let full = on_a_small_disk(
        &place,
        8,
        "$L load one.tar; echo $?; ls disk/store/blobs disk/store/boxes",
    );
    let errors = String::from_utf8_lossy(&full.stderr).into_owned();
    assert!(errors.contains(" has room for "), "{errors}");
    assert!(errors.contains("= help: free some space there"), "{errors}");
    let listed = String::from_utf8_lossy(&full.stdout).into_owned();
    assert_eq!(listed, "1\ndisk/store/blobs:\n\ndisk/store/boxes:\n");
    // Another process fills the disk during the load, after the load has checked the free space.
    let racing = "mkfifo pipe; $L load - <pipe & (head -c 2000000 one.tar; sleep 1; \
                  head -c 20000000 /dev/zero >disk/other; tail -c +2000001 one.tar) >pipe; wait $!; echo $?; \
                  ls disk/store/boxes disk/store/tmp; rm disk/other; $L load -q one.tar";
    let raced = on_a_small_disk(&place, 40, racing);
    let errors = String::from_utf8_lossy(&raced.stderr).into_owned();
    assert!(errors.contains("no space left in the store"), "{errors}");
    let listed = String::from_utf8_lossy(&raced.stdout).into_owned();
    let digest = digest_of(&boxes[0]);
    assert_eq!(listed, format!("1\ndisk/store/boxes:\n\ndisk/store/tmp:\n{digest}\n"), "{errors}");
    let to = |output: &str| format!("$L save {path} -o disk/{output}; echo $?; ls -A disk");
    for output in ["one.tar", "one"] {
        let full = on_a_small_disk(&place, 8, &to(output));
        let errors = String::from_utf8_lossy(&full.stderr).into_owned();
        assert!(errors.contains(&format!("cannot write disk/{output}")), "{errors}");
        assert_eq!(String::from_utf8_lossy(&full.stdout), "1\n", "{errors}");
    }
}

/// Runs a command to its end, and returns its peak memory in KiB and its output.
fn peak_of(mut command: Command) -> (u64, Output) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|it| it.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(kibibytes.unwrap_or_default());
        sleep(Duration::from_millis(1));
    }
    (peak, child.wait_with_output().unwrap())
}

/// The blobs of an archive. [`Self::write`] puts `oci-layout` and `index.json` before them.
#[derive(Default)]
struct Made(Vec<(String, Vec<u8>)>);

impl Made {
    fn blob(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let (digest, size) = (Digest::of(&bytes), bytes.len());
        self.0.push((box_contract::manifest::blob_name(&digest), bytes));
        json!({ "mediaType": media_type, "digest": digest, "size": size })
    }

    fn write(mut self, to: &Path, manifests: &[Value]) {
        let index = json!({ "schemaVersion": 2, "manifests": manifests });
        self.0.insert(0, ("index.json".to_owned(), serde_json::to_vec(&index).unwrap()));
        self.0.insert(0, ("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()));
        let mut archive = tar::Builder::new(fs::File::create(to).unwrap());
        for (name, bytes) in self.0 {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o444);
            archive.append_data(&mut header, name, &*bytes).unwrap();
        }
        archive.finish().unwrap();
    }
}

/// Loads archives that could make a reader use much memory or time.
#[test]
fn a_hostile_file_takes_little_memory() {
    let place = Scene::new();
    let named =
        |digest: Digest, size: u64| json!({ "mediaType": "x", "digest": digest, "size": size });
    let config = named(Digest::of(b"config!"), 7);
    let manifest = |layers: Vec<Value>, number: u32, config: &Value| {
        json!({ "schemaVersion": 2, "mediaType": OCI_MANIFEST_TYPE, "artifactType": ARTIFACT_TYPE,
                "config": config, "layers": layers, "annotations": { "n": number.to_string() } })
    };
    let mut own = config.clone();
    own["mediaType"] = CONFIG_TYPE.into();
    // Fifteen manifests of almost 1 MiB, whose blobs do not exist.
    let mut many = Made::default();
    let manifests: Vec<_> = (0..15_u32)
        .map(|number| {
            let digest = |at: u32| Digest::of(&[number.to_le_bytes(), at.to_le_bytes()].concat());
            let layers = (0..8000).map(|at| named(digest(at), 1)).collect();
            let bytes = serde_json::to_vec(&manifest(layers, number, &own)).unwrap();
            assert!(bytes.len() < 1 << 20);
            many.blob(OCI_MANIFEST_TYPE, bytes)
        })
        .collect();
    many.write(&place.path("many.tar"), &manifests);
    // About as many members as an archive may have.
    let mut members = Made::default();
    (0..65_530).for_each(|at| members.0.push((format!("blobs/sha256/{at:064}"), Vec::new())));
    members.write(&place.path("members.tar"), &manifests[..1]);
    // A zstd frame of 1 GiB of zeros instead of a kernel.
    let mut bomb = Made::default();
    let zeros = io::Read::take(io::repeat(0), 1 << 30);
    let frame =
        bomb.blob(&format!("{KERNEL_TYPE}+zstd"), zstd::stream::encode_all(zeros, 3).unwrap());
    let kernel =
        json!({ "mediaType": KERNEL_TYPE, "digest": Digest::of(b"kernel"), "size": 60 << 20 });
    let inner = manifest(vec![kernel], 0, &own);
    let inner = bomb.blob(BOX_MANIFEST_TYPE, serde_json::to_vec(&inner).unwrap());
    let annotated = |mut layer: Value, digest: Digest, size: u64| {
        layer["annotations"] = json!({ PLAIN_DIGEST: digest, PLAIN_SIZE: size.to_string() });
        layer
    };
    let small = bomb.blob(CONFIG_TYPE, b"config!".to_vec());
    let layers = vec![
        annotated(small, Digest::of(b"config!"), 7),
        annotated(frame, Digest::of(b"kernel"), 60 << 20),
    ];
    let outer =
        bomb.blob(OCI_MANIFEST_TYPE, serde_json::to_vec(&manifest(layers, 0, &inner)).unwrap());
    bomb.write(&place.path("bomb.tar"), &[outer]);
    // The beginning of an archive, followed by 1 GiB of zeros that belong to no member.
    let mut large = fs::read(place.path("members.tar")).unwrap();
    large.truncate(1536 + 4096);
    let endless = io::Read::chain(io::Cursor::new(large), io::Read::take(io::repeat(0), 1 << 30));
    let endless = zstd::stream::encode_all(endless, 3).unwrap();
    fs::write(place.path("endless.tar.zst"), endless).unwrap();
    for name in ["many.tar", "members.tar", "bomb.tar", "endless.tar.zst"] {
        for input in [name, "-"] {
            let mut load = place.command(&place.tools.boxlaunch, "store", &["load", input]);
            load.stdin(fs::File::open(place.path(name)).unwrap());
            let started = Instant::now();
            let (peak, output) = peak_of(load);
            let errors = failed(&output);
            println!("{name} {input}: {peak} KiB, {:?}: {}", started.elapsed(), errors.trim());
            HOSTILE_MEMORY.check(peak as f64 / 1024.0);
            assert_eq!(place.found("store"), []);
        }
    }
}

/// Saves three boxes that share a large segment, and differ in their config and in one small segment.
#[test]
fn three_boxes_on_one_base_take_little_more_than_one() {
    let place = Scene::new();
    let make = |name: &str, own: u8| {
        let mut config = config();
        config.plan.name = name.to_owned();
        TestBox::with_segments(&config, vec![segment(200, 8000), segment(own, 64)])
    };
    let boxes = [make("one", 1), make("two", 2), make("three", 3)];
    assert_eq!(
        boxes[0].blobs(SEGMENT_TYPE)[0].file_name(),
        boxes[1].blobs(SEGMENT_TYPE)[0].file_name()
    );
    let paths = [0, 1, 2].map(|at| boxes[at].path().to_str().unwrap());
    printed(&place.boxbuild("a", &["save", paths[0], "-o", "one.tar"]));
    printed(&place.boxbuild("a", &["save", paths[0], paths[1], paths[2], "-o", "three.tar"]));
    let size = |name: &str| fs::metadata(place.path(name)).unwrap().len() as f64;
    let grown = size("three.tar") / size("one.tar");
    println!("three boxes take {grown:.3} times one");
    assert!(grown <= 1.1, "{grown}");
}

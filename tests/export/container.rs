//! Tests of the image that boots a box: its files, its config, its layers, and the programs that it refuses.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use box_contract::{Index, Manifest};
use box_digest::Digest;
use box_inspect::export::OciImage;
use box_inspect::export::container::{Launcher, MAX_LAYERS};
use box_layout::{Documents, OpenBox};
use serde_json::{Value, json};
use testbed::prerequisites::Package;
use testbed::program::run;
use testkit::TestBox;
use testkit::test_box::{config, segment};

use crate::command::{export, exported, stderr_text};
use crate::judges::{need, skopeo};
use crate::made::Made;
use crate::specimens::{Specimen, large, small};

/// The words that export a box as a container. The program is the small one that the box has as its init.
const CONTAINER: [&str; 5] = ["made.box", "--format", "container", "--launcher", "program"];

/// Exports the box into the directory or the archive `output`.
fn write(made: &Made, output: &str) -> String {
    exported(&made.path(""), &[&CONTAINER[..], &["-o", output]].concat())
}

fn json_at(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns the manifest of an image layout.
fn manifest(layout: &Path) -> Value {
    let index = json_at(&layout.join("index.json"));
    json_at(&blob(layout, &index["manifests"][0]))
}

/// Returns the path of a blob of an image layout.
fn blob(layout: &Path, descriptor: &Value) -> PathBuf {
    let digest: Digest = descriptor["digest"].as_str().unwrap().parse().unwrap();
    layout.join("blobs/sha256").join(digest.hex())
}

/// Returns the digests of the layers of an image layout.
fn layers(layout: &Path) -> Vec<String> {
    let layers = manifest(layout)["layers"].as_array().unwrap().clone();
    layers.iter().map(|it| it["digest"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn umoci_unpacks_the_program_and_a_whole_box() {
    need(Package::Umoci);
    let made = Made::of(&large());
    write(&made, "layout");
    let image = format!("{}:latest", made.path("layout").display());
    let bundle = made.path("bundle");
    run(std::process::Command::new("umoci").args(["unpack", "--image", &image]).arg(&bundle))
        .unwrap();
    let root = bundle.join("rootfs");
    let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(
        fs::read(root.join("usr/bin/boxlaunch")).unwrap(),
        fs::read(made.path("program")).unwrap()
    );
    assert_eq!(mode("usr/bin/boxlaunch"), 0o555);
    for directory in ["tmp", "run/boxlaunch", "var/lib/boxlaunch"] {
        assert_eq!(mode(directory), 0o1777, "{directory}");
    }
    let (opened, unpacked) = (made.opened(), OpenBox::open(&root.join("box")).unwrap());
    assert_eq!(unpacked.digest, opened.digest);
    for blob in opened.manifest.blobs() {
        let blob = unpacked.open_blob(blob).unwrap();
        blob.verify().unwrap();
        assert_eq!(blob.file.metadata().unwrap().permissions().mode() & 0o7777, 0o444);
    }
    let files = fs::read_dir(root.join("box/blobs/sha256")).unwrap().count();
    assert_eq!(files, opened.manifest.blobs().len() + 1, "the blobs and the manifest");
}

#[test]
fn skopeo_reads_how_the_box_starts() {
    need(Package::Skopeo);
    let mut specimen = small();
    specimen.boxfile = "box \"small\"\nagent {\n    image \"oci:agent\"\n    env \"API_URL\"\n    env \"HOME\" \"/srv\" launch=#true\n}\n";
    let made = Made::of(&specimen);
    let digest = made.opened().digest.to_string();
    write(&made, "image.tar");
    let archive = format!("oci-archive:{}", made.path("image.tar").display());
    let mut found: Value =
        serde_json::from_slice(&skopeo(&["inspect", "--config", "--raw", &archive])).unwrap();
    let layers = found["rootfs"].as_object_mut().unwrap().remove("diff_ids").unwrap();
    assert_eq!(layers.as_array().unwrap().len(), 3);
    let text = serde_json::to_string_pretty(&found).unwrap().replace(&digest, "BOX");
    insta::assert_snapshot!(text);
}

/// Fails if the page names another command line, user, probe or limit than the image has.
#[test]
fn the_page_describes_the_image() {
    let page = include_str!("../../docs/containers.md");
    let made = Made::of(&small());
    write(&made, "layout");
    let layout = made.path("layout");
    let config = &json_at(&blob(&layout, &manifest(&layout)["config"]))["config"];
    let words = |list: &Value| {
        let words: Vec<_> =
            list.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        words.join(" ")
    };
    let entrypoint = words(&config["Entrypoint"]);
    let start = entrypoint.strip_prefix("/usr/bin/").unwrap().split(" --publish ").next().unwrap();
    assert!(page.contains(&format!("| command | `{start} … /box`.")), "{start}");
    assert!(
        page.contains("`--publish 0.0.0.0:4088:4088`") && entrypoint.contains("0.0.0.0:4088:4088")
    );
    assert_eq!(config["User"], "65532:65532");
    assert!(page.contains("| user | 65532, group 65532."));
    let probe = words(&config["Healthcheck"]["Test"]).replace("CMD ", "").replace(' ', ", ");
    assert!(page.contains(&format!("command: [{probe}]")), "{probe}");
    assert!(
        page.contains(&format!("at most {MAX_LAYERS} layers"))
            && page.contains("From the 97th segment on")
    );
    assert!(
        page.contains("`vnd.boxbuild.box.digest`")
            && config["Labels"]["vnd.boxbuild.box.digest"].is_string()
    );
}

/// `docker load` without a containerd image store reads the same files.
#[test]
fn skopeo_reads_the_archive_as_docker_does() {
    need(Package::Skopeo);
    let made = Made::of(&large());
    write(&made, "image.tar");
    write(&made, "layout");
    let source = format!("docker-archive:{}:large:latest", made.path("image.tar").display());
    let target = format!("oci:{}:latest", made.path("copy").display());
    skopeo(&["copy", "--quiet", &source, &target]);
    let config = |name: &str| {
        let layout = made.path(name);
        json_at(&blob(&layout, &manifest(&layout)["config"]))
    };
    let [copied, original] = ["copy", "layout"].map(config);
    assert_eq!(copied["rootfs"], original["rootfs"]);
    assert_eq!(copied["config"]["Entrypoint"], original["config"]["Entrypoint"]);
}

#[test]
fn the_same_box_gives_the_same_bytes() {
    let made = Made::of(&large());
    let first = write(&made, "one.tar");
    assert_eq!(write(&made, "two.tar"), first);
    assert!(fs::read(made.path("one.tar")).unwrap() == fs::read(made.path("two.tar")).unwrap());
    assert_eq!(write(&made, "layout"), first);
    let index: Index = serde_json::from_value(json_at(&made.path("layout/index.json"))).unwrap();
    assert_eq!(first.trim_end(), index.manifests[0].digest.to_string());
    for entry in fs::read_dir(made.path("layout/blobs/sha256")).unwrap() {
        let entry = entry.unwrap();
        let digest = Digest::of(&fs::read(entry.path()).unwrap());
        assert_eq!(entry.file_name().to_str().unwrap(), digest.hex());
    }
    let report = exported(&made.path(""), &[&CONTAINER[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["format"], &report["output"]),
        (&json!("container"), &json!("made.container"))
    );
    assert_eq!(report["digest"], first.trim_end());
}

/// Fails if a layer has anything of another layer's content, so that a registry could not share it.
#[test]
fn two_boxes_share_the_layers_of_what_they_share() {
    let boxes = ["one", "two"].map(|greeting| {
        let boxfile = format!(
            "box \"large\"\nagent {{ image \"oci:agent\"; env GREETING=\"{greeting}\"; }}\n"
        );
        let made = Made::of(&Specimen { boxfile: boxfile.leak(), ..large() });
        write(&made, "layout");
        made
    });
    let [one, two] = boxes.each_ref().map(|it| layers(&it.path("layout")));
    assert_eq!(one.len(), 4, "the program, the kernel and the init, a segment, and the rest");
    assert_eq!(one[..3], two[..3]);
    assert_ne!(one[3], two[3]);
}

#[test]
fn a_box_with_the_most_segments_has_no_more_layers_than_docker_takes() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    fs::write(&program, testkit::small_init::bytes()).unwrap();
    let launcher = Launcher::new(&program, File::open(&program).unwrap()).unwrap();
    for (count, expected) in [(0, 3), (1, 4), (96, 99), (97, MAX_LAYERS), (254, MAX_LAYERS)] {
        // The segments with small numbers are the smallest ones.
        let segments = (0..count).map(|it| segment(it, if it < 10 { 1 } else { 2 })).collect();
        let made = TestBox::with_segments(&config(), segments);
        let opened = Documents::read(made.path()).unwrap();
        let image = OciImage::container(&opened, &launcher).unwrap();
        let layout = directory.path().join(count.to_string());
        image.write_directory(&layout).unwrap();
        let found = manifest(&layout)["layers"].as_array().unwrap().clone();
        assert_eq!(found.len(), expected, "{count} segments");
        let sizes: Vec<_> = found.iter().map(|it| it["size"].as_u64().unwrap()).collect();
        // Only small segments share a layer.
        assert!(count < 254 || sizes[2..98].iter().all(|it| *it > 2 * 4096), "{sizes:?}");
    }
}

#[test]
fn programs_that_cannot_start_in_the_image_are_refused() {
    let made = Made::of(&small());
    let mut other = testkit::small_init::bytes();
    other[18] = 183; // EM_AARCH64
    fs::write(made.path("other"), other).unwrap();
    fs::write(made.path("text"), "boxlaunch").unwrap();
    let before = made.names();
    let message = |launcher: &str| {
        let output = export(&made.path(""), &[&CONTAINER[..4], &[launcher]].concat());
        assert_eq!((output.stdout.as_slice(), made.names()), (&b""[..], before.clone()));
        format!("{}: {}", output.status.code().unwrap(), stderr_text(&output))
    };
    insta::assert_snapshot!(message("/bin/sh"));
    insta::assert_snapshot!(message("other"));
    insta::assert_snapshot!(message("text"));
    insta::assert_snapshot!(message("nothing"));
    insta::assert_snapshot!(message("."));
}

#[test]
fn options_of_other_forms_are_refused() {
    let made = Made::of(&small());
    let message = |args: &[&str]| {
        let output = export(&made.path(""), &[&["made.box"], args].concat());
        format!("{}: {}", output.status.code().unwrap(), stderr_text(&output))
    };
    let container = ["--format", "container", "--launcher", "program"];
    insta::assert_snapshot!(message(&[&container[..], &["--component", "agent"]].concat()));
    insta::assert_snapshot!(message(&[&container[..], &["-o", "made.tar.gz"]].concat()));
    insta::assert_snapshot!(message(&["--format", "tar", "--launcher", "program"]));
}

#[test]
fn a_damaged_box_gives_no_image() {
    let made = Made::of(&large());
    let manifest: Manifest = made.opened().manifest.clone();
    let damaged = &manifest.layers[1];
    let path = made.bundle().join("blobs/sha256").join(damaged.digest.hex());
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096] ^= 1;
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    let before = made.names();
    for output in ["image.tar", "image"] {
        let output = export(&made.path(""), &[&CONTAINER[..], &["-o", output]].concat());
        let text = stderr_text(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(&damaged.digest.to_string()), "{text}");
    }
    assert_eq!(made.names(), before);
}

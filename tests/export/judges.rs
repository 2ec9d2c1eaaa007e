//! Tests that other projects' programs read exports and get the box's tree.
//!
//! No test runs a container: podman and docker need more of a host than tests can rely on. umoci and skopeo read images as
//! podman and docker do.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use box_contract::ComponentName;
use box_inspect::export::{OciImage, file};
use serde_json::{Value, json};
use testbed::prerequisites::{Package, packages};
use testbed::program::run;

use crate::made::Made;
use crate::readers::{assert_same, of_directory, of_tar};
use crate::specimens::{large, small};

pub(crate) fn need(package: Package) {
    packages(&[package], &mut |line| println!("{line}")).unwrap();
}

/// Extracts the archives of both boxes with a program, and compares the trees. Before that, `mend` corrects the program's known
/// faults in the directory.
fn extracted_with(program: &[&str], mend: fn(&Path)) {
    for specimen in [small(), large()] {
        let made = Made::of(&specimen);
        let (archive, directory) = (made.path("box.tar"), made.path("directory"));
        let export = made.whole();
        file(&archive, |out| export.tar(out)).unwrap();
        fs::create_dir(&directory).unwrap();
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg("-f").arg(&archive).arg("-C").arg(&directory);
        run(&mut command).unwrap();
        mend(&directory);
        assert_same(&of_directory(&directory), export.tree());
    }
}

#[test]
fn gnu_tar_extracts_the_archive() {
    let all = ["--extract", "--preserve-permissions", "--same-owner", "--numeric-owner"];
    let xattrs = ["--xattrs", "--xattrs-include=*"];
    extracted_with(&[["tar"].as_slice(), &all, &xattrs].concat(), |_| ());
}

#[test]
fn bsdtar_extracts_the_archive() {
    need(Package::Bsdtar);
    extracted_with(&["bsdtar", "-xp", "--numeric-owner"], |directory| {
        // bsdtar does not set the time of a directory that exists before, and reads `-1.25` as -1 + 0.25 seconds.
        File::open(directory).unwrap().set_modified(UNIX_EPOCH).unwrap();
        let before_1970 = UNIX_EPOCH - Duration::from_millis(1250);
        if let Ok(file) = File::open(directory.join("roots/agent/srv/before-1970")) {
            file.set_modified(before_1970).unwrap();
        }
    });
}

#[test]
fn fsck_finds_nothing_wrong_with_the_image() {
    need(Package::Erofs);
    let made = Made::of(&large());
    let image = made.path("box.erofs");
    file(&image, |out| box_inspect::export::copy_rootfs(&made.opened(), out)).unwrap();
    let extract = format!("--extract={}", made.path("directory").display());
    run(Command::new("fsck.erofs").arg(extract).arg("--preserve").arg(&image)).unwrap();
    let names = crate::made::names(&made.path("directory/roots/agent"));
    assert_eq!(names, ["bin", "data", "deeper", "hard", "links", "names", "sizes"]);
}

/// Exports a component as an OCI image, in a directory and in an archive.
fn images(made: &Made, name: ComponentName) {
    let export = made.component(name);
    let image = OciImage::of(&export).unwrap();
    image.write_directory(&made.path("layout")).unwrap();
    file(&made.path("image.tar"), |out| image.write_archive(out)).unwrap();
}

#[test]
fn umoci_unpacks_the_image() {
    need(Package::Umoci);
    for specimen in [small(), large()] {
        let made = Made::of(&specimen);
        images(&made, ComponentName::Agent);
        let image = format!("{}:latest", made.path("layout").display());
        let bundle = made.path("bundle");
        run(Command::new("umoci").args(["unpack", "--image", &image]).arg(&bundle)).unwrap();
        let export = made.component(ComponentName::Agent);
        assert_same(&of_directory(&bundle.join("rootfs")), export.tree());
    }
}

pub(crate) fn skopeo(args: &[&str]) -> Vec<u8> {
    let mut command = Command::new("skopeo");
    run(command.args(["--insecure-policy", "--tmpdir", "/tmp"]).args(args)).unwrap()
}

fn inspected(image: &str) -> Value {
    serde_json::from_slice(&skopeo(&["inspect", "--config", image])).unwrap()
}

#[test]
fn skopeo_reads_how_the_component_runs() {
    need(Package::Skopeo);
    let made = Made::of(&small());
    images(&made, ComponentName::Agent);
    let layout = format!("oci:{}:latest", made.path("layout").display());
    let archive = format!("oci-archive:{}", made.path("image.tar").display());
    let config = inspected(&layout);
    assert_eq!(config["config"]["Entrypoint"], json!(["/bin/agent", "--serve"]));
    assert_eq!(config["config"]["WorkingDir"], "/srv");
    assert_eq!(config["config"]["User"], "1000:2000");
    assert_eq!(config["config"]["ExposedPorts"], json!({ "4088/tcp": {} }));
    let env = config["config"]["Env"].as_array().unwrap();
    assert!(env.contains(&json!("GREETING=hello world")), "{env:?}");
    assert_eq!(config["architecture"], "amd64");
    assert_eq!(config["os"], "linux");
    assert_eq!(inspected(&archive), config);
}

#[test]
fn skopeo_copies_the_image_to_where_docker_loads_it_from() {
    need(Package::Skopeo);
    let made = Made::of(&small());
    images(&made, ComponentName::Agent);
    for source in ["oci:layout", "oci-archive:image.tar"] {
        let (kind, name) = source.split_once(':').unwrap();
        let source = format!("{kind}:{}", made.path(name).display());
        let target = made.path(&format!("{name}.docker"));
        let copy = format!("docker-archive:{}:greet:latest", target.display());
        skopeo(&["copy", "--quiet", &source, &copy]);
        let export = made.component(ComponentName::Agent);
        assert_same(&of_tar(&docker_layer(&target)), export.tree());
    }
}

/// Returns the only layer of an archive in the format of `docker save`.
fn docker_layer(archive: &Path) -> Vec<u8> {
    let member = |name: &str| {
        let mut tar = Command::new("tar");
        run(tar.args(["--extract", "--to-stdout", "--file"]).arg(archive).arg(name)).unwrap()
    };
    let manifest: Value = serde_json::from_slice(&member("manifest.json")).unwrap();
    let layers = manifest[0]["Layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    member(layers[0].as_str().unwrap())
}

//! `build --image` and `init` with images in a real registry, and `boxlaunch run --image`.

use std::fs;
use std::process::Command;

use testbed::{Artefacts, Workspace};
use testkit::images::{Config, Image, Layer};

use crate::checkout::{Ran, shown};
use crate::registry::Scene;

/// An image as most base images: with a shell and `sleep`, and without a port.
fn base(version: &str) -> Image {
    let layer = Layer::new().file("/bin/sleep", 0o755, "sleep").file("/bin/sh", 0o755, version);
    let config = Config {
        cmd: vec!["sh".to_owned()],
        env: vec!["PATH=/bin".to_owned()],
        ..Config::default()
    };
    Image::new(config).with(layer.to_tar())
}

/// A scene whose registry has the image `team/base:3.12`, and whose checkout has no Boxfile.
fn scene() -> Scene {
    let scene = Scene::new();
    fs::remove_file(scene.checkout.path("Boxfile")).unwrap();
    push(&scene, "1");
    scene
}

fn push(scene: &Scene, version: &str) {
    scene.checkout.image("base", &base(version));
    let layout = scene.checkout.path("images/base");
    scene.registry.push(&layout, "latest", "team/base:3.12").unwrap();
}

fn reference(scene: &Scene) -> String {
    format!("{}/team/base:3.12", scene.registry.host())
}

/// Returns the name of the box in the store.
fn name(scene: &Scene) -> String {
    format!("{}-team-base-3-12", scene.registry.host().replace(['.', ':'], "-"))
}

#[test]
fn a_box_of_an_image_needs_no_boxfile_and_the_tag_is_asked_for_once() {
    let scene = scene();
    let image = reference(&scene);
    let build = |more: &[&str]| {
        let ran = scene.run(&[&["build", "--image", &image, "--json"], more].concat());
        assert_eq!(ran.code, 0, "{}{}", ran.notes, ran.result);
        ran.json()
    };
    let first = build(&[]);
    assert_eq!(first["stored_as"], *name(&scene));
    assert!(first["output"].is_null() && first["lock"].is_null(), "{first}");
    let files = || fs::read_dir(scene.checkout.root()).unwrap().count();
    let before = files();
    push(&scene, "2");
    assert_eq!(build(&[])["box"], first["box"], "the same image as before");
    let pulled = build(&["--pull"]);
    assert_ne!(pulled["box"], first["box"], "the image that the tag names now");
    assert_eq!(build(&[])["box"], pulled["box"]);
    assert_eq!(build(&["-o", "whole"])["stored_as"], serde_json::Value::Null);
    assert_eq!(files(), before + 1, "only --output writes files");
    let ran = scene.run(&["build", "--image", &image, "--locked"]);
    assert_eq!(ran.code, 2, "{}", ran.notes);
    let Scene { checkout, registry } = scene;
    drop(registry);
    let config = checkout.path("registries.toml");
    for more in [&[][..], &["--offline"]] {
        let mut command = checkout.boxbuild(&[&["build", "--image", &image], more].concat());
        let ran = Ran::of(command.env("BOXBUILD_REGISTRIES", &config));
        assert_eq!((ran.code, ran.result.trim()), (0, pulled["box"].as_str().unwrap()));
    }
}

#[test]
fn an_image_without_sleep_is_refused_with_the_way_to_a_boxfile() {
    let scene = scene();
    let image = format!("{}/team/agent:v1", scene.registry.host());
    let ran = scene.run(&["build", "--image", &image]);
    assert_eq!(ran.code, 1, "{}", ran.notes);
    let notes: Vec<_> = ran.notes.lines().filter(|it| !it.starts_with("fetch")).collect();
    insta::assert_snapshot!(shown(&notes.join("\n").replace(&scene.registry.host(), "HOST")), @"
    error: the image docker://HOST/team/agent:v1 has no `sleep` in its PATH, with which a box of --image waits
      = help: `boxbuild init IMAGE --entrypoint PROGRAM` begins a Boxfile for a program of the image that keeps running
    ");
}

/// Writes a Boxfile for the image, checks and builds it, and returns its text.
fn initialized(scene: &Scene, options: &[&str], file: &str) -> String {
    let ran = scene.run(&[&["init", &reference(scene), "--name", "base"], options].concat());
    assert_eq!(ran.code, 0, "{}", ran.notes);
    for command in [&["check"][..], &["fmt", "--check"], &["build"]] {
        let ran = scene.run(command);
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.notes);
    }
    let text = scene.checkout.read(file).replace(&scene.registry.host(), "HOST");
    fs::remove_file(scene.checkout.path(file)).unwrap();
    text
}

#[test]
fn init_of_a_base_image_writes_a_box_that_waits() {
    let scene = scene();
    insta::assert_snapshot!(initialized(&scene, &[], "Boxfile"), @r#"
    // `boxbuild build` builds this box; `boxlaunch run base` starts it.
    // Every declaration: docs/boxfile.md, or `boxbuild schema --reference`.
    box "base"

    // The component that is started with the box. The image runs `sh`.
    agent {
        image "HOST/team/base:3.12"
        // The image exposes no port, so the box only waits, and is ready at once:
        // `boxlaunch run base -- CMD` runs a command in it.
        // A program of the image could take the place of both lines. If it is a server, declare its `port` and `health`.
        entrypoint "sleep" "infinity"
        health "none"
        limits memory="512MiB" pids=100
    }

    // Every directory in it that has a SKILL.md.
    skills dir="skills"

    // A box that takes longer to be ready is stopped.
    budget total="5s"
    "#);
    insta::assert_snapshot!(initialized(&scene, &["--toml"], "Boxfile.toml"), @r#"
    # `boxbuild build` builds this box; `boxlaunch run base` starts it.
    # Every declaration: docs/boxfile.md, or `boxbuild schema --reference`.
    box = "base"
    # A box that takes longer to be ready is stopped.
    budget = { total = "5s" }
    # Every directory in it that has a SKILL.md.
    skills = { dir = "skills" }

    # The component that is started with the box. The image runs `sh`.
    [agent]
    image = "HOST/team/base:3.12"
    # The image exposes no port, so the box only waits, and is ready at once:
    # `boxlaunch run base -- CMD` runs a command in it.
    # A program of the image could take the place of both lines. If it is a server, declare its `port` and `health`.
    entrypoint = ["sleep", "infinity"]
    health = "none"
    limits = { memory = "512MiB", pids = 100 }
    "#);
    insta::assert_snapshot!(initialized(&scene, &["--entrypoint", "/bin/sh"], "Boxfile"), @r#"
    // `boxbuild build` builds this box; `boxlaunch run base` starts it.
    // Every declaration: docs/boxfile.md, or `boxbuild schema --reference`.
    box "base"

    // The component that is started with the box. The image runs `sh`.
    agent {
        image "HOST/team/base:3.12"
        // The program that is started.
        entrypoint "/bin/sh"
        // The box is ready at once. If the program is a server, declare its `port` and `health`.
        health "none"
        limits memory="512MiB" pids=100
    }

    // Every directory in it that has a SKILL.md.
    skills dir="skills"

    // A box that takes longer to be ready is stopped.
    budget total="5s"
    "#);
}

#[test]
fn boxlaunch_starts_the_boxbuild_beside_it() {
    let scene = scene();
    let tools = Artefacts::build(&Workspace::find()).unwrap();
    let bin = scene.checkout.path("bin");
    fs::create_dir(&bin).unwrap();
    let launch = |words: &[&str]| {
        let mut command = Command::new(bin.join("boxlaunch"));
        let of_builder = scene.command(&[]);
        let set = of_builder.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.env_clear().envs(set).env("BOXLAUNCH_STATE", scene.checkout.path("state"));
        Ran::of(command.args(words))
    };
    let run = || launch(&["run", "--image", &reference(&scene), "--", "true"]);
    fs::copy(&tools.boxlaunch, bin.join("boxlaunch")).unwrap();
    let ran = run();
    assert_eq!(ran.code, 2, "{}", ran.notes);
    insta::assert_snapshot!(ran.notes.replace(&scene.registry.host(), "HOST"), @"
    error: there is no boxbuild beside boxlaunch or in PATH
      = help: install boxbuild, which makes boxes of images; or start a box that is built: `boxlaunch pull HOST/NAME:TAG` fetches one from a registry, and `boxbuild build --image HOST/team/base:3.12` makes one on another host
    ");
    fs::copy(&tools.boxbuild, bin.join("boxbuild")).unwrap();
    // Whether the box starts depends on the host of the test.
    drop(run());
    assert_eq!(launch(&["images", "-q"]).result, name(&scene) + "\n");
    let ran = launch(&["run", "--image", "HOST/a", "--json", "--", "true"]);
    assert!(ran.result.contains("\"image-not-found\""), "{}", ran.result);
}

//! Tests of `boxbuild` with images in a real registry on the loopback device.

use std::process::Command;

use testbed::{DockerRegistry, Workspace};

use crate::boxfile;
use crate::checkout::{Checkout, Ran, agent_with, shown};

/// A checkout whose images are in a registry.
pub(crate) struct Scene {
    pub(crate) checkout: Checkout,
    pub(crate) registry: DockerRegistry,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let say = &mut |line: &str| println!("{line}");
        let registry = DockerRegistry::open(&Workspace::find(), say).unwrap();
        let scene = Self { checkout: Checkout::new(), registry };
        scene.push();
        let named = |name| format!("docker://{}/team/{name}:v1", scene.registry.host());
        scene.checkout.write("Boxfile", boxfile(&named("agent"), &named("business")));
        let config = format!("[registry.\"{}\"]\nplain-http = true\n", scene.registry.host());
        scene.checkout.write("registries.toml", config);
        scene
    }

    /// Pushes the current images of both layouts.
    fn push(&self) {
        for name in ["agent", "business"] {
            let layout = self.checkout.path(&format!("images/{name}"));
            self.registry.push(&layout, "latest", &format!("team/{name}:v1")).unwrap();
        }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.checkout.boxbuild(args);
        command.env("BOXBUILD_REGISTRIES", self.checkout.path("registries.toml"));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&mut self.command(args))
    }

    /// Runs a command, which must succeed and fetch nothing, and returns its JSON report.
    pub(crate) fn reported(&self, args: &[&str]) -> serde_json::Value {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{}{}", ran.notes, ran.result);
        assert!(!ran.notes.contains("fetch"), "{}", ran.notes);
        ran.json()
    }

    /// Runs a command, which must fail, and returns its stderr with the registry's host replaced.
    fn fails(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 1, "{}", ran.notes);
        let host = self.registry.host();
        // Drops the underlines, whose length depends on the host's.
        let lines = ran.notes.lines().filter(|line| !line.contains('^'));
        let text: Vec<_> = lines.map(|line| line.replace(&host, "HOST")).collect();
        shown(&text.join("\n"))
    }
}

#[test]
fn a_box_of_a_registry_is_built_again_without_it() {
    let scene = Scene::new();
    let local = Checkout::new();
    let expected = local.built(&[]);
    let first = scene.reported(&["build", "--json"]);
    assert_eq!((&first["tree"], &first["box"]), (&expected["tree"], &expected["box"]));
    let Scene { checkout, registry } = scene;
    let config = checkout.path("registries.toml");
    drop(registry);
    let again = |args: &[&str]| {
        let ran = Ran::of(checkout.boxbuild(args).env("BOXBUILD_REGISTRIES", &config));
        assert_eq!(ran.code, 0, "{}", ran.notes);
        assert_eq!(ran.json()["box"], expected["box"]);
    };
    again(&["build", "--json", "--locked"]);
    again(&["build", "--json", "--locked", "--offline"]);
}

/// Content of the store is found by its digest, whatever repository it came from and whoever may pull from there.
#[test]
fn who_knows_the_digest_uses_what_another_project_has_pulled() {
    let scene = Scene::new();
    let first = scene.reported(&["build", "--json"]);
    let lock = scene.checkout.read("Boxfile.lock");
    let digests = lock.lines().filter_map(|it| it.strip_prefix("digest = \"")?.strip_suffix('"'));
    let [agent, business] = digests.take(2).collect::<Vec<_>>().try_into().unwrap();
    let named = |digest| format!("docker://{}/strangers/none@{digest}", scene.registry.host());
    scene.checkout.write("Boxfile", boxfile(&named(agent), &named(business)));
    let build = |more: &[&str]| {
        drop(std::fs::remove_file(scene.checkout.path("Boxfile.lock")));
        let args = ["build", "--json", "--offline", "--output", "x.box"];
        scene.run(&[&args, more].concat())
    };
    // A store of its own keeps a project apart.
    let apart = build(&["--store", "apart"]);
    assert_eq!(apart.code, 1, "{}", apart.notes);
    let shared = build(&[]);
    assert_eq!(shared.code, 0, "{}", shared.notes);
    assert_eq!(shared.json()["tree"], first["tree"]);
}

#[test]
fn what_was_fetched_is_built_without_the_registry() {
    let scene = Scene::new();
    let fetched = scene.reported(&["fetch", "--json"]);
    assert_eq!(fetched["layers"].as_array().unwrap().len(), 3, "both share one: {fetched}");
    let again = scene.reported(&["fetch", "--json", "--locked"]);
    assert_eq!((&again["layers"], &again["written"]), (&serde_json::json!([]), &false.into()));
    let Scene { checkout, registry } = scene;
    let config = checkout.path("registries.toml");
    drop(registry);
    let mut build = checkout.boxbuild(&["build", "--locked", "--offline"]);
    let ran = Ran::of(build.env("BOXBUILD_REGISTRIES", config));
    assert_eq!(ran.code, 0, "{}", ran.notes);
}

#[test]
fn a_tag_that_moved_is_followed_by_update_only() {
    let scene = Scene::new();
    scene.reported(&["lock", "--json"]);
    let lock = scene.checkout.read("Boxfile.lock");
    scene.checkout.image("agent", &agent_with("newer"));
    scene.push();
    scene.reported(&["build", "--json", "--locked"]);
    assert_eq!(scene.checkout.read("Boxfile.lock"), lock);
    let ran = scene.run(&["update"]);
    assert_eq!(ran.code, 0, "{}", ran.notes);
    assert!(ran.result.starts_with("agent (linux/amd64): sha256:"), "{}", ran.result);
}

#[test]
fn what_needs_the_network_says_so() {
    let scene = Scene::new();
    let mut found = vec![scene.fails(&["build", "--offline"])];
    scene.reported(&["lock", "--json"]);
    found.push(scene.fails(&["build", "--offline"]));
    found.push(scene.fails(&["update", "--offline"]));
    insta::assert_snapshot!(found.join("\n"), @r#"
    error: the image of `agent` cannot be read: docker://HOST/team/agent: the tag "v1" has not been resolved yet, and the network is off (--offline)
      --> Boxfile:3:11
       |
     3 |     image "docker://HOST/team/agent:v1"
       |
       = help: run `boxbuild fetch`, or this command once without --offline

    error: the image of `business` cannot be read: docker://HOST/team/business: the tag "v1" has not been resolved yet, and the network is off (--offline)
      --> Boxfile:8:11
       |
     8 |     image "docker://HOST/team/business:v1"
       |
       = help: run `boxbuild fetch`, or this command once without --offline

    error: the image of `agent` cannot be read: docker://HOST/team/agent: sha256:DIGEST is not in the store, and the network is off (--offline)
      --> Boxfile:3:11
       |
     3 |     image "docker://HOST/team/agent:v1"
       |
       = help: run `boxbuild fetch`, or this command once without --offline

    error: the image of `agent` cannot be read: docker://HOST/team/agent: the tag "v1" has not been resolved yet, and the network is off (--offline)
      --> Boxfile:3:11
       |
     3 |     image "docker://HOST/team/agent:v1"
       |
       = help: run `boxbuild fetch`, or this command once without --offline

    error: the image of `business` cannot be read: docker://HOST/team/business: the tag "v1" has not been resolved yet, and the network is off (--offline)
      --> Boxfile:8:11
       |
     8 |     image "docker://HOST/team/business:v1"
       |
       = help: run `boxbuild fetch`, or this command once without --offline
    "#);
}

#[test]
fn init_looks_at_an_image_of_a_registry() {
    let scene = Scene::new();
    std::fs::remove_file(scene.checkout.path("Boxfile")).unwrap();
    let reference = format!("docker://{}/team/agent:v1", scene.registry.host());
    let ran = scene.run(&["init", &reference]);
    assert_eq!(ran.code, 0, "{}", ran.notes);
    assert!(scene.checkout.read("Boxfile").contains(&reference));
    std::fs::remove_file(scene.checkout.path("Boxfile")).unwrap();
    let missing = format!("docker://{}/team/agnet:v1", scene.registry.host());
    insta::assert_snapshot!(scene.fails(&["init", &missing]), @r#"error: registry HOST has no team/agnet with the tag "v1""#);
}

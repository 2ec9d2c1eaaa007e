//! Tests of `boxbuild plan` for the layout "merged".

use insta::assert_snapshot;
use testkit::images::Layer;

use crate::scene::{Scene, shown};

fn layers() -> [Layer; 2] {
    let agent = Layer::new().file("/etc/motd", 0o644, "one").file("/usr/share/doc/a", 0o644, "a");
    let business =
        Layer::new().file("/etc/motd", 0o644, "other").file("/usr/share/doc/a", 0o644, "b");
    [agent, business]
}

#[test]
fn a_plan_tells_what_merging_does_and_what_the_store_has() {
    let [agent, business] = layers();
    let scene = Scene::new(
        agent,
        business,
        "conflict \"/etc/motd\" policy=\"prefer-business\"\n\
         conflict \"/usr/share/doc/**\" policy=\"prefer-agent\"\n",
    );
    let ran = scene.run(&["plan"]);
    assert_eq!((ran.code, ran.notes.as_str()), (0, ""));
    assert_snapshot!(shown(&ran.result), @r#"
    box       one for linux/amd64
    lock      there is none; a build writes it
    store     the box is not there yet
    agent     sha256:DIGEST
              layer 1 sha256:DIGEST, 3.5 KiB, decoded now
              layer 2 sha256:DIGEST, 4.0 KiB, decoded now
    business  sha256:DIGEST
              layer 1 sha256:DIGEST, 3.5 KiB, decoded now
              layer 2 sha256:DIGEST, 3.0 KiB, decoded now
    layout    merged: both images are one root
    entries   2 from the agent's image, 0 from the business image, 8 the same in both
    policy    "/etc/motd" prefer-business: 1 path
    policy    "/usr/share/doc/**" prefer-agent: 1 path
    conflicts none left
    rootfs    49 entries, blake3:DIGEST
    may do    network        none: nothing
              agent user     0:0, root of the box
              agent port     4088, offered to the host
              business user  0:0, root of the box
              vm             2 CPUs, 1792 MiB of memory
    "#);
    assert!(!scene.path("one.box").exists() && !scene.path("Boxfile.lock").exists());
    let built = scene.builds().json();
    assert_eq!(built["cached"], false, "a plan makes no box");
    let plan = scene.run(&["plan"]).result;
    let output = |what: &str| plan.lines().filter(|line| line.contains(what)).count();
    assert_eq!((output("cached"), output("up to date"), output("the box is there")), (4, 1, 1));
    let root = scene.run(&["plan", "--json"]).json();
    assert_eq!(root["tree"], built["tree"]);
}

#[test]
fn conflicts_fail_a_plan() {
    let [agent, business] = layers();
    let scene = Scene::new(agent, business, "conflict \"/etc/motd\" policy=\"drop\"\n");
    let ran = scene.run(&["plan"]);
    assert_eq!(ran.code, 1);
    assert!(ran.result.contains("conflicts 1 left"), "{}", ran.result);
    assert_eq!(shown(&ran.notes), scene.refused(), "as a build says");
    let ran = scene.run(&["plan", "--json"]);
    assert_eq!((ran.code, ran.notes.as_str()), (1, ""));
    let composition = &ran.json()["composition"];
    assert_eq!(composition["conflicts"][0]["path"], "/usr/share/doc/a");
    assert_eq!(composition["policies"][0]["decides"], 1);
    assert_eq!(ran.json()["tree"], serde_json::Value::Null);
}

#[test]
fn one_image_has_no_layout() {
    let [agent, business] = layers();
    let scene = Scene::new(agent, business, "");
    scene.write("Boxfile", "box \"one\"\nagent { image \"oci:agent\"; }\n");
    let ran = scene.run(&["plan"]);
    let titles: Vec<_> = ran.result.lines().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(titles, ["box", "lock", "store", "agent", "", "", "rootfs", "may", "", "", ""]);
}

#[test]
fn split_images_share_what_is_the_same() {
    let [agent, business] = layers();
    let scene = Scene::new(agent, business, "");
    let boxfile = std::fs::read_to_string(scene.path("Boxfile")).unwrap();
    scene.write("Boxfile", &boxfile.replace("layout \"merged\"\n", ""));
    let ran = scene.run(&["plan"]);
    assert_eq!(ran.code, 0, "{}", ran.notes);
    let lines: Vec<_> = ran.result.lines().filter(|it| it.starts_with("shared")).collect();
    assert_eq!(lines, ["shared    2 files in both images, 17 bytes stored once"]);
}

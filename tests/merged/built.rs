//! Tests of the content of a merged box.

use std::process::Command;

use testkit::images::Layer;

use crate::scene::Scene;

const POLICIES: &str =
    "conflict \"/etc/passwd\" policy=\"merge\"\nconflict \"/etc/motd\" policy=\"drop\"\n";

fn scene() -> Scene {
    let accounts = |name: &str| {
        let root = "root:x:0:0:root:/root:/bin/sh";
        let passwd = format!("{root}\n{name}:x:1000:1000::/home/{name}:/bin/sh\n");
        Layer::new().file("/etc/passwd", 0o644, passwd).file("/etc/motd", 0o644, name)
    };
    let agent = accounts("agent").whiteout("/etc/os-release").file("/agent/lib", 0o644, "of agent");
    Scene::new(agent, accounts("shop").file("/workspace/app", 0o755, "an app"), POLICIES)
}

#[test]
fn both_components_have_the_one_root() {
    let scene = scene();
    let built = scene.builds().json();
    let listed = scene.run(&["plan", "--json"]).json();
    assert_eq!(listed["box"], built["box"], "the plan knows the box");
    let composition = &listed["composition"];
    let counts = ["agent", "business", "equal"].map(|name| composition[name].as_u64().unwrap());
    // Only the agent's: /agent, /agent/lib and /agent/run. Only the business image's: /workspace, /workspace/app, and
    // /etc/os-release, which the agent's image hides. Equal in both: /, /bin, /bin/sh and /etc.
    assert_eq!(counts, [3, 3, 4], "{composition}");
    // The counts include the root, which is /roots/merged. The 1 is /etc/passwd, which has lines of both images.
    let all = scene.run(&["ls", "one.box"]).result;
    let own = all.lines().filter(|path| !path.starts_with("/roots/merged")).count();
    let entries = counts.iter().sum::<u64>() + 1 + own as u64;
    assert_eq!(listed["entries"].as_u64().unwrap(), entries);
}

#[test]
fn neither_threads_nor_time_change_the_box() {
    let [one, other] = [scene(), scene()].map(|scene| scene);
    let first = one.run(&["build", "--jobs", "1"]);
    let touched =
        Command::new("touch").args(["-d", "2001-01-01"]).arg(other.path("Boxfile")).status();
    assert!(touched.unwrap().success());
    let second = other.run(&["build", "--jobs", "7"]);
    assert_eq!((first.code, second.code), (0, 0), "{}{}", first.notes, second.notes);
    assert_eq!(first.result, second.result);
}

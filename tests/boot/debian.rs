//! A box of two real images with the same base: Debian with python3, and Debian with nodejs.

use std::fs;
use std::path::Path;

use box_contract::manifest::FORMAT_EPOCH;
use testbed::debian::DebianImages;
use testbed::promises::{DEBIAN_BEFORE_AGENT, DEBIAN_TOTAL, RUN_TRUE, SHARED_BASE};

use crate::scenario::{Scenario, assert_ready, bake, manifest, tools};

/// Prints the microseconds of three runs of `/bin/true` in the box of the Python image, each from before the fork of
/// `boxlaunch` to its end.
const TRUE: &str = r#"
for round in 1 2 3; do
    start=$EPOCHREALTIME
    boxlaunch run /python -- /bin/true || exit 1
    end=$EPOCHREALTIME
    echo $((${end%.*}${end#*.} - ${start%.*}${start#*.}))
done
"#;

/// Tries to lower the limit of open files of PID 1 to 0. PID 1 is the component's holder, which has the same user.
const LIMIT: &str = "import resource; resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))";

fn boxfile(images: &DebianImages) -> String {
    format!(
        r#"box "debian"
agent {{
    image "oci:{}"
    health "http" path="/health"
    limits memory="256MiB"
}}
business {{
    image "oci:{}"
    limits memory="256MiB"
}}
vm cpus=1 memory="768MiB"
budget total="20s"
"#,
        images.agent.display(),
        images.business.display()
    )
}

/// Returns the size of the rootfs of a box with only one of the images.
fn rootfs_size(directory: &Path, name: &str, boxfile: &str) -> u64 {
    let bundle = directory.join(format!("{name}.box"));
    fs::write(directory.join(name), boxfile).unwrap();
    bake(&directory.join(name), &tools().programs.box_init, &bundle);
    manifest(&bundle).rootfs(FORMAT_EPOCH).unwrap().iter().map(|part| part.size).sum()
}

fn python_gets_ready_and_node_runs_beside_it() {
    let tools = tools();
    let images = DebianImages::make(&tools.workspace, &mut |line| println!("{line}")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let both = rootfs_size(dir.path(), "both", &boxfile(&images));
    let alone = |image: &Path| {
        let image = image.display();
        format!(
            "box \"one\"\nagent {{\n    image \"oci:{image}\"\n    entrypoint \"sleep\" \"infinity\"\n    \
             health \"none\"\n    limits memory=\"256MiB\"\n}}\nvm cpus=1 memory=\"512MiB\"\n"
        )
    };
    let agent = rootfs_size(dir.path(), "agent", &alone(&images.agent));
    let business = rootfs_size(dir.path(), "business", &alone(&images.business));
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!("rootfs in MiB: {:.1}, {:.1} and {:.1} alone", mib(both), mib(agent), mib(business));
    // Both images contain the base. A box of both stores it once, and is smaller than two boxes by about the base's size.
    SHARED_BASE.check(mib(agent + business - both));

    let host = tools.host.clone().memory(2048);
    let steps = Scenario::default()
        // `verify` hashes 233 MiB.
        .step_within(40, "verify", "boxlaunch verify /debian")
        .step(
            "node",
            "boxlaunch run --json /debian -- node -e \
             'console.log(os.hostname(), process.pid > 1, fs.existsSync(\"/usr/bin/python3\"))'",
        )
        .step("agent", "boxlaunch run --in agent /debian -- sh -c 'hostname; ls -d /agent; exit 3'")
        .step("limits", &format!("boxlaunch run --in agent /debian -- python3 -c '{LIMIT}'"))
        .step_within(40, "verify-python", "boxlaunch verify /python")
        .script(20, "true", TRUE)
        .start(
            &host
                .disk(dir.path().join("both.box"), "/debian")
                .disk(dir.path().join("agent.box"), "/python"),
        );
    let step = &steps["node"];
    assert_eq!(step.status, 0, "{step:?}");
    let report = step.json();
    println!("{}", report["phases_ms"]);
    assert_ready(&report);
    assert_eq!(report["verified"], "receipt", "it was verified just before");
    let phase = |name: &str| report["phases_ms"][name].as_f64().unwrap();
    DEBIAN_TOTAL.check(phase("total"));
    DEBIAN_BEFORE_AGENT.check(phase("vmm") + phase("jail") + phase("kernel") + phase("init"));
    assert_eq!(report["command"]["stdout"], "business-host true false\n", "{report}");
    let step = &steps["true"];
    assert_eq!(step.status, 0, "{step:?}");
    let mut taken: Vec<f64> = step.stdout.lines().map(|line| line.parse().unwrap()).collect();
    taken.sort_by(f64::total_cmp);
    println!("run -- /bin/true, in microseconds: {taken:?}");
    RUN_TRUE.check(taken[1] / 1000.0);
    let step = &steps["agent"];
    assert_eq!((step.status, step.stdout.as_str()), (3, "agent-host\n/agent\n"), "{step:?}");
    let step = &steps["limits"];
    assert_eq!(step.status, 1, "{step:?}");
    assert!(step.stderr.contains("PermissionError: [Errno 1]"), "{step:?}");
}

tests![python_gets_ready_and_node_runs_beside_it];

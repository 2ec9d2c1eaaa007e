//! Volumes: a volume outlives the boxes that use it, and only one box at a time can use it.

pub(crate) mod kills;

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::page::{self, assert_page};
use crate::scenario::{Scenario, Step, as_user, bake, sleeping, tools};
use crate::schema::assert_fits;

const PAGE: &str = include_str!("../../../docs/volumes.md");
const SCRATCH: &str = "scratch \"tmp\" guest=\"/scratch\" size=\"1MiB\"\n";

/// Runs a box with the volume `data`, then another one with `data` and `more`. At each start, the VMM's user becomes the owner of
/// the disk's file, whoever owned it before.
const STAYS: &str = r#"
boxlaunch run -q --volume data:/var/data /worker -- sh -c '
    ls -lnd /var/data | tr -s " " | cut -d" " -f1,3,4; grep " /var/data " /proc/mounts | cut -d" " -f3,4
    cat /sys/block/vd[bc]/queue/write_cache; echo kept >/var/data/file; echo x >/scratch/x'
boxlaunch run -d --name second --volume data:/srv --volume more:/var/more /worker >/dev/null
boxlaunch exec --in agent second -- sh -c 'cat /srv/file; ls /scratch; echo of the agent >/srv/agent'
boxlaunch exec second cat /srv/agent
vmm=$(boxlaunch inspect --json second | sed 's/.*"vmm":\([0-9]*\),"protocol.*/\1/')
grep 'Max file size' /proc/$vmm/limits | tr -s ' '
cd /root/.local/state/boxbuild/volumes; test $(stat -c %u data/disk) = $(stat -c %u /proc/$vmm) && echo the machines
"#;
/// While the box `second` runs, no other box can use its volumes, and `volume rm` does not remove them. After its end, the box
/// `third` gets `data` but fails to start, so `data` still names `second` as its last user.
const REFUSED: &str = r#"
boxlaunch run --json --volume data:/d /worker -- true; echo $?; boxlaunch volume rm data more; echo $?
boxlaunch kill second >/dev/null; boxlaunch wait second >/dev/null
boxlaunch run --name third --console /none/x --volume data:/d /worker -- true 2>/dev/null || echo did not start
boxlaunch volume inspect data | grep -o 'by [a-z]*'
boxlaunch run -q --volume data:/d /worker -- cat /d/file /d/agent
boxlaunch volume rm more; boxlaunch -q volume ls
"#;
/// Run by an ordinary user, whose volumes are in the user's own state directory.
const USER: &str = "
boxlaunch run -q --volume mine:/v /worker -- sh -c 'echo mine >/v/file'
boxlaunch run -q --volume mine:/v /worker -- cat /v/file
stat -c %u:%a /tmp/home/state/volumes/mine/disk
";

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("worker.box"));
    testbed::hello::write_images(&tools.programs.hello_agent, &dir.path().join("images")).unwrap();
    fs::write(&boxfile, sleeping("worker") + SCRATCH).unwrap();
    bake(&boxfile, &tools.programs.box_init, &bundle);
    Scenario::default()
        .script(30, "stays", STAYS)
        .script(5, "ls", "boxlaunch volume ls --json")
        .script(5, "inspect", "boxlaunch volume inspect --json data")
        .script(30, "refused", REFUSED)
        .script(20, "user", &as_user(USER))
        .script(40, "page", &page::script(PAGE, "ln -s /worker worker.box"))
        .start(&tools.host.clone().file(&bundle, "/worker"))
});

fn a_volume_stays_and_both_components_see_it() {
    let stays = &STEPS["stays"];
    // The scratch disk is "write through": it has no cache to flush. The volume is "write back".
    let expected = "drwxrwxrwt 0 0\next4 rw,nosuid,nodev,noatime,no_prefetch_block_bitmaps,errors=remount-ro\nwrite through\nwrite back\n\
                    kept\nlost+found\nof the agent\nMax file size 10737418240 10737418240 bytes \nthe machines\n";
    assert_eq!(stays.stdout, expected, "{stays:?}");
}

fn a_volume_is_for_one_box_at_a_time() {
    let refused = &STEPS["refused"];
    let (report, rest) = refused.stdout.split_once('\n').unwrap();
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    assert_fits("failure", &report);
    let error = &report["errors"][0];
    assert_eq!(error["code"], "volume-in-use");
    assert_eq!(error["message"], "the volume data is used by the box second");
    let expected = "1\n1\ndid not start\nby second\nkept\nof the agent\nmore\ndata\n";
    assert_eq!(rest, expected, "{refused:?}");
    assert!(refused.stderr.contains("error: the volume more is used by the box second"));
}

fn the_json_of_volumes_fits_its_schema() {
    let [all, one] = ["ls", "inspect"].map(|name| STEPS[name].json());
    assert_fits("volumes", &all);
    assert_fits("volumes", &one);
    let names: Vec<_> = all["volumes"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["data", "more"]);
    let data = &one["volumes"][0];
    assert_eq!((&data["in_use"], &data["box"]), (&true.into(), &"second".into()), "{data}");
    assert!(data["allocated_bytes"].as_u64().unwrap() < 1 << 20, "{data}");
}

fn a_user_has_volumes_too() {
    assert_eq!(STEPS["user"].stdout, "mine\n1000:600\n", "{:?}", STEPS["user"]);
}

fn the_page_shows_what_happens() {
    assert_page(PAGE, &STEPS["page"]);
}

tests![
    a_volume_stays_and_both_components_see_it,
    a_volume_is_for_one_box_at_a_time,
    the_json_of_volumes_fits_its_schema,
    a_user_has_volumes_too,
    the_page_shows_what_happens
];

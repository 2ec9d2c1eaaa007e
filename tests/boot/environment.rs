//! `boxlaunch up`: the environment of a project.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use testbed::prerequisites::with_program;

use crate::scenario::{Scenario, Step, UNHURRIED, bake, sleeping, tools};

/// Every script works in the project of [`BEGUN`].
const PROJECT: &str = "exec 2>&1; ifconfig lo 127.0.0.1 up; export HOME=/home/me; page=/home/me/page; mkdir -p $page; cd $page";
/// Makes a project with a repository, and a file of the user beside it.
const BEGUN: &str = "mkdir -p sub .git/objects; echo 'ref: refs/heads/main' >.git/HEAD; echo '[core]' >.git/config; echo key >/home/me/key; chown -R 0:0 /home";
/// The project is at its path, and what was written stays. A box changes nothing that git starts on the host, and sees nothing else of it.
/// A box without ports publishes none while it runs. The environment is not removed with the other boxes.
const DAYS: &str = r#"
boxlaunch up --box /small 2>&1 | grep -v 'verified\|made the'; boxlaunch up
cd sub; boxlaunch exec . pwd; boxlaunch exec . -- sh -c 'echo from the box >../made'; cd ..; cat made
boxlaunch exec -u 0 . -- sh -c 'exec 2>&1; for it in hooks/pre-commit config; do echo evil >>.git/$it; done; mv .git .old; mv .git/hooks .git/old; rm -rf .git/config; echo index >.git/index; ls /home/me /home; cat /etc/gitconfig; ls -A .git'
ls -A .git .git/hooks; cat .git/config; boxlaunch port . -p 8080:8000; boxlaunch network . | head -n 1
boxlaunch exec -u 0 . -- sh -c 'echo installed >/x; echo kept >/data/x; sync'; boxlaunch snapshot create; boxlaunch down; boxlaunch down; boxlaunch ps -a | tr -s ' ' | cut -d' ' -f1,2
boxlaunch snapshot create; boxlaunch exec . cat /x /data/x
boxlaunch volume ls | tr -s ' ' | cut -d' ' -f1; boxlaunch rm -f page-4a05; boxlaunch rm --all; boxlaunch rm; boxlaunch down
"#;
/// What an environment has written was copied while it was stopped. It returns to the copy, and another project begins with it.
const SNAPSHOT: &str = r#"
boxlaunch reset; boxlaunch snapshot create . more
boxlaunch up -q --from page-4a05-1; boxlaunch exec . cat /x; boxlaunch up -q --from page-4a05-1; boxlaunch down
boxlaunch up -q --box /other --from page-4a05-1 2>&1 | sed 's/sha256:[0-9a-f]*/DIGEST/g'
mkdir ../fork; cd ../fork; boxlaunch up -q --box /small --from page-4a05-1; boxlaunch exec . cat /x; boxlaunch rm -f --all-data
boxlaunch snapshot ls | tr -s ' ' | cut -d' ' -f1-3; stat -c %a /home/me/.local/state/boxbuild/snapshots/page-4a05-1 /home/me/.local/state/boxbuild/snapshots/page-4a05-1/disk
boxlaunch snapshot rm page-4a05-1; ls -A /home/me/.local/state/boxbuild/snapshots
"#;
/// Another box is started if it asks for no more. Ports are added while the environment runs, and while it does not.
const PORTS: &str = r#"
boxlaunch up --box /other -p 8080:8000
boxlaunch exec . -- sh -c 'mkdir /tmp/h; echo inside >/tmp/h/index.html; httpd -p 127.0.0.1:8000 -h /tmp/h'; wget -qO- http://127.0.0.1:8080/
boxlaunch up -q -p 8080:8000 -p 8081:8000; wget -qO- http://127.0.0.1:8081/; boxlaunch port -p 8082:9/business | grep of; boxlaunch port -p 8080:1; boxlaunch up -q -p none
"#;
/// The box makes repositories in the project, and begins a merge. What a user makes while the environment has ended is the user's, also if
/// a start was refused meanwhile, and what another command starts it with is not. Later starts publish the added ports, too.
const LEFT: &str = r#"
boxlaunch exec -u 0 . -- sh -c 'mkdir -p repo/.git; echo x >repo/.git/config; echo x >.git/MERGE_HEAD; echo x >sub/Makefile'; boxlaunch down
mkdir -p mine/.git; boxlaunch up -q --forget --box /small -v /home/me:/x:rw; mkdir -p own/.git; boxlaunch start | tail -n 1; boxlaunch port | grep of
boxlaunch exec -u 0 . -- sh -c 'mkdir -p more/.git; echo x >more/.git/config'; boxlaunch up; boxlaunch down; boxlaunch down
"#;
/// What the box has left and a box that asks for more are accepted. Another run does not take the environment's name. `--forget` starts it
/// with the options of the command line alone.
const ASKED: &str = r#"
boxlaunch up -q --accept --box /netted; cd sub; boxlaunch up; cd ..; boxlaunch port . | grep of; boxlaunch network . | grep allow
boxlaunch inspect --json page-4a05 | grep -o '"project":"[^"]*"'; boxlaunch run -q -d --name page-4a05 --replace /small; boxlaunch down
boxlaunch up -q --forget --box /netted -p 8083:80; boxlaunch port . | grep of
boxlaunch rm -f --all-data; ls; boxlaunch volume ls; boxlaunch ps -a -n; ls /home/me/.local/state/boxbuild/projects
"#;
/// A project's Boxfile declares its box. If it, or one that it extends, has changed, it is neither built nor started before
/// the user permits it, also if the first start has failed: its box has run.
const BOXFILE: &str = r#"
export BOXBUILD_INIT=/box-init BOXBUILD_KERNEL=/kernel; cp /project.boxfile Boxfile; echo >base.Boxfile; echo one >motd; echo two >other; which() { boxlaunch exec --in agent . -- sh -c 'echo $WHICH'; }
boxlaunch up -q; which; sed -i 's/first/second/' Boxfile; boxlaunch up 2>&1 | sed 's/  */ /g'; boxlaunch restart -q; which; echo >>base.Boxfile
boxlaunch down; boxlaunch up; boxlaunch up -q --accept; which; ls
boxlaunch exec --in agent -u 0 . -- sh -c 'echo own >/etc/motd; rm /etc/other; echo kept >/data/x; sync'; echo three >motd; echo four >other; boxlaunch down; boxlaunch up 2>&1 | grep hide; which; boxlaunch exec --in agent . cat /etc/motd
boxlaunch reset; boxlaunch exec --in agent . cat /etc/motd /etc/other /data/x; boxlaunch rm -f --all-data page-4a05
mkdir ../late; cd ../late; cp ../page/base.Boxfile ../page/motd ../page/other .; sed 's|"/bin/sleep" "1000"|"/bin/false"|; s|health "none"|health "http" port=9 path="/"|' /project.boxfile >Boxfile
boxlaunch up -q >/dev/null 2>&1; echo $?; sed -i 's/first/later/' Boxfile; boxlaunch up; echo $?; boxlaunch rm -f --all-data
"#;

/// The names of the scripts. Each goes on with the environment that the one before it has left.
const NAMES: [&str; 6] = ["days", "snapshot", "ports", "left", "asked", "boxfile"];

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    testbed::hello::write_images(&tools.programs.hello_agent, &at("images")).unwrap();
    let disk = "disk \"16MiB\"\nvolume \"data\" guest=\"/data\"\n";
    let netted = format!("{disk}network \"filtered\" {{\n    allow \"a.test.example\"\n}}\n");
    let boxes = [("small", disk), ("netted", &netted), ("other", disk)];
    let host = boxes.into_iter().fold(tools.host.clone(), |host, (name, more)| {
        let file = at(&format!("Boxfile.{name}"));
        fs::write(&file, sleeping(name) + more).unwrap();
        bake(&file, &tools.programs.box_init, &at(name));
        host.file(at(name), format!("/{name}"))
    });
    let own = sleeping("own").replace("oci:images", "oci:/images").replacen(
        "    health",
        "    env WHICH=\"first\"\n    file \"motd\" to=\"/etc/motd\"\n    file \"other\" to=\"/etc/other\"\n    health",
        1,
    );
    let own = "extends \"base.Boxfile\"\n".to_owned() + &own + "volume \"data\" guest=\"/data\"\n";
    fs::write(at("own"), own).unwrap();
    let host = with_program(host, &tools.programs.boxbuild, "/bin/boxbuild").unwrap();
    let host = host.file(at("own"), "/project.boxfile").disk(at("images"), "/images");
    let host = host.file(&tools.programs.box_init, "/box-init").file(&tools.kernel, "/kernel");
    let begun = format!("{BEGUN}{DAYS}");
    let scripts = [&begun, SNAPSHOT, PORTS, LEFT, ASKED, BOXFILE];
    let scenario =
        NAMES.into_iter().zip(scripts).fold(Scenario::default(), |scenario, (name, script)| {
            scenario.script(UNHURRIED, name, &format!("{PROJECT}\n{script}"))
        });
    scenario.start(&host)
});

fn a_project_has_a_box_that_is_there_again_tomorrow() {
    for name in NAMES {
        let Step { stdout, .. } = &STEPS[name];
        insta::assert_snapshot!(name, stdout);
    }
}

tests![a_project_has_a_box_that_is_there_again_tomorrow];

//! docs/working.md: a day in a box. `boxbuild build` runs on the host of the test, and all other commands in the virtual host.

use std::fs;

use testbed::debian::WorkloadImage;

use super::RAN;
use crate::page::{assert_page, blocks, script};
use crate::scenario::{Ran, Scenario, bake, tools};

const PAGE: &str = include_str!("../../../docs/working.md");
/// The heading before the page's last commands, which remove the box.
const LAST: &str = "## Tidying up";
/// The page's image, and its server of packages.
const IMAGE: &str = "docker.io/library/python:3.12-bookworm";
const PACKAGES: &str = "deb.debian.org";
/// The test's servers, and their address, which is the host's: a rule has to allow it, too.
const PEERS: &str = r#"*.test.example" "127.0.0.2"#;
/// What the small host of the test needs: consent to the address, and to disks of more than half of its free space. The clients make files
/// for the servers.
const OPTIONS: &str = "--network-local 127.0.0.2 --max-scratch 20GiB -v /tmp/www:/w:rw";
/// A repository with the package that the page installs.
const REPOSITORY: &str = r#"mkdir -p deb/DEBIAN deb/usr/bin apt
printf 'Package: tree\nVersion: 2.1.0\nArchitecture: all\nMaintainer: a <a@b>\nDescription: a test\n' >deb/DEBIAN/control
printf '#!/bin/sh\necho "tree v2.1.0 of the test"\n' >deb/usr/bin/tree; chmod 755 deb/usr/bin/tree; chmod -R g-s deb
dpkg-deb --root-owner-group -b deb apt/tree.deb >/dev/null
{ cat deb/DEBIAN/control; stat -c 'Filename: ./tree.deb
Size: %s' apt/tree.deb; echo "SHA256: $(sha256sum apt/tree.deb | cut -d' ' -f1)"; } >apt/Packages"#;
/// Starts the servers, and puts the box where the page has built it.
const BEFORE: &str = r#"ifconfig lo 127.0.0.1 up; ifconfig lo:1 93.184.216.34 netmask 255.255.255.255; echo nameserver 127.0.0.1 >/etc/resolv.conf
cp -r /www /tmp/www; peers /tmp/www >/out/peers.log 2>&1 & echo $! >/tmp/peers; until grep -q ready /out/peers.log; do sleep 0.1; done
curl() { until wget -qO- "$2" 2>/dev/null; do sleep 0.5; done; }
ln -s /work.box work.box"#;

/// Spends the day of the page, and runs `scripts` in its box.
pub(super) fn start(scripts: &[(&str, &str)]) -> Ran {
    let tools = tools();
    let image = WorkloadImage::make(&tools.workspace, &mut |line| println!("{line}")).unwrap().0;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    assert_eq!(blocks(PAGE, "bash"), ["boxbuild build"]);
    fs::write(path("sources.list"), "deb [trusted=yes] http://a.test.example/apt ./\n").unwrap();
    let boxfile = blocks(PAGE, "kdl").join("\n");
    assert!(boxfile.contains(IMAGE) && boxfile.contains(PACKAGES), "{boxfile}");
    let boxfile = boxfile.replace(IMAGE, &format!("oci:{}", image.display()));
    let sources = "    file \"sources.list\" to=\"/etc/apt/\"\n    health";
    let boxfile = boxfile.replace(PACKAGES, PEERS).replacen("    health", sources, 1);
    fs::write(path("Boxfile"), boxfile + "\nbudget total=\"60s\"\n").unwrap();
    bake(&path("Boxfile"), &tools.programs.box_init, &path("work.box"));
    let mut shell = std::process::Command::new("sh");
    fs::create_dir(path("www")).unwrap();
    let made = shell.args(["-ec", REPOSITORY]).current_dir(path("www")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (day, last) = PAGE.split_once(LAST).unwrap();
    let day = day.replace(" --share project", &format!(" {OPTIONS} --share project"));
    Scenario::default()
        .script(400, "day", &script(&day, BEFORE))
        .run_all(400, "all", "exec --json work", scripts)
        .script(30, "last", &script(last, "kill $(cat /tmp/peers)"))
        .start_for_files(
            &tools
                .host
                .clone()
                .memory(2560)
                .file(&tools.programs.peers, "/bin/peers")
                .disk(path("www"), "/www")
                .disk(path("work.box"), "/work.box"),
        )
}

fn a_day_goes_as_the_page_says() {
    let (day, last) = PAGE.split_once(LAST).unwrap();
    assert_page(day, &RAN.0["day"]);
    assert_page(last, &RAN.0["last"]);
}

tests![a_day_goes_as_the_page_says];

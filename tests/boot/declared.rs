//! What a Boxfile declares of its host: volumes and published ports, which options of a start replace. And copies of single files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use testkit::images::{Compression, Config, Image, Layer};

use crate::scenario::{Scenario, Step, UNHURRIED, bake, sleeping, tools};

const DECLARED: &str = r#"
volume "home" guest="/home/dev" component="business"
volume "data" guest="/data"
publish 8000 host=8080 component="business"
publish 9000 host=0
"#;
/// A new volume has the image's files with their owners and modes, and keeps what a program writes. The agent sees its image. A declared
/// port is published at each start, unless the command line replaces it. Two boxes of one bundle do not see each other's files. A box
/// of the same name from elsewhere is refused.
const STARTS: &str = r#"
ifconfig lo 127.0.0.1 up
boxlaunch run -d --name web /desk 2>&1 | grep -v 'verified\|made the'; boxlaunch port web | grep business
boxlaunch exec web -- sh -c 'ls -lnd /home/dev /data | tr -s " " | cut -d" " -f1,3,4,9; ls -lnA /home/dev /home/dev/.config | grep -v -e total -e lost+found | tr -s " " | cut -d" " -f1,3,4,9-; cat /home/dev/.profile
echo new >/home/dev/.profile; rm -r /home/dev/.config; echo x >/data/x; echo inside >/tmp/index.html; httpd -p 127.0.0.1:8000 -h /tmp'
boxlaunch exec --in agent -u 0 web -- sh -c 'cat /home/dev/.profile /data/x'; wget -qO- http://127.0.0.1:8080/
other() { boxlaunch run -q --volume a:/home/dev --volume b:/data "$@"; }
other /desk -- echo started 2>&1; other -p none /desk -- cat /home/dev/.profile; other -p 8081:8000/business /desk -- sh -c 'ls -A /home/dev /tmp; echo >/tmp/other'
boxlaunch run -q /stranger -- cat /home/dev/.profile 2>&1; echo $?
boxlaunch exec web ls -A /tmp; boxlaunch stop web; boxlaunch start web; boxlaunch port web | grep business
boxlaunch exec web -- sh -c 'cat /home/dev/.profile; ls -A /home/dev; rm -r /home/dev/link /home/dev/.profile'; boxlaunch stop web; boxlaunch rm web; boxlaunch -q volume ls
"#;

/// A file of the host is copied at each start, also over a file of a volume, for the user of the component, and can only be read. The
/// volume, from which [`STARTS`] has removed everything, has nothing of the image again.
const FILES: &str = r#"
echo of the host >/settings; chmod 640 /settings
run() { boxlaunch run "$@"; }
run -p none -v /settings:/home/dev/.profile -v /settings:/home/dev/new -v /settings:/new/deep/file /desk -- sh -c 'exec 2>&1; cat /home/dev/.profile /home/dev/new; ls -ln /home/dev/.profile /new/deep/file | tr -s " " | cut -d" " -f1,3,4,9; echo x >/home/dev/.profile; rm /new/deep/file' 2>&1 | grep -v volume
run -q /desk -- sh -c 'ls -ln /home/dev/new | tr -s " " | cut -d" " -f1,3,4,5,9; ls -A /home/dev'
run -v /settings:/home /desk -- true 2>&1 | grep error:
run -q -d --name kept --share conf=/settings /conf; boxlaunch exec kept cat /etc/app.conf; echo new >/settings; boxlaunch exec kept cat /etc/app.conf; boxlaunch restart kept; boxlaunch exec kept cat /etc/app.conf
boxlaunch inspect kept | grep directories; boxlaunch rm -f kept
"#;
const CONF: &str = "share \"conf\" guest=\"/etc/app.conf\"\n";

/// Returns an image with a shell and the home directory of a user.
fn image() -> Image {
    let busybox = fs::read(testbed::program::find("busybox").unwrap()).unwrap();
    let layer = Layer::new().dir("/bin", 0o755).dir("/tmp", 0o1777).dir("/home", 0o755);
    let mut layer = layer.file("/bin/busybox", 0o755, busybox);
    for name in ["sh", "cat", "cut", "echo", "grep", "httpd", "ls", "rm", "sleep", "tr", "true"] {
        layer = layer.symlink(&format!("/bin/{name}"), "busybox");
    }
    let layer = layer.owner(1001, 1002).dir("/home/dev", 0o750);
    let layer = layer.file("/home/dev/.profile", 0o640, "of the image\n");
    let layer = layer.dir("/home/dev/.config", 0o700).file("/home/dev/.config/x", 0o600, "x");
    let layer = layer.symlink("/home/dev/link", ".profile");
    let env = vec!["PATH=/bin".to_owned()];
    Image::new(Config { env, ..Config::default() }).with(layer.to_tar())
}

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let write = |folder: &Path| image().write_layout(folder, "latest", Compression::Gzip);
    write(&at("images/business")).unwrap();
    fs::write(at("Boxfile"), sleeping("desk") + DECLARED).unwrap();
    bake(&at("Boxfile"), &tools.programs.box_init, &at("desk"));
    fs::write(at("Boxfile"), sleeping("desk") + DECLARED + "disk \"16MiB\"\n").unwrap();
    bake(&at("Boxfile"), &tools.programs.box_init, &at("stranger"));
    fs::write(at("Boxfile.conf"), sleeping("conf") + CONF).unwrap();
    bake(&at("Boxfile.conf"), &tools.programs.box_init, &at("conf"));
    let host = tools.host.clone().file(at("desk"), "/desk").file(at("conf"), "/conf");
    let host = host.file(at("stranger"), "/stranger");
    Scenario::default()
        .script(UNHURRIED, "starts", STARTS)
        .script(UNHURRIED, "files", FILES)
        .start(&host)
});

fn what_is_declared_is_there_at_each_start() {
    let Step { stdout, stderr, .. } = &STEPS["starts"];
    insta::assert_snapshot!("starts", format!("{stdout}---\n{stderr}"));
}

fn a_file_of_the_host_is_copied_at_each_start() {
    let Step { stdout, stderr, .. } = &STEPS["files"];
    insta::assert_snapshot!("files", format!("{stdout}---\n{stderr}"));
}

tests![what_is_declared_is_there_at_each_start, a_file_of_the_host_is_copied_at_each_start];

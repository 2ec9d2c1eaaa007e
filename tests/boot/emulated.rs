//! `boxlaunch run --emulated` as an ordinary user, without a network, in an environment with QEMU and
//! no other program.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::scenario::{bake, tools};

/// The user "nobody" and its group.
const NOBODY: u32 = 65534;

/// A user's home, with boxlaunch, a box and the virtual host's kernel.
struct Home {
    room: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let tools = tools();
        let home = Self { room: tempfile::tempdir().unwrap() };
        chown(home.path(""), Some(NOBODY), Some(NOBODY)).unwrap();
        fs::copy(&tools.programs.boxlaunch, home.path("boxlaunch")).unwrap();
        testkit::hello::write_images(&tools.programs.hello_agent, &home.path("images")).unwrap();
        let boxfile = tools.workspace.path("examples/hello/Boxfile");
        let text = fs::read_to_string(boxfile).unwrap();
        let text = text.replace("skill \"greet\" path=\"skills/greet\"", "");
        fs::write(home.path("Boxfile"), text).unwrap();
        bake(&home.path("Boxfile"), &tools.programs.box_init, &home.path("hello.box"));
        for directory in ["programs", ".cache/boxbuild"] {
            fs::create_dir_all(home.path(directory)).unwrap();
        }
        let qemu = testkit::program::find("qemu-system-x86_64").unwrap();
        symlink(qemu, home.path("programs/qemu-system-x86_64")).unwrap();
        copy_tree(&tools.workspace.target("vmhost"), &home.path(".cache/boxbuild/virtual-host"));
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    /// Runs boxlaunch with the programs of a directory.
    fn boxlaunch(&self, programs: &str, arguments: &[&str]) -> Output {
        let user = NOBODY.to_string();
        let mut command = Command::new("unshare");
        command.args(["--net", "setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"]);
        command.args(["--no-new-privs", "env", "--ignore-environment"]);
        command.arg(format!("PATH={}", self.path(programs).display()));
        command.arg(format!("HOME={}", self.room.path().display()));
        command.arg(self.path("boxlaunch")).args(arguments).current_dir(self.room.path());
        command.output().unwrap()
    }
}

/// Copies the prepared kernels: those who run the test may keep them where nobody else can read.
fn copy_tree(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-R").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_ordinary_user_without_kvm_network_or_programs_but_qemu_runs_a_box() {
    let home = Home::new();
    let run = ["run", "--emulated", "hello.box"];
    let script = "echo from $(hostname); echo to stderr >&2; exit 7";
    let ran = home.boxlaunch("programs", &[&run[..], &["--", "sh", "-c", script]].concat());
    let (stdout, stderr) = (text(&ran.stdout), text(&ran.stderr));
    assert_eq!(ran.status.code(), Some(7), "{stderr}");
    assert_eq!(stdout, "from business-host\n");
    assert!(stderr.starts_with("boxlaunch: running on an emulated CPU: slow"), "{stderr}");
    assert!(stderr.ends_with("\nto stderr\n"), "{stderr}");

    let refused = home.boxlaunch("programs", &[&run[..], &["--agent-socket", "s"]].concat());
    let message = "error: --agent-socket cannot be used with --emulated";
    assert!(text(&refused.stderr).starts_with(message), "{}", text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(2));

    let missing = home.boxlaunch("images", &run);
    assert_eq!(
        text(&missing.stderr).lines().collect::<Vec<_>>(),
        [
            "error: qemu-system-x86_64 is not installed",
            "  = help: sudo apt-get install qemu-system-x86"
        ]
    );
    assert_eq!(missing.status.code(), Some(1));
}

//! An ordinary user in a bare container: without KVM and a network, with QEMU as the only program in `PATH`.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::scenario::{bake, tools};

/// The user "nobody" and its group.
const NOBODY: u32 = 65534;
/// Mounts a `/dev` with four devices, then runs a command as a user. The arguments are the user's id, an empty directory, and
/// the command.
const CONTAIN: &str = r#"
user=$1 dev=$2
shift 2
mount -t tmpfs -o mode=755 dev "$dev"
for device in null zero random urandom; do
    touch "$dev/$device"
    mount --bind "/dev/$device" "$dev/$device"
done
ln -s /proc/self/fd "$dev/fd"
mount --move "$dev" /dev
exec setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs env --ignore-environment "$@"
"#;

/// The home of the user `nobody`, with `boxlaunch`, `boxbuild`, a box and the virtual host's kernel.
pub(crate) struct Home {
    room: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let tools = tools();
        let home = Self { room: tempfile::tempdir().unwrap() };
        for program in [&tools.programs.boxlaunch, &tools.programs.boxbuild] {
            fs::copy(program, home.path("").join(program.file_name().unwrap())).unwrap();
        }
        testbed::hello::write_images(&tools.programs.hello_agent, &home.path("images")).unwrap();
        let boxfile = tools.workspace.path("examples/hello/Boxfile");
        let text = fs::read_to_string(boxfile).unwrap();
        let text = text.replace("skill \"greet\" path=\"skills/greet\"", "");
        fs::write(home.path("Boxfile"), text).unwrap();
        bake(&home.path("Boxfile"), &tools.programs.box_init, &home.path("hello.box"));
        for directory in ["dev", "programs", ".cache/boxbuild"] {
            fs::create_dir_all(home.path(directory)).unwrap();
        }
        let qemu = testbed::program::find("qemu-system-x86_64").unwrap();
        symlink(qemu, home.path("programs/qemu-system-x86_64")).unwrap();
        copy_tree(&tools.workspace.target("vmhost"), &home.path(".cache/boxbuild/virtual-host"));
        // Last: root builds nothing in a directory of somebody else.
        chown(home.path(""), Some(NOBODY), Some(NOBODY)).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    /// Runs `program`, which is `boxlaunch` or `boxbuild`. `PATH` is the directory `programs` of the home: "programs" has
    /// QEMU, "images" has no program.
    pub(crate) fn run(&self, program: &str, programs: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "sh", "-ec", CONTAIN, "contain", &NOBODY.to_string()]);
        command.arg(self.path("dev"));
        command.arg(format!("PATH={}", self.path(programs).display()));
        command.arg(format!("HOME={}", self.room.path().display()));
        command.arg(self.path(program)).args(arguments).current_dir(self.room.path());
        command.output().unwrap()
    }
}

/// Copies the prepared kernels, because the user `nobody` may not be able to read the build output.
fn copy_tree(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-R").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

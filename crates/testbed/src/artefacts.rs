//! Builds the project's own programs and returns their paths.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::prerequisites::{BARE, MUSL};
use crate::{Result, Workspace, program};

/// The program that runs where it is built, and its package.
const BUILDER: &str = "boxbuild";
/// The package of the static program that runs on any host, the virtual one too.
const LAUNCHER_PACKAGES: [&str; 1] = ["boxlaunch"];
/// The package of PID 1, compiled by itself: the features that others want of a crate would be in its
/// bytes, and so in every box.
const INIT_PACKAGES: [&str; 1] = ["box-init"];
/// The packages of the other programs that run in the guest.
const GUEST_PACKAGES: [&str; 2] = ["hello-agent", "guest-tools"];
/// The program that takes the place of the VMM in the tests of the jail, and the agent with an interface. Compiled after
/// boxlaunch: the first uses its library, and the dependencies of both are among those that it has compiled.
const AFTER_LAUNCHER_PACKAGES: [&str; 2] = ["intruder", "example-agent"];
/// The packages of the hosts that boxes of tests connect to.
const PEERS_PACKAGES: [&str; 2] = ["peers", "assistant-model"];
/// The package of the kernel that attacks the host, and how it is compiled: its addresses are fixed.
const HOSTILE_KERNEL: &str = "hostile-kernel";
const FIXED: &str = "-Crelocation-model=static";
/// The variable that names the C compiler for [`MUSL`], and its value where it is not set: what libkrun
/// needs of C includes nothing of the C library that differs.
const C_COMPILER: (&str, &str) = ("CC_x86_64_unknown_linux_musl", "cc");

/// The linker writes what a program corrects in itself when it starts as bits and not as 24 bytes each: at their start programs
/// read less of themselves, and box-init is smaller.
const PACKED: &str = "-Clink-arg=-Wl,-z,pack-relative-relocs";

/// The static programs decompress with zstd the virtual host's kernel, once, and what comes from a network, which is slower; to
/// optimize its C code takes an eighth of the time of compiling boxlaunch. `boxbuild`, which decompresses layers, is not a static program.
const LESS_ZSTD: &str = "profile.release.package.zstd-sys.opt-level=1";

/// How `boxbuild` is compiled. The other programs are always optimized: they run on emulated CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Like the tests, with what they have compiled already; a change is compiled in seconds.
    Dev,
    /// As it is installed and measured.
    Release,
}

/// Where the project's programs lie.
#[derive(Debug, Clone)]
pub struct Artefacts {
    /// The program that builds boxes.
    pub boxbuild: PathBuf,
    /// The program that starts boxes; static.
    pub boxlaunch: PathBuf,
    /// PID 1 of a box; static.
    pub box_init: PathBuf,
    /// The agent of examples/hello; static.
    pub hello_agent: PathBuf,
    /// The model of examples/assistant; static.
    pub assistant_model: PathBuf,
    /// The agent of examples/agents/rust; static.
    pub example_agent: PathBuf,
    /// An init that lists the rootfs; static.
    pub list_init: PathBuf,
    /// A VMM that breaks out; static.
    pub intruder: PathBuf,
    /// An init that stands in for that of a box of epoch 3; static.
    pub old_init: PathBuf,
    /// box-init, which finds another config than the launcher has checked; static.
    pub swap_init: PathBuf,
    /// box-init, which starts without standard streams; static.
    pub late_init: PathBuf,
    /// An init that looks for another way to the host; static.
    pub port_init: PathBuf,
    /// A hostile workload; static.
    pub red_team: PathBuf,
    /// A program that writes files which must survive a kill, and looks at their disk; static.
    pub keeper: PathBuf,
    /// A program that sends frames of its own making; static.
    pub raw_question: PathBuf,
    /// A program that watches a directory; static.
    pub watcher: PathBuf,
    /// A resolver and servers to which boxes connect, and a program of a box that tries to; static.
    pub peers: PathBuf,
    /// A machine without the jail; static.
    pub unjailed: PathBuf,
    /// A hostile kernel, which runs on a machine.
    pub hostile_kernel: PathBuf,
}

impl Artefacts {
    /// Says where the programs lie once they are built.
    pub fn locate(workspace: &Workspace, profile: Profile) -> Self {
        let directory = match profile {
            Profile::Dev => "debug",
            Profile::Release => "release",
        };
        let anywhere = |name: &str| workspace.target(&format!("{MUSL}/release/{name}"));
        Self {
            boxbuild: workspace.target(&format!("{directory}/{BUILDER}")),
            boxlaunch: anywhere("boxlaunch"),
            box_init: anywhere("box-init"),
            hello_agent: anywhere("hello-agent"),
            assistant_model: anywhere("assistant-model"),
            example_agent: anywhere("example-agent"),
            list_init: anywhere("list-init"),
            intruder: anywhere("intruder"),
            old_init: anywhere("old-init"),
            swap_init: anywhere("swap-init"),
            late_init: anywhere("late-init"),
            port_init: anywhere("port-init"),
            red_team: anywhere("red-team"),
            keeper: anywhere("keeper"),
            raw_question: anywhere("raw-question"),
            watcher: anywhere("watcher"),
            peers: anywhere("peers"),
            unjailed: anywhere("unjailed"),
            hostile_kernel: workspace.target(&format!("{BARE}/release/{HOSTILE_KERNEL}")),
        }
    }

    /// Returns the start of the command that builds a box with an init and a guest kernel.
    pub fn box_build(&self, init: &Path, kernel: &Path) -> Command {
        let mut build = Command::new(&self.boxbuild);
        build.arg("build").arg("--init").arg(init).arg("--kernel").arg(kernel);
        build
    }

    /// The variable that is set where the programs were just built: cargo is not asked again.
    pub const BUILT: &str = "BOXBUILD_TESTS_BUILT";

    /// Builds all programs for tests; takes a moment where nothing has changed.
    ///
    /// # Errors
    /// One does not compile; the error has the end of what the compiler printed.
    pub fn build(workspace: &Workspace) -> Result<Self> {
        if std::env::var_os(Self::BUILT).is_none() {
            for command in &mut Self::test_builds(workspace) {
                program::run(command)?;
            }
        }
        Ok(Self::locate(workspace, Profile::Dev))
    }

    /// Returns the commands that build the programs as they are installed, and those of the examples.
    pub fn release_builds(workspace: &Workspace) -> Vec<Command> {
        let mut builds = Vec::from(Self::static_builds(workspace));
        builds.push(Self::builder_build(workspace, Profile::Release));
        builds
    }

    /// Returns the commands that build the static programs.
    pub fn static_builds(workspace: &Workspace) -> [Command; 3] {
        [&LAUNCHER_PACKAGES[..], &INIT_PACKAGES, &GUEST_PACKAGES]
            .map(|packages| Self::static_build(workspace, packages))
    }

    /// Returns the commands that build all programs that tests start.
    pub fn test_builds(workspace: &Workspace) -> Vec<Command> {
        let mut builds = Vec::from(Self::static_builds(workspace));
        builds.push(Self::static_build(workspace, &AFTER_LAUNCHER_PACKAGES));
        builds.push(Self::peers_build(workspace));
        builds.push(Self::hostile_kernel_build(workspace));
        builds.push(Self::builder_build(workspace, Profile::Dev));
        builds
    }

    /// Returns the command that builds the hosts that boxes of tests connect to.
    pub fn peers_build(workspace: &Workspace) -> Command {
        Self::static_build(workspace, &PEERS_PACKAGES)
    }

    /// Returns the command that builds the hostile kernel.
    fn hostile_kernel_build(workspace: &Workspace) -> Command {
        let mut cargo = release(workspace, &[HOSTILE_KERNEL]);
        // Takes the place of all other flags, which are for programs.
        cargo.args(["--target", BARE]).env("CARGO_ENCODED_RUSTFLAGS", FIXED);
        cargo
    }

    /// Returns the command that builds `boxbuild`.
    pub fn builder_build(workspace: &Workspace, profile: Profile) -> Command {
        match profile {
            // Of all packages: so cargo chooses the features that the tests have, and compiles less again.
            Profile::Dev => {
                let mut cargo = workspace.cargo();
                cargo.args(["build", "--workspace", "--bin", BUILDER]);
                cargo
            }
            Profile::Release => release(workspace, &[BUILDER]),
        }
    }

    /// Returns the command that builds `boxbuild` in the dev profile and nothing else: with the features that its
    /// dependencies have in xtask, which are compiled then.
    pub fn builder_alone(workspace: &Workspace) -> Command {
        let mut cargo = workspace.cargo();
        cargo.args(["build", "--package", BUILDER]);
        cargo
    }

    /// Returns the command that builds box-init, with the bytes that it has in every box.
    pub fn init_build(workspace: &Workspace) -> Command {
        Self::static_build(workspace, &INIT_PACKAGES)
    }

    /// Returns the command that builds static programs. They have the same bytes wherever the
    /// repository, the build output and cargo's home are.
    pub fn static_build(workspace: &Workspace, packages: &[&str]) -> Command {
        Self::static_build_with(&cargo_home(), workspace, packages)
    }

    /// Like [`Self::static_build`], with cargo's home at `home`.
    pub fn static_build_with(home: &Path, workspace: &Workspace, packages: &[&str]) -> Command {
        let mut cargo = release(workspace, packages);
        cargo.args(["--target", MUSL, "--config", LESS_ZSTD]).env("CARGO_HOME", home);
        if std::env::var_os(C_COMPILER.0).is_none() {
            cargo.env(C_COMPILER.0, C_COMPILER.1);
        }
        // Takes the place of all other flags, of RUSTFLAGS too.
        cargo.env("CARGO_ENCODED_RUSTFLAGS", static_flags(home, workspace));
        cargo
    }
}

fn release(workspace: &Workspace, packages: &[&str]) -> Command {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--release"]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    cargo
}

/// Returns the compiler's flags for static programs, as cargo encodes them: panics name source
/// files by paths that no machine has, and addresses are packed.
fn static_flags(home: &Path, workspace: &Workspace) -> OsString {
    let places = [
        (workspace.path(""), "/boxbuild"),
        (workspace.target(""), "/target"),
        (home.join("registry/src"), "/registry"),
    ];
    let mut flags = OsString::new();
    for (number, (place, name)) in places.iter().enumerate() {
        flags.push(if number == 0 { "" } else { "\x1f" });
        flags.push("--remap-path-prefix=");
        flags.push(place.components().as_path());
        flags.push("=");
        flags.push(name);
    }
    flags.push("\x1f");
    flags.push(PACKED);
    flags
}

/// Returns cargo's home: as `CARGO_HOME` names it, else in the user's.
pub fn cargo_home() -> PathBuf {
    let named = std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty());
    let of_user = || std::env::home_dir().unwrap_or_default().join(".cargo");
    named.map_or_else(of_user, PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_run_anywhere_are_static() {
        let workspace = Workspace::find();
        let artefacts = Artefacts::locate(&workspace, Profile::Dev);
        assert!(artefacts.boxbuild.ends_with("debug/boxbuild"));
        assert!(artefacts.boxlaunch.ends_with(format!("{MUSL}/release/boxlaunch")));
        assert!(artefacts.box_init.ends_with(format!("{MUSL}/release/box-init")));
        let line = program::shown(&Artefacts::init_build(&workspace));
        let expected = format!("--package box-init --target {MUSL} --config {LESS_ZSTD}");
        assert!(line.ends_with(&expected), "{line}");
    }
}

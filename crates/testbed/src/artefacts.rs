//! Builds the project's programs and returns their paths.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::prerequisites::{BARE, MUSL};
use crate::{Result, Workspace, program};

/// The package, and also the name, of the program that runs on the build host.
const BUILDER: &str = "boxbuild";
/// The package, and also the name, of the program that starts boxes.
const LAUNCHER: &str = "boxlaunch";
/// The packages of the static programs that run on any host: boxlaunch, also on the virtual host, and `box`.
const LAUNCHER_PACKAGES: [&str; 2] = [LAUNCHER, "box-front"];
/// The package of PID 1. It is compiled alone, because the features that other packages enable in its dependencies
/// would change its bytes, and so every box.
const INIT_PACKAGES: [&str; 1] = ["box-init"];
/// The packages of the other programs that run in the guest.
const GUEST_PACKAGES: [&str; 2] = ["hello-agent", "guest-tools"];
/// The program that replaces the VMM in the tests of the jail, and the agent with an interface. They are compiled after
/// boxlaunch, whose build has compiled their dependencies. `intruder` also uses boxlaunch's library.
const AFTER_LAUNCHER_PACKAGES: [&str; 2] = ["intruder", "example-agent"];
/// The packages of the hosts that the tests' boxes connect to.
const PEERS_PACKAGES: [&str; 2] = ["peers", "assistant-model"];
/// The package of the kernel that attacks the host, and the compiler flag that fixes its addresses.
const HOSTILE_KERNEL: &str = "hostile-kernel";
const FIXED: &str = "-Crelocation-model=static";
/// The variable that selects the C compiler for [`MUSL`], and the value if it is unset: libkrun's C code includes
/// nothing that differs between the C libraries.
const C_COMPILER: (&str, &str) = ("CC_x86_64_unknown_linux_musl", "cc");

/// The linker flag that packs relative relocations into bits instead of 24 bytes each. Programs then read fewer bytes of
/// their file when they start, and box-init is smaller.
const PACKED: &str = "-Clink-arg=-Wl,-z,pack-relative-relocs";

/// The optimization of zstd's C code in the static programs, which takes an eighth of the compile time of boxlaunch. They
/// need no fast zstd: it decompresses the virtual host's kernel once, and data from a network, which is slower.
/// `boxbuild`, which decompresses layers, gets a fast one.
const LESS_ZSTD: &str = "profile.release.package.zstd-sys.opt-level=1";

/// The profile for `boxbuild`. The other programs are always optimized, because they run on emulated CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The profile of the tests, so that `boxbuild` and the tests share compiled dependencies. A change is compiled in seconds.
    Dev,
    /// The profile for installation and benchmarks.
    Release,
}

/// The paths of the project's programs.
#[derive(Debug, Clone)]
pub struct Artefacts {
    /// The program that builds boxes.
    pub boxbuild: PathBuf,
    /// The program that starts boxes; static.
    pub boxlaunch: PathBuf,
    /// The program `box`, which starts the two above; static.
    pub front: PathBuf,
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
    /// An init that stands in for the init of a box of epoch 3; static.
    pub old_init: PathBuf,
    /// A box-init that gets a config other than the one that the launcher has verified; static.
    pub swap_init: PathBuf,
    /// A box-init that starts without standard streams; static.
    pub late_init: PathBuf,
    /// An init that searches for further connections to the host; static.
    pub port_init: PathBuf,
    /// A hostile workload; static.
    pub red_team: PathBuf,
    /// A program that writes files which must survive a kill, and examines their disk; static.
    pub keeper: PathBuf,
    /// A program that sends hand-made network frames; static.
    pub raw_question: PathBuf,
    /// A program that watches a directory; static.
    pub watcher: PathBuf,
    /// A resolver and servers to which boxes connect, and a client in a box; static.
    pub peers: PathBuf,
    /// A VMM without the jail; static.
    pub unjailed: PathBuf,
    /// A hostile kernel, which runs without an operating system.
    pub hostile_kernel: PathBuf,
}

impl Artefacts {
    /// Returns the paths of the programs, which need not be built yet.
    pub fn locate(workspace: &Workspace, profile: Profile) -> Self {
        let directory = match profile {
            Profile::Dev => "debug",
            Profile::Release => "release",
        };
        let anywhere = |name: &str| workspace.target(&format!("{MUSL}/release/{name}"));
        Self {
            boxbuild: workspace.target(&format!("{directory}/{BUILDER}")),
            boxlaunch: anywhere("boxlaunch"),
            front: anywhere("box"),
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

    /// Returns a `boxbuild build` command with the options `--init` and `--kernel`. The caller adds further arguments.
    pub fn box_build(&self, init: &Path, kernel: &Path) -> Command {
        let mut build = Command::new(&self.boxbuild);
        build.arg("build").arg("--init").arg(init).arg("--kernel").arg(kernel);
        build
    }

    /// The environment variable that is set if the programs were just built. [`Self::build`] then does not run cargo again.
    pub const BUILT: &str = "BOXBUILD_TESTS_BUILT";

    /// Builds all programs for tests. This takes seconds if no source has changed.
    ///
    /// # Errors
    /// A program does not compile. The error contains the end of the compiler's output.
    pub fn build(workspace: &Workspace) -> Result<Self> {
        if std::env::var_os(Self::BUILT).is_none() {
            for command in &mut Self::test_builds(workspace) {
                program::run(command)?;
            }
        }
        Ok(Self::locate(workspace, Profile::Dev))
    }

    /// Returns the commands that build the programs for installation, and the programs of the examples.
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
        let mut builds = Self::emulated_builds(workspace);
        builds.push(Self::builder_build(workspace, Profile::Dev));
        builds
    }

    /// Returns the commands that build the programs that run in tests on an emulated CPU: all but `boxbuild`.
    pub fn emulated_builds(workspace: &Workspace) -> Vec<Command> {
        let mut builds = Vec::from(Self::static_builds(workspace));
        builds.push(Self::static_build(workspace, &AFTER_LAUNCHER_PACKAGES));
        builds.push(Self::peers_build(workspace));
        builds.push(Self::hostile_kernel_build(workspace));
        builds
    }

    /// Returns the command that builds the hosts that the tests' boxes connect to.
    pub fn peers_build(workspace: &Workspace) -> Command {
        Self::static_build(workspace, &PEERS_PACKAGES)
    }

    /// Returns the command that builds the hostile kernel.
    fn hostile_kernel_build(workspace: &Workspace) -> Command {
        let mut cargo = release(workspace, &[HOSTILE_KERNEL]);
        // `CARGO_ENCODED_RUSTFLAGS` replaces all other flags, which are for programs of an operating system.
        cargo.args(["--target", BARE]).env("CARGO_ENCODED_RUSTFLAGS", FIXED);
        cargo
    }

    /// Returns the command that builds `boxbuild`.
    pub fn builder_build(workspace: &Workspace, profile: Profile) -> Command {
        match profile {
            // With `--workspace`, cargo selects the same features as for the tests, so it can reuse their compiled crates.
            Profile::Dev => {
                let mut cargo = workspace.cargo();
                cargo.args(["build", "--workspace", "--bin", BUILDER]);
                cargo
            }
            Profile::Release => release(workspace, &[BUILDER]),
        }
    }

    /// Returns the command that builds `boxbuild` as a static program, for a release. Unlike the other static programs, it has a
    /// fast zstd.
    pub fn release_builder_build(workspace: &Workspace) -> Command {
        Self::remapped_build(&cargo_home(), workspace, &[BUILDER])
    }

    /// Returns the paths of the programs of a release, all of which are static.
    pub fn locate_release(workspace: &Workspace) -> Self {
        let boxbuild = workspace.target(&format!("{MUSL}/release/{BUILDER}"));
        Self { boxbuild, ..Self::locate(workspace, Profile::Release) }
    }

    /// Returns the command that builds the static `boxbuild` and `boxlaunch` of the demo, without optimization. One command
    /// compiles the dependencies of both once, and shares procedural macros with xtask.
    pub fn demo_build(workspace: &Workspace) -> Command {
        let mut cargo = workspace.cargo();
        cargo.args(["build", "--package", BUILDER, "--package", LAUNCHER]);
        for_musl(&mut cargo);
        cargo
    }

    /// Returns the paths of the demo's programs: those of [`Self::demo_build`], and optimized ones.
    pub fn locate_demo(workspace: &Workspace) -> Self {
        let of_demo = |name: &str| workspace.target(&format!("{MUSL}/debug/{name}"));
        let programs = Self::locate(workspace, Profile::Release);
        Self { boxbuild: of_demo(BUILDER), boxlaunch: of_demo(LAUNCHER), ..programs }
    }

    /// Returns the command that builds boxlaunch and `box`.
    pub fn launcher_build(workspace: &Workspace) -> Command {
        Self::static_build(workspace, &LAUNCHER_PACKAGES)
    }

    /// Returns the command that builds box-init, with the same bytes as in every box.
    pub fn init_build(workspace: &Workspace) -> Command {
        Self::static_build(workspace, &INIT_PACKAGES)
    }

    /// Returns the command that builds static programs. Their bytes do not depend on the paths of the repository, the
    /// build output and cargo's home.
    pub fn static_build(workspace: &Workspace, packages: &[&str]) -> Command {
        Self::static_build_with(&cargo_home(), workspace, packages)
    }

    /// Like [`Self::static_build`], with cargo's home at `home`.
    pub fn static_build_with(home: &Path, workspace: &Workspace, packages: &[&str]) -> Command {
        let mut cargo = Self::remapped_build(home, workspace, packages);
        cargo.args(["--config", LESS_ZSTD]);
        cargo
    }

    /// Returns the command that builds static programs with the usual optimization.
    fn remapped_build(home: &Path, workspace: &Workspace, packages: &[&str]) -> Command {
        let mut cargo = release(workspace, packages);
        for_musl(cargo.env("CARGO_HOME", home));
        // `CARGO_ENCODED_RUSTFLAGS` replaces all other flags, including RUSTFLAGS.
        cargo.env("CARGO_ENCODED_RUSTFLAGS", static_flags(home, workspace));
        cargo
    }
}

/// Lets a build make static programs.
fn for_musl(cargo: &mut Command) {
    cargo.args(["--target", MUSL]);
    if std::env::var_os(C_COMPILER.0).is_none() {
        cargo.env(C_COMPILER.0, C_COMPILER.1);
    }
}

fn release(workspace: &Workspace, packages: &[&str]) -> Command {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--release"]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    cargo
}

/// Returns the compiler's flags for static programs, encoded for cargo. They remap the paths of source files, and pack
/// relocations.
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

/// Returns cargo's home: `CARGO_HOME`, or else the default in the user's home.
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
        let of_demo = Artefacts::locate_demo(&workspace);
        assert!(of_demo.boxlaunch.ends_with(format!("{MUSL}/debug/boxlaunch")));
        assert_eq!(of_demo.box_init, artefacts.box_init);
        let line = program::shown(&Artefacts::init_build(&workspace));
        let expected = format!("--package box-init --target {MUSL} --config {LESS_ZSTD}");
        assert!(line.ends_with(&expected), "{line}");
    }
}

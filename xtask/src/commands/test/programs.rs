//! The test programs of the workspace: compiled once, found through cargo's messages.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use testkit::{KitError, Result, Workspace, program};

/// The programs that run longest, the longest first: none of them is left over at the end. `oracle` comes
/// late enough that it does not wait for the Debian images that `boot` makes. A wrong order costs time and
/// nothing else.
const LONGEST: [&str; 11] = [
    "boot",
    "build",
    "oracle",
    "hostile",
    "boxfile",
    "vmhost",
    "reproducible",
    "boxfile_spec",
    "it",
    "show",
    "debian",
];

/// A test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestProgram {
    /// Its package, and its target where that has another name: `boxbuild-tests boot`.
    pub(super) name: String,
    target: String,
    executable: PathBuf,
    manifest: PathBuf,
}

/// The fields of cargo's messages that say what was compiled (The Cargo Book, "External tools").
#[derive(Debug, Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

impl TestProgram {
    fn of(message: Message) -> Option<Self> {
        let is_test = message.profile.is_some_and(|profile| profile.test);
        let (executable, manifest) = (message.executable?, message.manifest_path?);
        let target = message.target?.name;
        let package = manifest.parent()?.file_name()?.to_string_lossy().into_owned();
        let same = package.replace('-', "_") == target.replace('-', "_");
        let name = if same { package } else { format!("{package} {target}") };
        is_test.then_some(Self { name, target, executable, manifest })
    }

    /// Returns the command that runs the tests one by one, in the package's directory, as cargo does.
    pub(super) fn command(&self) -> Command {
        let directory = self.manifest.parent().unwrap_or_else(|| Path::new("."));
        let mut command = Command::new(&self.executable);
        command.current_dir(directory).env("CARGO_MANIFEST_DIR", directory);
        command.env("RUST_TEST_THREADS", "1");
        command
    }

    /// Returns the place in the order in which programs start.
    fn place(&self) -> usize {
        LONGEST.iter().position(|name| *name == self.target).unwrap_or(LONGEST.len())
    }
}

/// Compiles all tests and returns their programs, those that run longest first.
///
/// # Errors
/// One does not compile.
pub(super) fn compile(workspace: &Workspace) -> Result<Vec<TestProgram>> {
    let mut command = workspace.cargo();
    command.args([
        "test",
        "--workspace",
        "--no-run",
        "--message-format",
        "json-render-diagnostics",
    ]);
    programs(&program::run(&mut command)?)
}

fn programs(messages: &[u8]) -> Result<Vec<TestProgram>> {
    let messages = serde_json::Deserializer::from_slice(messages).into_iter();
    let messages: std::result::Result<Vec<Message>, _> = messages.collect();
    let messages = messages.map_err(|error| KitError::malformed("cargo's output", error))?;
    let mut programs: Vec<TestProgram> = messages.into_iter().filter_map(TestProgram::of).collect();
    programs.sort_by_key(TestProgram::place);
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_the_messages_and_the_longest_come_first() {
        let messages = r#"
            {"reason": "compiler-artifact", "target": {"name": "a_b"}, "profile": {"test": true},
             "manifest_path": "/w/a-b/Cargo.toml", "executable": "/w/target/a_b-1"}
            {"reason": "compiler-artifact", "target": {"name": "tool"}, "profile": {"test": false},
             "manifest_path": "/w/a-b/Cargo.toml", "executable": "/w/target/tool"}
            {"reason": "compiler-artifact", "target": {"name": "a_b"}, "profile": {"test": false},
             "manifest_path": "/w/a-b/Cargo.toml", "executable": null}
            {"reason": "build-script-executed"}
            {"reason": "compiler-artifact", "target": {"name": "boot"}, "profile": {"test": true},
             "manifest_path": "/w/tests/Cargo.toml", "executable": "/w/target/boot-1"}
            {"reason": "build-finished", "success": true}
        "#;
        let found = programs(messages.as_bytes()).unwrap();
        let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["tests boot", "a-b"]);
        assert_eq!(found[1].command().get_current_dir(), Some(Path::new("/w/a-b")));
    }
}

//! Compiles the test programs of the workspace, and finds them with cargo's JSON messages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use testbed::{KitError, Result, Workspace, program};

/// The test program that starts the virtual host. Cargo runs it only by name, because of `test = false` in tests/Cargo.toml.
const BOOTS: &str = "boxbuild-tests --test boot";

/// A test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestProgram {
    /// The arguments of `cargo test -p` for this program, for example `boxbuild-tests --test boot`.
    pub(super) name: String,
    executable: PathBuf,
    manifest: PathBuf,
}

/// The fields that are used of cargo's [JSON
/// messages](https://doc.rust-lang.org/cargo/reference/external-tools.html#json-messages).
#[derive(Debug, Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    package_id: Option<String>,
    target: Option<Target>,
    profile: Option<Profile>,
    message: Option<Diagnostic>,
}

/// An error or a warning of the compiler.
#[derive(Debug, Deserialize)]
struct Diagnostic {
    rendered: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// The compiler of the workspace's own crates. What one has compiled, the other compiles again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compiler {
    Rustc,
    /// Also applies clippy's lints, and each warning is an error.
    Clippy,
}

impl Compiler {
    /// The variable with the program that [compiles in the place of
    /// rustc](https://doc.rust-lang.org/cargo/reference/config.html#buildrustc-workspace-wrapper).
    const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

    pub(super) fn select(self, cargo: &mut Command) -> &mut Command {
        match self {
            Self::Rustc => cargo,
            Self::Clippy => cargo.env(Self::WRAPPER, "clippy-driver"),
        }
    }
}

impl TestProgram {
    /// Returns a program whose file does not exist, for tests.
    #[cfg(test)]
    pub(super) fn named(name: &str) -> Self {
        let (executable, manifest) = (PathBuf::from("/program"), PathBuf::from("/Cargo.toml"));
        Self { name: name.to_owned(), executable, manifest }
    }

    /// Returns the test program that a message describes. `None` for other messages.
    fn of(message: Message) -> Option<Result<Self>> {
        let is_test = message.profile.as_ref().is_some_and(|profile| profile.test);
        is_test.then(|| {
            Self::read(message)
                .ok_or_else(|| KitError::malformed("cargo's output", "it has no name of a test"))
        })
    }

    fn read(message: Message) -> Option<Self> {
        let (executable, manifest) = (message.executable?, message.manifest_path?);
        let (package, target) = (package_of(&message.package_id?)?.to_owned(), message.target?);
        let name = match target.kind.first()?.as_str() {
            kind @ ("bin" | "test" | "example" | "bench") => {
                format!("{package} --{kind} {}", target.name)
            }
            _ => format!("{package} --lib"),
        };
        Some(Self { name, executable, manifest })
    }

    /// Returns whether the tests of this program start the virtual host.
    pub(super) fn boots(&self) -> bool {
        self.name == BOOTS
    }

    /// Returns the command that runs the tests in the package's directory, as cargo does.
    pub(super) fn command(&self) -> Command {
        let directory = self.manifest.parent().unwrap_or_else(|| Path::new("."));
        let mut command = Command::new(&self.executable);
        command.current_dir(directory).env("CARGO_MANIFEST_DIR", directory);
        command
    }

    /// Returns the lines of the program's list of tests, without their ends.
    ///
    /// # Errors
    /// The program does not list them.
    pub(super) fn list(&self) -> Result<Vec<String>> {
        let text = program::run(self.command().args(["--list", "--format", "terse"]))?;
        let test = |line: &str| line.strip_suffix(": test").map(str::to_owned);
        Ok(String::from_utf8_lossy(&text).lines().filter_map(test).collect())
    }

    /// Returns the command lines that run `tests` again, even tests with `#[ignore]`. If `tests` is empty, they run all tests of
    /// the program. The program that boots takes one name.
    pub(super) fn repeats(&self, tests: &[String]) -> String {
        let all = format!("cargo test -p {} -- --include-ignored", self.name);
        let exactly = |names: &[String]| format!("{all} --exact {}", names.join(" "));
        match tests {
            [] => all,
            tests if self.boots() => tests.chunks(1).map(exactly).collect::<Vec<_>>().join("\n"),
            tests => exactly(tests),
        }
    }
}

/// Returns the name of a package from its [ID](https://doc.rust-lang.org/cargo/reference/pkgid-spec.html), for example
/// `path+file:///w/cache#box-cache@0.1.0`. If an ID has no name, returns the name of the directory.
fn package_of(id: &str) -> Option<&str> {
    let (place, version) = id.split_once('#')?;
    version.split_once('@').map(|(name, _)| name).or_else(|| place.rsplit('/').next())
}

/// Compiles all tests and returns their programs: first the one that boots, which takes longest, then the integration tests, then
/// all others. Also returns whether the lints of [`Compiler::Clippy`] hold, because the tests run even if they do not.
///
/// # Errors
/// A program does not compile.
pub(super) fn compile(
    workspace: &Workspace,
    compiler: Compiler,
) -> Result<(Vec<TestProgram>, Result<()>)> {
    let compile = |arguments: &[&str]| {
        let mut command = workspace.cargo();
        command.args(["test", "--workspace", "--no-run", "--message-format", "json"]);
        let output = program::finish(compiler.select(command.args(arguments)))?;
        let messages = messages(&output.stdout)?;
        if !output.status.success() {
            let text = said(&messages) + &String::from_utf8_lossy(&output.stderr);
            return Err(program::failed(&command, output.status, text.as_bytes()));
        }
        let lints = if compiler == Compiler::Clippy { unwarned(&messages) } else { Ok(()) };
        programs(messages).map(|found| (found, lints))
    };
    let (mut found, lints) = compile(&[])?;
    let (boot, of_boot) = compile(&["--test", "boot"])?;
    found.extend(boot);
    found.sort_by_key(|it| (!it.boots(), !it.name.contains(" --test "), it.name.clone()));
    Ok((found, lints.and(of_boot)))
}

fn messages(output: &[u8]) -> Result<Vec<Message>> {
    let messages = serde_json::Deserializer::from_slice(output).into_iter();
    messages
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| KitError::malformed("cargo's output", error))
}

fn programs(messages: Vec<Message>) -> Result<Vec<TestProgram>> {
    let found: Vec<_> = messages.into_iter().filter_map(TestProgram::of).collect::<Result<_>>()?;
    if found.is_empty() {
        return Err(KitError::malformed("cargo's output", "it has no test programs"));
    }
    Ok(found)
}

/// Fails if the compiler has warned.
fn unwarned(messages: &[Message]) -> Result<()> {
    let output = said(messages);
    if output.is_empty() {
        return Ok(());
    }
    Err(KitError::Failed { command: "clippy".to_owned(), status: "warnings".to_owned(), output })
}

/// Returns what the compiler has printed, each text once: a file belongs to several programs.
fn said(messages: &[Message]) -> String {
    let texts = messages.iter().filter_map(|it| it.message.as_ref()?.rendered.as_deref());
    Vec::from_iter(texts.collect::<BTreeSet<_>>()).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_the_messages() {
        let text = r#"
            {"reason": "compiler-artifact", "target": {"name": "a_b", "kind": ["lib"]},
             "profile": {"test": true}, "package_id": "path+file:///w/a-b#0.1.0",
             "manifest_path": "/w/a-b/Cargo.toml", "executable": "/w/target/a_b-1"}
            {"reason": "compiler-artifact", "target": {"name": "tool", "kind": ["bin"]},
             "profile": {"test": false}, "package_id": "path+file:///w/a-b#0.1.0",
             "manifest_path": "/w/a-b/Cargo.toml", "executable": "/w/target/tool"}
            {"reason": "compiler-artifact", "target": {"name": "a_b", "kind": ["lib"]},
             "profile": {"test": false}, "package_id": "path+file:///w/a-b#0.1.0",
             "manifest_path": "/w/a-b/Cargo.toml", "executable": null}
            {"reason": "build-script-executed"}
            {"reason": "compiler-artifact", "target": {"name": "boot", "kind": ["test"]},
             "profile": {"test": true}, "package_id": "path+file:///w/tests#box-tests@0.1.0",
             "manifest_path": "/w/tests/Cargo.toml", "executable": "/w/target/boot-1"}
            {"reason": "build-finished", "success": true}
        "#;
        let found = programs(messages(text.as_bytes()).unwrap()).unwrap();
        let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a-b --lib", "box-tests --test boot"]);
        assert_eq!(found[0].command().get_current_dir(), Some(Path::new("/w/a-b")));
        for wrong in [text.replace('#', "?"), text.replace("true}", "false}")] {
            assert!(programs(messages(wrong.as_bytes()).unwrap()).is_err());
        }
    }

    #[test]
    fn a_warning_fails_the_check_and_is_shown_once() {
        let warned = |text: &str| unwarned(&messages(text.as_bytes()).unwrap());
        let warning = r#"{"reason": "compiler-message", "message": {"rendered": "unused: x\n"}}"#;
        let error = warned(&[warning, warning].concat()).unwrap_err().to_string();
        assert_eq!(error.matches("unused: x").count(), 1, "{error}");
        warned(r#"{"reason": "build-finished", "success": true}"#).unwrap();
    }

    #[test]
    fn the_command_that_repeats_names_the_tests() {
        let program = TestProgram::named("box-tests --test boot");
        assert_eq!(
            program.repeats(&[]),
            "cargo test -p box-tests --test boot -- --include-ignored"
        );
        let tests = ["a::one", "b::two"].map(str::to_owned);
        assert_eq!(
            program.repeats(&tests),
            "cargo test -p box-tests --test boot -- --include-ignored --exact a::one b::two"
        );
        let one = "cargo test -p boxbuild-tests --test boot -- --include-ignored --exact";
        let boots = TestProgram::named(BOOTS).repeats(&tests);
        assert_eq!(boots, format!("{one} a::one\n{one} b::two"));
    }
}

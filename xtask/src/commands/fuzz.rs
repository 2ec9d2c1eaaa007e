//! `cargo xtask fuzz`: searches for inputs that break a parser.
//!
//! [libFuzzer](https://llvm.org/docs/LibFuzzer.html) is linked with code that rustc has instrumented with an LLVM pass. The
//! stable toolchain contains this pass, so cargo-fuzz and a nightly compiler are not needed. The targets and the seed inputs
//! are in `fuzz/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use testbed::prerequisites::{Package, packages};
use testbed::{KitError, Result, Workspace, program};
use tool_output::{cargo, say};

use super::Outcome;

/// The targets, which are programs of `fuzz/Cargo.toml`, and the dictionary of each.
const TARGETS: [(&str, &str); 17] = [
    ("archive", "image.dict"),
    ("boxfile_kdl", "boxfile.dict"),
    ("boxfile_toml", "boxfile.dict"),
    ("bundle", "bundle.dict"),
    ("cap_http", "egress.dict"),
    ("command", "command.dict"),
    ("delta", "delta.dict"),
    ("first_bytes", "egress.dict"),
    ("frames", "boot.dict"),
    ("index", "image.dict"),
    ("layer", "layer.dict"),
    ("manifest", "image.dict"),
    ("plan", "boot.dict"),
    ("proxy", "egress.dict"),
    ("service_answer", "service.dict"),
    ("skill_md", "skill.dict"),
    ("ssh_agent", "ssh.dict"),
];

/// The compiler flags for [SanitizerCoverage](https://clang.llvm.org/docs/SanitizerCoverage.html): a counter for each edge, a
/// table that maps edges to functions, and callbacks with the operands of comparisons.
const FLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing";

/// The maximum length of an input, in bytes. Tests cover longer inputs.
const MAX_LEN: u32 = 8192;
/// The target whose inputs are longer, and their maximum length: the smallest file with a box has 19 KiB.
const LONG: (&str, u32) = ("archive", 24 << 10);
/// The time limit for one input, in seconds.
const PATIENCE: u32 = 10;
/// How long `cargo xtask test --all` tries each target, in seconds.
const SECONDS_OF_CHECKS: u32 = 30;
/// The memory limit of the fuzzer, in MiB.
const MEMORY: u32 = 512;

/// The targets to fuzz, and for how long.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  cargo xtask fuzz --seconds 600 boxfile_kdl")]
pub(crate) struct Options {
    /// How long to try each target.
    #[arg(long, default_value_t = 60, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// The targets; all by default.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(TARGETS.map(|it| it.0)))]
    target: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let workspace = Workspace::find();
    say::watch(|| packages(&[Package::Cxx], &mut say::note))?;
    let programs = say::step("compiling the targets", || build(&workspace))?;
    for (target, words) in TARGETS {
        if !options.target.is_empty() && !options.target.iter().any(|wanted| wanted == target) {
            continue;
        }
        say::step(&format!("fuzz {target}"), || {
            fuzz(&workspace, &programs, (target, words), options.seconds)
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Tries each target for [`SECONDS_OF_CHECKS`], as a step of the checks. All targets are tried even if one is broken.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    packages(&[Package::Cxx], &mut say::note)?;
    let programs = build(workspace)?;
    let tried = TARGETS.map(|(target, words)| {
        say::doing(target);
        fuzz(workspace, &programs, (target, words), SECONDS_OF_CHECKS)
    });
    say::doing("");
    let broken: Vec<_> = tried.into_iter().filter_map(Result::err).collect();
    if broken.is_empty() {
        return Ok(());
    }
    let output = broken.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let (command, status) = ("cargo xtask fuzz".to_owned(), format!("{} targets", broken.len()));
    Err(KitError::Failed { command, status, output })
}

/// Builds the targets, and returns their directory.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    // With an explicit `--target`, cargo builds build scripts and procedural macros without `RUSTFLAGS`. Instrumented
    // code must be linked with libFuzzer, and they are not.
    let host = program::run(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let host = String::from_utf8_lossy(&host).trim().to_owned();
    let mut build = workspace.cargo();
    build
        .current_dir(workspace.path("fuzz"))
        .env("CARGO_TARGET_DIR", workspace.target("fuzz"))
        .env("RUSTFLAGS", FLAGS)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .args(["build", "--release", "--bins", "--target", &host]);
    cargo::run(&mut build)?;
    Ok(workspace.target("fuzz").join(host).join("release"))
}

/// Runs a target for so many seconds. Fails if an input breaks the target.
fn fuzz(
    workspace: &Workspace,
    programs: &Path,
    (target, words): (&str, &str),
    seconds: u32,
) -> Result<()> {
    let corpus = made(workspace.target("fuzz/corpus").join(target))?;
    let found = made(workspace.target("fuzz/found").join(target))?;
    let log = found.join("log");
    let file = fs::File::create(&log).map_err(KitError::file("make", &log))?;
    let max_len = if target == LONG.0 { LONG.1 } else { MAX_LEN };
    let mut command = Command::new(programs.join(target));
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={max_len}"))
        .arg(format!("-timeout={PATIENCE}"))
        .arg(format!("-rss_limit_mb={MEMORY}"))
        .arg(format!("-dict={}", workspace.path("fuzz").join(words).display()))
        // libFuzzer treats the prefix as a directory only if it ends with a slash.
        .arg(format!("-artifact_prefix={}/", found.display()))
        .arg(corpus)
        .arg(workspace.path("fuzz/corpus").join(target))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file);
    let status = command.status().map_err(|source| program::not_started(&command, source))?;
    if status.success() {
        return Ok(());
    }
    Err(KitError::Failed {
        command: program::shown(&command),
        status: status.to_string(),
        output: report(&log)?,
    })
}

fn made(directory: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&directory).map_err(KitError::file("make", &directory))?;
    Ok(directory)
}

/// Returns the important lines of the fuzzer's log: the panic or error, and the path of the file with the input. Adds the path of
/// the whole log.
fn report(log: &Path) -> Result<String> {
    let bytes = fs::read(log).map_err(KitError::file("read", log))?;
    let text = String::from_utf8_lossy(&bytes);
    // A panic's message is on the line after its location.
    let above = std::iter::once("").chain(text.lines());
    let lines = text.lines().zip(above).filter(|(line, above)| tells(line) || is_place(above));
    let mut message: Vec<&str> = lines.map(|(line, _)| line).collect();
    let rest = format!("all that it said is in {}", log.display());
    message.push(&rest);
    Ok(message.join("\n"))
}

/// Returns whether a line of libFuzzer's log reports the failure or the file with its input.
fn tells(line: &str) -> bool {
    is_place(line) || ["Test unit written to", "ERROR:"].iter().any(|sign| line.contains(sign))
}

fn is_place(line: &str) -> bool {
    line.contains(" panicked at ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_a_program_with_inputs_to_start_from() {
        let fuzz = Workspace::find().path("fuzz");
        let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
        for (target, words) in TARGETS {
            assert!(fuzz.join(words).is_file(), "{words}");
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
            assert!(fuzz.join(format!("targets/{target}.rs")).is_file(), "{target}");
            assert!(fs::read_dir(fuzz.join("corpus").join(target)).unwrap().count() > 0);
        }
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
    }

    #[test]
    fn what_was_found_is_picked_out_of_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let text = "#2\tINITED cov: 9\nthread '<unnamed>' panicked at src/a.rs:1:2:\nno luck\n\
                    #3\tNEW\nTest unit written to /x/crash-1\n";
        fs::write(&log, text).unwrap();
        let report = report(&log).unwrap();
        let lines: Vec<&str> = report.lines().collect();
        assert_eq!(lines.len(), 4, "{report}");
        assert!(lines[0].contains("panicked at") && lines[1] == "no luck");
        assert!(lines[2].ends_with("/x/crash-1") && lines[3].ends_with("/log"));
    }
}

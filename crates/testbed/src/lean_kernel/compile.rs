//! One run of the kernel's build.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use super::{CONFIG, ELF, config, source::Source};
use crate::prerequisites::Say;
use crate::{KitError, Result, program};

/// The number of compiled files between two lines of progress.
const REPORTED: usize = 250;
/// The prefix of the line that the kernel's build prints for a compiled file.
const COMPILES: &str = "  CC ";
/// The environment variables that affect the kernel's bytes, and their fixed values.
const FIXED: [(&str, &str); 6] = [
    ("KBUILD_BUILD_USER", "boxbuild"),
    ("KBUILD_BUILD_HOST", "boxbuild"),
    ("KBUILD_BUILD_VERSION", "1"),
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970"),
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
];

/// The number of parallel compiler processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jobs(usize);

impl Jobs {
    /// One process for each of the host's processors.
    pub fn of_machine() -> Self {
        Self(thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// One process more than [`Self::of_machine`], so that files are compiled in another order.
    pub fn other() -> Self {
        Self(Self::of_machine().0 + 1)
    }
}

/// The inputs of one compilation.
pub(super) struct Compilation<'a> {
    pub(super) source: &'a Source,
    /// The text of the configuration.
    pub(super) configuration: String,
    pub(super) patches: Vec<PathBuf>,
    pub(super) jobs: Jobs,
}

impl Compilation<'_> {
    /// Compiles the kernel, and writes `vmlinux` and `config` to the directory `into`.
    pub(super) fn run(&self, into: &Path, say: Say<'_>) -> Result<()> {
        let tree = tempfile::tempdir_in(into).map_err(KitError::file("make", into))?;
        say(&format!("unpacking {}", self.source.name()));
        self.source.unpack(tree.path())?;
        for patch in &self.patches {
            let mut command = Command::new("patch");
            command.args(["--strip=1", "--batch", "--fuzz=0", "--input"]).arg(patch);
            program::run(command.current_dir(tree.path()))?;
        }
        self.configure(tree.path(), &into.join(CONFIG))?;
        say("compiling the kernel: some 1,700 files");
        let mut make = make(tree.path());
        make.arg(format!("--jobs={}", self.jobs.0)).arg(ELF);
        with_progress(&mut make, say)?;
        let mut strip = Command::new("strip");
        strip.arg("--strip-all").arg("-o").arg(into.join(ELF));
        program::run(strip.arg(tree.path().join(ELF))).map(drop)
    }

    /// Configures the source in `tree` with the options of the configuration, and all other options off. Writes the complete
    /// configuration to `finished`.
    fn configure(&self, tree: &Path, finished: &Path) -> Result<()> {
        let preset = tree.join("preset.config");
        fs::write(&preset, &self.configuration).map_err(KitError::file("write", &preset))?;
        program::run(make(tree).arg("allnoconfig").env("KCONFIG_ALLCONFIG", &preset))?;
        let made = tree.join(".config");
        let text = fs::read_to_string(&made).map_err(KitError::file("read", &made))?;
        let broken = config::broken(&self.configuration, &text);
        if !broken.is_empty() {
            let reason = format!("in the finished one, {}", broken.join("; "));
            return Err(KitError::malformed("the kernel's configuration", reason));
        }
        fs::write(finished, text).map_err(KitError::file("write", finished))
    }
}

/// Prepares a run of the kernel's build in its tree, in a fixed environment.
fn make(tree: &Path) -> Command {
    let mut make = Command::new("make");
    make.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs(FIXED);
    make.current_dir(tree);
    make
}

/// Runs the build, and reports the number of compiled files from time to time.
fn with_progress(make: &mut Command, say: Say<'_>) -> Result<()> {
    make.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = make.spawn().map_err(|source| program::not_started(make, source))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let reader = thread::spawn(move || {
        let mut output = Vec::new();
        // If the end of the output cannot be read, the error message is only shorter.
        drop(stderr.map(|mut it| it.read_to_end(&mut output)));
        output
    });
    let lines = stdout
        .map(BufReader::new)
        .into_iter()
        .flat_map(BufRead::lines)
        .map_while(std::result::Result::ok);
    let compiled = lines.filter(|line| line.starts_with(COMPILES));
    for (number, _) in compiled.enumerate().filter(|(number, _)| number % REPORTED == REPORTED - 1)
    {
        say(&format!("compiled {} files of the kernel", number + 1));
    }
    let status = child.wait().map_err(|source| program::not_started(make, source))?;
    if status.success() {
        return Ok(());
    }
    let output = reader.join().unwrap_or_default();
    Err(program::failed(make, status, &output))
}

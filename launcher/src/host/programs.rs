//! Finds programs of the host in `PATH`, and runs them with a time limit.

use std::env::split_paths;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::{AccessFlags, access};
use safe_text::shown;

/// The program that connects a box with `network "shared"` to the host's network.
pub const PASST: &str = "passt";
/// How often to check whether a running program has ended.
const LOOK: Duration = Duration::from_millis(1);
/// How long a program may take to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// An installed program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The absolute path of its file.
    pub path: PathBuf,
    /// The first line of its output with `--version`, safe for a terminal; `None` if the command fails or prints no
    /// such line.
    pub version: Option<String>,
}

/// Finds a program in the absolute directories of a `PATH`, as a shell does, and runs it to get its version.
pub fn find(name: &str, path: &OsStr) -> Option<Tool> {
    let path = locate(name, path)?;
    Some(Tool { version: version(&path), path })
}

/// Finds a program in the absolute directories of a `PATH`, as a shell does.
pub(crate) fn locate(name: &str, path: &OsStr) -> Option<PathBuf> {
    all(name, path).next()
}

/// Returns all programs of a name in the absolute directories of a `PATH`, in the order in which a shell looks for them.
pub fn all(name: &str, path: &OsStr) -> impl Iterator<Item = PathBuf> {
    split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(move |directory| directory.join(name))
        .filter(|file| file.is_file() && access(file, AccessFlags::X_OK).is_ok())
}

fn version(path: &Path) -> Option<String> {
    let output = output_within(Command::new(path).arg("--version"), VERSION_LIMIT).ok()??;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().map(str::trim).filter(|line| !line.is_empty())?;
    output.status.success().then(|| shown(line))
}

/// Runs a program without input, and returns its output. The output must fit into the buffers of two pipes, because it
/// is read only after the program has ended. A program that does not end within `limit` is killed; the result is
/// `None`.
///
/// # Errors
/// If the program cannot be started.
pub(crate) fn output_within(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let deadline = Instant::now() + limit;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
    child.wait_with_output().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn output_comes_with_the_status() {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "echo out; echo err >&2; exit 7"]);
        let output = output_within(&mut shell, Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(output.status.code(), Some(7));
        assert_eq!((&*output.stdout, &*output.stderr), (&b"out\n"[..], &b"err\n"[..]));
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let began = Instant::now();
        let mut sleeper = Command::new("/bin/sleep");
        let limit = Duration::from_millis(20);
        assert!(output_within(sleeper.arg("600"), limit).unwrap().is_none());
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn the_first_executable_file_is_found() {
        let root = tempfile::tempdir().unwrap();
        let path = ["a", "b", "c"].map(|name| root.path().join(name));
        for (directory, mode, text) in [
            (&path[0], 0o644, "#!/bin/sh\n"),
            (&path[1], 0o755, "#!/bin/sh\necho \"tool 1.2 $1\"; echo more\n"),
            (&path[2], 0o755, "#!/bin/sh\nexit 1\n"),
        ] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("tool"), text).unwrap();
            fs::set_permissions(directory.join("tool"), fs::Permissions::from_mode(mode)).unwrap();
        }
        let find =
            |directories: &[PathBuf]| find("tool", &std::env::join_paths(directories).unwrap());
        let found = find(&path).unwrap();
        assert_eq!(found.path, path[1].join("tool"));
        assert_eq!(found.version.as_deref(), Some("tool 1.2 --version"));
        assert_eq!(find(&path[2..]).unwrap().version, None);
        assert_eq!(find(&path[..1]), None);
    }
}

//! The results of a run, read from the result disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::plan::{End, OUT, STREAMS, Status, end_name, status_name, stream_name};
use crate::scratch::Scratch;
use crate::{HostError, Result};

/// The size of a tar block.
const BLOCK: u64 = 512;

/// The result of a run of one command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// The exit status, as in a shell: 128 plus the signal's number if a signal ended the command.
    pub status: i32,
    /// The bytes that the command wrote to its standard output.
    pub stdout: Vec<u8>,
    /// The bytes that the command wrote to its standard error.
    pub stderr: Vec<u8>,
    /// The regular files that the command left in `/out`, by their paths relative to it.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// The uptime of the virtual host at the end, in seconds of virtual time.
    pub uptime: String,
    /// The console output of the virtual host's kernel and init.
    pub console: Vec<u8>,
}

/// The results of the commands of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// The results, in the order of the commands.
    pub ended: Vec<Ended>,
    /// See [`Output::files`].
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// See [`Output::uptime`].
    pub uptime: String,
    /// See [`Output::console`].
    pub console: Vec<u8>,
}

/// The result of one of several commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// See [`Output::status`].
    pub status: i32,
    /// The bytes that the command wrote to its standard output.
    pub stdout: Vec<u8>,
    /// The bytes that the command wrote to its standard error.
    pub stderr: Vec<u8>,
    /// The time from the command's start to its end, in virtual time.
    pub taken: Duration,
}

impl Output {
    /// Converts the results of a run that had one command.
    pub fn of_only(run: Run) -> Self {
        let Ended { status, stdout, stderr, .. } = run.ended.into_iter().next().unwrap_or_default();
        Self { status, stdout, stderr, files: run.files, uptime: run.uptime, console: run.console }
    }

    /// Writes the files that the command left into a directory, which is made if it does not exist.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn write_files(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).map_err(HostError::file("make", directory))?;
        for (name, content) in &self.files {
            let path = directory.join(name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(HostError::file("make", folder))?;
            }
            fs::write(&path, content).map_err(HostError::file("write", &path))?;
        }
        Ok(())
    }
}

/// Reads the result from its disk. Returns `None` if there is none, or if it is truncated.
pub(crate) fn read(disk: &Scratch) -> Result<Option<Run>> {
    parse(disk.file()).map_err(HostError::file("read", &disk.path()))
}

/// Like [`read`], from the bytes of a disk.
pub(crate) fn parse(disk: impl Read) -> io::Result<Option<Run>> {
    members(disk).map(sort)
}

/// Returns the length of the archive at the start of a disk, with the two blocks that end it.
pub(crate) fn length(disk: impl Read) -> io::Result<u64> {
    let mut end = 0;
    for entry in tar::Archive::new(disk).entries()? {
        let entry = entry?;
        end = entry.raw_file_position() + entry.size().next_multiple_of(BLOCK);
    }
    Ok(end + 2 * BLOCK)
}

fn members(archive: impl Read) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut members = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            members.insert(String::from_utf8_lossy(&entry.path_bytes()).into_owned(), content);
        }
    }
    Ok(members)
}

fn sort(mut members: BTreeMap<String, Vec<u8>>) -> Option<Run> {
    let End { uptime } = serde_json::from_slice(&members.remove(&end_name())?).ok()?;
    let mut ended = Vec::new();
    while let Some(status) = members.remove(&status_name(ended.len())) {
        let Status { status, taken_ns } = serde_json::from_slice(&status).ok()?;
        let [out, err] = STREAMS.map(|stream| members.remove(&stream_name(ended.len(), stream)));
        let (stdout, stderr) = (out?, err?);
        ended.push(Ended { status, stdout, stderr, taken: Duration::from_nanos(taken_ns) });
    }
    if ended.is_empty() {
        return None;
    }
    let prefix = format!("{}/", OUT.trim_start_matches('/'));
    let out = |(name, content): (String, _)| Some((safe(name.strip_prefix(&prefix)?)?, content));
    let files = members.into_iter().filter_map(out).collect();
    Some(Run { ended, files, uptime, console: Vec::new() })
}

/// Returns the path if it cannot lead out of the directory to which it is joined: `a/b`, but not `../a` or `/a`.
fn safe(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(name);
    path.components().all(|part| matches!(part, Component::Normal(_))).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(files: &[(&str, &str)]) -> Option<Run> {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(content.len() as u64);
            header.set_cksum();
            archive.append(&header, content.as_bytes()).unwrap();
        }
        sort(members(archive.into_inner().unwrap().as_slice()).unwrap())
    }

    const WHOLE: [(&str, &str); 4] = [
        ("result/0.json", r#"{"status":7,"taken_ns":5}"#),
        ("result/0.stdout", "out"),
        ("result/0.stderr", "err"),
        ("result/end.json", r#"{"uptime":"2.50"}"#),
    ];

    #[test]
    fn a_result_is_taken_apart() {
        let files = [&WHOLE[..], &[("out/a/b", "x"), ("out/../../etc/passwd", "y")]].concat();
        let run = result(&files).unwrap();
        assert_eq!(run.ended[0].taken, Duration::from_nanos(5));
        let output = Output::of_only(run);
        assert_eq!((output.status, output.uptime.as_str()), (7, "2.50"));
        assert_eq!((&*output.stdout, &*output.stderr), (&b"out"[..], &b"err"[..]));
        assert_eq!(output.files, BTreeMap::from([(PathBuf::from("a/b"), b"x".to_vec())]));
        let directory = tempfile::tempdir().unwrap();
        output.write_files(directory.path()).unwrap();
        assert_eq!(fs::read(directory.path().join("a/b")).unwrap(), b"x");
    }

    #[test]
    fn an_empty_disk_and_half_a_result_are_none() {
        assert!(sort(members(&[0; 4096][..]).unwrap()).is_none());
        assert!(result(&WHOLE[..3]).is_none());
        assert!(result(&[WHOLE[0], WHOLE[1], WHOLE[3]]).is_none());
        assert!(result(&WHOLE[3..]).is_none(), "no command ran");
    }
}

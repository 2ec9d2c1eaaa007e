//! The result of a command, read from the result disk.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::{KitError, Result};

const RESULT: &str = "vmhost/result/";

/// The result of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit status, as a shell sees it: 128 and the signal's number where one ended it.
    pub status: i32,
    /// The bytes that the command wrote to its standard output.
    pub stdout: Vec<u8>,
    /// The bytes that the command wrote to its standard error.
    pub stderr: Vec<u8>,
    /// The regular files that it left in `/out`, by their paths below it.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// The machine's age at the end, in virtual time.
    pub uptime: String,
    /// The console output of the machine's kernel and init.
    pub console: Vec<u8>,
}

impl Output {
    /// Writes the files that the command left into a directory, made where it is missing.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn write_files(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).map_err(KitError::file("make", directory))?;
        for (name, content) in &self.files {
            let path = directory.join(name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(KitError::file("make", folder))?;
            }
            fs::write(&path, content).map_err(KitError::file("write", &path))?;
        }
        Ok(())
    }
}

/// Reads a result; nothing where none was left or it was cut off.
pub(super) fn read(disk: &Path) -> Result<Option<Output>> {
    let file = File::open(disk).map_err(KitError::file("open", disk))?;
    let members = members(file).map_err(KitError::file("read", disk))?;
    Ok(sort(members))
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

fn sort(mut members: BTreeMap<String, Vec<u8>>) -> Option<Output> {
    let mut take = |name: &str| members.remove(&format!("{RESULT}{name}"));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
    let status = text(take("status")?).parse().ok()?;
    let (stdout, stderr) = (take("stdout")?, take("stderr")?);
    let uptime = text(take("uptime")?);
    let out = |(name, content): (String, _)| Some((safe(name.strip_prefix("out/")?)?, content));
    let files = members.into_iter().filter_map(out).collect();
    Some(Output { status, stdout, stderr, files, uptime, console: Vec::new() })
}

/// Returns the path where it stays below the directory that it is joined to.
fn safe(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(name);
    path.components().all(|part| matches!(part, std::path::Component::Normal(_))).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::Layer;

    fn result(layer: Layer) -> Option<Output> {
        sort(members(layer.to_tar().bytes()).unwrap())
    }

    fn whole() -> Layer {
        Layer::new()
            .dir("vmhost/result", 0o755)
            .file("vmhost/result/status", 0o644, "7\n")
            .file("vmhost/result/stdout", 0o644, "out")
            .file("vmhost/result/stderr", 0o644, "err")
            .file("vmhost/result/uptime", 0o644, "2.50\n")
    }

    #[test]
    fn a_result_is_taken_apart() {
        let layer = whole().file("out/a/b", 0o644, "x").file("out/../../etc/passwd", 0o644, "y");
        let output = result(layer).unwrap();
        assert_eq!((output.status, output.uptime.as_str()), (7, "2.50"));
        assert_eq!(
            (output.stdout.as_slice(), output.stderr.as_slice()),
            (&b"out"[..], &b"err"[..])
        );
        assert_eq!(output.files, BTreeMap::from([(PathBuf::from("a/b"), b"x".to_vec())]));
        let directory = tempfile::tempdir().unwrap();
        output.write_files(directory.path()).unwrap();
        assert_eq!(fs::read(directory.path().join("a/b")).unwrap(), b"x");
    }

    #[test]
    fn an_empty_disk_holds_no_result() {
        assert!(result(Layer::new()).is_none());
        assert!(sort(members(&[0; 4096][..]).unwrap()).is_none());
        assert!(result(Layer::new().file("vmhost/result/status", 0o644, "0")).is_none());
    }
}

//! A run whose inputs are all written: its key, its start, and the record of its result.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write, sink};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use box_digest::{Blake3Digest, Hasher};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::disk::Disk;
use crate::output::{self, Run};
use crate::qemu::{self, EMULATOR};
use crate::scratch::Scratch;
use crate::{HostError, Result, programs};

/// The number of bytes of the console's log, or of QEMU's output, in an error.
const CONSOLE_SHOWN: usize = 3000;
/// The first part of a key. Change it together with the format of [`Finished::record`].
const FORM: &[u8] = b"boxbuild virtual host 1";

/// A run of a virtual host that is ready to start. Its result depends only on its inputs; see [`Self::key`].
#[derive(Debug)]
pub struct Prepared {
    command: Command,
    /// The first one is for the result.
    disks: Vec<Disk>,
    /// Exists until the run has ended.
    _initramfs: Scratch,
    console: Scratch,
    limit: Duration,
}

/// A run that has ended with a result.
#[derive(Debug)]
pub struct Finished {
    /// The result.
    pub run: Run,
    /// Whether QEMU ended because the virtual host powered off.
    in_order: bool,
    result: Scratch,
}

impl Prepared {
    pub(crate) fn new(
        command: Command,
        disks: Vec<Disk>,
        [initramfs, console]: [Scratch; 2],
        limit: Duration,
    ) -> Self {
        Self { command, disks, _initramfs: initramfs, console, limit }
    }

    /// Returns the digest of everything that the result depends on: QEMU's version, program and firmware, its command line, and the
    /// bytes of each file that a word of it names. Two runs with the same key have the same result, in the same virtual time.
    ///
    /// # Errors
    /// QEMU is missing, a file cannot be read, or a word with a slash does not name a file.
    pub fn key(&self) -> Result<Blake3Digest> {
        let mut key = Hasher::default();
        add(&mut key, FORM);
        qemu::add_identity(|part| add(&mut key, part))?;
        // The words before are of the program that starts QEMU.
        for word in self.command.get_args().skip_while(|word| *word != EMULATOR) {
            if !word.as_bytes().contains(&b'/') {
                add(&mut key, word.as_bytes());
                continue;
            }
            let (option, path) = named_file(word).ok_or_else(|| {
                HostError::malformed(word.to_string_lossy(), "this word of QEMU names no file")
            })?;
            add(&mut key, option.as_bytes());
            add_file(&mut key, &path).map_err(HostError::file("read", &path))?;
        }
        Ok(key.digest())
    }

    /// Starts the virtual host, and waits for its end.
    ///
    /// # Errors
    /// QEMU does not start, the time limit is reached, or the virtual host stops without a result. The last two errors contain the
    /// end of the console's log.
    pub fn start(self) -> Result<Finished> {
        self.start_with(&mut sink(), &mut sink())
    }

    /// Like [`Self::start`], and forwards QEMU's output.
    pub(crate) fn start_with(
        self,
        out: &mut (dyn Write + Send),
        err: &mut (dyn Write + Send),
    ) -> Result<Finished> {
        let Self { command, disks, _initramfs, console, limit } = self;
        let end = qemu::run(command, limit, out, err)?;
        let log = fs::read(console.path()).unwrap_or_default();
        let console = programs::tail(&log, CONSOLE_SHOWN);
        let Some(status) = end.status else {
            return Err(HostError::TimeLimit { limit, console });
        };
        let mut disks = disks.into_iter().map(|disk| disk.content);
        let result = disks.next().map_or_else(Scratch::new, Ok)?;
        let printed = programs::tail(&end.stderr, CONSOLE_SHOWN);
        let nothing = HostError::NoResult { status: status.to_string(), qemu: printed, console };
        let mut run = output::read(&result)?.ok_or(nothing)?;
        run.console = log;
        Ok(Finished { run, in_order: status.success(), result })
    }
}

impl Finished {
    /// Returns the bytes from which [`recall`] makes the same result again, without the console's log: the result's disk, up to the
    /// end of its archive, which the virtual host has written last. `None` if QEMU did not end because the virtual host powered off.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn record(&self) -> Result<Option<Vec<u8>>> {
        if !self.in_order {
            return Ok(None);
        }
        let path = self.result.path();
        let read = || {
            let length = output::length(File::open(&path)?)?;
            let mut record = Vec::new();
            File::open(&path)?.take(length).read_to_end(&mut record)?;
            io::Result::Ok(record)
        };
        read().map(Some).map_err(HostError::file("read", &path))
    }
}

/// Returns the result of the run with this record. `None` if it is not a whole record.
pub fn recall(record: &[u8]) -> Option<Run> {
    output::parse(record).ok()?
}

/// Adds bytes and their length, so that two parts never have the bytes of two others.
fn add(key: &mut Hasher<box_digest::Blake3>, bytes: &[u8]) {
    key.update(&(bytes.len() as u64).to_le_bytes());
    key.update(bytes);
}

/// Adds the content of a file. A file without data, such as the empty disk for the result, is added by its size alone.
fn add_file(key: &mut Hasher<box_digest::Blake3>, path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    if seek(&file, SeekFrom::Data(0)) == Err(Errno::NXIO) {
        add(key, format!("{size} zeros").as_bytes());
        return Ok(());
    }
    seek(&file, SeekFrom::Start(0))?;
    let (digest, _) = Blake3Digest::of_reader(file)?;
    add(key, digest.to_string().as_bytes());
    Ok(())
}

/// Splits a word of QEMU's command line that names an existing file: `file:/a,,b` into `file:` and `/a,b`.
fn named_file(word: &OsStr) -> Option<(String, PathBuf)> {
    let text = word.to_str()?;
    let (option, path) = text.split_at(text.find('/')?);
    let path = PathBuf::from(path.replace(",,", ","));
    path.is_file().then(|| (option.to_owned(), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> Scratch {
        let scratch = Scratch::new().unwrap();
        scratch.file().write_all(content).unwrap();
        scratch
    }

    fn key_of(content: &[u8]) -> Blake3Digest {
        let mut key = Hasher::default();
        add_file(&mut key, &file(content).path()).unwrap();
        key.digest()
    }

    #[test]
    fn a_word_that_names_a_file_is_split_at_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a,b");
        fs::write(&path, "x").unwrap();
        let escaped = path.to_str().unwrap().replace(',', ",,");
        let split = named_file(OsStr::new(&format!("mem-path={escaped}")));
        assert_eq!(split, Some(("mem-path=".to_owned(), path)));
        assert_eq!(named_file(OsStr::new("qboot.rom")), None);
        assert_eq!(named_file(OsStr::new("file:/nowhere/at/all")), None);
    }

    #[test]
    fn the_content_of_a_file_is_in_the_key_and_not_its_path() {
        assert_eq!(key_of(b"one"), key_of(b"one"));
        assert_ne!(key_of(b"one"), key_of(b"two"));
        assert_ne!(key_of(b""), key_of(b"\0"));
    }

    #[test]
    fn half_a_record_is_none() {
        assert_eq!(recall(b""), None);
        assert_eq!(recall(&[9; 600]), None);
        assert_eq!(recall(&[0; 1024]), None);
    }
}

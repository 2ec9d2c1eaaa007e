//! The kernel's source: a pinned Debian package, or the newest version of the package if the pinned one is no longer available.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::prerequisites::{Say, download};
use crate::{KitError, Result, digest, program};

pub(crate) const PACKAGE: &str = "linux-source-6.12";
const VERSION: &str = "6.12.117-1~deb12u1";
pub(super) const SHA256: &str = "e849faf31ca3555757f3a8877cb01af92122f744f75d1f3102734651c4e14703";
/// The file with the metadata of the downloaded package, in the same directory.
const NOTE: &str = "source.json";
/// The name of the package's file, independent of its version.
const FILE: &str = "linux-source.deb";

/// A source package, which may not be downloaded yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    version: String,
    /// The sha256 of the package that was pinned when this one was downloaded.
    pinned: String,
    /// The sha256 of the package's file, in hexadecimal.
    pub(super) sha256: String,
    #[serde(skip)]
    folder: PathBuf,
}

impl Source {
    /// Returns the downloaded package, or else the pinned one.
    pub(super) fn known(folder: &Path) -> Self {
        let note = fs::read(folder.join(NOTE)).ok();
        let known = note.and_then(|note| serde_json::from_slice::<Self>(&note).ok());
        let known = known.filter(|known| known.pinned == SHA256);
        let folder = folder.to_owned();
        match known {
            Some(known) => Self { folder, ..known },
            None => Self {
                version: VERSION.to_owned(),
                pinned: SHA256.to_owned(),
                sha256: SHA256.to_owned(),
                folder,
            },
        }
    }

    /// Returns the source. A missing one is downloaded first.
    pub(super) fn get(folder: &Path, say: Say<'_>) -> Result<Self> {
        let known = Self::known(folder);
        // A file with another digest is from an interrupted download, or was downloaded for another pin.
        if known.file().is_file() && digest::check(&known.file(), &known.sha256).is_ok() {
            return Ok(known);
        }
        let scratch = tempfile::tempdir_in(folder).map_err(KitError::file("make", folder))?;
        let pinned = format!("{PACKAGE}={VERSION}");
        let file = match download(&[&pinned], scratch.path(), say) {
            Ok(file) => file,
            Err(error) => {
                say(&format!(
                    "{pinned} is no longer available, so the newest of its series is taken: {error}"
                ));
                download(&[PACKAGE], scratch.path(), say)?
            }
        };
        let file = file.first().ok_or_else(|| KitError::malformed(PACKAGE, "it has no file"))?;
        let source = Self {
            version: version(file)?,
            pinned: SHA256.to_owned(),
            sha256: digest::of_file(file)?.hex(),
            folder: folder.to_owned(),
        };
        if source.version == VERSION {
            digest::check(file, SHA256)?;
        }
        source.keep(file)?;
        Ok(source)
    }

    fn keep(&self, file: &Path) -> Result<()> {
        fs::rename(file, self.file()).map_err(KitError::file("rename", file))?;
        let note = self.folder.join(NOTE);
        let text = serde_json::to_vec(self).map_err(|error| KitError::malformed(NOTE, error))?;
        fs::write(&note, text).map_err(KitError::file("write", &note))
    }

    fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Returns the package's name and version.
    pub(super) fn name(&self) -> String {
        format!("{PACKAGE} {}", self.version)
    }

    /// Unpacks the source into an empty directory.
    pub(super) fn unpack(&self, into: &Path) -> Result<()> {
        let scratch = tempfile::tempdir_in(into).map_err(KitError::file("make", into))?;
        program::run(Command::new("dpkg-deb").arg("-x").arg(self.file()).arg(scratch.path()))?;
        let archive = scratch.path().join(format!("usr/src/{PACKAGE}.tar.xz"));
        let mut tar = Command::new("tar");
        tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(into);
        program::run(tar.args(["--strip-components=1", "--no-same-owner"])).map(drop)
    }
}

fn version(package: &Path) -> Result<String> {
    let text = program::run(Command::new("dpkg-deb").arg("-f").arg(package).arg("Version"))?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

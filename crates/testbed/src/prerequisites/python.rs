//! Python on the virtual host: the interpreter of this host, with its standard library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use virtual_host::VirtualHost;

use super::{Package, Say, packages, with_program};
use crate::{KitError, Result, elf, program};

/// The interpreter of Debian's package. The first one in `PATH` may be another one.
const PYTHON: &str = "/usr/bin/python3";
/// Prints the directory of the standard library, and the file of its module for TLS.
const ASK: &str =
    "import sysconfig, _ssl; print(sysconfig.get_path('stdlib'), _ssl.__file__, sep='\\n')";

/// Adds Python with its standard library to a virtual host, as `/usr/bin/python3`.
///
/// # Errors
/// Python is missing and cannot be installed, or its libraries cannot be found.
pub fn with_python(host: VirtualHost, say: Say<'_>) -> Result<VirtualHost> {
    packages(&[Package::Python], say)?;
    let answer = program::run(Command::new(PYTHON).args(["-c", ASK]))?;
    let answer = String::from_utf8_lossy(&answer);
    let (library, tls) = answer.trim().split_once('\n').unwrap_or_default();
    let interpreter =
        fs::canonicalize(PYTHON).map_err(KitError::file("find", Path::new(PYTHON)))?;
    let host = with_program(host, &interpreter, PYTHON)?;
    // The libraries of the module are not those of the interpreter.
    let libraries = elf::libraries(Path::new(tls))?;
    let host = libraries.into_iter().fold(host, |host, path| host.file(path.clone(), path));
    Ok(host.disk(PathBuf::from(library), library))
}

//! Single files: those with variables, the init and the kernel.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use box_image::{ComponentName, Digest};
use boxfile_spec::{Platform, Source, Sources, dotenv};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, elf};
use sha2::{Digest as _, Sha256};

use super::{Request, declared};
use crate::project::read_bounded;
use crate::{BuildError, Report, checkout};

/// The most bytes that an init or a kernel may have.
const FILE_MAX: u64 = 512 << 20;

/// A file with variables, as the lock pins it.
pub(super) struct EnvFile {
    pub(super) path: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// The variables of all files of a component, the later over the earlier.
type Env = BTreeMap<ComponentName, BTreeMap<String, String>>;

/// Reads the files with variables of all components.
pub(super) fn env(request: &Request<'_>) -> Result<(Vec<EnvFile>, Env), BuildError> {
    let (mut files, mut env) = (Vec::new(), Env::new());
    for component in ComponentName::ALL {
        let Some(declared) = declared(request.boxfile, component) else { continue };
        for file in &declared.env_files {
            let path = request.base.join(&file.value);
            let read = |source| BuildError::EnvFile { span: file.span, path: path.clone(), source };
            checkout::inside(request.checkout, &path).map_err(read)?;
            let bytes = read_bounded(&path, dotenv::MAX_DOTENV as u64 + 1).map_err(read)?;
            let (digest, size) = (sha256(&bytes), bytes.len() as u64);
            files.push(EnvFile { path: file.value.clone(), digest, size });
            env.entry(component).or_default().extend(variables(&path, bytes)?);
        }
    }
    Ok((files, env))
}

fn variables(path: &Path, bytes: Vec<u8>) -> Result<BTreeMap<String, String>, BuildError> {
    let name = path.display().to_string();
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        BuildError::NotText { path: path.to_owned(), at }
    })?;
    match dotenv::parse(&text) {
        Ok(variables) => {
            Ok(variables.into_iter().map(|(name, value)| (name, value.value)).collect())
        }
        Err(diagnostics) => Err(Report::new(Sources::single(Source::new(name, text)), diagnostics)
            .map_or_else(
                || BuildError::NotText { path: path.to_owned(), at: 0 },
                |report| BuildError::Rejected(Box::new(report)),
            )),
    }
}

/// Returns the sha256 of bytes.
pub(super) fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

/// Reads the init, which must be a static program for the platform.
pub(super) fn init(request: &Request<'_>) -> Result<Vec<u8>, BuildError> {
    let init = read_file("init", request.init)?;
    if !is_static_program(&init, request.platform) {
        let (path, platform) = (request.init.to_owned(), request.platform);
        return Err(BuildError::NotAnInit { path, platform });
    }
    Ok(init)
}

/// Reads the kernel, which must be the one that the Boxfile names, if it names one.
pub(super) fn kernel(request: &Request<'_>) -> Result<Vec<u8>, BuildError> {
    let kernel = read_file("kernel", request.kernel)?;
    let declared = request.boxfile.kernel.as_ref().and_then(|kernel| kernel.sha256);
    let Some(expected) = declared.map(|it| Digest::from_bytes(it.0)) else { return Ok(kernel) };
    let found = sha256(&kernel);
    if found == expected {
        return Ok(kernel);
    }
    Err(BuildError::WrongKernel { path: request.kernel.to_owned(), expected, found })
}

fn read_file(what: &'static str, path: &Path) -> Result<Vec<u8>, BuildError> {
    let failed = |source| BuildError::Read { what, path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_file() && metadata.len() <= FILE_MAX {
        return fs::read(path).map_err(failed);
    }
    Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is no file of a sensible size")))
}

/// Whether a file is a program for the platform that needs no dynamic linker.
fn is_static_program(file: &[u8], platform: Platform) -> bool {
    let Ok(elf_file) = ElfFile64::<Endianness>::parse(file) else { return false };
    let (header, endian) = (elf_file.elf_header(), elf_file.endian());
    let interpreter =
        elf_file.elf_program_headers().iter().any(|it| it.p_type(endian) == elf::PT_INTERP);
    let program = matches!(header.e_type(endian), elf::ET_EXEC | elf::ET_DYN);
    let machine = match platform {
        Platform::LinuxAmd64 => elf::EM_X86_64,
        Platform::LinuxArm64 => elf::EM_AARCH64,
    };
    program && header.e_machine(endian) == machine && !interpreter
}

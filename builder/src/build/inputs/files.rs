//! Single files: those with variables, the init and the kernel.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use box_image::{ComponentName, Digest};
use boxfile_spec::{Boxfile, Component, Diagnostic, Platform, Source, Sources, Spanned, dotenv};
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
            let variables = variables(&path, bytes, declared, request.boxfile)?;
            env.entry(component).or_default().extend(variables);
        }
    }
    Ok((files, env))
}

fn variables(
    path: &Path,
    bytes: Vec<u8>,
    component: &Component,
    boxfile: &Boxfile,
) -> Result<BTreeMap<String, String>, BuildError> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        BuildError::NotText { path: path.to_owned(), at }
    })?;
    let (found, variables) = match dotenv::parse(&text) {
        Ok(variables) => (secrets(&variables, component, boxfile), variables),
        Err(diagnostics) => (diagnostics.into_iter().collect(), dotenv::Variables::new()),
    };
    let sources = Sources::single(Source::new(path.display().to_string(), masked(&text)));
    if let Some(report) = Report::new(sources, found) {
        return Err(BuildError::Rejected(Box::new(report)));
    }
    Ok(variables.into_iter().map(|(name, value)| (name, value.value)).collect())
}

/// Returns the errors of variables that would put a secret into the box. What the Boxfile itself
/// says of a variable counts, and was judged there.
fn secrets(
    variables: &dotenv::Variables,
    component: &Component,
    boxfile: &Boxfile,
) -> Vec<Diagnostic> {
    let declared = |name: &str| boxfile.secrets.iter().any(|secret| secret.name.value == name);
    let error = |(name, value): (&String, &Spanned<String>)| {
        let message = if declared(name) {
            format!("`{name}` is declared as a secret, and has a value here")
        } else if boxfile_spec::looks_secret(name, &value.value) {
            format!("`{name}` looks like a secret written as a plain value")
        } else {
            return None;
        };
        let help = format!(
            "take it out of this file, and declare it by name alone in the Boxfile, as the secret \
             `{name}`; if it is none, write it there as `plain-env`"
        );
        let error = Diagnostic::new(message, value.span, "it would be in every box");
        Some(error.with_help(help))
    };
    variables
        .iter()
        .filter(|(name, _)| !component.env.contains_key(*name))
        .filter_map(error)
        .collect()
}

/// Hides the values of a text of variables, so that no message shows one; every place stays where it
/// was.
fn masked(text: &str) -> String {
    let hidden = |part: &str| -> String {
        part.chars()
            .map(|c| if c == '\r' { "\r".to_owned() } else { "*".repeat(c.len_utf8()) })
            .collect()
    };
    let line = |line: &str| match line.split_once('=') {
        Some((name, value)) => format!("{name}={}", hidden(value)),
        None if line.trim_start().starts_with('#') => line.to_owned(),
        None => hidden(line),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_a_file_is_shown_and_every_place_stays() {
        let text = "# a = b\nNAME=sécret \"x\r\nrest of it\nA B=c\n";
        let hidden = masked(text);
        assert_eq!(hidden.len(), text.len());
        assert_eq!(hidden, "# a =**\nNAME=**********\r\n**********\nA B=*\n");
    }
}

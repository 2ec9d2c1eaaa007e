//! Single files: those with variables, the init and the kernel.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use box_digest::Digest;
use box_image::secrets::looks_secret;
use box_image::{ComponentName, SecretPlan};
use boxfile_spec::{Boxfile, Diagnostic, Source, Sources, Spanned, dotenv};
use host_fs::read::{Links, ReadError, open_regular, read_open, read_prefix};
use host_fs::{FileError, inside};

use crate::binary::{self, Program};
use crate::compose::Env;
use crate::pipeline::request::{InputError, InputFile, InputKind, Request};
use crate::{BuildError, Report};

/// The most bytes that an init or a kernel may have.
const FILE_MAX: u64 = 512 << 20;

/// A file with variables, as the lock pins it.
pub(super) struct EnvFile {
    pub(super) path: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// The init or the kernel, hashed once for all who ask.
pub(in crate::pipeline) struct Tool {
    pub(in crate::pipeline) bytes: Vec<u8>,
    pub(super) sha256: Digest,
}

impl Tool {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { sha256: Digest::of(&bytes), bytes }
    }
}

/// Reads the files with variables of all components.
pub(super) fn env(request: &Request<'_>) -> Result<(Vec<EnvFile>, Env), BuildError> {
    let (mut files, mut env) = (Vec::new(), Env::new());
    for component in ComponentName::ALL {
        let Some(declared) = request.boxfile.component(component) else { continue };
        for file in &declared.env_files {
            let path = request.base.join(&file.value);
            let read = || {
                inside::check(&request.checkout, &path)?;
                Ok(read_prefix(&path, Links::Follow, dotenv::MAX_DOTENV as u64 + 1)?)
            };
            let bytes = read().map_err(|error: io::Error| {
                BuildError::at(Some(file.span), FileError::of("read", &path)(error))
            })?;
            let (digest, size) = (Digest::of(&bytes), bytes.len() as u64);
            files.push(EnvFile { path: file.value.clone(), digest, size });
            let variables = variables(&path, bytes, component, request.boxfile)?;
            env.entry(component).or_default().extend(variables);
        }
    }
    Ok((files, env))
}

fn variables(
    path: &Path,
    bytes: Vec<u8>,
    component: ComponentName,
    boxfile: &Boxfile,
) -> Result<BTreeMap<String, String>, BuildError> {
    let text = host_fs::read::text(path, bytes)?;
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
    component: ComponentName,
    boxfile: &Boxfile,
) -> Vec<Diagnostic> {
    let gets = |secret: &SecretPlan| secret.scope.includes(component);
    let declared = |name: &str| boxfile.secrets.iter().any(|it| it.name == name && gets(it));
    let error = |(name, value): (&String, &Spanned<String>)| {
        let message = if declared(name) {
            format!("`{name}` is declared as a secret, and has a value here")
        } else if looks_secret(name, &value.value) {
            boxfile_spec::plain_secret(name)
        } else {
            return None;
        };
        let whose = match component {
            ComponentName::Agent => "",
            ComponentName::Business => " with `component` \"business\"",
        };
        let help = format!(
            "take it out of this file, and declare it by name alone in the Boxfile, as the secret \
             `{name}`{whose}; if it is not a secret, write it there as `plain-env`"
        );
        let error = Diagnostic::new(message, value.span, "it would be in every box");
        Some(error.with_help(help))
    };
    let own = boxfile.component(component).map(|it| &it.env);
    let judged = |name: &str| own.is_some_and(|env| env.contains_key(name));
    variables.iter().filter(|(name, _)| !judged(name)).filter_map(error).collect()
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

/// Reads the init, which must be a static program for the platform.
pub(super) fn init(request: &Request<'_>) -> Result<Tool, BuildError> {
    let (file, bytes) = read_input(InputKind::Init, &request.init)?;
    let platform = request.platform;
    match binary::inspect(&file, platform) {
        Ok(Program::Static) => Ok(Tool::new(bytes)),
        _ => Err(BuildError::NotAnInit { path: request.init.path.clone(), platform }),
    }
}

/// Reads the kernel, which must be the one that the Boxfile names, if it names one.
pub(super) fn kernel(request: &Request<'_>) -> Result<Tool, BuildError> {
    let kernel = Tool::new(read_input(InputKind::Kernel, &request.kernel)?.1);
    let declared = request.boxfile.kernel.as_ref().and_then(|kernel| kernel.sha256);
    match declared {
        Some(expected) if expected != kernel.sha256 => Err(BuildError::WrongFile {
            span: request.kernel.named_by.span(),
            what: format!("the kernel {}", request.kernel.path.display()),
            expected,
            found: kernel.sha256,
        }),
        _ => Ok(kernel),
    }
}

/// Reads a whole file, and returns it opened, too.
fn read_input(kind: InputKind, file: &InputFile) -> Result<(File, Vec<u8>), BuildError> {
    let read = || {
        let file = open_regular(&file.path, Links::Follow)?;
        let bytes = read_open(&file, FILE_MAX)?;
        Ok((file, bytes))
    };
    read().map_err(|error: ReadError| {
        let error = InputError { kind, file: file.clone(), source: error.into() };
        BuildError::at(file.named_by.span(), error)
    })
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

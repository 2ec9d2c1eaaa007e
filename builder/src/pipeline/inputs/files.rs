//! Single files: environment files, the init and the kernel.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use ::checkout::dotenv;
use box_contract::ComponentName;
use box_contract::rules::{MAX_INIT, MAX_KERNEL};
use box_contract::wire::INIT_MARK;
use box_digest::Digest;
use boxfile_spec::Boxfile;
use diagnostics::{Diagnostic, Source, Sources};
use host_fs::read::{Links, ReadError, open_regular, read_open, read_open_prefix};
use host_fs::{FileError, checkout};
use memchr::memmem;
use safe_text::secrets::masked_env_file;

use crate::binary::{self, Program};
use crate::compose::Env;
use crate::pipeline::request::{InputError, InputFile, InputKind, Request};
use crate::{BuildError, Report};

/// An environment file, as the lock pins it.
pub(super) struct EnvFile {
    pub(super) path: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// The init or the kernel, hashed once for all uses.
pub(in crate::pipeline) struct Tool {
    pub(in crate::pipeline) bytes: Vec<u8>,
    pub(super) sha256: Digest,
}

impl Tool {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { sha256: Digest::of(&bytes), bytes }
    }
}

/// Reads the environment files of all components.
pub(super) fn env(request: &Request<'_>) -> Result<(Vec<EnvFile>, Env), BuildError> {
    let (mut files, mut env) = (Vec::new(), Env::new());
    for component in ComponentName::ALL {
        let Some(declared) = request.boxfile.component(component) else { continue };
        for file in &declared.env_files {
            let path = request.base.join(&file.value);
            let read = || {
                let file = checkout::open(&request.checkout, &path)?;
                read_open_prefix(&file, dotenv::MAX_DOTENV as u64 + 1)
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
        Err(diagnostics) => (diagnostics.as_slice().to_vec(), dotenv::Variables::new()),
    };
    let sources = Sources::single(Source::new(path.display().to_string(), masked_env_file(&text)));
    if let Some(report) = Report::new(&sources, &found) {
        return Err(BuildError::Rejected(Box::new(report)));
    }
    Ok(variables.into_iter().map(|(name, value)| (name, value.value)).collect())
}

/// Reads the init, which must be box-init, linked statically for the platform.
pub(super) fn init(request: &Request<'_>) -> Result<Tool, BuildError> {
    let (file, bytes) = read_input(InputKind::Init, &request.init)?;
    let refused = |expected| BuildError::NotAnInit { path: request.init.path.clone(), expected };
    if !matches!(binary::inspect(&file, request.platform), Ok(Program::Static)) {
        return Err(refused(format!("a static program for {}", request.platform)));
    }
    // A box with another static program as its init would be built, but fail when it starts.
    if memmem::find(&bytes, INIT_MARK.as_bytes()).is_none() {
        return Err(refused(format!("box-init: it lacks the text \"{INIT_MARK}\"")));
    }
    Ok(Tool::new(bytes))
}

/// Reads the kernel, which must have the digest in the Boxfile, if the Boxfile has one.
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

/// Reads the init or the kernel. Returns the open file and its bytes.
fn read_input(kind: InputKind, file: &InputFile) -> Result<(File, Vec<u8>), BuildError> {
    let read = || {
        let file = open_regular(&file.path, Links::Follow)?;
        let most = match kind {
            InputKind::Kernel => MAX_KERNEL,
            InputKind::Init => MAX_INIT,
        };
        let bytes = read_open(&file, most)?;
        Ok((file, bytes))
    };
    read().map_err(|error: ReadError| {
        let error = InputError { kind, file: file.clone(), source: error.into() };
        BuildError::at(file.named_by.span(), error)
    })
}

/// Returns an error for each variable that would put a secret into the box. Variables that the Boxfile sets itself were
/// checked when the Boxfile was read.
fn secrets(
    variables: &dotenv::Variables,
    component: ComponentName,
    boxfile: &Boxfile,
) -> Vec<Diagnostic> {
    let declared = boxfile.secrets.iter().filter(|it| it.scope.includes(component));
    let declared = declared.map(|it| it.name.as_str()).collect();
    let own = boxfile.component(component).map(|it| &it.env);
    let is_judged = |name: &str| own.is_some_and(|env| env.contains_key(name));
    dotenv::secrets(variables, component, &declared, is_judged)
}

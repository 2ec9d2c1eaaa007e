//! The agent's program, if it is not in an image.

use std::path::PathBuf;

use box_cache::Store;
use box_digest::Digest;
use box_tree::Tree;
use boxfile_spec::{Binary as Declared, Boxfile};
use diagnostics::Span;
use download::fetch::{RemoteUrl, fetch};
use host_fs::{FileError, checkout};

use crate::BuildError;
use crate::binary::{self, Binary, BinaryError, Program};
use crate::pipeline::request::Request;

/// Reads the program into the store.
pub(super) fn read(
    declared: &Declared,
    request: &Request<'_>,
    store: &Store,
) -> Result<Binary, BuildError> {
    match declared {
        Declared::Local { path, sha256 } => {
            let failed = |source| unusable(path.span, source);
            let file = in_checkout(&path.value, request).map_err(failed)?;
            let binary = binary::from_checkout(&request.checkout, &file, request.platform, store)
                .map_err(failed)?;
            check_digest(binary.sha256, *sha256, path.span)?;
            Ok(binary)
        }
        Declared::Remote { url, sha256 } => {
            let span = url.span;
            let of_url = "the URL of the agent's program cannot be used";
            let remote: RemoteUrl =
                url.value.parse().map_err(|error| BuildError::unusable(of_url, span, error))?;
            let unfetched = "the agent's program cannot be fetched";
            let fetched = fetch(&remote, sha256, store, &request.fetch)
                .map_err(|error| BuildError::unusable(unfetched, span, error))?;
            binary::from_store(&fetched.blob, &remote.without_query(), request.platform, store)
                .map_err(|source| unusable(span, source))
        }
    }
}

/// Checks a program of the checkout without a store. A program that is downloaded is not checked.
pub(super) fn check(declared: &Declared, request: &Request<'_>) -> Result<(), BuildError> {
    let Declared::Local { path, sha256 } = declared else { return Ok(()) };
    let failed = |source| unusable(path.span, source);
    let file = in_checkout(&path.value, request).map_err(failed)?;
    let opened = binary::open(&request.checkout, &file).map_err(failed)?;
    let name = file.display().to_string();
    let program = binary::inspect(&opened, request.platform)
        .map_err(|source| failed(BinaryError::Program { name, source }))?;
    let (found, _) = Digest::of_reader(&opened)
        .map_err(|error| failed(FileError::of("read", &file)(error).into()))?;
    check_digest(found, *sha256, path.span)?;
    check_root(&program, request.boxfile)
}

fn unusable(span: Span, error: BinaryError) -> BuildError {
    BuildError::unusable("the agent's program cannot be used", span, error)
}

/// Converts a path of the Boxfile to a path relative to the checkout.
fn in_checkout(path: &str, request: &Request<'_>) -> Result<PathBuf, BinaryError> {
    let root = request.checkout.root();
    let base = root.and_then(|root| checkout::relative(root.path(), request.base));
    Ok(base.map_err(FileError::of("read", request.base))?.join(path))
}

fn check_digest(found: Digest, expected: Option<Digest>, span: Span) -> Result<(), BuildError> {
    let Some(expected) = expected.filter(|it| *it != found) else { return Ok(()) };
    let (span, what) = (Some(span), "the agent's program".to_owned());
    Err(BuildError::WrongFile { span, what, expected, found })
}

/// Checks that the agent has an image if its program needs an interpreter or a dynamic linker: only an image can
/// contain it.
pub(super) fn check_root(program: &Program, boxfile: &Boxfile) -> Result<(), BuildError> {
    match program {
        Program::By(needs) if boxfile.agent.component.image.is_none() => {
            Err(no_interpreter(boxfile, needs, "only an image can"))
        }
        _ => Ok(()),
    }
}

/// Checks that the agent's image has the program's interpreter or dynamic linker.
pub(in crate::pipeline) fn check_interpreter(
    program: &Program,
    root: &Tree,
    boxfile: &Boxfile,
) -> Result<(), BuildError> {
    match program {
        Program::By(needs) if root.lookup(needs).is_none() => {
            Err(no_interpreter(boxfile, needs, "the agent's image does not"))
        }
        _ => Ok(()),
    }
}

/// Returns the error of a program without its interpreter or dynamic linker.
fn no_interpreter(boxfile: &Boxfile, interpreter: &[u8], lacking: &'static str) -> BuildError {
    let span = boxfile.agent.binary.as_ref().map(Declared::span).unwrap_or_default();
    let interpreter = String::from_utf8_lossy(interpreter).escape_debug().to_string();
    BuildError::NoInterpreter { span, interpreter, lacking }
}

//! The provenance of a box: the Boxfile, its lock, and the inputs that the lock pins.

use std::path::Path;

use box_contract::ErrorCode;
use box_digest::Digest;
use box_trust::{Input, Provenance};
use boxbuild::project::LockFile;
use boxbuild::project::lock::LockEntry;
use boxbuild::resolve;
use host_fs::FileError;
use host_fs::read::{Links, read_file};

use super::Args;
use crate::cli::failure::{Failure, of_build};
use crate::cli::loaded::{Loaded, Tools};
use crate::cli::locking::Fixed;
use crate::cli::options::{LockedOption, lock_command};

/// The default of `--builder-id`: somebody's host, of which nothing is known.
pub(super) const LOCAL_BUILDER: &str = "https://boxbuild.invalid/builder/local";

/// Parses a URI, such as `https://github.com/acme/hello/.github/workflows/box.yml@refs/heads/main`.
pub(super) fn builder_id(text: &str) -> Result<String, &'static str> {
    let is_scheme = |it: &str| {
        it.starts_with(|c: char| c.is_ascii_alphabetic())
            && it.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    let has_scheme =
        text.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty());
    match has_scheme && text.bytes().all(|it| it.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        false => Err("a URI has a scheme and no spaces, such as https://ci.example.com/job"),
    }
}

/// Returns the provenance of a box that was built from a Boxfile and its lock.
///
/// # Errors
/// The lock is missing or out of date, or the store has no build of these inputs, or that build is another box.
pub(super) fn of(args: &Args, digest: &Digest) -> Result<Provenance, Failure> {
    let (project, inputs) = (&args.project, &args.inputs);
    let loaded = Loaded::read(project, args.profile.name.as_deref())?;
    let platform = loaded.platform(None)?;
    let locked = LockedOption { locked: true };
    let file = loaded.lock_file(inputs).map_err(|error| locked.blame(error.into()))?;
    let command = lock_command(project, inputs);
    let fixed = Fixed { file: &file, option: "", command: &command };
    fixed.check_declared(&loaded, platform)?;
    let tools = Tools::find(inputs, project.json)?;
    let old = file.lock.as_ref();
    let request = tools.request(&loaded, platform, old, &[])?;
    let failed = |error| locked.blame_pin(of_build(&error, &loaded.sources));
    request.check_platform().map_err(failed)?;
    let resolved = resolve(&request, &tools.store).map_err(failed)?;
    let lock = resolved.lock();
    fixed.check_resolved(&loaded.declarations().updated(old, &lock, loaded.target(platform)))?;
    let built = resolved.recalled().map_err(failed)?.map(|it| it.sealed.manifest);
    check_box(built, digest)?;
    let mut all = own_files(&loaded, &file)?;
    all.extend(lock.entries().map(input));
    Ok(Provenance {
        boxfile: in_checkout(&loaded, &loaded.project.file),
        profile: loaded.profile_name().map(str::to_owned),
        inputs: all,
        builder: args.builder_id.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Checks that the store's build of the inputs is the box.
fn check_box(built: Option<Digest>, digest: &Digest) -> Result<(), Failure> {
    let Some(built) = built else {
        let help = "run `boxbuild build --locked` here first, with the same options, and with `--no-cache` if it takes layers from a registry";
        let message = "the store has no build of this Boxfile and its lock, so nothing shows that they made the box";
        return Err(Failure::new((ErrorCode::BoxNotFound, help), message));
    };
    if built == *digest {
        return Ok(());
    }
    let help = "run this in the checkout from which the box was built, with the same --profile";
    let message = format!("this Boxfile and its lock make the box {built}, not {digest}");
    Err(Failure::new((ErrorCode::DigestMismatch, help), message))
}

/// Returns the Boxfile, the files that it extends, and the lock as inputs.
fn own_files(loaded: &Loaded, lock: &LockFile) -> Result<Vec<Input>, Failure> {
    let input = |path: &Path, bytes: &[u8]| Input {
        uri: in_checkout(loaded, path),
        digest: Digest::of(bytes).into(),
    };
    let sources = loaded.sources.as_slice().iter();
    let mut all: Vec<_> =
        sources.map(|it| input(Path::new(&it.name), it.text.as_bytes())).collect();
    let path = lock.path();
    let limit = boxbuild::project::lock::MAX_TEXT as u64;
    let bytes = read_file(path, Links::Follow, limit).map_err(std::io::Error::from);
    all.push(input(path, &bytes.map_err(FileError::of("read", path))?));
    Ok(all)
}

/// Returns the path of a file in its checkout. A file outside of it has its name alone, because the path on this host tells nothing.
fn in_checkout(loaded: &Loaded, file: &Path) -> String {
    let root = loaded.project.checkout.directory().and_then(|it| it.canonicalize().ok());
    let path = file.canonicalize().ok();
    let relative =
        root.zip(path).and_then(|(root, path)| Some(path.strip_prefix(root).ok()?.to_owned()));
    let name = || file.file_name().unwrap_or_default().into();
    relative.unwrap_or_else(name).to_string_lossy().into_owned()
}

/// Returns a pinned input. Its URI is as the Boxfile has it, or the entry's name for a kernel or an init that boxbuild chose.
fn input(entry: &LockEntry) -> Input {
    let uri = if entry.source.is_empty() { &entry.name } else { &entry.source };
    Input { uri: uri.clone(), digest: entry.digest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_builder_is_a_uri() {
        for uri in [
            LOCAL_BUILDER,
            "https://github.com/a/b/.github/workflows/c.yml@refs/heads/main",
            "urn:a:b",
        ] {
            assert_eq!(builder_id(uri).unwrap(), uri);
        }
        for text in ["", "ci", "https:", "my ci: yes", "1a:b", "https://a b", ":b"] {
            builder_id(text).unwrap_err();
        }
    }

    #[test]
    fn only_the_box_of_the_build_has_its_provenance() {
        let [one, other] = [Digest::of(b"1"), Digest::of(b"2")];
        check_box(Some(one), &one).unwrap();
        assert!(check_box(Some(other), &one).unwrap_err().has(ErrorCode::DigestMismatch));
        assert!(check_box(None, &one).unwrap_err().has(ErrorCode::BoxNotFound));
    }
}

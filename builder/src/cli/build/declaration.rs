//! The declaration of a box: what decides which content from outside of the checkout it gets, and with which rights.
//!
//! `boxlaunch up` asks for it, because the box of a project can write to all of it. A box that changes the files, skills and images of
//! its own project gains nothing. One that changes the Boxfile, a Boxfile that it extends, a pin of the lock or the kernel may get what
//! only the user can read; and so may one that puts a link to another image in place of an image of its project.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use box_contract::{ComponentName, ErrorCode, ImageRef};
use box_digest::{Blake3Digest, Digest};
use boxbuild::project::lock::{Lock, LockEntry, PinKind};
use host_fs::read::{Links, open_regular};
use serde_json::json;

use super::super::failure::Failure;
use super::super::loaded::Loaded;
use super::super::terminal;

/// What `boxlaunch up` asks.
#[derive(Debug, clap::Args)]
pub(super) struct DeclarationOptions {
    /// Print the digest of the declaration, and build nothing
    #[arg(long, hide = true, requires_all = ["for_start", "file"])]
    declared: bool,
    /// Build only if the declaration has this digest
    #[arg(long, hide = true, requires_all = ["for_start", "file"], value_name = "DIGEST")]
    expect_declared: Option<Digest>,
    /// Also print the digest of the declaration that was built, with the pins that the build has written
    #[arg(long, hide = true, requires_all = ["for_start", "file"])]
    report_declared: bool,
}

impl DeclarationOptions {
    /// Answers `--declared`, and checks the digest of `--expect-declared`. Returns whether there is nothing else to do.
    pub(super) fn answer(
        &self,
        loaded: &Loaded,
        lock: Option<&Lock>,
        as_json: bool,
    ) -> Result<bool, Failure> {
        if !self.declared && self.expect_declared.is_none() {
            return Ok(false);
        }
        let digest = digest(loaded, lock)?;
        if self.expect_declared.is_some_and(|it| it != digest) {
            let message = format!("{} has changed meanwhile", loaded.project.file.display());
            return Err(Failure::new((ErrorCode::Usage, "run the command again"), message));
        }
        if self.declared {
            let report = || json!({ "declared": digest }).to_string();
            terminal::result(&if as_json { report() } else { digest.to_string() });
        }
        Ok(self.declared)
    }

    /// Returns the digest of `--report-declared`, of the Boxfiles as the build has read them.
    pub(super) fn built(&self, loaded: &Loaded, lock: &Lock) -> Result<Option<Digest>, Failure> {
        self.report_declared.then(|| digest(loaded, Some(lock))).transpose()
    }
}

/// Returns the digest of the declaration: the texts of the Boxfile and of those that it extends, the pins of `lock` for content from
/// outside of the checkout, the places outside to which the paths of images lead, and the content of the kernel that the Boxfile names.
fn digest(loaded: &Loaded, lock: Option<&Lock>) -> Result<Digest, Failure> {
    let texts: Vec<_> = loaded.sources.as_slice().iter().map(|it| &it.text).collect();
    let boxfile = loaded.boxfile();
    let components = ComponentName::ALL.into_iter().filter_map(|it| boxfile.component(it));
    let images = components.filter_map(|it| it.image.as_ref()).map(|it| &it.value);
    let places: BTreeMap<_, _> = images
        .filter_map(|it| Some((it.to_string(), outside(loaded, it.path()?))))
        .filter(|(_, places)| !places.is_empty())
        .collect();
    let entries = lock.into_iter().flat_map(Lock::entries).filter(|it| is_fetched(it, &places));
    let pins: Vec<_> =
        entries.map(|it| (&it.name, &it.source, it.platform, it.digest.to_string())).collect();
    let kernel = boxfile.kernel.as_ref().and_then(|it| it.path.as_ref());
    let kernel = kernel.map(|it| kernel_digest(&loaded.project.base.join(&it.value)));
    let declaration = json!([texts, pins, places, kernel.transpose()?]);
    Ok(Digest::of(declaration.to_string().as_bytes()))
}

/// Returns whether the content of an entry is from outside of the checkout. `places` has the images of files for which it is.
fn is_fetched(entry: &LockEntry, places: &BTreeMap<String, Vec<String>>) -> bool {
    let is_local = || ImageRef::LOCAL_PREFIXES.iter().any(|it| entry.source.starts_with(it));
    match entry.kind {
        PinKind::Url => true,
        PinKind::Image => !is_local() || places.contains_key(&entry.source),
        _ => false,
    }
}

/// How many levels below its directory an image layout has files: `blobs/sha256/DIGEST`.
const DEPTH: usize = 3;

/// Returns the paths outside of the checkout to which a path of an image leads, or a part of it that is a link.
fn outside(loaded: &Loaded, image: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(&loaded.project.base.join(image), DEPTH, &mut found);
    let checkout = loaded.project.checkout.directory();
    found.retain(|it| checkout.is_none_or(|checkout| !it.starts_with(checkout)));
    found.sort();
    found.dedup();
    found.iter().map(|it| it.to_string_lossy().into_owned()).collect()
}

/// Collects the real path of a file, and those of the files below a directory as far as they are links.
fn collect(path: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    // What does not exist is an error of the build.
    found.extend(path.canonicalize());
    let Some(depth) = depth.checked_sub(1) else { return };
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let kind = entry.file_type().ok();
        if kind.is_some_and(|it| it.is_symlink() || it.is_dir()) {
            collect(&entry.path(), depth, found);
        }
    }
}

/// Returns the digest of a kernel that is a file. `None` for the name of an installed one, and for a file that cannot be opened, which
/// the build reports.
fn kernel_digest(path: &Path) -> Result<Option<Blake3Digest>, Failure> {
    let file = open_regular(path, Links::Follow).ok();
    let digest = file.map(Blake3Digest::of_reader).transpose();
    digest.map(|it| it.map(|it| it.0)).map_err(|error| {
        Failure::new(ErrorCode::Io, format!("cannot read {}: {error}", path.display()))
    })
}

//! The declaration of a box: what decides which content from outside of the checkout it gets, and with which rights.
//!
//! `boxlaunch up` asks for it, because the box of a project can write to all of it. A box that changes the files, skills and images of
//! its own project gains nothing. One that changes the Boxfile, a Boxfile that it extends, a pin of the lock or the kernel may get what
//! only the user can read.

use std::path::Path;

use box_contract::{ErrorCode, ImageRef};
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
}

/// Returns the digest of the declaration: the texts of the Boxfile and of those that it extends, the pins of `lock` for content that is
/// fetched, and the content of the kernel that the Boxfile names.
fn digest(loaded: &Loaded, lock: Option<&Lock>) -> Result<Digest, Failure> {
    let texts: Vec<_> = loaded.sources.as_slice().iter().map(|it| &it.text).collect();
    let entries = lock.into_iter().flat_map(Lock::entries).filter(|it| is_fetched(it));
    let pins: Vec<_> =
        entries.map(|it| (&it.name, &it.source, it.platform, it.digest.to_string())).collect();
    let kernel = loaded.boxfile().kernel.as_ref().and_then(|it| it.path.as_ref());
    let kernel = kernel.map(|it| kernel_digest(&loaded.project.base.join(&it.value)));
    Ok(Digest::of(json!([texts, pins, kernel.transpose()?]).to_string().as_bytes()))
}

/// Returns whether the content of an entry is fetched, and is not a file of the checkout.
fn is_fetched(entry: &LockEntry) -> bool {
    match entry.kind {
        PinKind::Url => true,
        PinKind::Image => !ImageRef::LOCAL_PREFIXES.iter().any(|it| entry.source.starts_with(it)),
        _ => false,
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

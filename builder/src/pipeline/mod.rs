//! The pipeline in two phases: [`resolve`] reads all inputs of a build and determines the lock's pins. Then
//! [`Resolved`] builds the box, takes it from the store, or previews it.

mod bake;
mod cached;
mod inputs;
mod layers;
mod preview;
mod recall;
mod request;
mod resolved;
mod root;
mod step;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use box_cache::{ActionKey, Store};
use box_contract::RunPlan;
use box_contract::manifest::MAX_SEGMENTS;
use box_digest::Digest;
use box_tree::Tree;
use box_tree::listing::Listing;
use guest_kernel::{Kernel, KernelError};
use rayon::prelude::*;

use crate::compose::ComposeError;
use crate::compose::merged::Unused;
use crate::error::Cause;
use crate::pack::{ContentMap, Pack, PackDamaged};
use crate::seal::{BoxParts, Stored, seal};
use crate::{BuildError, Sealed};
use bake::{Segments, metadata};
pub use cached::{CachedLayer, CachedLayers};
use inputs::Inputs;
pub use inputs::{Checked, check};
pub use preview::{Composition, LayerState, Preview, PreviewFile, PreviewImage, PreviewSkill};
use recall::{recall, record};
pub use request::{InputError, InputFile, InputKind, NamedBy, Request};
pub use resolved::{BootDigests, Build, Resolved};
use root::{Root, root};
pub use step::{Observer, Step};

/// The maximum number of times that a build decodes the same layer again because its data was damaged or gone.
const ATTEMPTS: u8 = 8;

/// Resolves all inputs of a build: images to digests, and files to their contents. No layer is decoded, and no rootfs
/// is written. If this version cannot build for the platform, the init and the kernel are not read.
///
/// # Errors
/// [`BuildError`].
pub fn resolve<'a>(request: &'a Request<'a>, store: &'a Store) -> Result<Resolved<'a>, BuildError> {
    let inputs = Inputs::resolve(request, store)?;
    Ok(Resolved {
        request,
        store,
        inputs,
        observer: None,
        decoded: Mutex::default(),
        cached: CachedLayers::default(),
        is_afresh: false,
    })
}

impl Resolved<'_> {
    /// Builds the box into the store, or takes it from there.
    ///
    /// # Errors
    /// [`BuildError`]. The store may then have some parts of the box, all undamaged.
    pub fn build(&self) -> Result<Build, BuildError> {
        self.request.check_platform()?;
        if let Some(build) = self.recalled()? {
            return Ok(build);
        }
        let key = self.key();
        let (sealed, unused) = self.retry_damaged(|| self.make())?;
        let lacks = |(blob, _): &(Digest, u64)| self.store.size(blob).is_none();
        let absent: Vec<_> = sealed.blobs().into_iter().filter(lacks).map(|it| it.0).collect();
        let has_cached_layers = self.cached.is_used();
        if has_cached_layers {
            return Ok(Build { sealed, cached: false, unused, absent, has_cached_layers });
        }
        let mut actions = layers::keys(&self.inputs);
        actions.extend(self.inputs.binary.as_ref().map(|it| it.key()));
        record(self.store, &key, &sealed, &unused, &actions)?;
        self.vouch(&sealed);
        Ok(Build { sealed, cached: false, unused, absent, has_cached_layers })
    }

    /// Returns the key of the box: a hash of everything on which its bytes depend.
    pub fn key(&self) -> ActionKey {
        self.inputs.key(self.request)
    }

    /// Returns the box, if the store has it with all its blobs undamaged. `None` after [`Self::afresh`].
    ///
    /// # Errors
    /// [`BuildError`], if the store cannot be read.
    pub fn recalled(&self) -> Result<Option<Build>, BuildError> {
        if self.is_afresh { Ok(None) } else { recall(self.store, &self.key()) }
    }

    /// Records in the store that the blobs of a new box were just written or verified, so that the next command need
    /// not hash them.
    fn vouch(&self, sealed: &Sealed) {
        for (blob, _) in sealed.blobs() {
            if let Ok(file) = self.store.open_blob(&blob) {
                self.store.note_written(&blob, &file);
            }
        }
    }

    /// Returns the root tree of the box, with every file of the rootfs, without writing a rootfs.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn root_tree(&self) -> Result<Tree, BuildError> {
        self.request.check_platform()?;
        self.retry_damaged(|| root(self)).map(|root| root.tree)
    }

    /// Runs a stage that reads the decoded layers. If the store's data of a layer is damaged or gone, the store
    /// forgets the layer, so that the next attempt decodes it again, up to [`ATTEMPTS`] times. One attempt may not be
    /// enough, because concurrent builds of refused images may remove the layer again.
    fn retry_damaged<T>(&self, stage: impl Fn() -> Result<T, BuildError>) -> Result<T, BuildError> {
        let mut forgotten = HashMap::new();
        let result = loop {
            let result = stage();
            let damaged = result.as_ref().err().and_then(|error| PackDamaged::cause_of(error));
            match damaged.and_then(|PackDamaged(pack)| pack.layer()) {
                Some(key) if is_left(&mut forgotten, key) => {
                    self.store.forget(&key)?;
                    self.cached.forget(&key);
                }
                _ => break result,
            }
        };
        if result.as_ref().is_err_and(is_final) {
            self.remove_decoded();
        }
        result
    }

    /// Records that this build decodes a layer of which the store had no decoded form.
    pub(super) fn decoded_now(&self, key: ActionKey) {
        self.decoded.lock().unwrap_or_else(PoisonError::into_inner).push(key);
    }

    /// Returns whether this build has decoded a layer.
    pub(super) fn has_decoded(&self, key: &ActionKey) -> bool {
        self.decoded.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    /// Removes the layers that were decoded for a refused image: no build would use them, and small blobs can unpack
    /// to much data. A concurrent build that reads them decodes them again.
    fn remove_decoded(&self) {
        let decoded =
            std::mem::take(&mut *self.decoded.lock().unwrap_or_else(PoisonError::into_inner));
        for key in decoded {
            // A layer that cannot be removed only takes space, which is no reason for another error.
            layers::remove(self.store, &key).ok();
        }
    }

    fn make(&self) -> Result<(Sealed, Vec<Unused>), BuildError> {
        let Root { tree, contents, plan, unused } = root(self)?;
        let Kernel { head, data, version: kernel_version } = self.kernel(&plan)?;
        let kernel = Stored::put_pieces(self.store, &[&head, data])?;
        let init = Stored::put(self.store, &self.inputs.init.bytes)?;
        self.report(Step::Write);
        let digest = tree.digest();
        let segments = Segments::choose(&tree, &contents, MAX_SEGMENTS);
        self.check_segments(&segments, &contents)?;
        let listing = Listing { tree, origins: self.origins() };
        let stored = Stored::put(self.store, &listing.encode()?)?;
        // `metadata` drops the tree before it writes, because the writer needs as much memory again.
        let to = (self.store, self.is_afresh);
        let metadata = metadata(listing.tree, &stored.blob, (&segments, &contents), to)?;
        let (segments, listing) = (segments.stored(), stored);
        let parts = BoxParts {
            plan,
            tree: digest,
            kernel_version,
            metadata,
            segments,
            init,
            kernel,
            listing,
        };
        Ok((seal(self.store, parts)?, unused))
    }

    /// Checks that the segments in the store are undamaged. A segment that this build wrote is not hashed again: only
    /// the size of its file is checked.
    fn check_segments(&self, segments: &Segments, contents: &ContentMap) -> Result<(), BuildError> {
        let decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let packs = segments.chosen.iter().filter_map(|it| Some((it, contents.pack_of(*it)?)));
        let is_new = |pack: &Pack| pack.layer().is_some_and(|key| decoded.contains(&key));
        packs.collect::<Vec<_>>().into_par_iter().try_for_each(|(segment, pack)| {
            // The segment of a layer that another host decoded is not here. Only the registry has verified it.
            if let Some(is_elsewhere) = pack.layer().and_then(|key| self.cached.has(&key)) {
                return if is_elsewhere {
                    Ok(())
                } else {
                    Err(BuildError::from(PackDamaged(pack)))
                };
            }
            let is_there = || self.store.size(&segment.blob) == Some(segment.size);
            let is_whole =
                if is_new(&pack) { is_there() } else { self.store.is_whole(&segment.blob) };
            if is_whole { Ok(()) } else { Err(BuildError::from(PackDamaged(pack))) }
        })
    }

    /// Extracts the guest kernel from the kernel's file. Fails if the kernel lacks a feature that the plan needs.
    fn kernel(&self, plan: &RunPlan) -> Result<Kernel<'_>, BuildError> {
        guest_kernel::extract_for(plan, &self.inputs.kernel.bytes)
            .map_err(|source| self.unusable_kernel(source))
    }

    fn unusable_kernel(&self, source: KernelError) -> BuildError {
        let what = format!("the kernel {} cannot be used", self.request.kernel.path.display());
        BuildError::unusable(what, self.request.kernel.named_by.span(), source)
    }
}

/// Counts one attempt to decode a layer again. Returns whether it is allowed.
fn is_left(forgotten: &mut HashMap<ActionKey, u8>, key: ActionKey) -> bool {
    let times = forgotten.entry(key).or_default();
    *times += 1;
    *times <= ATTEMPTS
}

/// Returns whether an error is caused by the images, so that only other images could help. After an error that
/// the user can fix in the Boxfile or on the host, the decoded layers are kept, so that the next attempt is fast.
fn is_final(error: &BuildError) -> bool {
    match error {
        BuildError::Unusable { source, .. } => match &**source {
            Cause::Compose(error) => matches!(error, ComposeError::Unreadable { .. }),
            Cause::Image(_) | Cause::Layer(_) | Cause::Excess(_) | Cause::Listing(_) => true,
            Cause::Bake(error) => !matches!(error, erofs_writer::Error::Write(_)),
            _ => false,
        },
        BuildError::Several(errors) => errors.iter().any(is_final),
        _ => false,
    }
}

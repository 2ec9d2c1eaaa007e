//! The pipeline in two phases: [`resolve`] reads everything that a build reads and says what the lock is
//! to pin; [`Resolved`] then builds the box, or takes it from the store, or previews it.

mod bake;
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
use box_tree::Tree;
use box_tree::listing::Listing;
use guest_kernel::Kernel;
use rayon::prelude::*;

use crate::compose::ComposeError;
use crate::compose::merged::Unused;
use crate::error::Cause;
use crate::pack::{ContentMap, Pack, PackDamaged};
use crate::seal::{BoxParts, Stored, seal};
use crate::{BuildError, Sealed};
use bake::{Segments, metadata};
use inputs::Inputs;
pub use inputs::{Checked, check};
pub use preview::{Composition, LayerState, Preview, PreviewFile, PreviewImage, PreviewSkill};
use recall::{recall, record};
pub use request::{InputError, InputFile, InputKind, NamedBy, Request};
pub use resolved::{Build, Resolved};
use root::{Root, root};
pub use step::{Observer, Step};

/// How often a build decodes a layer again whose data it has not found whole.
const ATTEMPTS: u8 = 8;

/// Resolves everything that a build reads: images to digests, files to their contents. Nothing is
/// decoded or baked, and the platform may be one that cannot be built.
///
/// # Errors
/// [`BuildError`].
pub fn resolve<'a>(request: &'a Request<'a>, store: &'a Store) -> Result<Resolved<'a>, BuildError> {
    let inputs = Inputs::resolve(request, store)?;
    Ok(Resolved { request, store, inputs, observer: None, decoded: Mutex::default() })
}

impl Resolved<'_> {
    /// Builds the box into the store, or takes it from there.
    ///
    /// # Errors
    /// [`BuildError`]; the store then holds at most whole parts of the box.
    pub fn build(&self) -> Result<Build, BuildError> {
        self.request.check_platform()?;
        let key = self.inputs.key(self.request);
        if let Some(build) = recall(self.store, &key)? {
            return Ok(build);
        }
        let (sealed, unused) = self.retry_damaged(|| self.make())?;
        let mut actions = layers::keys(&self.inputs);
        actions.extend(self.inputs.binary.as_ref().map(|it| it.key()));
        record(self.store, &key, &sealed, &unused, &actions)?;
        self.vouch(&sealed);
        Ok(Build { sealed, cached: false, unused })
    }

    /// Notes that the blobs of a box that was made just now were written or verified.
    fn vouch(&self, sealed: &Sealed) {
        for (blob, _) in sealed.blobs() {
            if let Ok(file) = self.store.open_blob(&blob) {
                self.store.note_written(&blob, &file);
            }
        }
    }

    /// Returns the root tree of the box without baking it: every file of the rootfs.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn root_tree(&self) -> Result<Tree, BuildError> {
        self.request.check_platform()?;
        self.retry_damaged(|| root(self)).map(|root| root.tree)
    }

    /// Runs a stage that reads the decoded layers. Where the store's data of a layer turns out to be
    /// damaged or gone, the store forgets that layer, so that the next attempt decodes it again, [`ATTEMPTS`] times: builds of
    /// refused images beside this one may remove it each time.
    fn retry_damaged<T>(&self, stage: impl Fn() -> Result<T, BuildError>) -> Result<T, BuildError> {
        let mut forgotten = HashMap::new();
        let result = loop {
            let result = stage();
            let damaged = result.as_ref().err().and_then(|error| PackDamaged::cause_of(error));
            match damaged.and_then(|PackDamaged(pack)| pack.layer()) {
                Some(key) if is_left(&mut forgotten, key) => self.store.forget(&key)?,
                _ => break result,
            }
        };
        if result.as_ref().is_err_and(is_final) {
            self.remove_decoded();
        }
        result
    }

    /// Notes that this build decodes a layer, which the store did not have.
    pub(super) fn decoded_now(&self, key: ActionKey) {
        self.decoded.lock().unwrap_or_else(PoisonError::into_inner).push(key);
    }

    /// Removes what was decoded for an image that is refused: nobody would ever use it, and small blobs
    /// can unpack to much. Another build that reads it at this moment decodes it again.
    fn remove_decoded(&self) {
        let decoded =
            std::mem::take(&mut *self.decoded.lock().unwrap_or_else(PoisonError::into_inner));
        for key in decoded {
            // What cannot be removed takes space, and is no reason to report another error.
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
        // The tree goes before the metadata are written, which take as much memory again.
        let metadata = metadata(listing.tree, &stored.blob, (&segments, &contents), self.store)?;
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

    /// Checks that the store has the segments undamaged. This build need not hash a segment that it wrote; it only checks that the
    /// file is still there.
    fn check_segments(&self, segments: &Segments, contents: &ContentMap) -> Result<(), BuildError> {
        let decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let packs = segments.chosen.iter().filter_map(|it| Some((it, contents.pack_of(*it)?)));
        let is_new = |pack: &Pack| pack.layer().is_some_and(|key| decoded.contains(&key));
        packs.collect::<Vec<_>>().into_par_iter().try_for_each(|(segment, pack)| {
            let is_there = || self.store.size(&segment.blob) == Some(segment.size);
            let is_whole =
                if is_new(&pack) { is_there() } else { self.store.is_whole(&segment.blob) };
            if is_whole { Ok(()) } else { Err(BuildError::from(PackDamaged(pack))) }
        })
    }

    /// Returns the guest kernel that is in the kernel's file, and has what a box with this plan needs.
    fn kernel(&self, plan: &RunPlan) -> Result<Kernel<'_>, BuildError> {
        guest_kernel::extract_for(plan, &self.inputs.kernel.bytes).map_err(|source| {
            let what = format!("the kernel {} cannot be used", self.request.kernel.path.display());
            BuildError::unusable(what, self.request.kernel.named_by.span(), source)
        })
    }
}

/// Takes one of the attempts to decode a layer again; returns whether one was left.
fn is_left(forgotten: &mut HashMap<ActionKey, u8>, key: ActionKey) -> bool {
    let times = forgotten.entry(key).or_default();
    *times += 1;
    *times <= ATTEMPTS
}

/// Returns whether a build fails because of its images, so that only other images could mend it. What a person
/// mends in the Boxfile or on the machine keeps what was decoded, so that the next attempt is fast.
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

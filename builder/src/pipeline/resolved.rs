//! The results of the pipeline's two phases.

use std::fmt;
use std::sync::Mutex;

use crate::project::lock::Lock;
use box_cache::{ActionKey, Store};
use box_digest::{Blake3Digest, Digest, Hasher, Sha256};
use box_tree::listing::{FileOrigin, ImageOrigin, Origins};
use diagnostics::Diagnostic;

use super::cached::CachedLayers;
use super::inputs::{self, ComponentImage, Inputs};
use super::request::Request;
use super::step::{Observer, Step};
use crate::compose::Baked;
use crate::compose::merged::Unused;
use crate::{BuildError, Report, Sealed};

/// The result of a build.
#[derive(Debug)]
pub struct Build {
    /// The box.
    pub sealed: Sealed,
    /// Whether the box was taken from the store, without decoding layers or writing a rootfs.
    pub cached: bool,
    /// The policies of the Boxfile that decided no conflict.
    pub unused: Vec<Unused>,
    /// The blobs of the box that the store lacks: segments of layers that another host decoded, see [`CachedLayers`].
    pub absent: Vec<Digest>,
    /// Whether the build used layers that another host decoded. The store then has no record of the box, because a later build
    /// must not take it for one of the images' layers.
    pub has_cached_layers: bool,
}

/// The digests of the blobs with which a box starts, beside its rootfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootDigests {
    /// The sha256 of the init.
    pub init: Digest,
    /// The sha256 of the ELF kernel.
    pub kernel: Digest,
}

/// The result of the first phase: all inputs of a build, resolved to digests.
pub struct Resolved<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) store: &'a Store,
    pub(super) inputs: Inputs<'a>,
    pub(super) observer: Option<Observer<'a>>,
    /// The keys of the layers that this build decoded.
    pub(super) decoded: Mutex<Vec<ActionKey>>,
    /// The layers that another host decoded.
    pub(super) cached: CachedLayers,
    /// Whether the build uses no result of earlier builds.
    pub(super) is_afresh: bool,
}

impl fmt::Debug for Resolved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolved").field("lock", &self.lock()).finish_non_exhaustive()
    }
}

impl<'a> Resolved<'a> {
    /// Sets the observer of the second phase.
    #[must_use]
    pub fn observed(self, observer: Observer<'a>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Adds layers that another host decoded. The build then neither fetches nor decodes them, and the box may have
    /// segments that the store lacks: see [`Build::absent`].
    #[must_use]
    pub fn with_cached(self, cached: CachedLayers) -> Self {
        Self { cached, ..self }
    }

    /// Returns whether the build has used layers that another host decoded. If it failed, they may be the cause.
    pub fn has_cached_layers(&self) -> bool {
        self.cached.is_used()
    }

    /// Makes the build decode every layer and write the rootfs again, even if the store has the results of an earlier
    /// build.
    #[must_use]
    pub fn afresh(self, is_afresh: bool) -> Self {
        Self { is_afresh, ..self }
    }
}

impl Resolved<'_> {
    /// Reports a step to the observer.
    pub(super) fn report(&self, step: Step) {
        if let Some(observer) = self.observer {
            observer(step);
        }
    }

    /// Returns the digest of the boxbuild that builds the box.
    pub const fn builder(&self) -> Blake3Digest {
        self.request.builder
    }

    /// Returns the lock's entries for this Boxfile and platform.
    pub fn lock(&self) -> Lock {
        inputs::lock(&self.inputs, self.request)
    }

    /// Returns the warnings about images: images that changed since the lock was written, and images with variables
    /// that look like secrets, which become a part of the box. No warning contains a value.
    pub fn image_warnings(&self) -> Vec<Diagnostic> {
        let mut warnings = self.inputs.changed_images(self.request, self.store);
        warnings.extend(self.inputs.image_secrets(self.request.boxfile));
        warnings
    }

    /// Returns the warnings about layers whose media type names another compression than they have. Only blobs that are
    /// in the store or in a local image are checked, and none is fetched. After a build, they include every blob that
    /// the build read.
    pub fn layer_warnings(&self) -> Vec<Diagnostic> {
        self.inputs.mislabelled_layers(self.request)
    }

    /// Returns the digests of the init and the kernel as the box has them. The lock instead has the digest of the kernel's file,
    /// which can be a library that contains the kernel.
    ///
    /// # Errors
    /// [`BuildError`] if the kernel's file contains no kernel.
    pub fn boot_digests(&self) -> Result<BootDigests, BuildError> {
        let Inputs { init, kernel, .. } = &self.inputs;
        let found = guest_kernel::extract(&kernel.bytes).map_err(|it| self.unusable_kernel(it))?;
        let mut hasher = Hasher::<Sha256>::default();
        [&found.head, found.data].iter().for_each(|piece| hasher.update(piece));
        Ok(BootDigests { init: Digest::of(&init.bytes), kernel: hasher.digest() })
    }

    /// Returns the warnings about files of the checkout.
    pub fn warnings(&self) -> &[Report] {
        &self.inputs.warnings
    }

    /// Returns the names of the origins to which the tree refers by number: the inputs that the listing of the box names.
    pub fn origins(&self) -> Origins {
        let image = |(component, image): &ComponentImage<'_>| ImageOrigin {
            component: *component,
            layers: image.layers.iter().map(|layer| layer.diff_id).collect(),
        };
        let file = |Baked { component, declared, .. }: &Baked| FileOrigin {
            component: *component,
            path: declared.path.value.clone(),
        };
        Origins {
            images: self.inputs.images.iter().map(image).collect(),
            program: self.inputs.binary.as_ref().map(|binary| binary.sha256),
            skills: self.inputs.baked_skills().map(|skill| skill.name.clone()).collect(),
            files: self.inputs.baked.iter().map(file).collect(),
        }
    }
}

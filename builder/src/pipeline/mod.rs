//! The pipeline in two phases: [`resolve`] reads everything that a build reads and says what the lock is
//! to pin; [`Resolved`] then builds the box, or takes it from the store, or previews it.

mod inputs;
mod layers;
mod preview;
mod recall;
mod root;

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use box_cache::{BulkWriter, Store};
use box_digest::Blake3Digest;
use box_tree::Tree;
use box_tree::erofs::image_builder;
use box_tree::listing::{ImageOrigin, Listing, Origins};
use boxfile_spec::{Boxfile, Lock, Platform};
use download::fetch::FetchOptions;
use oci_image::Remote;

use crate::compose::merged::Unused;
use crate::pack::{ContentMap, Pack, PackDamaged};
use crate::project::Pins;
use crate::seal::{Contents, Stored, seal};
use crate::{BuildError, Report, Sealed, kernel};
pub use inputs::check;
use inputs::{ComponentImage, Inputs};
pub use preview::{Composition, LayerState, Preview, PreviewImage, PreviewSkill};
use recall::{recall, record};
use root::{Root, root};

/// The platform that this version builds for.
const BUILT: Platform = Platform::LinuxAmd64;

/// What to build, and of what.
#[derive(Debug)]
pub struct Request<'a> {
    /// The declaration.
    pub boxfile: &'a Boxfile,
    /// The directory that the Boxfile's relative paths start from.
    pub base: &'a Path,
    /// The directory that what belongs to the checkout must lie in.
    pub checkout: PathBuf,
    /// The platform to build for.
    pub platform: Platform,
    /// What the lock pins.
    pub pins: Pins<'a>,
    /// How files are downloaded.
    pub fetch: FetchOptions<'a>,
    /// How registries are asked for images; nothing where none is to be asked.
    pub remote: Option<&'a dyn Remote>,
    /// The init: a static program.
    pub init: &'a Path,
    /// The kernel: a libkrunfw library or an ELF kernel.
    pub kernel: PathBuf,
    /// Identifies the builder program, so that another one does not take this one's results.
    pub builder: Blake3Digest,
}

impl Request<'_> {
    /// Checks that this version can build for the platform.
    ///
    /// # Errors
    /// [`BuildError::Platform`].
    pub fn check_platform(&self) -> Result<(), BuildError> {
        if self.platform == BUILT {
            return Ok(());
        }
        Err(BuildError::Platform { platform: self.platform })
    }
}

/// What a build gave.
#[derive(Debug)]
pub struct Build {
    /// The box.
    pub sealed: Sealed,
    /// Whether it was in the store already, so that nothing was decoded or baked.
    pub cached: bool,
    /// The policies of the Boxfile that decided nothing.
    pub unused: Vec<Unused>,
}

/// Everything that a build reads, resolved to digests: the first phase's result.
pub struct Resolved<'a> {
    request: &'a Request<'a>,
    store: &'a Store,
    inputs: Inputs,
}

impl fmt::Debug for Resolved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolved").field("lock", &self.lock()).finish_non_exhaustive()
    }
}

/// Resolves everything that a build reads: images to digests, files to their contents. Nothing is
/// decoded or baked, and the platform may be one that cannot be built.
///
/// # Errors
/// [`BuildError`].
pub fn resolve<'a>(request: &'a Request<'a>, store: &'a Store) -> Result<Resolved<'a>, BuildError> {
    Ok(Resolved { request, store, inputs: Inputs::resolve(request, store)? })
}

impl Resolved<'_> {
    /// Returns what the lock is to pin: the entries for this Boxfile and platform.
    pub fn lock(&self) -> Lock {
        inputs::lock(&self.inputs, self.request)
    }

    /// Returns the warnings about files of the checkout.
    pub fn warnings(&self) -> &[Report] {
        &self.inputs.warnings
    }

    /// Returns the names that the origins in the tree refer to by number.
    fn origins(&self) -> Origins {
        let image = |(component, image): &ComponentImage| ImageOrigin {
            component: *component,
            layers: image.layers.iter().map(|layer| layer.diff_id).collect(),
        };
        Origins {
            images: self.inputs.images.iter().map(image).collect(),
            program: self.inputs.binary.as_ref().map(|binary| binary.sha256),
            skills: self.inputs.baked_skills().map(|skill| skill.name.clone()).collect(),
        }
    }

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
        record(self.store, &key, &sealed, &unused)?;
        Ok(Build { sealed, cached: false, unused })
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
    /// damaged or gone, the store forgets that layer, so that the next attempt decodes it again; each
    /// layer once.
    fn retry_damaged<T>(&self, stage: impl Fn() -> Result<T, BuildError>) -> Result<T, BuildError> {
        let mut forgotten = HashSet::new();
        loop {
            let result = stage();
            match result.as_ref().err().and_then(|error| PackDamaged::cause_of(error)) {
                Some(PackDamaged(Pack::Layer(key))) if forgotten.insert(key) => {
                    self.store.forget(&key)?;
                }
                _ => return result,
            }
        }
    }

    fn make(&self) -> Result<(Sealed, Vec<Unused>), BuildError> {
        let Root { tree, contents, plan, unused } = root(self)?;
        let (kernel, kernel_version) = self.kernel()?;
        let rootfs = rootfs(&tree, &contents, self.store)?;
        let init = Stored::put(self.store, &self.inputs.init.bytes)?;
        let digest = tree.digest();
        let listing = Listing { tree, origins: self.origins() };
        let listing = Stored::put(self.store, &listing.encode()?)?;
        let contents =
            Contents { plan, tree: digest, kernel_version, rootfs, init, kernel, listing };
        Ok((seal(self.store, contents)?, unused))
    }

    fn kernel(&self) -> Result<(Stored, String), BuildError> {
        let kernel = kernel::extract(&self.inputs.kernel.bytes).map_err(|source| {
            let what = format!("the kernel {} cannot be used", self.request.kernel.display());
            BuildError::unusable(what, None, source)
        })?;
        Ok((Stored::put(self.store, &kernel.elf)?, kernel.version))
    }
}

/// Bakes a tree into the store.
fn rootfs(tree: &Tree, contents: &ContentMap, store: &Store) -> Result<Stored, BuildError> {
    std::thread::scope(|scope| {
        let mut writer = BulkWriter::new(store, scope)?;
        image_builder(tree)?.write(&mut writer, &mut contents.reader(store))?;
        let (blob, size) = writer.commit()?;
        Ok(Stored { blob, size })
    })
}

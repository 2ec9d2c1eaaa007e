//! The preview of a build: the pipeline up to the composed tree, without a box as its result.

use std::collections::BTreeMap;

use box_cache::Store;
use box_contract::plan::Unsupported;
use box_contract::{ComponentName, Permission, SkillMode};
use box_digest::{Blake3Digest, Digest};
use box_tree::listing::Origins;
use box_tree::{Tree, entries};
use oci_image::Image;
use oci_layer::LayerSource;
use serde::{Serialize, Serializer};

use super::inputs::SkillInput;
use super::layers;
use super::recall::recall;
use super::resolved::Resolved;
use super::root::{Root, composed, flattened, merge};
use crate::BuildError;
use crate::compose::merged::MergeConflicts;
use crate::compose::{Baked, FlatImage, MergeReport};

/// The preview of a build.
#[derive(Debug)]
pub struct Preview {
    /// The images that the build reads.
    pub images: Vec<PreviewImage>,
    /// sha256 of the agent's program, if it is not in an image.
    pub program: Option<Digest>,
    /// The skills, sorted by name.
    pub skills: Vec<PreviewSkill>,
    /// The files of the checkout that the box puts into components, in the order of [`Origins::files`].
    pub files: Vec<PreviewFile>,
    /// The digest of the box, if a build would take the box from the store.
    pub known: Option<Digest>,
    /// The layout of the images' roots.
    pub composition: Composition,
    /// The root tree's digest and number of entries, or the conflicts that prevent it.
    pub root: Summary,
    /// The permissions of the box on its host. Empty if the images conflict.
    pub permissions: Vec<Permission>,
    /// The settings that this version of boxlaunch does not support. Empty if the images conflict.
    pub unsupported: Vec<Unsupported>,
    /// The names of the origins to which the root tree refers by number.
    pub origins: Origins,
}

/// An image that a build reads.
#[derive(Debug, Serialize)]
pub struct PreviewImage {
    /// The component whose root the image is.
    pub component: ComponentName,
    /// The digest of the image's manifest.
    pub digest: Digest,
    /// The image's layers, the lowest first.
    pub layers: Vec<LayerState>,
}

/// A layer of an image.
#[derive(Debug, Serialize)]
pub struct LayerState {
    /// The digest of the layer's blob in the image.
    pub digest: Digest,
    /// The size of the blob in bytes.
    pub size: u64,
    /// Whether the store had the decoded layer before the preview.
    pub decoded: bool,
}

/// A skill that a build reads.
#[derive(Debug, Serialize)]
pub struct PreviewSkill {
    /// The name in the Boxfile, or the name of the skill's directory.
    pub name: String,
    /// Whether the skill is baked or mounted. Serialized as the Boxfile's word.
    #[serde(serialize_with = "mode_name")]
    pub mode: SkillMode,
    /// The total size of its files in bytes.
    pub bytes: u64,
}

/// A file or directory of the checkout that a build reads.
#[derive(Debug, Serialize)]
pub struct PreviewFile {
    /// The component whose root gets the file.
    pub component: ComponentName,
    /// The path in the checkout, as the Boxfile names it.
    pub path: String,
    /// The path in the component's root.
    pub to: String,
    /// The total size of its files in bytes.
    pub bytes: u64,
}

impl PreviewFile {
    fn of(Baked { component, declared, source }: &Baked) -> Self {
        let [path, to] = [&declared.path, &declared.to].map(|it| it.value.clone());
        Self { component: *component, path, to, bytes: source.files.size() }
    }
}

fn mode_name<S: Serializer>(mode: &SkillMode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode.name())
}

/// The layout of the images' roots.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Composition {
    /// Each image has a separate root.
    Split {
        /// The number of distinct file contents that both images have. They are stored once.
        shared_files: usize,
        /// The total size of these contents in bytes.
        shared_bytes: u64,
    },
    /// The images share one root.
    Merged(Box<MergeReport>),
}

impl Resolved<'_> {
    /// Previews a build. Decodes layers into the store, as a build does.
    ///
    /// # Errors
    /// [`BuildError`], as for a build. Conflicts of the layout `merged` are no error, but a part of the preview.
    pub fn preview(&self) -> Result<Preview, BuildError> {
        self.request.check_platform()?;
        let Self { request, store, inputs, .. } = self;
        let known = recall(store, &inputs.key(request))?.map(|it| it.sealed.manifest);
        let images = inputs.images.iter().map(|(component, image)| look(*component, image, store));
        let images = images.collect::<Result<_, _>>()?;
        let skills = inputs.skills.iter().map(|SkillInput { name, mode, skill, .. }| {
            let bytes = skill.files.size();
            PreviewSkill { name: name.clone(), mode: *mode, bytes }
        });
        let (composition, root) = self.retry_damaged(|| compose(self))?;
        let (root, permissions, unsupported) = match root {
            Ok(root) => {
                // The kernel of a known box was checked when the box was built.
                if known.is_none() {
                    self.kernel(&root.plan)?;
                }
                let entries = entries(&root.tree).count();
                let (permissions, unsupported) = (root.plan.permissions(), root.plan.unsupported());
                (Ok((root.tree.digest(), entries)), permissions, unsupported)
            }
            Err(unmerged) => (Err(unmerged), Vec::new(), Vec::new()),
        };
        Ok(Preview {
            images,
            program: inputs.binary.as_ref().map(|binary| binary.sha256),
            skills: skills.collect(),
            files: inputs.baked.iter().map(PreviewFile::of).collect(),
            known,
            composition,
            root,
            permissions,
            unsupported,
            origins: self.origins(),
        })
    }
}

/// The digest of a tree and the number of its entries, or the conflicts that prevent it.
type Summary = Result<(Blake3Digest, usize), Box<MergeConflicts>>;

/// Composes the root, or returns the conflicts that prevent it.
fn compose(
    resolved: &Resolved<'_>,
) -> Result<(Composition, Result<Root, Box<MergeConflicts>>), BuildError> {
    let flat = flattened(resolved)?;
    let merge = merge(resolved, &flat)?;
    let composition = match &merge {
        None => shared(&flat.images),
        Some(merge) => Composition::Merged(Box::new(merge.report.clone())),
    };
    match composed(resolved, flat, merge) {
        Ok(root) => Ok((composition, Ok(root))),
        Err(BuildError::Conflicts(unmerged)) => Ok((composition, Err(unmerged))),
        Err(error) => Err(error),
    }
}

fn look(
    component: ComponentName,
    image: &Image<'_>,
    store: &Store,
) -> Result<PreviewImage, BuildError> {
    let layer = |layer: &LayerSource| -> Result<LayerState, BuildError> {
        let LayerSource { digest, size, .. } = *layer;
        Ok(LayerState { digest, size, decoded: layers::is_decoded(layer, store)? })
    };
    let layers = image.layers.iter().map(layer).collect::<Result<_, _>>()?;
    Ok(PreviewImage { component, digest: image.manifest, layers })
}

/// Returns a [`Composition::Split`] with the number and the size of the contents that all images have.
fn shared(images: &[FlatImage]) -> Composition {
    let mut all = images.iter().map(|image| contents(&image.tree));
    let mut both = if images.len() > 1 { all.next().unwrap_or_default() } else { BTreeMap::new() };
    all.for_each(|other| both.retain(|hash, _| other.contains_key(hash)));
    Composition::Split { shared_files: both.len(), shared_bytes: both.values().sum() }
}

/// Returns the distinct contents of a tree's files, with their sizes.
fn contents(tree: &Tree) -> BTreeMap<Blake3Digest, u64> {
    let files = entries(tree).filter_map(|(_, id)| tree.inode(id).content());
    files.filter(|it| it.size > 0).map(|it| (it.hash, it.size)).collect()
}

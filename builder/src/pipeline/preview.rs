//! What a build would do: the pipeline up to the composed tree, and nothing of it written as a box.

use std::collections::BTreeMap;

use box_cache::{ActionKey, Store};
use box_image::{ComponentName, Digest};
use box_tree::listing::Origins;
use box_tree::{Kind, Leaf, Tree, TreeDigest, entries};
use boxfile_spec::{Lock, SkillMode};
use oci_image::Image;
use oci_layer::LayerSource;

use super::inputs::{Inputs, SkillInput};
use super::recall::recall;
use super::{Request, Unmerged, composed, flattened, healing, layers, merging, origins};
use crate::compose::{FlatImage, MergeReport};
use crate::{BuildError, Report};

/// What a build would do.
#[derive(Debug)]
pub struct Preview {
    /// The images that it reads.
    pub images: Vec<PreviewImage>,
    /// sha256 of the agent's program that is in no image.
    pub program: Option<Digest>,
    /// The skills, sorted by name.
    pub skills: Vec<PreviewSkill>,
    /// The box, if it is in the store, so that a build would take it from there.
    pub known: Option<Digest>,
    /// What became of the images.
    pub composition: Composition,
    /// The root tree: its digest, and how many entries it has; or why there is none.
    pub root: Result<(TreeDigest, usize), Box<Unmerged>>,
    /// What origins are numbers of.
    pub origins: Origins,
    /// What the lock would say.
    pub lock: Lock,
    /// What is worth a look in files of the checkout.
    pub warnings: Vec<Report>,
}

/// An image that a build reads.
#[derive(Debug)]
pub struct PreviewImage {
    /// Whose it is.
    pub component: ComponentName,
    /// Its digest.
    pub digest: Digest,
    /// Its layers, the lowest first.
    pub layers: Vec<LayerState>,
}

/// A layer of an image.
#[derive(Debug)]
pub struct LayerState {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes, as it is stored in the image.
    pub size: u64,
    /// Whether the store had it decoded before.
    pub decoded: bool,
}

/// A skill that a build reads.
#[derive(Debug)]
pub struct PreviewSkill {
    /// Its name.
    pub name: String,
    /// Whether it is baked or mounted.
    pub mode: SkillMode,
    /// The bytes of its files.
    pub bytes: u64,
}

/// What became of the images.
#[derive(Debug)]
pub enum Composition {
    /// Each has its own root.
    Split {
        /// How many distinct contents of files both have, which are stored once.
        shared_files: usize,
        /// Their bytes.
        shared_bytes: u64,
    },
    /// They have one root.
    Merged(MergeReport),
}

/// Finds out what a build would do. Layers are decoded into the store, as a build would.
///
/// # Errors
/// [`BuildError`], as a build; but conflicts of the layout `merged` are a part of the preview.
pub fn preview(request: &Request<'_>, store: &Store) -> Result<Preview, BuildError> {
    let mut inputs = Inputs::read(request, store)?;
    let known = recall(store, &inputs.key(request))?.map(|(sealed, _)| sealed.manifest);
    let images = inputs.images.iter().map(|(component, image)| look(*component, image, store));
    let images = images.collect::<Result<_, _>>()?;
    let (composition, root) = healing(|stale| compose(request, &inputs, stale, store))?;
    Ok(Preview {
        images,
        program: inputs.binary.as_ref().map(|binary| binary.sha256),
        skills: inputs.skills.iter().map(skill).collect(),
        known,
        composition,
        root,
        origins: origins(&inputs),
        lock: inputs.lock(request),
        warnings: std::mem::take(&mut inputs.warnings),
    })
}

/// The digest of a tree, and how many entries it has; or why there is none.
type Summary = Result<(TreeDigest, usize), Box<Unmerged>>;

fn compose(
    request: &Request<'_>,
    inputs: &Inputs,
    stale: Option<ActionKey>,
    store: &Store,
) -> Result<(Composition, Summary), BuildError> {
    let flat = flattened(request, inputs, stale, store)?;
    let merge = merging::merge(request, &flat, store)?;
    let composition = match &merge {
        None => shared(&flat.0),
        Some(merge) => Composition::Merged(merge.report.clone()),
    };
    let root = match composed(request, inputs, flat, merge, store) {
        Ok(root) => Ok((root.tree.digest(), entries(&root.tree).count())),
        Err(BuildError::Conflicts(unmerged)) => Err(unmerged),
        Err(error) => return Err(error),
    };
    Ok((composition, root))
}

fn look(
    component: ComponentName,
    image: &Image,
    store: &Store,
) -> Result<PreviewImage, BuildError> {
    let layer = |layer: &LayerSource| -> Result<LayerState, BuildError> {
        let LayerSource { digest, size, .. } = *layer;
        Ok(LayerState { digest, size, decoded: layers::is_decoded(layer, store)? })
    };
    let layers = image.layers.iter().map(layer).collect::<Result<_, _>>()?;
    Ok(PreviewImage { component, digest: image.manifest, layers })
}

fn skill(skill: &SkillInput) -> PreviewSkill {
    let bytes = contents(&skill.skill.tree).values().sum();
    PreviewSkill { name: skill.name.clone(), mode: skill.mode, bytes }
}

/// Finds the contents that all images have.
fn shared(images: &[FlatImage]) -> Composition {
    let mut all = images.iter().map(|image| contents(&image.tree));
    let mut both = if images.len() > 1 { all.next().unwrap_or_default() } else { BTreeMap::new() };
    all.for_each(|other| both.retain(|hash, _| other.contains_key(hash)));
    Composition::Split { shared_files: both.len(), shared_bytes: both.values().sum() }
}

/// Lists the contents of a tree's files, each once, with their sizes.
fn contents(tree: &Tree) -> BTreeMap<[u8; 32], u64> {
    let files = entries(tree).filter_map(|(_, id)| match &tree.inode(id).kind {
        Kind::Leaf(Leaf::File(content)) if content.size > 0 => Some((content.hash, content.size)),
        _ => None,
    });
    files.collect()
}

//! The pipeline: from a Boxfile to a sealed box, or straight to the box that is in the store.

mod inputs;
mod layers;
mod recall;

use std::path::Path;

use box_cache::Store;
use box_image::{ComponentName, RunPlan};
use boxfile_spec::Boxfile;

use crate::bake::bake;
use crate::compose::{FlatImage, Parts, compose, plan_of};
use crate::layer::{Limits, flatten};
use crate::pack::ContentMap;
use crate::seal::{Contents, Stored, seal};
use crate::tree::{Content, Tree};
use crate::{BuildError, Sealed, kernel};
use inputs::Inputs;
use layers::{DecodedLayer, decode_all};
use recall::{recall, record};

/// What to build, and of what.
#[derive(Debug)]
pub struct Request<'a> {
    /// The declaration.
    pub boxfile: &'a Boxfile,
    /// The directory that the Boxfile's relative paths start from.
    pub base: &'a Path,
    /// The init: a static program.
    pub init: &'a Path,
    /// The kernel: a libkrunfw library or an ELF kernel.
    pub kernel: &'a Path,
    /// Identifies the builder program, so that another one does not take this one's results.
    pub builder: [u8; 32],
}

/// What a build gave.
#[derive(Debug)]
pub struct Build {
    /// The box.
    pub sealed: Sealed,
    /// Whether it was in the store already, so that nothing was decoded or baked.
    pub cached: bool,
}

/// Builds a box into the store.
///
/// # Errors
/// [`BuildError`]; the store then holds at most whole parts of the box.
pub fn build(request: &Request<'_>, store: &Store) -> Result<Build, BuildError> {
    let inputs = Inputs::read(request)?;
    let key = inputs.key(request);
    if let Some(sealed) = recall(store, &key)? {
        return Ok(Build { sealed, cached: true });
    }
    let sealed = make(request, &inputs, store)?;
    record(store, &key, &sealed)?;
    Ok(Build { sealed, cached: false })
}

/// Returns the root tree of a box without baking it: every file of the rootfs.
///
/// # Errors
/// [`BuildError`].
pub fn root_tree(request: &Request<'_>, store: &Store) -> Result<Tree, BuildError> {
    root(request, &Inputs::read(request)?, store).map(|root| root.tree)
}

/// A root tree, where its data lies, and the plan in it.
struct Root {
    tree: Tree,
    contents: ContentMap,
    plan: RunPlan,
}

fn root(request: &Request<'_>, inputs: &Inputs, store: &Store) -> Result<Root, BuildError> {
    let decoded = decode_all(inputs, request.boxfile, store, &Limits::default())?;
    let mut contents = ContentMap::default();
    decoded.values().for_each(|layer| contents.add(layer.pack, &layer.index.contents));
    let images = inputs
        .images
        .iter()
        .map(|(component, image)| flat(*component, image, &decoded, request.boxfile))
        .collect::<Result<Vec<_>, _>>()?;
    let plan = plan_of(request.boxfile, &images, &mut contents.reader(store))?;
    let plan_bytes = serde_json::to_vec(&plan)?;
    let plan_content = Content::of(&plan_bytes);
    contents.add(store.put(&plan_bytes)?, &[(plan_content, 0)]);
    store_skills(inputs, store, &mut contents)?;
    let skills = inputs.skills.iter().map(|(name, skill)| (name.as_str(), &skill.tree)).collect();
    let tree = compose(&Parts { images: &images, skills, plan: plan_content })?;
    Ok(Root { tree, contents, plan })
}

fn make(request: &Request<'_>, inputs: &Inputs, store: &Store) -> Result<Sealed, BuildError> {
    let Root { tree, contents, plan } = root(request, inputs, store)?;
    let (kernel, kernel_version) = kernel_blob(request, inputs, store)?;
    let rootfs = rootfs_blob(&tree, &contents, store)?;
    let init = Stored { blob: store.put(&inputs.init)?, size: inputs.init.len() as u64 };
    seal(store, Contents { plan, tree: tree.digest(), kernel_version, rootfs, init, kernel })
}

fn flat(
    component: ComponentName,
    image: &crate::source::Image,
    decoded: &std::collections::BTreeMap<layers::LayerId, DecodedLayer>,
    boxfile: &Boxfile,
) -> Result<FlatImage, BuildError> {
    let layers =
        image.layers.iter().map(|layer| (layer.digest, &decoded[&layers::id(layer)].index));
    let tree = flatten(layers).map_err(|source| BuildError::Layer {
        component,
        span: inputs::image_span(boxfile, component),
        source,
    })?;
    Ok(FlatImage { component, image: image.clone(), tree })
}

/// Puts the skills' data into the store, as packs like those of the layers.
fn store_skills(
    inputs: &Inputs,
    store: &Store,
    contents: &mut ContentMap,
) -> Result<(), BuildError> {
    for (_, skill) in &inputs.skills {
        let (mut pack, mut places) = (Vec::new(), Vec::new());
        for (content, data) in &skill.data {
            places.push((*content, pack.len() as u64));
            pack.extend_from_slice(data);
        }
        contents.add(store.put(&pack)?, &places);
    }
    Ok(())
}

fn rootfs_blob(tree: &Tree, contents: &ContentMap, store: &Store) -> Result<Stored, BuildError> {
    let mut writer = store.writer()?;
    bake(tree, &mut contents.reader(store), &mut writer)?;
    let (blob, size) = writer.commit()?;
    Ok(Stored { blob, size })
}

fn kernel_blob(
    request: &Request<'_>,
    inputs: &Inputs,
    store: &Store,
) -> Result<(Stored, String), BuildError> {
    let kernel = kernel::extract(&inputs.kernel)
        .map_err(|source| BuildError::Kernel { path: request.kernel.to_owned(), source })?;
    let stored = Stored { blob: store.put(&kernel.elf)?, size: kernel.elf.len() as u64 };
    Ok((stored, kernel.version))
}
